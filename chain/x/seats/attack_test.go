package seats_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/core/power"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// accuse makes the next block tell that who has signed twice.
func accuse(c *chaintest.Chain, kind abci.MisbehaviorType, key []byte) {
	c.Misbehavior = append(c.Misbehavior, abci.Misbehavior{
		Type: kind, Validator: abci.Validator{Address: key, Power: 1}, Height: c.Height(), Time: c.Now(), TotalVotingPower: 5,
	})
}

func insured(c *chaintest.Chain) uint64 { return c.Balance(address.Module(provider.Insurance)) }

// Whoever signs twice loses half of its bond, and of what waits to come back; its power, and its place for good.
func TestWhoSignsTwiceIsConvicted(t *testing.T) {
	for _, kind := range []abci.MisbehaviorType{abci.MisbehaviorType_DUPLICATE_VOTE, abci.MisbehaviorType_LIGHT_CLIENT_ATTACK} {
		c, alice, carol := chaintest.New(t, network()...), chaintest.Named("alice"), chaintest.Named("carol")
		credit(t, c, alice, 10)
		credit(t, c, carol, 10)
		c.Deliver(alice, join(alice, 100*tally))
		c.Deliver(carol, &seatsv1.MsgDelegate{Account: carol.String(), Member: alice.String()})
		c.Deliver(alice, &seatsv1.MsgUnbond{Account: alice.String(), Amount: 40 * tally})
		pass(t, c, 4)
		if m := member(t, c, alice).Member; m.Votes != 6 {
			t.Fatalf("alice has a bond for six seats: %v", m)
		}
		before := insured(c)
		accuse(c, kind, consensus(t, c, alice))
		accuse(c, kind, consensus(t, c, alice))
		told := chaintest.Events[*seatsv1.EventEquivocation](t, busy(c))
		if len(told) != 1 || told[0].Slashed != 50*tally || told[0].Account != alice.String() {
			t.Fatalf("convicted once: %v", told)
		}
		accuse(c, kind, consensus(t, c, alice))
		busy(c)
		m := member(t, c, alice)
		if m.Member.Status != seatsv1.STATUS_TOMBSTONED || m.Member.Bond != 0 || m.Unbonding != 50*tally || insured(c) != before+50*tally {
			t.Fatalf("%v, and the insurance has %d more", m, insured(c)-before)
		}
		a, errA := c.Power.Effective(c.Ctx(), alice.Address)
		d, errC := c.Power.Effective(c.Ctx(), carol.Address)
		if a != 0 || d != 6_000_000 || errA != nil || errC != nil {
			t.Fatalf("alice has a power of %d, carol of %d (%v, %v)", a, d, errA, errC)
		}
		pass(t, c, 2)
		if m := member(t, c, alice).Member; m.Votes != 0 {
			t.Fatalf("two draws later: %v", m)
		}
		free := c.Balance(alice.Address)
		c.NextBlock(22 * 24 * time.Hour)
		pass(t, c, 2)
		if got := c.Balance(alice.Address) - free; got != 50*tally {
			t.Fatalf("%d utally came back", got)
		}
		refuseConvict(t, c, alice, carol)
	}
}

// refuseConvict checks that a convict takes part no more: not by its account, nor by its key.
func refuseConvict(t *testing.T, c *chaintest.Chain, convict, other chaintest.Account) {
	t.Helper()
	who := convict.String()
	for _, m := range []sdk.Msg{
		join(convict, 100*tally), &seatsv1.MsgUnjail{Account: who}, &seatsv1.MsgLeave{Account: who}, &seatsv1.MsgBond{Account: who, Amount: 100 * tally},
	} {
		t.Log(c.Refuse(seats.ErrStatus, convict, m))
	}
	c.Refuse(seats.ErrBond, convict, &seatsv1.MsgUnbond{Account: who, Amount: 1})
	c.Refuse(seats.ErrMember, other, &seatsv1.MsgDelegate{Account: other.String(), Member: who})
	again := join(other, 100*tally)
	again.ConsensusKey = convict.PeerKey()
	again.ProofOfPossession = ed25519.Sign(convict.Peer, wire.ProofOfPossession(chaintest.ChainID, other.Address))
	t.Log(c.Refuse(seats.ErrKey, other, again))
	c.Deliver(other, join(other, 100*tally)) // by a key of its own
}

