package job

import (
	"fmt"
	"math/bits"
	"sort"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/money"
)

// An order may ask for the next clearing of an auction in place of a standing offer (docs/spec/auction.md). Then it demands
// capacity of one tier, in units of 10⁹ floating-point operations, and any of it is as good as any other. So its units must
// be independent, and what it asks of those who compute them is a tier alone.

// checkAuction returns an error unless an order demands what an auction sells.
func (o *Order) checkAuction() error {
	c := &o.Conditions
	others := c.Needs
	others.Tier = ""
	switch {
	case !c.Auction:
		return nil
	case o.Problem.Merges():
		return fmt.Errorf("an auction sells capacity to batches: training orders take a standing offer, without auction: true")
	case c.Replicas > 0:
		return fmt.Errorf("an auction sells each unit's capacity once: %d replicas take a standing offer", c.Replicas)
	case c.MinProviders > 1 || others.AskEach() || others.Most > 0 || others.Throughput > 0 || others.Deadline > 0:
		return fmt.Errorf("at an auction an order may ask for a tier and for nothing else of providers: other conditions take a standing offer")
	}
	return nil
}

// Capacity returns what a problem demands at an auction: its floating-point operations in 10⁹, where a byte that is moved
// counts as so many of them.
func (p *Problem) Capacity(balance uint64) (uint64, error) {
	hi, moved := bits.Mul64(p.StepBytes*uint64(p.Steps), balance)
	unit, carry := bits.Add64(p.UnitFLOPs(), moved, 0)
	if hi > 0 || carry > 0 {
		return 0, fmt.Errorf("a unit of %d operations and %d bytes is more than an auction counts", p.UnitFLOPs(), p.StepBytes*uint64(p.Steps))
	}
	n, err := money.Scale(unit, uint64(p.Units()), gigaFLOP)
	if err != nil || n > auction.MaxUnits {
		return 0, fmt.Errorf("%d units of %d operations are more than an auction sells, 2^40 · 10⁹", p.Units(), unit)
	}
	return n, nil
}

// CapacityRates are the rates of a provider that is paid so many utally for each unit of capacity.
func CapacityRates(unit, balance uint64) (r Rates, err error) {
	r.GFLOP = unit
	r.GB, err = money.Scale(unit, balance, 1)
	return r, err
}

// Highest returns the highest price of a unit of capacity at which an order costs no more than its maximum price; 0 if
// there is none.
func (o *Order) Highest(feeBps, balance uint64, t Tariff) uint64 {
	costly := func(unit int) bool {
		r, err := CapacityRates(uint64(unit), balance)
		if err != nil {
			return true
		}
		q, err := NewQuote(&o.Problem, &o.Conditions, r, feeBps, t)
		return err != nil || q.Price > o.Conditions.MaxPrice
	}
	return uint64(sort.Search(auction.MaxAsk, func(i int) bool { return costly(i + 1) }))
}
