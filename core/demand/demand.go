// Package demand says what an order asks of an auction, and what its providers are paid for what they sold.
//
// Call [Terms.Of] for an order that takes part, and [Rates] for the lease that follows. Capacity is in units of 10⁹ floating-point
// operations, of which a byte that is moved counts as so many.
//
// Invariant: at no price of a unit that is within a demand's net budget does the order cost more than its maximum price, or take more
// behind a unit than every seller has.
//
// Source: docs/spec/auction.md.
package demand

import (
	"fmt"
	"math/bits"
	"sort"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/team"
)

// Units returns how much capacity a problem demands: its floating-point operations in 10⁹, where a byte that is moved
// counts as so many of them.
func Units(p *job.Problem, balance uint64) (uint64, error) {
	hi, moved := bits.Mul64(p.StepBytes*uint64(p.Steps), balance)
	unit, carry := bits.Add64(p.UnitFLOPs(), moved, 0)
	if hi > 0 || carry > 0 {
		return 0, fmt.Errorf("a unit of %d operations and %d bytes is more than an auction counts", p.UnitFLOPs(), p.StepBytes*uint64(p.Steps))
	}
	n, err := money.Scale(unit, uint64(p.Units()), 1_000_000_000)
	if err != nil || n > auction.MaxUnits {
		return 0, fmt.Errorf("%d units of %d operations are more than an auction sells, 2^40 · 10⁹", p.Units(), unit)
	}
	return n, nil
}

// Rates are the rates of a provider that is paid so many utally for each unit of capacity.
func Rates(unit, balance uint64) (r job.Rates, err error) {
	r.GFLOP = unit
	r.GB, err = money.Scale(unit, balance, 1)
	return r, err
}

// Demand is what an order asks of an auction, as its rules stand.
type Demand struct {
	Units  uint64 // of capacity
	Budget uint64 // utally, its maximum price
	Fee    uint64 // utally of it that are left for others than providers, at the highest price of a unit that it can pay these
}

// Terms are the rules by which orders take part in auctions.
type Terms struct {
	FeeBps  uint64 // the highest fee of who leads the leases of auctions
	Balance uint64 // floating-point operations that a byte which is moved counts as
	Rules   *job.Params
	Stake   uint64 // utally that every seller has at least
}

// Of returns what an order asks of an auction. What it pays providers at most is bounded by what its own work comes to: an order of
// less than a unit would else bid high for nothing. It is bounded, too, by the bond behind a unit that every seller can put up: an
// order that bids more would take what no lease can begin for from others, again and again, and lose nothing.
func (t *Terms) Of(o *job.Order) (d Demand, err error) {
	if d.Units, err = Units(&o.Problem, t.Balance); err != nil {
		return d, err
	}
	if d.Budget = o.Conditions.MaxPrice; d.Budget > auction.MaxBudget {
		return d, fmt.Errorf("a maximum price of %d utally, an auction takes at most %d", d.Budget, uint64(auction.MaxBudget))
	}
	terms := team.Terms{Order: o, FeeBps: t.FeeBps, Rules: t.Rules}
	price := func(unit int) (p team.Price, ok bool) {
		r, err := Rates(uint64(unit), t.Balance)
		if err == nil {
			p, err = terms.At(r)
		}
		return p, err == nil && p.Price <= d.Budget
	}
	highest := sort.Search(auction.MaxAsk, func(i int) bool { _, ok := price(i + 1); return !ok })
	if highest == 0 {
		return d, fmt.Errorf("a maximum price of %d utally pays nobody for %d units of capacity, beside audits, custodians and fees: raise it", d.Budget, d.Units)
	}
	p, _ := price(highest)
	net := p.Unit * uint64(o.Problem.Units()) // part of a price that is within the budget
	if all, err := money.Times(uint64(highest), int(d.Units)); err == nil {
		net = min(net, all)
	}
	if bids := net / d.Units; bids > 0 {
		most := max(t.Stake, t.Rules.MinBond)
		bonded := sort.Search(int(bids), func(i int) bool { p, ok := price(i + 1); return !ok || p.Bond > most })
		if bonded == 0 {
			return d, fmt.Errorf("at any price it takes more than %d utally behind a unit, all that sellers need to have: let more segments be audited, or divide it into more units", most)
		}
		net = min(net, uint64(bonded)*d.Units+d.Units-1)
	}
	d.Fee = d.Budget - net
	return d, nil
}
