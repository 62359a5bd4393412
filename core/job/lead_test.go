package job

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
)

// What a lead cannot do, because the chain does it or the provider itself: the
// table of docs/spec/lease.md.

// A lead cannot withhold a receipt: the provider posts it, keepers and auditors
// read it from the chain, and if the lead then does nothing, the next in line
// merges it. The provider is paid, the idle lead pays.
func TestLeadCannotWithholdReceipts(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p1", "")
	w.compute(1, "p2", "")
	next := w.lease.Leads[1].Account
	w.pass(20 + w.lease.Params.LeadTimeout)
	for _, u := range w.lease.Units[:2] {
		if u.Status != Accepted {
			t.Fatalf("without the lead's help a unit is %v", u.Status)
		}
	}
	w.do(TakeLead{By: next})
	w.finish()
	if w.purse["p1"] == 0 || w.stakeOf("v0") == stake {
		t.Fatalf("p1 earned %d, the idle lead lost %d", w.purse["p1"], stake-w.stakeOf("v0"))
	}
}

// A lead cannot set a deadline: the chain counts the order's own from the
// assignment.
func TestLeadCannotSetDeadlines(t *testing.T) {
	for late := range int64(2) {
		w := newWorld(t)
		w.pass(17)
		begun := w.now
		if err := w.assign(0, "p0"); err != nil {
			t.Fatal(err)
		}
		if due := w.lease.Units[0].Due; due != begun+w.lease.Order.Conditions.UnitTimeout {
			t.Fatalf("due at %d", due-begun)
		}
		receipt := w.receipt(0, "")
		w.now = w.lease.Units[0].Due + late
		if err := w.try(receipt); (err == nil) != (late == 0) {
			t.Fatalf("%d ms late: %v", late, err)
		}
	}
}

// A lead cannot leave a provider out of a merge, or choose what is merged: the
// inputs of a merge are the accepted units of the round, and the chain lists them.
func TestLeadCannotLeaveAProviderOut(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p1", "")
	w.compute(1, "p2", "")
	ends := []canon.Hash{w.lease.Units[0].Receipt.End(), w.lease.Units[1].Receipt.End()}
	if err := w.try(PostMerge{By: "v0", Root: canon.Sum("one unit alone")}); err == nil {
		t.Fatal("merged before every unit was accepted")
	}
	w.pass(20)
	w.do(PostMerge{By: "v0", Root: canon.Sum("one unit alone")})
	s, err := w.lease.Subject(MergeTarget(0), 0)
	if err != nil || !slices.Equal(s.Claim.Inputs, ends) {
		t.Fatalf("the merge claims to be of %v, %v", s.Claim.Inputs, err)
	}
	// So a merge without p2's work is a wrong merge, and costs the lead its office.
}
