package policy_test

import (
	"strings"
	"testing"
	"time"

	errorsmod "cosmossdk.io/errors"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/policy"
	core "github.com/tally-network/tally/core/power"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

const funds = 10_000

var (
	alice, bob, carol = chaintest.Named("alice"), chaintest.Named("bob"), chaintest.Named("carol")
	founder           = chaintest.Named("producer") // the genesis set
)

// rules are those of the tests: a vote takes an hour, and what has passed waits for another.
func rules() policyv1.Params {
	return policyv1.Params{
		Base: 1000, Quorum: 400, ThresholdBps: 5000, VetoBps: 3334, Deposit: 100, MaxOpen: 3,
		VotingMs: time.Hour.Milliseconds(), DelayMs: time.Hour.Milliseconds(),
	}
}

func newChain(t *testing.T, options ...chaintest.Option) *chaintest.Chain {
	return chaintest.New(t, append(options, chaintest.Fund(funds, "alice", "bob", "carol", "producer"),
		func(g *app.Genesis) { g.Policy = rules() })...)
}

// credit gives an account training that is worth so many millionths of a ut of power.
func credit(t *testing.T, c *chaintest.Chain, who chaintest.Account, power uint64) {
	t.Helper()
	if err := c.Do(func(ctx sdk.Context) error { return c.Power.Credit(ctx, who.Address, power*10/6*core.MicroUT) }); err != nil {
		t.Fatal(err)
	}
}

// dearer asks for a higher price of gas.
func dearer(c *chaintest.Chain, price uint64) *blockv1.MsgUpdateParams {
	p, _ := c.Block.Params(c.Ctx())
	p.GasPrice = price
	return &blockv1.MsgUpdateParams{Authority: address.Policy().String(), Params: p}
}

func proposal(t *testing.T, by chaintest.Account, deposit uint64, msgs ...sdk.Msg) *policyv1.MsgPropose {
	t.Helper()
	m := &policyv1.MsgPropose{Proposer: by.String(), Title: "Gas costs more", Summary: "Blocks are full.", Deposit: deposit}
	for _, x := range msgs {
		packed, err := codectypes.NewAnyWithValue(x)
		if err != nil {
			t.Fatal(err)
		}
		m.Messages = append(m.Messages, packed)
	}
	return m
}

func vote(by chaintest.Account, id uint64, o policyv1.Option) *policyv1.MsgVote {
	return &policyv1.MsgVote{Voter: by.String(), Proposal: id, Option: o}
}

func get(t *testing.T, c *chaintest.Chain, id uint64) policyv1.Proposal {
	t.Helper()
	r, err := policyv1.NewQueryClient(c).Proposal(t.Context(), &policyv1.QueryProposalRequest{Proposal: id})
	if err != nil {
		t.Fatal(err)
	}
	return r.Proposal
}

func price(t *testing.T, c *chaintest.Chain) uint64 {
	t.Helper()
	p, err := c.Block.Params(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	return p.GasPrice
}

// The genesis set alone changes a rule: after the vote and the delay, not before, and the deposit comes back.
func TestFoundersChangeARule(t *testing.T) {
	c := newChain(t)
	c.Deliver(alice, proposal(t, alice, 100, dearer(c, 200)))
	if c.Balance(alice.Address) != funds-100 {
		t.Error("the deposit was not taken")
	}
	c.Deliver(founder, vote(founder, 0, policyv1.OPTION_YES))
	if x := get(t, c, 0); x.Missing != 1000 || x.Tally.Yes != 1000 || x.Status != policyv1.STATUS_VOTING {
		t.Fatalf("%+v", x)
	}
	c.NextBlock(time.Hour)
	if x := get(t, c, 0); x.Status != policyv1.STATUS_PASSED || price(t, c) != 100 {
		t.Fatalf("%+v", x)
	}
	if c.Balance(alice.Address) != funds {
		t.Error("the deposit did not come back")
	}
	again := c.Fork()
	for _, c := range []*chaintest.Chain{c, again} {
		c.NextBlock(time.Hour)
		if x := get(t, c, 0); x.Status != policyv1.STATUS_EXECUTED || price(t, c) != 200 {
			t.Fatalf("%+v, the price is %d", x, price(t, c))
		}
	}
}

// Power votes as it was when the proposal began. A vote that is changed moves, and one cast twice counts once.
func TestWeightIsFrozen(t *testing.T) {
	c := newChain(t)
	credit(t, c, alice, 300)
	credit(t, c, bob, 300)
	c.Deliver(carol, proposal(t, carol, 100, dearer(c, 200)))
	credit(t, c, alice, 600)
	credit(t, c, carol, 600)
	c.Refuse(policy.ErrVote, carol, vote(carol, 0, policyv1.OPTION_YES)) // it had nothing then
	c.Deliver(alice, vote(alice, 0, policyv1.OPTION_NO))
	c.Deliver(alice, vote(alice, 0, policyv1.OPTION_YES))
	c.Deliver(alice, vote(alice, 0, policyv1.OPTION_YES))
	c.NextBlock(30 * time.Minute)
	c.Deliver(bob, vote(bob, 0, policyv1.OPTION_ABSTAIN))
	c.Deliver(founder, vote(founder, 0, policyv1.OPTION_NO))
	if x := get(t, c, 0); x.Missing != 400 || x.Tally != (policyv1.Tally{Yes: 300, Abstain: 300, No: 400}) {
		t.Fatalf("%+v", x)
	}
	again := c.Fork() // with what records were at the start
	for _, c := range []*chaintest.Chain{c, again} {
		w, err := policyv1.NewQueryClient(c).Weight(t.Context(), &policyv1.QueryWeightRequest{Account: alice.String()})
		if err != nil || w.Weight != 300 || w.Option != policyv1.OPTION_YES {
			t.Errorf("%v, %v", w, err)
		}
		c.NextBlock(time.Hour)
		if x := get(t, c, 0); x.Status != policyv1.STATUS_REJECTED {
			t.Errorf("%+v", x)
		}
		c.Refuse(policy.ErrVote, bob, vote(bob, 0, policyv1.OPTION_YES)) // it is over
	}
}

// Of several proposals each counts what was power when it began, whichever ends first.
func TestEachProposalHasItsOwnPower(t *testing.T) {
	c := newChain(t)
	for i := range 3 {
		credit(t, c, alice, 60)
		c.Deliver(bob, proposal(t, bob, 100<<i, dearer(c, 200)))
	}
	credit(t, c, alice, 60)
	for id, want := range []uint64{60, 120, 180} {
		c.Deliver(alice, vote(alice, uint64(id), policyv1.OPTION_NO))
		if x := get(t, c, uint64(id)); x.Tally.No != want || x.Missing != 1000-want {
			t.Errorf("proposal %d: %+v, want %d", id, x, want)
		}
	}
	c.NextBlock(2 * time.Hour)
	for range 3 { // a block sweeps up after one proposal
		c.NextBlock(time.Second)
	}
	g, err := c.Power.ExportGenesis(c.Ctx())
	if err != nil || len(g.Marks) != 0 || len(g.Earlier) != 0 {
		t.Errorf("%d marks and %d earlier records are left, %v", len(g.Marks), len(g.Earlier), err)
	}
	p, err := c.Policy.ExportGenesis(c.Ctx())
	if err != nil || len(p.Votes) != 0 {
		t.Errorf("%d votes are left, %v", len(p.Votes), err)
	}
}

// Whoever is convicted has no vote left, cast or not. A founder keeps what it votes as such.
func TestConvictsDoNotVote(t *testing.T) {
	c := newChain(t)
	for _, who := range []chaintest.Account{alice, bob, founder} {
		credit(t, c, who, 300)
	}
	c.Deliver(carol, proposal(t, carol, 100, dearer(c, 200)))
	c.Deliver(alice, vote(alice, 0, policyv1.OPTION_YES))
	c.Deliver(founder, vote(founder, 0, policyv1.OPTION_YES))
	if x := get(t, c, 0); x.Tally.Yes != 700 {
		t.Fatalf("%+v", x)
	}
	for _, who := range []chaintest.Account{alice, bob, founder} {
		if err := c.Do(func(ctx sdk.Context) error { return c.Power.Forfeit(ctx, who.Address) }); err != nil {
			t.Fatal(err)
		}
	}
	if x := get(t, c, 0); x.Tally != (policyv1.Tally{}) {
		t.Fatalf("%+v", x)
	}
	credit(t, c, alice, 300)
	c.Refuse(policy.ErrVote, alice, vote(alice, 0, policyv1.OPTION_YES))
	c.Refuse(policy.ErrVote, bob, vote(bob, 0, policyv1.OPTION_YES))
	c.Deliver(founder, vote(founder, 0, policyv1.OPTION_YES))
	if x := get(t, c, 0); x.Tally.Yes != 100 {
		t.Fatalf("%+v", x)
	}
}

// A deposit is burnt if the vote vetoes it, or nobody cares.
func TestDepositsAreBurnt(t *testing.T) {
	for _, x := range []struct {
		votes []policyv1.Option
		want  policyv1.Status
		left  uint64
	}{
		{nil, policyv1.STATUS_NO_QUORUM, funds - 100},
		{[]policyv1.Option{policyv1.OPTION_VETO}, policyv1.STATUS_VETOED, funds - 100},
		{[]policyv1.Option{policyv1.OPTION_NO}, policyv1.STATUS_REJECTED, funds},
		{[]policyv1.Option{policyv1.OPTION_ABSTAIN}, policyv1.STATUS_REJECTED, funds},
	} {
		c := newChain(t)
		c.Deliver(alice, proposal(t, alice, 100, dearer(c, 200)))
		for _, o := range x.votes {
			c.Deliver(founder, vote(founder, 0, o))
		}
		c.NextBlock(time.Hour)
		if p := get(t, c, 0); p.Status != x.want || c.Balance(alice.Address) != x.left || p.Deposit != 0 {
			t.Errorf("%v: %s, %d utally are left", x.votes, p.Status, c.Balance(alice.Address))
		}
		c.NextBlock(3 * time.Hour)
		if price(t, c) != 100 {
			t.Errorf("%v: it was executed", x.votes)
		}
	}
}

// Whoever fills all places pays more for each, and no more are open.
func TestProposalsCannotFloodTheChain(t *testing.T) {
	c := newChain(t)
	for i := range 3 {
		if i > 0 {
			c.Refuse(policy.ErrDeposit, alice, proposal(t, alice, 100<<i-1, dearer(c, 200)))
		}
		c.Deliver(alice, proposal(t, alice, 100<<i, dearer(c, 200)))
	}
	c.Refuse(policy.ErrFull, alice, proposal(t, alice, 5000, dearer(c, 200)))
	c.NextBlock(2 * time.Hour)
	c.Deliver(alice, proposal(t, alice, 100, dearer(c, 200)))
}

// What no vote may execute is refused when it is proposed.
func TestProposalsThatAreRefused(t *testing.T) {
	c := newChain(t)
	bend := func(f func(*policyv1.MsgPropose)) *policyv1.MsgPropose {
		m := proposal(t, alice, 100, dearer(c, 200))
		f(m)
		return m
	}
	foreign, free := dearer(c, 200), dearer(c, 0)
	foreign.Authority = alice.String()
	nested := proposal(t, alice, 100, dearer(c, 200))
	for name, x := range map[string]struct {
		m    *policyv1.MsgPropose
		want *errorsmod.Error
	}{
		"no title":         {bend(func(m *policyv1.MsgPropose) { m.Title = "" }), policy.ErrProposal},
		"two lines":        {bend(func(m *policyv1.MsgPropose) { m.Title = "a\nb" }), policy.ErrProposal},
		"long summary":     {bend(func(m *policyv1.MsgPropose) { m.Summary = strings.Repeat("x", 4097) }), policy.ErrProposal},
		"a terminal's":     {bend(func(m *policyv1.MsgPropose) { m.Summary = "\x1b[2J" }), policy.ErrProposal},
		"nothing to do":    {bend(func(m *policyv1.MsgPropose) { m.Messages = nil }), policy.ErrMessage},
		"too many":         {proposal(t, alice, 100, repeated(dearer(c, 200), 17)...), policy.ErrMessage},
		"another signer":   {proposal(t, alice, 100, foreign), policy.ErrMessage},
		"a payment":        {proposal(t, alice, 100, banktypes.NewMsgSend(address.Policy(), alice.Address, coin.Of(1))), policy.ErrMessage},
		"another proposal": {proposal(t, alice, 100, nested), policy.ErrMessage},
		"free blocks":      {proposal(t, alice, 100, free), policy.ErrMessage},
		"a bad one last":   {proposal(t, alice, 100, dearer(c, 200), free), policy.ErrMessage},
		"small deposit":    {proposal(t, alice, 99, dearer(c, 200)), policy.ErrDeposit},
	} {
		t.Run(name, func(t *testing.T) { c.Refuse(x.want, alice, x.m) })
	}
	if price(t, c) != 100 || c.Balance(alice.Address) != funds {
		t.Error("a proposal that was refused did something")
	}
}

func repeated(m sdk.Msg, n int) (out []sdk.Msg) {
	for range n {
		out = append(out, m)
	}
	return out
}

// Votes for nothing and on nothing are refused.
func TestVotesThatAreRefused(t *testing.T) {
	c := newChain(t)
	c.Deliver(alice, proposal(t, alice, 100, dearer(c, 200)))
	c.Refuse(policy.ErrVote, alice, vote(alice, 0, policyv1.OPTION_YES))
	c.Refuse(policy.ErrNotFound, founder, vote(founder, 1, policyv1.OPTION_YES))
	for _, o := range []policyv1.Option{0, 5, -1} {
		c.Refuse(policy.ErrVote, founder, vote(founder, 0, o))
	}
	if x := get(t, c, 0); x.Tally != (policyv1.Tally{}) {
		t.Errorf("%+v", x)
	}
}

// A message that is refused when its time has come is recorded. It halts nothing, and nothing of its proposal is done.
func TestFailureIsRecorded(t *testing.T) {
	c := newChain(t)
	less, more := rules(), dearer(c, 200)
	less.Quorum = 200
	both := &policyv1.MsgUpdateParams{Authority: address.Policy().String(), Params: less}
	c.Deliver(alice, proposal(t, alice, 100, more, both))
	c.Deliver(founder, vote(founder, 0, policyv1.OPTION_YES))
	c.NextBlock(time.Hour)
	// In a genesis made of this state, rules of votes are another account's.
	state, err := c.Policy.ExportGenesis(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	state.Authority = alice.String()
	if err := c.Do(func(ctx sdk.Context) error { return c.Policy.InitGenesis(ctx, state) }); err != nil {
		t.Fatal(err)
	}
	c.NextBlock(time.Hour)
	x := get(t, c, 0)
	if x.Status != policyv1.STATUS_FAILED || !strings.Contains(x.Failure, "message 1") || price(t, c) != 100 {
		t.Fatalf("%+v, the price is %d", x, price(t, c))
	}
	c.Deliver(alice, proposal(t, alice, 100, dearer(c, 300)))
}

// Nobody has the key of the policy's account; another that genesis names may change the rules of votes.
func TestRulesOfVotes(t *testing.T) {
	c := newChain(t, chaintest.Authority(bob.Name))
	m := &policyv1.MsgUpdateParams{Authority: bob.String(), Params: rules()}
	m.Params.Quorum = 500
	c.Deliver(bob, m)
	bad := *m
	bad.Params.DelayMs = 0
	c.Refuse(module.ErrRules, bob, &bad)
	bad.Authority = alice.String()
	c.Refuse(module.ErrAuthority, alice, &bad)
	r, err := policyv1.NewQueryClient(c).Params(t.Context(), &policyv1.QueryParamsRequest{})
	if err != nil || r.Params != m.Params || r.Authority != bob.String() || r.NextDeposit != 100 || len(r.Founders) != 1 || len(r.Messages) < 5 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Each message that a vote may execute is signed by an authority alone.
func TestGovernedMessages(t *testing.T) {
	c := newChain(t)
	r, err := policyv1.NewQueryClient(c).Params(t.Context(), &policyv1.QueryParamsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range r.Messages {
		if _, err := c.Registry.Resolve(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestValidateGenesis(t *testing.T) {
	good := func() *policyv1.GenesisState {
		g := policy.DefaultGenesis()
		g.Founders = []policyv1.Founder{{Account: alice.String(), Weight: 1}}
		g.Proposals = []policyv1.Proposal{{Proposer: alice.String(), Title: "t", Summary: "s", Deposit: 1, Status: policyv1.STATUS_VOTING, EndMs: 1, Params: rules()}}
		g.Votes = []policyv1.Vote{{Voter: alice.String(), Option: policyv1.OPTION_NO, Weight: 1}}
		g.Next = 1
		return g
	}
	if err := policy.ValidateGenesis(good()); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*policyv1.GenesisState){
		"rules":             func(g *policyv1.GenesisState) { g.Params.Base = 0 },
		"authority":         func(g *policyv1.GenesisState) { g.Authority = "x" },
		"founder":           func(g *policyv1.GenesisState) { g.Founders[0].Account = "x" },
		"founder of nought": func(g *policyv1.GenesisState) { g.Founders[0].Weight = 0 },
		"founder twice":     func(g *policyv1.GenesisState) { g.Founders = append(g.Founders, g.Founders[0]) },
		"proposer":          func(g *policyv1.GenesisState) { g.Proposals[0].Proposer = "x" },
		"status":            func(g *policyv1.GenesisState) { g.Proposals[0].Status = 0 },
		"no deposit":        func(g *policyv1.GenesisState) { g.Proposals[0].Deposit = 0 },
		"over at once":      func(g *policyv1.GenesisState) { g.Proposals[0].EndMs = 0 },
		"next":              func(g *policyv1.GenesisState) { g.Next = 0 },
		"same id":           func(g *policyv1.GenesisState) { g.Proposals = append(g.Proposals, g.Proposals[0]) },
		"vote of nought":    func(g *policyv1.GenesisState) { g.Votes[0].Weight = 0 },
		"vote for nothing":  func(g *policyv1.GenesisState) { g.Votes[0].Option = 9 },
	} {
		g := good()
		if bend(g); policy.ValidateGenesis(g) == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

// Whatever bytes a proposal holds, it is taken or refused, and the chain goes on.
func FuzzPropose(f *testing.F) {
	f.Add("title", "summary", "/tally.block.v1.MsgUpdateParams", []byte{10, 1, 97}, uint64(100))
	f.Add("", "\xff", "/tally.policy.v1.MsgPropose", []byte(nil), uint64(0))
	f.Fuzz(func(t *testing.T, title, summary, url string, value []byte, deposit uint64) {
		c := newChain(t)
		m := &policyv1.MsgPropose{Proposer: alice.String(), Title: title, Summary: summary, Deposit: deposit,
			Messages: []*codectypes.Any{{TypeUrl: url, Value: value}}}
		if err := c.Do(func(ctx sdk.Context) error { _, err := c.Policy.Propose(ctx, m); return err }); err == nil {
			c.NextBlock(2 * time.Hour)
		}
	})
}