// A convict's seats fall by a quarter of all at most, as all others change.
func TestSeatsOfConvictsFallInSteps(t *testing.T) {
	c, f1 := chaintest.New(t, network(longer)...), chaintest.Named("f1")
	accuse(c, abci.MisbehaviorType_DUPLICATE_VOTE, consensus(t, c, f1))
	var had []uint64
	for _, e := range reach(t, c, 5) {
		had = append(had, votes(e.Seats, f1)*100/total(e.Seats))
	}
	if len(had) != 4 || had[0] < 17 || had[0] > 19 || had[1] != 0 {
		t.Errorf("of 42 percent it has then %v", had)
	}
}

// A conviction takes votes of policy back: those of power, and those of a founder.
func TestConvictsHaveVotedNothing(t *testing.T) {
	c, alice, f1 := chaintest.New(t, network()...), chaintest.Named("alice"), chaintest.Named("f1")
	credit(t, c, alice, 10)
	c.Deliver(alice, join(alice, 100*tally))
	p := policy.DefaultParams()
	p.Base, p.Quorum = 10_000_000_000_000, 4_000_000_000_000
	change, err := codectypes.NewAnyWithValue(&policyv1.MsgUpdateParams{Authority: address.Policy().String(), Params: p})
	if err != nil {
		t.Fatal(err)
	}
	c.Deliver(alice, &policyv1.MsgPropose{
		Proposer: alice.String(), Title: "More", Summary: "More.", Deposit: policy.DefaultParams().Deposit, Messages: []*codectypes.Any{change},
	})
	open := func() policyv1.Proposal {
		all, err := policyv1.NewQueryClient(c).Proposals(t.Context(), &policyv1.QueryProposalsRequest{})
		if err != nil || len(all.Proposals) != 1 {
			t.Fatal(all, err)
		}
		return all.Proposals[0]
	}
	for _, who := range []chaintest.Account{alice, f1} {
		none := open().Tally
		c.Deliver(who, &policyv1.MsgVote{Voter: who.String(), Proposal: open().Id, Option: policyv1.OPTION_YES})
		if open().Tally == none {
			t.Fatalf("%s's vote weighs nothing", who.Name)
		}
		accuse(c, abci.MisbehaviorType_DUPLICATE_VOTE, consensus(t, c, who))
		busy(c)
		if got := open().Tally; got != none {
			t.Errorf("%s is convicted, and votes are %v, not %v", who.Name, got, none)
		}
	}
}

// A bond does not hide in many parts that wait to come back.
func TestManyWithdrawalsHideNoBond(t *testing.T) {
	c, alice := chaintest.New(t, network()...), chaintest.Named("alice")
	c.Deliver(alice, join(alice, 1_000*tally))
	for range 99 {
		c.Deliver(alice, &seatsv1.MsgUnbond{Account: alice.String(), Amount: 4 * tally})
	}
	t.Log(c.Refuse(seats.ErrBond, alice, &seatsv1.MsgUnbond{Account: alice.String(), Amount: 4 * tally}))
	t.Log(c.Refuse(seats.ErrBond, alice, &seatsv1.MsgLeave{Account: alice.String()}))
	before := insured(c)
	accuse(c, abci.MisbehaviorType_DUPLICATE_VOTE, consensus(t, c, alice))
	busy(c)
	if got := insured(c) - before; got != 500*tally {
		t.Errorf("%d utally of a thousand tally are slashed", got)
	}
}

