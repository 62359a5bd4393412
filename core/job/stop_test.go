package job

import (
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/tensor"
)

// halted returns a lease that was stopped because its loss is no number, all units of
// whose second round were given out before, and are then accepted.
func halted(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	loss := tensor.Scalar(tensor.AsF32(0x7fc00000))
	k, err := canon.NewKeyed([]canon.Entry{{Key: LossSlot, Value: loss.Root()}})
	if err != nil {
		t.Fatal(err)
	}
	w.compute(0, "p1", "")
	w.compute(1, "p2", "")
	w.pass(20)
	w.do(PostMerge{By: "v0", Root: k.Root()})
	for i, p := range []string{"p1", "p2"} {
		if err := w.assign(2+i, p); err != nil {
			t.Fatal(err)
		}
	}
	w.do(Halt{k.Open(0), loss.Bytes()})
	for i := range 2 {
		w.submit(w.receipt(2+i, ""))
		w.attest(2 + i)
		w.audit(2+i, true)
	}
	w.pass(20)
	return w
}

// Units under way when a lease stops are finished and paid. If they make up a round, its
// merge is still due: by the lead, and by whoever is next in line. Else the consumer paid
// for what it could not use.
func TestStoppedLeaseMergesItsLastRound(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := halted(t)
		if w.lease.Phase != Stopping || w.lease.Lead() != "v0" {
			t.Fatalf("with the last round done the lease is %v, led by %q", w.lease.Phase, w.lease.Lead())
		}
		if late {
			w.pass(w.lease.Params.LeadTimeout)
			next := w.lease.Leads[1].Account
			if !w.lease.MayTakeLead(next, w.now) {
				t.Fatalf("%s may not take over from a lead that does not merge", next)
			}
			w.do(w.takeLead(next))
			if w.stakeOf("v0") == stake {
				t.Error("the idle lead lost nothing")
			}
		}
		merge := w.merge()
		w.do(merge)
		if w.lease.Phase != Closing || w.lease.FinalRoot() != merge.Root {
			t.Fatalf("after its merge the lease is %v with %v", w.lease.Phase, w.lease.FinalRoot())
		}
		if err := w.assign(4, "p1"); err == nil {
			t.Error("a stopped lease gave out a unit of the next round")
		}
		if err := w.challenge(1, MergeTarget(1), "c"); err != nil {
			t.Errorf("the last merge cannot be disputed: %v", err)
		}
	}
}

// A merge that nobody posts, of all who are in line, does not hold a lease up for good.
func TestStoppedLeaseWithoutMergeEnds(t *testing.T) {
	w := halted(t)
	line := int64(len(w.lease.Leads))
	w.pass(line*w.lease.Params.LeadTimeout + w.lease.Order.Conditions.Window + 2)
	if w.lease.Phase != Settled || w.lease.Round != 1 || w.purse["p1"] == 0 {
		t.Fatalf("the lease is %v at round %d, p1 has %d", w.lease.Phase, w.lease.Round, w.purse["p1"])
	}
}

// Where the merge of a lease that has stopped turns out to be wrong, the units that went
// into it are still there: the next in line merges them.
func TestWrongMergeOfAStoppedLeaseIsDoneAgain(t *testing.T) {
	m := testMatch()
	m.Params.MaxAttempts = 1
	w := newWorldOf(t, m)
	w.finishRound()
	if err := w.assign(2, "p1"); err != nil {
		t.Fatal(err)
	}
	w.pass(102)
	if w.lease.Phase != Closing || w.lease.Reason == "" {
		t.Fatalf("the lease is %v (%s)", w.lease.Phase, w.lease.Reason)
	}
	if err := w.challenge(1, MergeTarget(0), "c"); err != nil {
		t.Fatal(err)
	}
	w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	w.pass(1)
	if w.lease.Phase != Stopping || w.lease.Round != 0 {
		t.Fatalf("the lease is %v at round %d", w.lease.Phase, w.lease.Round)
	}
	w.pass(w.lease.Params.LeadTimeout)
	w.do(w.takeLead(w.lease.Leads[1].Account))
	merge := w.merge()
	w.do(merge)
	w.pass(w.lease.Order.Conditions.Window + 2)
	if w.lease.Phase != Settled || w.lease.FinalRoot() != merge.Root {
		t.Fatalf("the lease is %v and ends in %v", w.lease.Phase, w.lease.FinalRoot().Short())
	}
}

// Who has ordered training may end it after any round: what is under way is finished, merged and paid, the rest comes back.
func TestConsumerStopsItsOrder(t *testing.T) {
	w := newWorld(t)
	for name, e := range map[string]Stop{"before a round is merged": {w.lease.Order.Consumer}, "of somebody else": {"p1"}} {
		if err := w.try(e); err == nil {
			t.Fatalf("an order is stopped %s", name)
		}
	}
	w.compute(0, "p1", "")
	w.compute(1, "p2", "")
	w.pass(20)
	w.do(w.merge())
	if err := w.assign(2, "p1"); err != nil {
		t.Fatal(err)
	}
	if err := w.try(Stop{"p1"}); err == nil {
		t.Fatal("a provider stops an order")
	}
	w.do(Stop{w.lease.Order.Consumer})
	if err := w.try(Stop{w.lease.Order.Consumer}); err == nil {
		t.Error("it is stopped twice")
	}
	if err := w.assign(3, "p2"); err == nil {
		t.Error("a stopped lease gives out a unit")
	}
	w.submit(w.receipt(2, ""))
	w.attest(2)
	w.audit(2, true)
	w.pass(200)
	l := &w.lease
	if l.Phase != Settled || l.Round != 1 || l.Ledger.Refund == 0 || l.Ledger.Slashed != 0 {
		t.Fatalf("the lease is %v at round %d: %+v", l.Phase, l.Round, l.Ledger)
	}
	if w.purse["p1"] != 2*(30*1100+6*5) {
		t.Errorf("p1 got %d: the unit under way must be paid", w.purse["p1"])
	}
}
