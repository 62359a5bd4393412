package sim

import (
	"testing"

	"github.com/tally-network/tally/core/job"
)

// dealt is the weighted mean of what self-deals gain, in parts of a unit's pay: by today's rule, and from a shared pool.
func dealt(t *testing.T, s SelfDeal) (today, shared float64) {
	t.Helper()
	const orders, rounds = 150, 2
	var lacks float64
	rules := job.DefaultParams.Quick()
	var weight float64
	for seed := range uint64(orders) {
		g, err := s.play(economy{rules: rules, forced: rules.ForcedBps + moreForced/rounds, rounds: rounds, prizes: func(b *bout) { lacks = float64(lacking(b)) }}, seed)
		if err != nil {
			t.Fatalf("%s, seed %d: %v", SelfDeals[s], seed, err)
		}
		weight, today, shared = weight+g.Weight, today+g.Weight*g.Gain, shared+g.Weight*(g.Gain+lacks)
	}
	return today / weight / 1e6, shared / weight / 1e6 // rates make a unit worth a tally
}

// lacking is what a shared pool would pay in the consumer's place: what the lease's share lacks for its forced attempts, a unit's pay for each
// at most. The pool is taken to have it.
func lacking(b *bout) int64 {
	var paid uint64
	for _, s := range b.lease.Ledger.Paid {
		paid += s.Amount
	}
	own := int64(paid * b.lease.Params.TaxBps / 10_000)
	return min(int64(b.lease.Ledger.Tax)-own, int64(len(b.shown))*b.pay())
}

// Whoever orders from itself to draw forced attempts loses by it. If the pool paid what its leases lack, it would gain: wherever an attempt
// can be given up at no cost it would draw again, and take the pay of each that is forced out of what others have paid.
func TestSelfDealsLose(t *testing.T) {
	t.Parallel()
	for s := range numSelfDeals {
		today, shared := dealt(t, s)
		t.Logf("%s: %.3f, %.3f of a unit's pay with a shared pool", SelfDeals[s], today, shared)
		if today >= 0 {
			t.Errorf("%s gains %.3f of a unit's pay", SelfDeals[s], today)
		}
		if s == DealsUndrawn && shared <= 0 {
			t.Errorf("%s of a shared pool gains %.3f", SelfDeals[s], shared)
		}
	}
}