// Evidence about who has long left, or never was, does nothing and stops nothing; who has just left answers for it.
func TestEvidenceAfterLeaving(t *testing.T) {
	c, alice := chaintest.New(t, network()...), chaintest.Named("alice")
	c.Deliver(alice, join(alice, 100*tally))
	key := consensus(t, c, alice)
	c.Deliver(alice, &seatsv1.MsgLeave{Account: alice.String()})
	c.NextBlock(22 * 24 * time.Hour)
	pass(t, c, 2)
	before := insured(c)
	accuse(c, abci.MisbehaviorType_DUPLICATE_VOTE, key)
	accuse(c, abci.MisbehaviorType_UNKNOWN, make([]byte, 20))
	accuse(c, abci.MisbehaviorType_LIGHT_CLIENT_ATTACK, nil)
	busy(c)
	c.Deliver(alice, join(alice, 100*tally))
	c.Deliver(alice, &seatsv1.MsgLeave{Account: alice.String()})
	if insured(c) != before {
		t.Fatal("nobody was slashed")
	}
	accuse(c, abci.MisbehaviorType_DUPLICATE_VOTE, key)
	busy(c)
	if m := member(t, c, alice); m.Unbonding != 50*tally || m.Member.Status != seatsv1.STATUS_TOMBSTONED {
		t.Errorf("left with a bond, and signed twice: %v", m)
	}
}

// Who leaves may come back by its key. Once its bond is back and its votes are gone nothing of it is kept.
func TestLeaveAndComeBack(t *testing.T) {
	c, alice, carol := chaintest.New(t, network()...), chaintest.Named("alice"), chaintest.Named("carol")
	credit(t, c, alice, 10)
	start := c.Balance(alice.Address)
	c.Deliver(alice, join(alice, 10_000*tally))
	pass(t, c, 3)
	c.Deliver(alice, &seatsv1.MsgLeave{Account: alice.String()})
	c.Refuse(seats.ErrStatus, alice, &seatsv1.MsgLeave{Account: alice.String()})
	c.Refuse(seats.ErrStatus, alice, &seatsv1.MsgBond{Account: alice.String(), Amount: 10 * tally})
	other := join(alice, 100*tally)
	other.ConsensusKey, other.ProofOfPossession = carol.PeerKey(), ed25519.Sign(carol.Peer, wire.ProofOfPossession(chaintest.ChainID, alice.Address))
	t.Log(c.Refuse(seats.ErrKey, alice, other))
	pass(t, c, 2)
	c.Deliver(alice, join(alice, 100*tally))
	now := status(t, c).Epoch
	if m := member(t, c, alice); m.Member.Bond != 100*tally || m.Unbonding != 10_000*tally || m.Member.FromEpoch != now+2 || m.Member.Votes != 0 {
		t.Fatalf("came back in epoch %d: %v", now, m)
	}
	for _, e := range pass(t, c, 4) {
		if got := votes(e.Seats, alice); got > 0 != (e.Epoch >= now+2) || got > 10 {
			t.Errorf("came back in epoch %d: %d seats in %d", now, got, e.Epoch)
		}
	}
	c.Deliver(alice, &seatsv1.MsgLeave{Account: alice.String()})
	left := c.Now()
	pass(t, c, 2)
	c.NextBlock(left.Add(21*24*time.Hour).Sub(c.Now()) - time.Millisecond)
	if got := c.Balance(alice.Address); got != start-100*tally {
		t.Fatalf("at %v, left at %v: it has %d utally, and had %d", c.Now(), left, got, start)
	}
	pass(t, c, 1)
	if got := c.Balance(alice.Address); got != start {
		t.Fatalf("it has %d utally back, and had %d", got, start)
	}
	pass(t, c, 1)
	if _, err := seatsv1.NewQueryClient(c).Member(t.Context(), &seatsv1.QueryMemberRequest{Account: alice.String()}); err == nil {
		t.Fatal("it is not forgotten")
	}
	if key, err := c.Beacon.Key(c.Ctx(), alice.Address); err == nil {
		t.Fatalf("its key is kept: %x", key)
	}
	c.Deliver(alice, other)
	taken := join(carol, 100*tally)
	taken.ConsensusKey, taken.ProofOfPossession = alice.PeerKey(), ed25519.Sign(alice.Peer, wire.ProofOfPossession(chaintest.ChainID, carol.Address))
	c.Deliver(carol, taken)
}

