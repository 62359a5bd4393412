package demand

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/team"
)

// Whatever price of a unit an auction comes to, within what an order bids, its lease costs no more than its maximum price;
// and at a higher price than the highest it would cost more, or its work is worth less than a unit.
func TestDemandIsWhatAnOrderCanPay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := job.Order{Problem: job.Problem{Kind: job.Batch, Rounds: 1, Shards: 3, Steps: 4, Interval: 1, Batch: 4, Records: 45}}
		p, c := &o.Problem, &o.Conditions
		p.StepFLOPs = rapid.Uint64Range(1, 1e13).Draw(t, "flops")
		p.StepBytes = rapid.Uint64Range(0, 1e11).Draw(t, "bytes")
		c.Auditors, c.AuditSegments, c.Custodians, c.Auction = 1, 1, 3, true
		c.MaxPrice = rapid.Uint64Range(1, auction.MaxBudget).Draw(t, "price")
		fee, balance := rapid.Uint64Range(0, 10_000).Draw(t, "fee"), rapid.Uint64Range(0, 1<<10).Draw(t, "balance")
		rules := &job.DefaultParams
		terms := Terms{FeeBps: fee, Balance: balance, Rules: rules, Stake: rapid.SampledFrom([]uint64{0, 1e8, math.MaxUint64}).Draw(t, "stake")}
		d, err := terms.Of(&o)
		if err != nil {
			t.Skip(err)
		}
		at := func(unit uint64) team.Price {
			r, err := Rates(unit, balance)
			if err != nil {
				t.Fatal(err)
			}
			q, err := (&team.Terms{Order: &o, FeeBps: fee, Rules: rules}).At(r)
			if err != nil {
				t.Fatal(err)
			}
			return q
		}
		price := func(unit uint64) uint64 { return at(unit).Price }
		net := d.Budget - d.Fee
		if d.Fee > d.Budget || d.Budget != c.MaxPrice || d.Units == 0 {
			t.Fatalf("%+v", d)
		}
		if unit := net / d.Units; unit > 0 && price(unit) > c.MaxPrice {
			t.Fatalf("%+v: at %d a unit it costs %d of %d", d, unit, price(unit), c.MaxPrice)
		}
		if unit := net / d.Units; unit > 0 && at(unit).Bond > max(terms.Stake, rules.MinBond) {
			t.Fatalf("%+v: at %d a unit it takes %d behind one, of %d", d, unit, at(unit).Bond, terms.Stake)
		}
		if unit := net/d.Units + 1; terms.Stake == math.MaxUint64 && p.UnitFLOPs()%1_000_000_000 == 0 && p.StepBytes == 0 && unit < auction.MaxAsk && price(unit) <= c.MaxPrice {
			t.Fatalf("%+v: at %d a unit it costs %d of %d, and it bids less", d, unit, price(unit), c.MaxPrice)
		}
	})
}
