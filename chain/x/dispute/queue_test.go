package dispute_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/core/canon"
	game "github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// parallel is how many games about one defender's work are played at once.
var parallel = int(dispute.DefaultParams().Parallel)

var clock = time.Duration(dispute.DefaultParams().ClockMs) * time.Millisecond

// crowd names people who have no part in the network.
func crowd(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("crowd%d", i))
	}
	return names
}

func funded(names []string) chaintest.Option { return chaintest.Fund(worktest.Purse, names...) }

// accuse lets somebody dispute a segment of unit 0 without looking at it.
func (a *affair) accuse(name string, segment int) uint64 {
	a.T.Helper()
	who := chaintest.Named(name)
	return chaintest.Events[*disputev1.EventOpened](a.T, a.Deliver(who, a.accusation(who, segment)))[0].Dispute
}

func (a *affair) accusation(who chaintest.Account, segment int) *disputev1.MsgOpen {
	a.T.Helper()
	var points []canon.Hash
	for _, b := range a.Unit(0).Receipt.Checkpoints {
		h, err := canon.HashOf(b)
		if err != nil {
			a.T.Fatal(err)
		}
		points = append(points, h)
	}
	tree := canon.NewTree(points)
	o := game.Opening{
		Segment: segment, From: points[segment], To: points[segment+1],
		FromPath: tree.Prove(segment), ToPath: tree.Prove(segment + 1),
	}
	return &disputev1.MsgOpen{
		Challenger: who.String(), Order: a.ID.String(), Target: wire.TargetToProto(job.UnitTarget(0)), Opening: canon.Marshal(&o),
	}
}

// open returns the disputes that are not over, those that are played and those that wait.
func (a *affair) open() (played, waiting []disputev1.Dispute) {
	a.T.Helper()
	r, err := disputev1.NewQueryClient(a.Chain).Disputes(a.T.Context(), &disputev1.QueryDisputesRequest{Open: true})
	if err != nil {
		a.T.Fatal(err)
	}
	for _, d := range r.Disputes {
		if d.Waiting {
			waiting = append(waiting, d)
		} else {
			played = append(played, d)
		}
	}
	return played, waiting
}

// until makes blocks until a time.
func (a *affair) until(ms int64) {
	if wait := ms - a.Now().UnixMilli(); wait > 0 {
		a.NextBlock(time.Duration(wait) * time.Millisecond)
	}
}

// urgent is the played dispute that waits for its defender and is lost first, nil if
// there is none.
func urgent(played []disputev1.Dispute) *disputev1.Dispute {
	mine := slices.DeleteFunc(slices.Clone(played), func(d disputev1.Dispute) bool { return d.Turn != disputev1.SIDE_DEFENDER })
	if len(mine) == 0 {
		return nil
	}
	d := slices.MinFunc(mine, func(a, b disputev1.Dispute) int { return cmp.Compare(a.Deadline, b.Deadline) })
	return &d
}

// Twenty people dispute twenty segments of an honest provider, whose machine replays
// one of them in a twelfth of its clock, one after the other. Together that is more
// than the clock, and it lost the last of them when all clocks ran at once.
func TestFalseDisputesAtOnceConvictNobody(t *testing.T) {
	const n, replays = 20, 12
	friends := crowd(n)
	a := &affair{honest: worktest.NewTraining(t, nil)}
	p := &a.honest.Problem
	p.Steps = 2 * n // two steps a segment
	a.Play = worktest.Begin(t, chaintest.New(t, worktest.Network(funded(friends))...), a.honest.Order())
	a.Computer = a.honest
	a.Compute(0, "p0")
	mine, purse := a.honest.Unit(0, p.Start), a.Balance(chaintest.Named("p0").Address)
	for i, name := range friends {
		a.accuse(name, i)
	}
	begun := a.Now()
	for {
		played, waiting := a.open()
		if len(played) > parallel || len(played) < parallel && len(waiting) > 0 {
			t.Fatalf("%d games are played, and %d wait", len(played), len(waiting))
		}
		if len(played) == 0 {
			break
		}
		d := urgent(played)
		if d == nil { // the others never move again
			a.until(slices.MinFunc(played, func(a, b disputev1.Dispute) int { return cmp.Compare(a.Deadline, b.Deadline) }).Deadline + 1)
			continue
		}
		a.NextBlock(clock / replays)
		who, m, err := a.MoveMsg(d.Id, mine, nil)
		if err != nil {
			t.Fatal(err)
		}
		a.Deliver(who, m)
	}
	if u := a.Unit(0); u.Attempt != 0 || a.peer("p0").JailedUntil != 0 || len(a.Lease().Barred) != 0 {
		t.Fatalf("an honest provider was convicted: %+v", u)
	}
	if got := a.Balance(chaintest.Named("p0").Address) - purse; got != n*bond/2 || a.bonds() != 0 {
		t.Errorf("the provider got %d of %d false bonds, %d are locked", got, n, a.bonds())
	}
	if took := a.Now().Sub(begun); took > n/time.Duration(parallel)*2*clock+time.Minute {
		t.Errorf("%d games took %v", n, took)
	}
	a.NextBlock(worktest.UnitWindow)
	if u := a.Unit(0); u.Status != workv1.UNIT_STATUS_ACCEPTED {
		t.Errorf("unit 0 is %v", u.Status)
	}
}

