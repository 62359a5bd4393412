package job

import (
	"math"
	"testing"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/money"
)

// deepMatch is a match of an order of twenty rounds, with a least bond that can be told from
// rounding.
func deepMatch() Match {
	m := testMatch()
	m.Order.Problem.Rounds, m.Order.Conditions.MaxPrice = 20, 100_000_000
	m.Params.MinBond = 1000
	return m
}

// computeRoundBy computes and merges the round: its first unit by one provider, its second by p1.
func (w *world) computeRoundBy(provider string) {
	w.t.Helper()
	first := w.lease.Unit(w.lease.Round, 0)
	w.compute(first, provider, "")
	w.compute(first+1, "p1", "")
	w.pass(20)
	if w.lease.AwaitsMerge() {
		w.do(w.merge())
	}
}

// convict lets a dispute about t be lost by whoever answers for it.
func (w *world) convict(t Target) {
	w.t.Helper()
	w.next++
	if err := w.challenge(w.next, t, "c"); err != nil {
		w.t.Fatal(err)
	}
	w.do(CloseDispute{ID: w.next, Loser: dispute.Defender})
}

// paysVoid checks that a conviction has paid all honest work that it made void.
func (w *world) paysVoid(before *Lease, effects []Effect) {
	w.t.Helper()
	var convict string
	paid := map[string]uint64{}
	for _, e := range effects {
		switch {
		case e.Kind == Award:
			paid[e.Account] += e.Amount
		case e.Kind == Emit && e.Note == "convicted":
			convict = e.Account
		}
	}
	if convict == "" {
		return
	}
	var owed []Share
	for i := range before.Units {
		if before.Units[i].Attempt == w.lease.Units[i].Attempt {
			continue
		}
		earned, err := before.earnings(i, false)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, s := range earned {
			if s.Account != convict {
				owed = addShare(owed, s)
			}
		}
	}
	for _, s := range owed {
		if paid[s.Account] < s.Amount {
			w.t.Fatalf("the conviction of %s made work of %s void that was worth %d, and paid %d", convict, s.Account, s.Amount, paid[s.Account])
		}
	}
}

// All units of a provider stand on one reserve: what they can void together, or what forging
// them all would gain.
func TestUnitsStandOnOneReserve(t *testing.T) {
	w := newWorldOf(t, deepMatch())
	l := &w.lease
	gain, err := l.gain(1)
	if err != nil {
		t.Fatal(err)
	}
	void := l.Quote.Honest * l.Params.BondFactor
	for n := uint64(1); l.Round < 19; n++ {
		w.computeRoundBy("p0")
		if got := l.Reserve.Held("p0", ForWork); got != max(void, n*gain) {
			t.Fatalf("%d utally stand behind %d units, want the greater of %d and %d", got, n, void, n*gain)
		}
	}
	if _, _, err := l.stand(Standing{Provider: "p0"}, nil); (err == nil) != (20*gain <= void) {
		t.Errorf("with no stake free a unit more is taken or not: %v", err)
	}
	if w.computeRoundBy("p0"); l.Phase != Closing {
		t.Fatalf("the lease is %v", l.Phase)
	}
	w.pass(60)
	if w.stakeOf("p0") != stake || len(l.Reserved()) != 0 {
		t.Errorf("p0 has %d of %d, reserved are %v", w.stakeOf("p0"), uint64(stake), l.Reserve)
	}
}

// A lead that had lost its bond by a late merge had none left for an earlier one: nobody paid the
// honest work that this made void. The same holds for a provider and its units.
func TestEarlierFraudOfAConvictIsPaid(t *testing.T) {
	for name, c := range map[string]struct {
		reason      Reason
		late, early Target
	}{
		"lead":     {ForLead, MergeTarget(4), MergeTarget(0)},
		"provider": {ForWork, UnitTarget(8), UnitTarget(0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, deepMatch())
			l := &w.lease
			for l.Round < 5 {
				w.computeRoundBy("p0")
			}
			who := map[Reason]string{ForLead: "v0", ForWork: "p0"}[c.reason]
			held := w.lease.Reserve.Held(who, c.reason)
			w.convict(c.late)
			left := l.Reserve.Held(who, c.reason)
			if l.Round != 4 || left == 0 || w.held[who] != left || l.Units[0].Status != Accepted {
				t.Fatalf("round %d; %d of %d are left behind the earlier work", l.Round, left, held)
			}
			if c.reason == ForLead {
				w.do(TakeLead{By: l.Leads[1].Account})
			}
			for l.Round < 20 {
				if l.AwaitsMerge() {
					w.do(w.merge())
					continue
				}
				for s := range 2 {
					if i := l.Unit(l.Round, s); l.Units[i].Status == Open {
						w.compute(i, "p2", "")
					}
				}
				w.pass(20)
			}
			w.convict(c.early) // paysVoid: all of nineteen rounds is paid
			if l.Round != 0 || l.Reserve.Held(who, c.reason) != 0 {
				t.Fatalf("round %d, %d utally of the convict are left", l.Round, l.Reserve.Held(who, c.reason))
			}
		})
	}
}

