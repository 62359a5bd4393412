package job

import (
	"slices"
	"strings"
	"testing"
)

// spent returns what the effects of a kind add up to for an account.
func spent(effects []Effect, kind Kind, account string) (sum uint64) {
	for _, e := range effects {
		if e.Kind == kind && e.Account == account {
			sum += e.Amount
		}
	}
	return sum
}

// Time runs from the beginning of a round until a provider's last receipt of it, whenever its units were
// given out. A unit that was given out before is not timed.
func TestTimeRunsFromTheBeginningOfTheRound(t *testing.T) {
	w := newWorld(t)
	unit := w.lease.Order.Problem.UnitFLOPs()
	w.pass(30) // the lead gives out late
	w.compute(0, "p0", "")
	w.pass(5)
	w.compute(1, "p0", "")
	first := w.lease.Units[1].Took
	if first < 35 || w.lease.Units[0].Took < 30 || first <= w.lease.Units[0].Took {
		t.Fatalf("units took %d and %d ms", w.lease.Units[0].Took, first)
	}
	w.finishRound()
	if err := w.assign(2, "p1"); err != nil {
		t.Fatal(err)
	}
	w.pass(101) // too late
	if u := w.lease.Units[2]; u.Status != Open || u.Attempt != 1 {
		t.Fatalf("%+v", u)
	}
	w.compute(2, "p1", "")
	w.compute(3, "p2", "")
	second := w.lease.Units[3].Took
	w.finishRound()
	w.finishRound()
	third := w.lease.Units[4].Took + w.lease.Units[5].Took // of two providers
	if third >= first {
		t.Errorf("a round begins with the merge before it: its units took %d ms", third)
	}
	effects := w.lease.timed(unit)
	for who, want := range map[string][2]uint64{"p0": {2 * unit, uint64(first)}, "p2": {unit, uint64(second)}, "p1": {}} {
		for i := 4; i < 6; i++ {
			if u := w.lease.Units[i]; u.Provider == who {
				want[0], want[1] = want[0]+unit, want[1]+uint64(u.Took)
			}
		}
		if got := [2]uint64{spent(effects, Work, who), spent(effects, Busy, who)}; got != want {
			t.Errorf("%s did %d FLOP in %d ms, want %d", who, got[0], got[1], want)
		}
	}
	replicated := w.lease
	replicated.Units = slices.Clone(w.lease.Units)
	replicated.Units[0].Replicas = []Replica{{Provider: "p0"}, {Provider: "p1"}}
	if got := spent(replicated.timed(unit), Work, "p0"); got != spent(effects, Work, "p0")-unit {
		t.Errorf("with a replica p0 did %d FLOP", got)
	}
}

// Whoever exposes the cost of an order ends what it would have shown of speed.
func TestNothingIsTimedThatIsNotCredited(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p0", "")
	w.lease.Ledger.Burnt, w.lease.Ledger.Refuter = 1_000_000, "somebody"
	w.lease.Units[0].Status = Accepted
	effects, err := w.lease.credits([]string{"p0"})
	if err != nil || spent(effects, Work, "p0")+spent(effects, Busy, "p0") != 0 || spent(effects, Vouch, "p0") != 1 {
		t.Errorf("%+v, %v", effects, err)
	}
}

// A deadline ends a lease in whatever round it is, once, and not after its last merge.
func TestDeadlineStopsALease(t *testing.T) {
	m := testMatch()
	m.Order.Conditions.Needs.Deadline = 150
	w := newWorldOf(t, m)
	w.compute(0, "p0", "")
	w.pass(100)
	if err := w.assign(1, "p1"); err != nil {
		t.Fatal(err)
	}
	at := w.lease.MatchedAt + 150
	if wake := w.lease.WakeSelf(); wake > at {
		t.Errorf("it wakes at %d, its deadline is %d", wake, at)
	}
	w.pass(at - w.now - 1)
	if w.lease.Phase != Active {
		t.Fatalf("%v a moment before its deadline: %s", w.lease.Phase, w.lease.Reason)
	}
	w.pass(1)
	if w.lease.Phase != Stopping || !strings.Contains(w.lease.Reason, "deadline") {
		t.Fatalf("%v: %s", w.lease.Phase, w.lease.Reason)
	}
	if err := w.assign(2, "p1"); err == nil {
		t.Error("a unit was given out after the deadline")
	}
	w.submit(w.receipt(1, ""))
	w.attest(1)
	w.audit(1, true)
	w.pass(20)
	w.do(w.merge())
	w.pass(60)
	if w.lease.Phase != Settled || w.purse["p0"] == 0 || w.purse["p1"] == 0 || w.lease.Ledger.Refund == 0 {
		t.Errorf("%+v", w.lease.Ledger)
	}

	w = newWorldOf(t, m)
	w.finish()
	if w.lease.Reason != "" {
		t.Errorf("done in time, and %s", w.lease.Reason)
	}
	for words, bend := range map[string]func(*Conditions){
		"providers at most": func(c *Conditions) { c.Needs.Most = 1 },
		"unit timeout":      func(c *Conditions) { c.Needs.Deadline = c.UnitTimeout - 1 },
		"two letters":       func(c *Conditions) { c.Needs.Regions = []string{"x"} },
	} {
		o := testOrder()
		bend(&o.Conditions)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v does not say %q", err, words)
		}
	}
}