// A cheat fills its queue with games of its friends, who dispute what is right, and
// both take all the time that they have. All of that gains it a delay of two clocks for
// every few games; its friends lose their bonds, and it is convicted.
func TestFriendlyGamesGainOnlyDelay(t *testing.T) {
	const n = 10
	friends := crowd(n)
	a := newAffairIn(t, funded(friends))
	fund, reserved := insurance(a.Chain), a.peer("p0").Reserved
	for _, name := range friends {
		a.accuse(name, 0)
	}
	id, opened := a.challenge(), a.Now()
	defender, challenger := a.sides()
	for {
		d, _ := a.Game(id)
		if d.Parties.OpenedAt != opened.UnixMilli() && !d.Waiting {
			t.Fatalf("opened at %d", d.Parties.OpenedAt)
		}
		if !d.Waiting {
			break
		}
		if u := a.Unit(0); u.Status != workv1.UNIT_STATUS_COUNTED {
			t.Fatalf("unit 0 is %v while it is disputed", u.Status)
		}
		played, _ := a.open()
		first := slices.MinFunc(played, func(a, b disputev1.Dispute) int { return cmp.Compare(a.Deadline, b.Deadline) })
		if first.Turn == disputev1.SIDE_CHALLENGER {
			a.until(first.Deadline + 1) // it never moves
			continue
		}
		a.until(first.Deadline - 1000)
		who, m, err := a.MoveMsg(first.Id, defender, nil)
		if err != nil {
			t.Fatal(err)
		}
		a.Deliver(who, m)
	}
	if delay, most := a.Now().Sub(opened), n*2*clock/time.Duration(parallel); delay > most || delay < most/2 {
		t.Errorf("%d games before an honest one delay it by %v, want at most %v", n, delay, most)
	}
	if d, _ := a.PlayOut(id, defender, challenger); d.Loser != disputev1.SIDE_DEFENDER {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	lost := uint64(n-parallel+1) * bond // of the friends whose games were played to their end
	if got := insurance(a.Chain) - fund; got < lost/2 || a.peer("p0").Reserved != 0 || reserved == 0 {
		t.Errorf("the friends lost %d to the fund, want at least %d", got, lost/2)
	}
	if played, waiting := a.open(); len(played)+len(waiting) != 0 || a.bonds() != 0 {
		t.Errorf("%d and %d games go on, with %d utally", len(played), len(waiting), a.bonds())
	}
}

// In a game that waits nobody moves and no clock runs, however long; it is exported
// and imported as it is, and goes on in its turn.
func TestWaitingGamesStandStill(t *testing.T) {
	friends := crowd(parallel)
	a := newAffairIn(t, funded(friends))
	for _, name := range friends {
		a.accuse(name, 0)
	}
	id := a.challenge()
	defender, challenger := a.sides()
	d, before := a.Game(id)
	if !d.Waiting || d.Deadline != 0 || d.DefenderLeftMs != clock.Milliseconds() {
		t.Fatalf("%+v", d)
	}
	who, m, err := a.MoveMsg(id, defender, challenger)
	if err != nil {
		t.Fatal(err)
	}
	a.Refuse(dispute.ErrWait, who, m)
	a.Refuse(dispute.ErrSubstitute, worktest.Consumer, substitute(id, worktest.Consumer, disputev1.SIDE_DEFENDER))
	a.NextBlock(answer + time.Minute)
	a.Refuse(dispute.ErrSubstitute, worktest.Consumer, substitute(id, worktest.Consumer, disputev1.SIDE_DEFENDER))
	if _, after := a.Game(id); after.Left != before.Left || after.Missed {
		t.Fatalf("clocks of %v, they were %v", after.Left, before.Left)
	}
	a.Chain = a.Fork()
	if _, waiting := a.open(); len(waiting) != 1 || waiting[0].Id != id {
		t.Fatalf("%+v wait after an import", waiting)
	}
	for i := range friends { // the others are asked, and never move again
		a.Step(uint64(i+1), defender, challenger, new(worktest.Cost))
	}
	b := a.NextBlock(clock)
	if begun := chaintest.Events[*disputev1.EventBegun](t, b); len(begun) != 1 || begun[0].Dispute.Id != id || begun[0].Dispute.Deadline != a.Now().Add(clock).UnixMilli() {
		t.Fatalf("%+v began", begun)
	}
}

// What a game that waits is about may be gone before it begins: nobody loses it. However
// many end with a conviction, the winning move does not pay for it, and the end of a
// block ends some of them.
func TestConvictionEndsWaitingGames(t *testing.T) {
	gas := func(n int) uint64 {
		friends := crowd(n)
		a := newAffairIn(t, funded(friends))
		id := a.challenge()
		for _, name := range friends {
			a.Queue(chaintest.Named(name), a.accusation(chaintest.Named(name), 0))
		}
		a.Flush()
		defender, challenger := a.sides()
		for {
			if _, g := a.Game(id); g.Stage == game.ProveBlock {
				break
			}
			a.Step(id, defender, challenger, new(worktest.Cost))
		}
		who, m, err := a.MoveMsg(id, defender, challenger)
		if err != nil {
			t.Fatal(err)
		}
		used := a.Deliver(who, m).TxResults[0].GasUsed
		for _, waiting := a.open(); len(waiting) > 0; _, waiting = a.open() {
			ended := chaintest.Events[*disputev1.EventClosed](t, a.NextBlock(time.Second))
			if len(ended) == 0 {
				t.Fatalf("%d games that are about nothing go on", len(waiting))
			}
		}
		for _, name := range friends {
			if got := a.Balance(chaintest.Named(name).Address); got != worktest.Purse {
				t.Fatalf("%s has %d utally, it had %d", name, got, uint64(worktest.Purse))
			}
		}
		return uint64(used)
	}
	const games, each = 100, 5_000 // gas of reading and writing that a lease has one more
	if few, many := gas(1), gas(1+games); many > few+games*each {
		t.Errorf("the winning move takes %d gas with one game beside it, %d with a hundred more", few, many)
	}
}

// Where several clocks about one claim run out together, the first conviction ends the
// other games; these are not lost, nor are they in anybody's way.
func TestClocksThatRunOutTogether(t *testing.T) {
	friends := crowd(3)
	a := newAffairIn(t, funded(friends))
	for _, name := range friends {
		a.Queue(chaintest.Named(name), a.accusation(chaintest.Named(name), 1))
	}
	a.Flush()
	var stuck []*disputev1.EventStuck
	for range 4 {
		stuck = append(stuck, chaintest.Events[*disputev1.EventStuck](t, a.NextBlock(clock+time.Second))...)
	}
	if played, waiting := a.open(); len(stuck) > 0 || len(played)+len(waiting) > 0 {
		t.Fatalf("stuck: %v; %d games go on", stuck, len(played)+len(waiting))
	}
	for _, name := range friends {
		if got := a.Balance(chaintest.Named(name).Address); got < worktest.Purse {
			t.Errorf("%s, who was right, has %d utally of %d", name, got, uint64(worktest.Purse))
		}
	}
}

// The pure rules: what waits has no time, and begins with both clocks whole.
func TestWaitingIsNoTurn(t *testing.T) {
	a := newAffair(t)
	_, g := a.Game(a.challenge())
	w := game.Wait(g)
	if w.Expired(game.Never-1) || game.Expire(w, 1<<60).Stage == game.Over || w.Wake() != game.Never {
		t.Error("time passes in a game that waits")
	}
	if _, err := game.Apply(w, game.Defender, &game.Roots{}, 0); !errors.Is(err, game.ErrWait) {
		t.Error(err)
	}
	if b := game.Begin(w, 1e15); b.Since != 1e15 || b.Left != g.Left || b.Waiting {
		t.Errorf("%+v", b)
	}
	over := game.Drop(w, "it is gone")
	if over.Waiting || game.Wait(over).Waiting {
		t.Error("a game that is over waits")
	}
}