// A bond stays until the votes that it stands behind are gone, however long that takes.
func TestBondsWaitForVotes(t *testing.T) {
	c, alice := chaintest.New(t, network()...), chaintest.Named("alice")
	credit(t, c, alice, 10)
	start := c.Balance(alice.Address)
	c.Deliver(alice, join(alice, 10_000*tally))
	pass(t, c, 4)
	c.Deliver(alice, &seatsv1.MsgLeave{Account: alice.String()})
	c.NextBlock(22 * 24 * time.Hour)
	if got := member(t, c, alice); got.Member.Votes == 0 || got.Unbonding != 10_000*tally || c.Balance(alice.Address) != start-10_000*tally {
		t.Fatalf("it has votes, and its bond back: %v", got)
	}
	pass(t, c, 2)
	c.NextBlock(47 * time.Hour)
	if got := c.Balance(alice.Address); got != start-10_000*tally {
		t.Errorf("it has %d utally back, of %d, and evidence of its last votes may still come", got, start)
	}
	c.NextBlock(2 * time.Hour)
	if got := c.Balance(alice.Address); got != start {
		t.Errorf("it has %d utally back, of %d", got, start)
	}
}

// Neither does a part of a bond come back while votes stand that are more than those of the rest; nor all of one, by coming back with
// the bond of a seat.
func TestBondsCoverVotes(t *testing.T) {
	for name, after := range map[string]func(c *chaintest.Chain, alice chaintest.Account) (held uint64){
		"unbond": func(c *chaintest.Chain, alice chaintest.Account) uint64 {
			c.Deliver(alice, &seatsv1.MsgUnbond{Account: alice.String(), Amount: 9_990 * tally})
			c.NextBlock(22 * 24 * time.Hour)
			return 9_990 * tally
		},
		"leave and join": func(c *chaintest.Chain, alice chaintest.Account) uint64 {
			c.Deliver(alice, &seatsv1.MsgLeave{Account: alice.String()})
			c.NextBlock(20 * 24 * time.Hour)
			c.Deliver(alice, join(alice, 10*tally))
			c.NextBlock(2 * 24 * time.Hour)
			return 10_000 * tally
		},
	} {
		c, alice := chaintest.New(t, network()...), chaintest.Named("alice")
		credit(t, c, alice, 10)
		c.Deliver(alice, join(alice, 10_000*tally))
		for status(t, c).Draw != nil || member(t, c, alice).Member.Votes == 0 {
			busy(c)
		}
		held := after(c, alice)
		if got := member(t, c, alice); got.Member.Votes < 100 || got.Unbonding != held {
			t.Errorf("%s: %d votes by a bond of %d utally, and %d of %d wait", name, got.Member.Votes, got.Member.Bond, got.Unbonding, held)
		}
		pass(t, c, 3) // its votes fall
		c.NextBlock(47 * time.Hour)
		if got := member(t, c, alice); got.Unbonding != held {
			t.Errorf("%s: %d of %d wait, and evidence of its last votes may still come", name, got.Unbonding, held)
		}
		c.NextBlock(2 * time.Hour)
		if got := member(t, c, alice); got.Unbonding != 0 {
			t.Errorf("%s: %d of %d wait, though the bond covers %d votes", name, got.Unbonding, held, got.Member.Votes)
		}
	}
}

// A convict that has votes yet and signs twice again loses the same part again, once in an epoch.
func TestConvictsAreSlashedAgain(t *testing.T) {
	c, alice := chaintest.New(t, network()...), chaintest.Named("alice")
	credit(t, c, alice, 40)
	c.Deliver(alice, join(alice, 100_000*tally))
	pass(t, c, 5)
	for status(t, c).Draw != nil {
		busy(c)
	}
	key, signed := consensus(t, c, alice), c.Height()
	for _, want := range []uint64{50_000 * tally, 25_000 * tally} {
		before := insured(c)
		if got := member(t, c, alice).Member.Votes; got == 0 {
			t.Fatal("it has no votes to sign with")
		}
		for range 3 { // of one epoch
			accuse(c, abci.MisbehaviorType_DUPLICATE_VOTE, key)
		}
		told := chaintest.Events[*seatsv1.EventEquivocation](t, busy(c))
		if len(told) != 1 || told[0].Slashed != want || insured(c) != before+want {
			t.Fatalf("slashed %v, want %d", told, want)
		}
		pass(t, c, 1)
	}
	// What it signed before, and is told of epoch by epoch, is the same offence: who reports it does not choose how much it costs.
	for range 3 {
		c.Misbehavior = append(c.Misbehavior, abci.Misbehavior{
			Type: abci.MisbehaviorType_DUPLICATE_VOTE, Validator: abci.Validator{Address: key, Power: 1}, Height: signed, Time: c.Now(), TotalVotingPower: 5,
		})
		if told := chaintest.Events[*seatsv1.EventEquivocation](t, busy(c)); len(told) > 0 {
			t.Errorf("slashed again for block %d: %v", signed, told)
		}
		pass(t, c, 1)
	}
	if got := member(t, c, alice); got.Unbonding != 25_000*tally {
		t.Errorf("%v", got)
	}
}

