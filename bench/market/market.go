// Package market measures the auction: how long clearings take, how much welfare they find, and what lying gains.
//
// [Crowd] and [Small] make the books. Call [Time], [Welfare] or [Shading] for a group of figures; tally bench market
// prints them all.
//
// Invariant: a book follows from its seed alone, so that two machines measure the same.
//
// Source: docs/spec/market.md for the rules; welfare is compared with the optimum over all sets of winners.
package market

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/tally-network/tally/core/auction"
)

// unit is what a unit costs on average, in utally: so much that rounding hardly counts.
const unit = 1_000_000

func id(n int) (out [32]byte) {
	binary.BigEndian.PutUint64(out[:], uint64(n)*0x9e3779b97f4a7c15) // an odd factor: others in any order, none twice
	return out
}

// Crowd returns a book of n tasks and n providers of all kinds of resource. About half of the tasks are served.
func Crowd(n int) (*auction.Book, error) {
	r := rand.New(rand.NewPCG(uint64(n), 8))
	tasks, providers := make([]auction.Task, n), make([]auction.Provider, n)
	for i := range tasks {
		t := &tasks[i]
		t.ID = id(i)
		var units uint64
		for range 1 + r.IntN(4) {
			q := 1 + r.Uint64N(400)
			t.Demand[r.IntN(auction.Kinds)] += q
			units += q
		}
		t.Budget = units * (unit/2 + r.Uint64N(2*unit))
	}
	for j := range providers {
		p := &providers[j]
		p.ID = id(j)
		for k := range p.Capacity {
			p.Capacity[k], p.Ask[k] = r.Uint64N(100), unit/2+r.Uint64N(unit)
		}
	}
	return auction.NewBook(tasks, providers)
}

// Small returns a book of 11 tasks and 6 providers of three kinds of resource, of which there is less than is wanted.
func Small(seed uint64) (*auction.Book, error) {
	const tasks, providers, kinds = 11, 6, 3
	r := rand.New(rand.NewPCG(seed, kinds))
	var ts []auction.Task
	for i := range tasks {
		t := auction.Task{ID: id(i)}
		var units uint64
		for k := range kinds {
			if r.IntN(3) > 0 {
				t.Demand[k] = 1 + r.Uint64N(10)
				units += t.Demand[k]
			}
		}
		if units == 0 {
			t.Demand[0], units = 3, 3
		}
		t.Budget = units * (unit/2 + r.Uint64N(2*unit))
		ts = append(ts, t)
	}
	var ps []auction.Provider
	for j := range providers {
		p := auction.Provider{ID: id(j), Ability: uint32(r.IntN(10_001))}
		for k := range kinds {
			p.Capacity[k], p.Ask[k] = r.Uint64N(11), unit/2+r.Uint64N(unit)
		}
		ps = append(ps, p)
	}
	return auction.NewBook(ts, ps)
}

// Singles returns a book of n buyers and n sellers of one unit each, with bids and asks drawn evenly from the same range.
func Singles(seed uint64, n int) (*auction.Book, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	var ts []auction.Task
	var ps []auction.Provider
	for i := range n {
		ts = append(ts, auction.Task{ID: id(i), Demand: auction.Vector{1}, Budget: 1 + r.Uint64N(2*unit)})
		ps = append(ps, auction.Provider{ID: id(i), Capacity: auction.Vector{1}, Ask: auction.Vector{1 + r.Uint64N(2*unit)}})
	}
	return auction.NewBook(ts, ps)
}