// A conviction that the reserve cannot pay for beside what the convict's other work can make void
// leaves none of that: nothing would stand behind it.
func TestAllWorkOfAConvictIsVoidIfItsReserveDoesNotLast(t *testing.T) {
	w := newWorldOf(t, deepMatch())
	l := &w.lease
	for l.Round < 12 {
		w.computeRoundBy("p0")
	}
	if err := w.challenge(90, UnitTarget(10), "d"); err != nil { // another unit of p0
		t.Fatal(err)
	}
	held := l.Reserve.Held("p0", ForWork)
	w.convict(UnitTarget(4)) // in round 2: nine rounds descend from it
	if l.Round != 0 || l.Units[0].Status != Open || l.Units[1].Status != Accepted || l.Reserve.Held("p0", ForWork) != 0 {
		t.Fatalf("round %d, units %v and %v", l.Round, l.Units[0].Status, l.Units[1].Status)
	}
	if l.Ledger.Slashed != held || len(l.Disputes) != 0 {
		t.Errorf("%d of %d slashed, %d disputes left", l.Ledger.Slashed, held, len(l.Disputes))
	}
	if w.purse["c"] < (held*l.Params.RewardBps)/bps {
		t.Errorf("the challenger got %d of %d", w.purse["c"], held)
	}
}

// Who is convicted once loses everything, and so gains nothing by what else it has forged. What
// stood behind that goes to the fund, or to who refutes it.
func TestConvictLosesItsWholeReserve(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := newWorldOf(t, deepMatch())
		l := &w.lease
		for l.Round < 3 {
			w.computeRoundBy("p0")
		}
		w.convict(UnitTarget(4))
		left, reward := l.Reserve.Held("p0", ForWork), w.purse["c"]
		if left == 0 || reward == 0 || l.Units[2].Status != Accepted {
			t.Fatalf("%d are left, the challenger has %d", left, reward)
		}
		if err := w.assign(4, "p0"); err == nil {
			t.Fatal("a convict was given a unit")
		}
		if again {
			w.convict(UnitTarget(2)) // void with it is all else that it did
			if l.Units[0].Status != Open || w.purse["c"]-reward < left*l.Params.RewardBps/bps || w.held["p0"] != 0 {
				t.Fatalf("unit 0 is %v, the second challenger got %d of %d", l.Units[0].Status, w.purse["c"]-reward, left)
			}
		}
		before := w.stakeOf("p0")
		w.finish()
		if lost := before - w.stakeOf("p0"); lost != map[bool]uint64{false: left}[again] {
			t.Errorf("again %v: %d were lost at the end of %d", again, lost, left)
		}
		if again && w.purse["p0"] != 0 {
			t.Errorf("the convict was paid %d for work that is void", w.purse["p0"])
		}
	}
}

// A coalition on all sides, whose forged work is paid as if it were honest and who challenges
// itself, loses in every order of convictions: so nobody voids an order for nothing.
func TestVoidingAnOrderCosts(t *testing.T) {
	for name, units := range map[string][]int{
		"at once": {0}, "late": {18}, "late, then early": {18, 0}, "bit by bit": {18, 16, 14, 0},
	} {
		w := newWorldOf(t, deepMatch())
		l := &w.lease
		for l.Round < 10 {
			w.computeRoundBy("p0")
		}
		for _, unit := range units {
			if l.Units[unit].Provider == "p0" && l.Units[unit].Status == Accepted {
				w.convict(UnitTarget(unit))
			}
		}
		w.finish()
		kept, _ := money.Scale(l.Params.MinBond/2, bps-l.Params.RewardBps, bps)
		if w.purse[Insurance] < kept {
			t.Errorf("%s: the fund has %d utally, the coalition all else", name, w.purse[Insurance])
		}
	}
}

// Nothing is so cheap that a cheat risks next to nothing.
func TestLeastBond(t *testing.T) {
	w := batchWorld(t)
	w.lease.Params.MinBond = 5_000_000
	w.compute(0, "p0", "lie")
	w.compute(1, "p1", "")
	w.compute(2, "p0", "")
	if w.held["p0"] != 5_000_000 {
		t.Fatalf("%d utally stand behind two units of a cheap batch", w.held["p0"])
	}
	before := w.stakeOf("p0")
	w.convict(UnitTarget(0))
	w.finish()
	if lost := before - w.stakeOf("p0"); lost != 5_000_000 || w.purse["c"] < 5_000_000*w.lease.Params.RewardBps/bps/3 {
		t.Fatalf("the cheat lost %d, the challenger got %d", lost, w.purse["c"])
	}
}

// No sum of what is reserved overflows: it is refused.
func TestExposuresDoNotOverflow(t *testing.T) {
	var x Exposures
	if _, err := x.hold("a", ForData, math.MaxUint64-1); err != nil {
		t.Fatal(err)
	}
	if _, err := x.hold("a", ForData, 2); err == nil || x.Held("a", ForData) != math.MaxUint64-1 {
		t.Errorf("more than there can be is reserved: %v", err)
	}
	if e := x.release("a", ForData, math.MaxUint64); len(e) != 1 || e[0].Amount != math.MaxUint64-1 || len(x) != 1 || x[0] != (Exposure{Account: "a", Reason: ForData}) {
		t.Errorf("released %v, left %v", e, x)
	}
	e := Exposure{Gains: math.MaxUint64}
	if err := e.add(0, 1); err == nil {
		t.Error("gains overflow")
	}
	b := Bond{Amount: math.MaxUint64}
	if b.Covered("a", math.MaxUint64-1, 1) != nil || b.Covered("a", math.MaxUint64-1, 0) == nil {
		t.Error("what is held and free is added up wrongly")
	}
}
