package job

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/proof"
)

// bendWorld is a world of another order.
func bendWorld(t fataler, bend func(*Order)) *world {
	m := testMatch()
	bend(&m.Order)
	return newWorldOf(t, m)
}

// A long record of valid units lowers the audits of a provider's units to the
// order's floor and raises the bond behind them; one failure resets it.
func TestAuditsFollowTheRecord(t *testing.T) {
	w := bendWorld(t, func(o *Order) {
		o.Conditions.AuditSegments, o.Conditions.AuditFloor = 3, 1
	})
	w.record["p0"] = 15
	w.compute(0, "p0", "lie")
	w.compute(1, "p1", "")
	p0, p1 := w.lease.Units[0], w.lease.Units[1]
	if p0.Audited != 2 || len(p0.Audits[0].Segments) != 2 || p1.Audited != 3 || len(p1.Audits[0].Segments) != 3 {
		t.Fatalf("segments audited: %d of p0, %d of p1", p0.Audited, p1.Audited)
	}
	if w.bondOf(0) < w.bondOf(1) {
		t.Fatalf("bonds %d of p0, %d of p1: who is audited less puts up less", w.bondOf(0), w.bondOf(1))
	}
	earned, err := w.lease.earnings(0, false)
	if want := w.lease.Quote.Audit * 2 / 3; err != nil || earned[1].Amount != want {
		t.Fatalf("the auditor earns %d for two thirds, want %d; %v", earned[1].Amount, want, err)
	}
	w.do(OpenDispute{ID: 1, Target: UnitTarget(0), Challenger: "c"})
	w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	if w.record["p0"] != 0 {
		t.Fatalf("a convict has a record of %d valid units", w.record["p0"])
	}
	w.finish()
	if w.record["p1"] == 0 || w.record["p0"] != 0 {
		t.Fatalf("records %v", w.record)
	}
}

// Without a floor the record changes nothing.
func TestConsumerThatWantsAllAuditsGetsThem(t *testing.T) {
	w := newWorld(t)
	w.record["p0"] = 1 << 40
	w.compute(0, "p0", "")
	if w.lease.Units[0].Audited != w.lease.Order.Conditions.AuditSegments {
		t.Fatalf("%d segments audited", w.lease.Units[0].Audited)
	}
}

// Segments with the largest updates are audited beside those that are drawn.
func TestLargestUpdatesAreAuditedBesides(t *testing.T) {
	w := bendWorld(t, func(o *Order) { o.Conditions.TopSegments = 1 })
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(0, ""))
	w.attest(0)
	auditor := w.lease.Units[0].Audits[0].Auditor
	drawn := proof.Segments([]byte(auditor), 3, 1)[0]
	other := (drawn + 1) % 3
	for name, top := range map[string][]int{"none": nil, "drawn": {drawn}, "beyond": {3}, "too many": {other, (other + 1) % 3}} {
		if err := w.try(Report{By: auditor, Output: []byte(auditor), Top: top, Pass: true}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	w.do(Report{By: auditor, Output: []byte(auditor), Top: []int{other}, Pass: true})
	if got := w.lease.Units[0].Audits[0].Segments; !slices.Equal(got, []int{drawn, other}) {
		t.Fatalf("audited %v", got)
	}
	if w.lease.Quote.Audit != (w.lease.Quote.Unit*2+2)/3 {
		t.Fatalf("an auditor of two of three segments earns %d of %d", w.lease.Quote.Audit, w.lease.Quote.Unit)
	}
}

// A unit is not given out unless its provider's free stake covers the worst case;
// the refusal shows the inequality. Units of one message count together.
func TestBondMustCoverTheWorstCase(t *testing.T) {
	w := newWorld(t)
	b, err := w.lease.Quote.Bond(&w.lease.Order.Problem, &w.lease.Order.Conditions, &w.lease.Params, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if b.Amount != max(b.Void, b.Gain) || b.Gain < 3*w.lease.Quote.Unit || b.Void < 2*w.lease.Quote.Honest {
		t.Fatalf("%+v for a unit of %d", b, w.lease.Quote.Unit)
	}
	spare := w.free["p0"] - b.Amount + 1
	w.free["p0"] -= spare
	err = w.assign(0, "p0")
	if err == nil || !strings.Contains(err.Error(), "must cover the worst case: max(") || !strings.Contains(err.Error(), "33.3333333 %") {
		t.Fatal(err)
	}
	w.free["p0"] += spare
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
}