// Whoever first delegates to a member does not break a draw that is under way since the epoch before.
func TestFirstDelegationsBreakNoDraw(t *testing.T) {
	c := chaintest.New(t, network(crowd(60, 1), func(g *app.Genesis) { g.Epoch = 24 })...)
	last := chaintest.Named("alice")
	for _, name := range []string{"bob", "carol"} {
		if a := chaintest.Named(name); bytes.Compare(a.Address, last.Address) > 0 {
			last = a
		}
	}
	c.Deliver(last, &seatsv1.MsgDelegate{Account: last.String()}) // to nobody, so that joining delegates nothing
	c.Deliver(last, &seatsv1.MsgDelegate{Account: last.String(), Member: chaintest.Named("f1").String()})
	c.Deliver(last, join(last, 100*tally))
	for status(t, c).Epoch < 4 {
		busy(c)
	}
	for e := status(t, c).Epoch; status(t, c).Epoch == e; { // until one begins in the last block of an epoch
		c.NextBlock(time.Second)
	}
	for range 22 {
		c.NextBlock(time.Second)
	}
	was := status(t, c).Epoch
	b := busy(c)
	d := status(t, c).Draw
	if d == nil || d.Epoch != was || d.Weighed || bytes.Compare(d.Next, last.Address) > 0 {
		t.Fatalf("block %d: the draw of epoch %d: %v", b.Height, was, d)
	}
	for range 4 {
		b = c.Deliver(chaintest.Named("f2"), &seatsv1.MsgDelegate{Account: chaintest.Named("f2").String(), Member: last.String()})
		if told := abandoned(t, b); len(told) > 0 {
			t.Fatalf("block %d: %v", b.Height, told)
		}
	}
}

// Whoever has left or was convicted loses its votes though what is left lacks seats.
func TestThoseWhoLeftLoseTheirVotes(t *testing.T) {
	c := chaintest.New(t, network(func(g *app.Genesis) {
		for i := range g.Validators {
			g.Validators[i].Bond = 14_000 * tally // 7,000 of 10,000 seats
		}
	})...)
	f4 := chaintest.Named("f4")
	pass(t, c, 2)
	c.Deliver(f4, &seatsv1.MsgLeave{Account: f4.String()})
	pass(t, c, 3)
	if got := member(t, c, f4).Member.Votes; got != 0 {
		t.Errorf("it has left, and has %d votes", got)
	}
	if got := status(t, c).Set.Seats; len(got) != 4 {
		t.Errorf("the others have %v", got)
	}
}

// A bond that comes while a draw goes on counts in none before the next epoch.
func TestBondsOfTheSameEpochDoNotCount(t *testing.T) {
	c, alice := chaintest.New(t, network()...), chaintest.Named("alice")
	credit(t, c, alice, 20)
	c.Deliver(alice, join(alice, 10*tally))
	pass(t, c, 3)
	for status(t, c).Draw == nil { // as soon as one begins
		busy(c)
	}
	drawn := status(t, c).Draw.Epoch
	c.Deliver(alice, &seatsv1.MsgBond{Account: alice.String(), Amount: 100_000 * tally})
	for _, e := range pass(t, c, 2) {
		if got := votes(e.Seats, alice); e.Epoch <= drawn && got > 1 {
			t.Errorf("epoch %d: %d seats by a bond of that epoch", e.Epoch, got)
		}
	}
}

