package main

import (
	"math"
	"strings"
	"testing"
)

func goodOutcome() outcome {
	o := outcome{
		Status: "settled", Steps: 512, Units: 32,
		Price: 100, Paid: map[string]uint64{"a": 60, "b": 20}, Refund: 18, Burnt: 2,
		EscrowLeft: new(uint64), FinalRoot: strings.Repeat("ab", 32),
	}
	o.Audits.Drawn, o.Audits.Passed = 33, 33
	return o
}

func good() *report {
	return &report{
		outcome: goodOutcome(), LossFirst: 4.2, LossLast: 2.4, HeldOutFirst: 4.2, HeldOutLast: 2.3, SupplyOK: true,
		Batch:  score{outcome: goodOutcome(), Records: 8, Loss: 4.2, Drilled: 7},
		Served: &served{Reply: "it was", Tokens: 6, Price: 40, Checks: 12, By: "a", Checker: "b", Right: true},
	}
}

// convict makes a good report that of a run with cheaters.
func convict(r *report) {
	for _, o := range []*outcome{&r.outcome, &r.Batch.outcome} {
		o.Slashed, o.SlashPaid = 50, map[string]uint64{"a": 20, "c": 30}
		o.Dispute = &dispute{Provider: "p", Loser: "p", Op: "MatMul", Fold: 1, Moves: 14}
	}
}

func TestFaults(t *testing.T) {
	r := good()
	if f := append(faults(r), honestFaults(r)...); len(f) > 0 {
		t.Fatalf("good honest run: %q", f)
	}
	convict(r)
	if f := append(faults(r), cheatedFaults(r)...); len(f) > 0 {
		t.Fatalf("good run with a cheater: %q", f)
	}
	for want, spoil := range map[string]func(*report){
		"status":             func(r *report) { r.Status = "refunded" },
		"steps":              func(r *report) { r.Steps = 0 },
		"loss did not fall":  func(r *report) { r.LossLast = math.NaN() },
		"held-out":           func(r *report) { r.HeldOutLast = 4.3 },
		"not below 3":        func(r *report) { r.HeldOutLast = 3.1 },
		"is not the price":   func(r *report) { r.Refund++ },
		"counts as drilling": func(r *report) { r.Batch.Drilled = 0 },
		"nobody was paid":    func(r *report) { r.Paid, r.Refund = nil, 98 },
		"nothing was burnt":  func(r *report) { r.Burnt = 0 },
		"went somewhere":     func(r *report) { r.SlashPaid["c"]-- },
		"escrow_left":        func(r *report) { *r.EscrowLeft = 1 },
		"audits":             func(r *report) { r.Audits.Passed = 0 },
		"ledger":             func(r *report) { r.SupplyOK = false },
		"final root":         func(r *report) { r.FinalRoot = "" },
		"no dispute":         func(r *report) { r.Dispute = nil },
		"the loser is":       func(r *report) { r.Dispute.Loser = "challenger" },
		"fold block 0":       func(r *report) { r.Dispute.Fold = 0 },
		"41 moves":           func(r *report) { r.Dispute.Moves = 41 },
		"nobody was slash":   func(r *report) { r.Slashed, r.SlashPaid = 0, nil },
		"the batch gave":     func(r *report) { r.Batch.Loss = 4.3 },
		"was not served":     func(r *report) { r.Served = nil },
		"model is wrong":     func(r *report) { r.Served.Right = false },
		"and checked by":     func(r *report) { r.Served.Checker = "a" },
		"a reply of 0":       func(r *report) { r.Served.Tokens = 0 },
		"had no records":     func(r *report) { r.Batch.Records = 0 },
		`status is "left"`:   func(r *report) { r.Batch.Status = "left" },
		"the loser is \"q\"": func(r *report) { r.Batch.Dispute.Loser = "q" },
	} {
		r := good()
		convict(r)
		spoil(r)
		if f := strings.Join(append(faults(r), cheatedFaults(r)...), "\n"); !strings.Contains(f, want) {
			t.Errorf("want %q, got %q", want, f)
		}
	}
	r = good()
	convict(r)
	if f := honestFaults(r); len(f) != 4 { // two of each order
		t.Errorf("an honest run with a dispute and a slash: %q", f)
	}
}
