package market

import (
	"math/rand/v2"

	"github.com/tally-network/tally/core/auction"
)

// singles is a book of single units.
func singles(r *rand.Rand) *auction.Book {
	var tasks []auction.Task
	var providers []auction.Provider
	for i := range 20 {
		tasks = append(tasks, auction.Task{ID: id(i), Demand: auction.Vector{1}, Budget: 500 + r.Uint64N(2000)})
		providers = append(providers, auction.Provider{ID: id(i), Capacity: auction.Vector{1}, Ask: auction.Vector{500 + r.Uint64N(1000)}})
	}
	return mustBook(tasks, providers)
}

// mustBook makes a book of bids that are within all limits.
func mustBook(tasks []auction.Task, providers []auction.Provider) *auction.Book {
	b, err := auction.NewBook(tasks, providers)
	if err != nil {
		panic(err)
	}
	return b
}

// smallBook is one whose optimum can be found by trying everything.
func smallBook(r *rand.Rand, kinds int) *auction.Book {
	var tasks []auction.Task
	var providers []auction.Provider
	for i := range 10 {
		t := auction.Task{ID: id(i)}
		units := uint64(0)
		for k := range kinds {
			t.Demand[k] = r.Uint64N(8)
			units += t.Demand[k]
		}
		if units == 0 {
			t.Demand[0], units = 1, 1
		}
		t.Budget = units * (500 + r.Uint64N(2000))
		t.Fee = t.Budget / 20
		tasks = append(tasks, t)
	}
	for j := range 5 {
		p := auction.Provider{ID: id(j)}
		for k := range kinds {
			p.Capacity[k], p.Ask[k] = r.Uint64N(12), 500+r.Uint64N(1000)
		}
		providers = append(providers, p)
	}
	return mustBook(tasks, providers)
}

// gainOf is what a task has of a clearing, if it has bid what it is worth.
func gainOf(o *auction.Outcome, b *auction.Book, task uint32) float64 {
	for i := range o.Trades {
		if t := &o.Trades[i]; t.Task == task {
			x := &b.Tasks[task]
			return float64(x.Budget-x.Fee) - float64(t.Price)
		}
	}
	return 0
}

// earns is what a provider has of a clearing, if it asks what work costs it.
func earns(o *auction.Outcome, b *auction.Book, provider uint32) (sum float64) {
	for i := range o.Trades {
		for _, f := range o.Trades[i].Fills {
			if f.Provider == provider {
				sum += float64(f.Pay) - float64(f.Units*b.Providers[provider].Ask[f.Kind])
			}
		}
	}
	return sum
}
