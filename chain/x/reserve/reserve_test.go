package reserve_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/reserve"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/power"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

const tally = 1_000_000

var (
	alice, bob, carol = chaintest.Named("alice"), chaintest.Named("bob"), chaintest.Named("carol")
	producer          = chaintest.Named("producer")
)

func moduleAccount() sdk.AccAddress { return authtypes.NewModuleAddress(reserve.Name) }

func held(amount uint64) chaintest.Option {
	return func(g *app.Genesis) { g.Reserve = amount }
}

func newChain(t *testing.T, options ...chaintest.Option) *chaintest.Chain {
	return chaintest.New(t, append(options, chaintest.Fund(tally, "alice", "bob", "carol", "producer"))...)
}

func credit(t *testing.T, c *chaintest.Chain, account chaintest.Account, ut uint64) {
	t.Helper()
	if err := c.Do(func(ctx sdk.Context) error { return c.Power.Credit(ctx, account.Address, ut*power.UT) }); err != nil {
		t.Fatal(err)
	}
}

func status(t *testing.T, c *chaintest.Chain) *reservev1.QueryStatusResponse {
	t.Helper()
	r, err := reservev1.NewQueryClient(c).Status(t.Context(), &reservev1.QueryStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func account(t *testing.T, c *chaintest.Chain, a chaintest.Account) *reservev1.QueryAccountResponse {
	t.Helper()
	r, err := reservev1.NewQueryClient(c).Account(t.Context(), &reservev1.QueryAccountRequest{Account: a.String()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func send() sdk.Msg { return banktypes.NewMsgSend(carol.Address, bob.Address, coin.Of(1)) }

func claim(a chaintest.Account) *reservev1.MsgClaim { return &reservev1.MsgClaim{Account: a.String()} }

// Work is rewarded once its epoch is over: who joins and who makes blocks claim, and pools are paid.
func TestRewards(t *testing.T) {
	c := newChain(t, held(1_000_000*tally))
	c.Deliver(carol, send()) // a block in which something happens
	credit(t, c, alice, 1_000)
	c.Refuse(reserve.ErrNothing, alice, claim(alice))
	// 10⁶ TALLY / 50,590 in an hour are more than 1,000 ut earn: 800 utally each, of which 100 ut are the first.
	if a := account(t, c, alice); a.Due != 0 || a.Expected != 800*100/10 || a.Weights.Joining != 100*1_000_000 {
		t.Errorf("%+v", a)
	}
	if a := account(t, c, producer); a.Expected != 800*1_000*4/10 || a.Weights.Seats != 1<<20 { // all votes
		t.Errorf("%+v", a)
	}
	c.NextBlock(time.Hour)
	if a := account(t, c, alice); a.Due != 8_000 || a.Expected != 0 {
		t.Errorf("%+v", a)
	}
	again := c.Fork() // with what is owed
	for _, c := range []*chaintest.Chain{c, again} {
		for a, want := range map[*chaintest.Account]uint64{&alice: 8_000, &producer: 320_000} {
			had := c.Balance(a.Address)
			c.Deliver(*a, claim(*a))
			if got := c.Balance(a.Address) - had; got != want {
				t.Errorf("%s has %d utally, want %d", a.Name, got, want)
			}
		}
		c.Refuse(reserve.ErrNothing, alice, claim(alice))
		c.Refuse(reserve.ErrNothing, bob, claim(bob))
		s := status(t, c)
		if s.Totals != (reservev1.Totals{Claimed: 328_000, Jackpot: 80_000, Insurance: 80_000}) || s.Held != 1_000_000*tally-488_000 {
			t.Errorf("%+v", s)
		}
		r, err := supplyv1.NewQueryClient(c).Check(context.Background(), &supplyv1.QueryCheckRequest{})
		if err != nil || !r.Ok {
			t.Errorf("%v, %v", r, err)
		}
	}
	// Its work is its first no more, so that only seats and pools are paid.
	c.Deliver(carol, send())
	credit(t, c, alice, 1_000)
	c.NextBlock(time.Hour)
	c.Refuse(reserve.ErrNothing, alice, claim(alice))
	c.Deliver(producer, claim(producer))
}

// Where the budget is less than the cap, it is divided; and what a chain without a reserve pays is nothing.
func TestBudgetBinds(t *testing.T) {
	c := newChain(t, held(50_590*1_000)) // 1,000 utally an hour
	credit(t, c, alice, 100)
	credit(t, c, bob, 50)
	c.NextBlock(time.Hour)
	if a, b := account(t, c, alice).Due, account(t, c, bob).Due; a != 66 || b != 33 {
		t.Errorf("%d and %d", a, b)
	}
	none := newChain(t)
	none.Deliver(carol, send())
	credit(t, none, alice, 100)
	none.NextBlock(time.Hour)
	none.Refuse(reserve.ErrNothing, alice, claim(alice))
	if g, err := none.Reserve.ExportGenesis(none.Ctx()); err != nil || len(g.Accounts)+len(g.Closed) > 0 {
		t.Errorf("%+v, %v", g, err)
	}
}

// An idle block writes nothing, whatever epoch has ended.
func TestIdleBlocks(t *testing.T) {
	c := newChain(t, held(1_000*tally))
	credit(t, c, alice, 1)
	last := c.NextBlock(time.Minute).AppHash
	for range 3 {
		if b := c.NextBlock(2 * time.Hour); !bytes.Equal(b.AppHash, last) {
			t.Fatal("an idle block changed the app hash")
		}
	}
}

// An order of one's own, whose consumer, validators and providers are one, burns more than the reserve pays for it.
func TestWashingLoses(t *testing.T) {
	c := chaintest.New(t, worktest.Network(held(1_000_000_000*worktest.Tally), chaintest.Fund(tally, "producer"), func(g *app.Genesis) {
		g.Rewards.Params = reservev1.Params{HalvingEpochs: 1, Cap: 999, SeatsBps: 4_000, DrillingBps: 0, JoiningBps: 4_000, JackpotBps: 1_000, InsuranceBps: 1_000, JoiningUt: 1_000_000}
	}, worktest.Rules(func(p *job.Params) { *p = p.Quick(); p.BurnUT, p.BurnBps = 1_000, 0 }))...)
	o := worktest.Order()
	o.Problem.StepFLOPs *= 1_000
	o.Conditions.Credit, o.Conditions.MaxPrice = true, 1_000*worktest.Tally
	p := worktest.Begin(t, c, o)
	s := p.Finish()
	burnt := s.Ledger.Burnt
	c.NextBlock(2 * time.Hour)
	c.Deliver(producer, claim(producer))
	total := status(t, c).Totals
	paid := total.Owed + total.Claimed + total.Jackpot + total.Insurance
	t.Logf("%d utally are burnt, and %d paid", burnt, paid)
	if paid < burnt*9/10 || paid >= burnt {
		t.Errorf("%d utally are burnt, and %d paid: %+v", burnt, paid, total)
	}
}

func TestUpdateParams(t *testing.T) {
	c := newChain(t, chaintest.Authority("bob"), held(tally))
	m := &reservev1.MsgUpdateParams{Authority: bob.String(), Params: reserve.DefaultParams()}
	m.Params.Cap = 999
	c.Deliver(bob, m)
	bad := *m
	bad.Params.Cap = 1_000
	if text := c.Refuse(module.ErrRules, bob, &bad); !strings.Contains(text, "more than that burns") {
		t.Error(text)
	}
	bad.Params = m.Params
	bad.Params.HalvingEpochs = 1
	c.Refuse(module.ErrRules, bob, &bad)
	stranger := *m
	stranger.Authority = alice.String()
	c.Refuse(module.ErrAuthority, alice, &stranger)
	r, err := reservev1.NewQueryClient(c).Params(t.Context(), &reservev1.QueryParamsRequest{})
	if err != nil || r.Params != m.Params || r.Authority != bob.String() {
		t.Errorf("%+v, %v", r, err)
	}
}

// A chain with a reserve burns more for credit than the reserve could pay.
func TestGenesisRefuses(t *testing.T) {
	for why, bend := range map[string]func(*reservev1.GenesisState){
		"an epoch of 0 ms":         func(g *reservev1.GenesisState) { g.EpochMs = 0 },
		"cap = 1000":               func(g *reservev1.GenesisState) { g.Params.Cap = 1_000 },
		"authority":                func(g *reservev1.GenesisState) { g.Authority = "me" },
		"more than ever existed":   func(g *reservev1.GenesisState) { g.Totals.Claimed = coin.MaxSupply + 1 },
		"are owed 0 utally, not 5": func(g *reservev1.GenesisState) { g.Totals.Owed = 5 },
		"are owed 7 utally, not 0": func(g *reservev1.GenesisState) { g.Accounts = []reservev1.Account{{Account: alice.String(), Due: 7}} },
		"occurs twice": func(g *reservev1.GenesisState) {
			g.Accounts = []reservev1.Account{{Account: alice.String()}, {Account: alice.String()}}
		},
		"has a part in epoch 1":   func(g *reservev1.GenesisState) { g.Accounts = []reservev1.Account{{Account: alice.String(), Epoch: 1}} },
		"epoch 0 is closed after": func(g *reservev1.GenesisState) { g.Closed = []reservev1.Closed{{}} },
		"which counts {0 1 0}":    func(g *reservev1.GenesisState) { g.Open.Weights.Drilling = 1 },
		"and is kept":             func(g *reservev1.GenesisState) { g.Open.Number, g.Closed = 1, []reservev1.Closed{{}} },
		"a pot of 1 for 1 has 2": func(g *reservev1.GenesisState) {
			g.Open.Number, g.Closed = 1, []reservev1.Closed{{Seats: reservev1.Pot{Pay: 1, Weight: 1, LeftPay: 2, LeftWeight: 1}}}
		},
		"in a pot of epoch 0 that": func(g *reservev1.GenesisState) {
			g.Open.Number, g.Closed = 1, []reservev1.Closed{{Seats: reservev1.Pot{Pay: 1, Weight: 1, LeftPay: 1, LeftWeight: 1}}}
		},
		"the shares add up to 10001": func(g *reservev1.GenesisState) { g.Params.SeatsBps++ },
	} {
		g := reserve.DefaultGenesis()
		if err := reserve.ValidateGenesis(g); err != nil {
			t.Fatal(err)
		}
		if bend(g); reserve.ValidateGenesis(g) == nil || !strings.Contains(reserve.ValidateGenesis(g).Error(), why) {
			t.Errorf("%s: %v", why, reserve.ValidateGenesis(g))
		}
	}
}
