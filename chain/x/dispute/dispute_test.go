package dispute_test

import (
	"bytes"
	"testing"
	"time"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// authority may change the rules.
var authority = worktest.Consumer

// affair is a real training in which p0 computes unit 0 wrongly, and a challenger
// that has re-executed it.
type affair struct {
	*worktest.Play
	honest, cheat *worktest.Training
}

func newAffair(t testing.TB, bend ...func(*job.Order)) *affair {
	t.Helper()
	return newAffairIn(t, chaintest.Authority(authority.Name), bend...)
}

func newAffairIn(t testing.TB, more chaintest.Option, bend ...func(*job.Order)) *affair {
	t.Helper()
	a := &affair{
		honest: worktest.NewTraining(t, nil),
		cheat:  worktest.NewTraining(t, &worktest.Lie{Unit: 0, Step: 2, Element: 5}),
	}
	o := a.honest.Order()
	for _, f := range bend {
		f(&o)
	}
	a.Play = worktest.Begin(t, chaintest.New(t, worktest.Network(more)...), o)
	a.lie()
	return a
}

// lie lets p0 compute unit 0 wrongly, and everybody else go on from it.
func (a *affair) lie() {
	a.Computer = a.cheat
	a.Compute(0, "p0")
	a.honest.Learn(a.cheat)
	a.Computer = a.honest
}

// sides are the witnesses of both parties about unit 0.
func (a *affair) sides() (defender, challenger *worktest.Witness) {
	start := a.honest.Problem.Start
	return a.cheat.Unit(0, start), a.honest.Unit(0, start)
}

func (a *affair) challenge() uint64 {
	a.T.Helper()
	_, w := a.sides()
	return a.Dispute(job.UnitTarget(0), 0, w)
}

func (a *affair) peer(name string) providerv1.Peer {
	a.T.Helper()
	p, err := a.Provider.Get(a.Ctx(), chaintest.Named(name).Address)
	if err != nil {
		a.T.Fatal(err)
	}
	return p
}

func (a *affair) bonds() uint64 { return a.Balance(authtypes.NewModuleAddress(dispute.Name)) }

func insurance(c *chaintest.Chain) uint64 {
	return c.Balance(authtypes.NewModuleAddress(provider.Insurance))
}

var bond = job.DefaultParams.ChallengeBond

func TestCheatIsFoundAndConvicted(t *testing.T) {
	a := newAffair(t)
	before := a.peer("p0")
	id := a.challenge()
	if a.bonds() != bond || a.Balance(worktest.Challenger.Address) != worktest.Purse-bond {
		t.Fatalf("%d utally of bonds are locked", a.bonds())
	}
	defender, challenger := a.sides()
	d, cost := a.PlayOut(id, defender, challenger)
	if d.Loser != disputev1.SIDE_DEFENDER || d.Stage != "over" || d.Deadline != 0 {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	if d.StepLo != 2 || int(d.Node) != a.cheat.Lie.Node || d.Op != "MatMul" || d.Element != 5 || d.TileRow != 0 || d.TileCol != 0 || d.FoldFrom != 1 {
		t.Fatalf("found %+v", d)
	}
	t.Logf("%+v, verdict: %s", cost, d.Reason)
	if cost.Moves > 40 || cost.Largest > worktest.MaxTx || cost.Dearest > chaintest.Gas {
		t.Errorf("the dispute took too much: %+v", cost)
	}
	u, p0, l := a.Unit(0), a.peer("p0"), a.Lease()
	if u.Status != workv1.UNIT_STATUS_OPEN || u.Attempt != 1 || len(l.Barred) != 1 || len(l.Disputes) != 0 {
		t.Fatalf("unit 0 is %+v", u)
	}
	if p0.Stake != before.Stake-before.Reserved || p0.Reserved != 0 || p0.JailedUntil != wire.Forever {
		t.Fatalf("the cheat is %+v, was %+v", p0, before)
	}
	reward := (before.Reserved*job.DefaultParams.RewardBps + 9999) / 10_000
	if got := a.Balance(worktest.Challenger.Address); got != worktest.Purse+reward || a.bonds() != 0 {
		t.Fatalf("the challenger has %d, want %d", got, worktest.Purse+reward)
	}
	s := a.Finish()
	if s.Ledger.Slashed != before.Reserved || !bytes.Equal(s.Final, a.honestFinal()) {
		t.Fatalf("%+v", s)
	}
	for _, share := range s.Ledger.Paid {
		if share.Account == chaintest.Named("p0").String() {
			t.Fatal("the cheat was paid")
		}
	}
}

// honestFinal returns the final root of a training without cheats.
func (a *affair) honestFinal() []byte {
	w, p := worktest.NewTraining(a.T, nil), a.Order.Problem
	root := p.Start
	for r := range p.Rounds {
		var ends []canon.Hash
		for s := range p.Shards {
			points := w.Checkpoints(r*p.Shards+s, root)
			ends = append(ends, points[len(points)-1])
		}
		root = w.Merge(ends)
	}
	return root[:]
}

// Fraud that is found rounds later undoes what descends from it; the end is that
// of a training without fraud.
func TestLateFraudIsRolledBack(t *testing.T) {
	a := newAffair(t)
	a.FinishRound()
	a.Compute(2, "p1")
	id := a.challenge()
	earned := a.Balance(chaintest.Named("p1").Address)
	defender, challenger := a.sides()
	if d, _ := a.PlayOut(id, defender, challenger); d.Loser != disputev1.SIDE_DEFENDER {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	l := a.Lease()
	if l.Round != 0 || len(l.Merges) != 0 || a.Unit(0).Attempt != 1 || a.Unit(1).Status != workv1.UNIT_STATUS_ACCEPTED || a.Unit(2).Attempt != 1 {
		t.Fatalf("round %d, unit 2 is %+v", l.Round, a.Unit(2))
	}
	if a.Balance(chaintest.Named("p1").Address) <= earned {
		t.Fatal("honest work that was lost is not paid")
	}
	if s := a.Finish(); !bytes.Equal(s.Final, a.honestFinal()) {
		t.Fatal("the training ends elsewhere than without the fraud")
	}
}

// A challenger that is wrong loses its bond, half of it to the defender.
func TestFalseChallengeCosts(t *testing.T) {
	a := newAffair(t)
	a.Compute(1, "p1")
	start := a.honest.Problem.Start
	wrong := worktest.NewTraining(t, &worktest.Lie{Unit: 1, Step: 1, Element: 3})
	id := a.Dispute(job.UnitTarget(1), 0, wrong.Unit(1, start))
	before, fund := a.Balance(chaintest.Named("p1").Address), insurance(a.Chain)
	d, _ := a.PlayOut(id, a.honest.Unit(1, start), wrong.Unit(1, start))
	if d.Loser != disputev1.SIDE_CHALLENGER {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	if got := a.Balance(chaintest.Named("p1").Address) - before; got != bond/2 {
		t.Errorf("the defender got %d of %d", got, bond)
	}
	if got := insurance(a.Chain) - fund; got != bond-bond/2 || a.bonds() != 0 {
		t.Errorf("the fund got %d of %d", got, bond)
	}
	if u := a.Unit(1); u.Status == workv1.UNIT_STATUS_OPEN || a.peer("p1").JailedUntil != 0 {
		t.Fatalf("%+v", u)
	}
}

// Who falls silent loses when the clock has run out, and not before.
func TestSilenceLoses(t *testing.T) {
	clock := time.Duration(dispute.DefaultParams().ClockMs) * time.Millisecond
	for loser, moves := range map[disputev1.Side]int{disputev1.SIDE_DEFENDER: 0, disputev1.SIDE_CHALLENGER: 1} {
		a := newAffair(t)
		id := a.challenge()
		defender, challenger := a.sides()
		for range moves {
			a.Step(id, defender, challenger, new(worktest.Cost))
		}
		a.NextBlock(clock)
		if d, _ := a.Game(id); d.Stage == "over" {
			t.Fatalf("%v lost before its time: %s", d.Loser, d.Reason)
		}
		last := a.NextBlock(0).AppHash
		if b := a.NextBlock(0); !bytes.Equal(b.AppHash, last) {
			t.Fatal("a block in which no clock runs out changed the app hash")
		}
		b := a.NextBlock(time.Millisecond)
		d, _ := a.Game(id)
		if d.Loser != loser || d.Stage != "over" || len(chaintest.Events[*disputev1.EventClosed](t, b)) != 1 {
			t.Fatalf("%v lost (%s), want %v", d.Loser, d.Reason, loser)
		}
		if a.bonds() != 0 {
			t.Fatal("a bond is still locked")
		}
		jailed := a.peer("p0").JailedUntil
		if loser == disputev1.SIDE_DEFENDER {
			jailed -= a.Now().UnixMilli() + time.Hour.Milliseconds() // worktest's sentence for absence: nothing was shown of its work
		}
		if jailed != 0 {
			t.Errorf("%v lost by silence, and the defender is jailed until %d", loser, a.peer("p0").JailedUntil)
		}
	}
}

func TestWrongMergeIsDisputedLikeAUnit(t *testing.T) {
	a := newAffair(t)
	a.Compute(1, "p1")
	a.NextBlock(worktest.UnitWindow)
	right := a.MergeMsg()
	wrong := *right
	// The lead merges the same end twice.
	ends := a.ends()
	bad := a.honest.Merged([]canon.Hash{ends[0], ends[0]})
	root, _ := bad.Root(1)
	wrong.Root = root[:]
	a.Deliver(a.Lead(), &wrong)
	id := a.Dispute(job.MergeTarget(0), 0, a.honest.Merged(ends))
	d, cost := a.PlayOut(id, a.honest.Merged([]canon.Hash{ends[0], ends[0]}), a.honest.Merged(ends))
	if d.Loser != disputev1.SIDE_DEFENDER || a.Lease().Lead != "" || a.peer("v0").JailedUntil == 0 {
		t.Fatalf("%v lost: %s; %q leads", d.Loser, d.Reason, a.Lease().Lead)
	}
	t.Logf("%+v, verdict: %s", cost, d.Reason)
	next := worktest.Named(t, a.Lease().Leads[1].Account)
	a.Deliver(next, &workv1.MsgTakeLead{Validator: next.String(), Order: a.ID.String()})
	right.Lead = next.String()
	a.Deliver(next, right)
	a.Finish()
}

// ends returns the end roots of the units of the round.
func (a *affair) ends() (out []canon.Hash) {
	for s := range a.Order.Problem.Shards {
		points := a.Unit(s).Receipt.Checkpoints
		h, err := canon.HashOf(points[len(points)-1])
		if err != nil {
			a.T.Fatal(err)
		}
		out = append(out, h)
	}
	return out
}
