package team_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/team"
)

func order(flops, bytes uint64, least int) *job.Order {
	return &job.Order{
		Problem:    job.Problem{Rounds: 2, Shards: 2, Steps: 6, Interval: 2, StepFLOPs: flops, StepBytes: bytes, StateBytes: 100},
		Conditions: job.Conditions{MinProviders: least, Auditors: 1, AuditSegments: 1, Custodians: 3, UnitTimeout: 1000, UnitWindow: 1000, Window: 1000},
	}
}

// The longest beginning that is paid for is what trying them one by one finds, from the longest on.
func TestAffordIsTheLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := order(rapid.Uint64Range(1, 1e12).Draw(t, "flops"), rapid.Uint64Range(0, 1e10).Draw(t, "bytes"), rapid.IntRange(1, 4).Draw(t, "least"))
		rates := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job.Rates {
			return job.Rates{GFLOP: rapid.Uint64Range(1, 3000).Draw(t, "gflop"), GB: rapid.Uint64Range(0, 300).Draw(t, "gb")}
		}), 1, 20).Draw(t, "rates")
		pay := func(r job.Rates) uint64 {
			p, _ := r.Pay(o.Problem.UnitFLOPs(), o.Problem.StepBytes*uint64(o.Problem.Steps))
			return p
		}
		slices.SortStableFunc(rates, func(a, b job.Rates) int { return cmp.Compare(pay(a), pay(b)) })
		dearest := func(n int) (d job.Rates) {
			for _, r := range rates[:n] {
				d = d.Dearest(r)
			}
			return d
		}
		terms := team.Terms{Order: o, FeeBps: 500, Rules: &job.DefaultParams}
		whole, err := terms.At(dearest(len(rates)))
		if err != nil {
			t.Fatal(err)
		}
		limit := rapid.Uint64Range(0, 2*whole.Price).Draw(t, "limit")
		want := len(rates)
		for ; want > min(o.Conditions.MinProviders, len(rates)); want-- {
			if p, err := terms.At(dearest(want)); err == nil && p.Price <= limit {
				break
			}
		}
		n, p, err := terms.Afford(len(rates), dearest, limit)
		at, atErr := terms.At(dearest(want))
		if n != want || p != at || (err == nil) != (atErr == nil) {
			t.Fatalf("%d of %d members for %d, want %d", n, len(rates), limit, want)
		}
	})
}

// A provider that asks more than can be counted is left out, and one that asks nothing prices no order.
func TestAffordLeavesOutWhoCannotBeCounted(t *testing.T) {
	o := order(1<<57, 0, 1)
	rates := []job.Rates{{GFLOP: 1}, {GFLOP: math.MaxUint64}}
	terms := team.Terms{Order: o, Rules: &job.DefaultParams}
	if n, p, err := terms.Afford(2, func(n int) job.Rates { return rates[n-1] }, math.MaxUint64); n != 1 || err != nil || p.Price == 0 || p.Bond == 0 {
		t.Errorf("%d members for %+v, %v", n, p, err)
	}
	rates = []job.Rates{{}}
	if _, _, err := terms.Afford(1, func(int) job.Rates { return rates[0] }, math.MaxUint64); err == nil {
		t.Error("a unit was priced at nothing")
	}
}