// A delegation stands for a while, also one to nobody: nobody hops from member to member where rewards come next.
func TestDelegationsStand(t *testing.T) {
	c := chaintest.New(t, network(func(g *app.Genesis) { g.Seats.Params.RedelegateMs = 3_600_000 })...)
	alice, f1 := chaintest.Named("alice"), chaintest.Named("f1")
	to := func(member string) *seatsv1.MsgDelegate {
		return &seatsv1.MsgDelegate{Account: alice.String(), Member: member}
	}
	c.Deliver(alice, to(f1.String()))
	c.Deliver(alice, to(f1.String())) // as it is
	c.Refuse(seats.ErrDelegation, alice, to(""))
	c.NextBlock(time.Hour)
	c.Deliver(alice, to(""))
	c.Refuse(seats.ErrDelegation, alice, to(f1.String()))
	c.NextBlock(time.Hour)
	c.Deliver(alice, to(chaintest.Named("f2").String()))
}

// Power that is spread over many names leaves no seats empty, and so does not keep the set as it is; nor does power that has
// grown at once. Whoever is not among the members with the most has no seat, and takes none from the others.
func TestSpreadPowerKeepsNoSet(t *testing.T) {
	const big, small = 4, 400
	c := chaintest.New(t, network(crowd(big+small, 2_000), func(g *app.Genesis) { g.Epoch = 12 })...)
	err := c.Do(func(ctx sdk.Context) error {
		var err error
		for i := range big + small {
			uts := uint64(1)
			if i < big {
				uts = 150
			}
			err = errors.Join(err, c.Power.Credit(ctx, chaintest.Named(fmt.Sprint("m", i)).Address, uts*power.UT))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for status(t, c).Epoch < 10 {
		for _, e := range abandoned(t, busy(c)) {
			t.Fatalf("epoch %d: %s", e.Epoch, e.Reason)
		}
	}
	set := status(t, c).Set
	if n := len(set.Seats); n != 100 {
		t.Errorf("%d members have seats", n)
	}
	for i := range big {
		got := float64(votes(set.Seats, chaintest.Named(fmt.Sprint("m", i)))) / float64(total(set.Seats))
		if want := 150.0 / (big*150 + 96); got < 0.95*want || got > 1.05*want {
			t.Errorf("m%d has %.3f of the votes, and %.3f of the power that counts", i, got, want)
		}
	}
	if v := votes(set.Seats, chaintest.Named("f1")); v != 0 {
		t.Errorf("a founder has %d votes, and nothing is missing of the base", v)
	}
}

// Where bonds stand behind fewer seats than there are, power counts nevertheless: what a seat's bond stands for follows the
// power that there is, and does not fall to the base. Else whoever has a bond would have seats for next to no power.
func TestSmallBondsLeavePowerCounting(t *testing.T) {
	alice := chaintest.Named("alice")
	c := chaintest.New(t, network(crowd(8, 1_000))...)
	empower(t, c, 8, 5_000)
	credit(t, c, alice, base/5)
	c.Deliver(alice, join(alice, 20_000*tally))
	for status(t, c).Epoch < 25 {
		busy(c)
	}
	set := status(t, c).Set.Seats
	if got := float64(votes(set, alice)) / float64(total(set)); got > 0.01 {
		t.Errorf("a five-hundredth of the power has %.3f of the votes", got)
	}
}

// Bound: what counts is a third of the power of the members with the most, not of all. Where honest power is spread over more
// members than there are places, a ninth of it in names that are a little larger has a third of the votes.
func TestPowerBelowTheLastPlaceCountsForNobody(t *testing.T) {
	const honest, theirs = 300, 34
	c := chaintest.New(t, network(crowd(honest+theirs, 2_000), func(g *app.Genesis) { g.Epoch = 12 })...)
	empower(t, c, honest+theirs, 10)
	empower(t, c, theirs, 1)
	for status(t, c).Epoch < 10 {
		busy(c)
	}
	set := status(t, c).Set
	part := uint64(0)
	for i := range theirs {
		part += votes(set.Seats, chaintest.Named(fmt.Sprint("m", i)))
	}
	got, want := float64(part)/float64(total(set.Seats)), 1.1*theirs/(1.1*theirs+66)
	if n := len(set.Seats); n != 100 || got < want-0.01 || got > want+0.01 {
		t.Errorf("%d members: a ninth of the power has %.3f of the votes, want %.3f", n, got, want)
	}
	if w := float64(set.Weight); w > 0.6*(1.1*theirs+66)*1_000_000 {
		t.Errorf("they follow from %.0f µut: what a third costs is said too high", w)
	}
}
