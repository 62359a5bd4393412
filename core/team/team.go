// Package team says how many of the providers behind an offer an order's price pays for.
//
// Call [Terms.Afford] with providers in the order of what they ask for the order's units, the cheapest first. [Terms.At]
// prices an order at given rates.
//
// Invariants: a team is a beginning of that order. Its price is at most the limit, or it has as few members as the
// order wants. So nobody spoils an offer with a price that nobody pays.
//
// Source: docs/spec/market.md.
package team

import (
	"math"
	"sort"

	"github.com/tally-network/tally/core/job"
)

// Terms are what an order is priced by with one offer.
type Terms struct {
	Order  *job.Order
	FeeBps uint64 // of the offer
	Rules  *job.Params
	Quotes int // how often the order was priced: finding a team costs as much
}

// Price is what an order costs at most with a team.
type Price struct {
	job.Quote
	Bond uint64 // utally that must stand behind a unit of the first round, and behind the lead
}

// At prices the order at the rates of the dearest of a team. With an error the price has what could be counted.
func (t *Terms) At(dearest job.Rates) (p Price, err error) {
	t.Quotes++
	problem, conditions := &t.Order.Problem, &t.Order.Conditions
	if p.Quote, err = job.NewQuote(problem, conditions, dearest, t.FeeBps, t.Rules.Tariff); err != nil {
		return p, err
	}
	// A provider with a long record is audited least, and its bond is highest.
	bond, err := p.Quote.Bond(problem, conditions, t.Rules, 0, conditions.Audited(math.MaxUint64))
	p.Bond = bond.Amount
	return p, err
}

// Afford returns the longest beginning of n providers that a price of at most limit pays, or as few of them as the order
// wants, and its price. dearest returns the dearest rates of the first so many. A longer beginning is never
// cheaper, so it is found by halves.
func (t *Terms) Afford(n int, dearest func(members int) job.Rates, limit uint64) (members int, p Price, err error) {
	if p, err = t.At(dearest(n)); err == nil && p.Price <= limit {
		return n, p, nil
	}
	least := min(t.Order.Conditions.Bid().Providers, n)
	more := sort.Search(n-least, func(i int) bool {
		rates := dearest(least + i + 1)
		p, err := t.At(rates)
		return p.Unit > 0 && (err != nil || p.Price > limit) || t.tooMuch(rates)
	})
	if p, err = t.At(dearest(least + more)); err == nil {
		return least + more, p, nil
	}
	p, err = t.At(dearest(least)) // priced at nothing, or all of them too dear
	return least, p, err
}

// tooMuch reports whether the pay of a unit cannot be counted.
func (t *Terms) tooMuch(r job.Rates) bool {
	p := &t.Order.Problem
	_, err := r.Pay(p.UnitFLOPs(), p.StepBytes*uint64(p.Steps))
	return err != nil
}
