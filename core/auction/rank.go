package auction

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// Shape says what a task's net budget is divided by, to rank it.
type Shape uint8

// The shapes.
const (
	BySize Shape = iota // its size: what a budget is worth for each part of the supply
	ByRoot              // the square root of its size, which favours large tasks
	ByBid               // one: the greatest budget is first
	shapes
)

// Measure is how tasks are ranked: the only thing that whoever posts a clearing may choose.
type Measure struct {
	Shape  Shape
	Weight [Kinds]uint16 // of each kind of resource in a task's size, from 1 on
}

// Standard is the measure by which each kind of resource weighs as much as the others, as a part of its supply.
var Standard = Measure{Weight: [Kinds]uint16{16, 16, 16, 16, 16, 16, 16, 16}}

// ErrMeasure is returned for a measure by which nothing can be ranked, or not under a rule.
var ErrMeasure = errors.New("tasks cannot be ranked by this measure")

func (m Measure) check(r Rule) error {
	switch {
	case m.Shape >= shapes:
		return fmt.Errorf("%w: shape %d, there are %d", ErrMeasure, m.Shape, shapes)
	case slices.Contains(m.Weight[:], 0):
		return fmt.Errorf("%w: a weight of 0", ErrMeasure)
	case r != Midpoint && m != Standard:
		return fmt.Errorf("%w: rule %s has the standard one alone, since who chooses it may have seen the bids", ErrMeasure, r)
	}
	return nil
}

// wholeSupply is the size of a task that demands all units of one kind, for each 1 that it weighs.
const wholeSupply = 1 << 44

// size is how much a task demands, in 2⁻⁴⁴ of a kind's supply times its weight, summed over kinds; at least 1, and below 2⁶⁴.
func (b *Book) size(t *Task, m Measure) (size uint64) {
	for k, q := range t.Demand {
		if q == 0 {
			continue
		}
		part := uint64(wholeSupply)
		if s := b.supply[k]; q < s {
			hi, lo := bits.Mul64(q, wholeSupply)
			var rest uint64
			if part, rest = bits.Div64(hi, lo, s); rest > 0 {
				part++
			}
		}
		size += part * uint64(m.Weight[k])
	}
	switch m.Shape {
	case ByRoot:
		return max(root(size), 1)
	case ByBid:
		return 1
	}
	return size
}

// root is ⌊√x⌋.
func root(x uint64) uint64 {
	if x == 0 {
		return 0
	}
	r := uint64(1) << ((bits.Len64(x) + 1) / 2) // not below the root
	for {
		next := (r + x/r) / 2
		if next >= r {
			return r
		}
		r = next
	}
}

// rank is where a task stands: greater ones come first, then those that have lost more often, then those
// whose place in the book comes first.
type rank struct {
	hi, lo uint64 // density, in 2⁻⁶⁴
	age    uint32
	task   uint32
}

func (r rank) compare(s rank) int {
	if r.hi != s.hi {
		return cmp.Compare(s.hi, r.hi)
	}
	return cmp.Or(cmp.Compare(s.lo, r.lo), cmp.Compare(s.age, r.age), cmp.Compare(r.task, s.task))
}

// ranker ranks by one rule and one measure.
type ranker struct {
	b *Book
	p Params
	m Measure
}

func (r ranker) task(i uint32) rank {
	t := &r.b.Tasks[i]
	if r.p.Rule == Literal {
		return rank{hi: r.b.literalTask(t), task: i}
	}
	return r.ranked(i, t.net(), r.b.size(t, r.m))
}

// ranked is the rank of a task that would pay net at most: net · ageing / size.
func (r ranker) ranked(i uint32, net, size uint64) rank {
	age := r.b.Tasks[i].Age
	hi, rest := bits.Div64(0, net*r.p.ageing(age), size)
	lo, _ := bits.Div64(rest, 0, size)
	return rank{hi, lo, age, i}
}

// sellerRank is where a provider stands among those that sell one kind: smaller ones come first.
type sellerRank struct {
	score    uint64
	provider uint32
}

func (p sellerRank) compare(q sellerRank) int {
	if p.score != q.score {
		return cmp.Compare(p.score, q.score)
	}
	return cmp.Compare(p.provider, q.provider)
}

func (r ranker) provider(kind int, j uint32) sellerRank {
	if r.p.Rule == Literal {
		return sellerRank{^r.b.literalProvider(&r.b.Providers[j]), j}
	}
	return sellerRank{r.b.lots[kind][j].score, j}
}

// tasks returns the places of all tasks, by rank.
func (r ranker) tasks() []uint32 {
	all := make([]rank, len(r.b.Tasks))
	for i := range all {
		all[i] = r.task(uint32(i))
	}
	slices.SortFunc(all, rank.compare)
	out := make([]uint32, len(all))
	for i, x := range all {
		out[i] = x.task
	}
	return out
}

// sellers returns the places of all providers that sell a kind, the cheapest first.
func (r ranker) sellers(kind int) []uint32 {
	all := make([]sellerRank, 0, r.b.sellers[kind])
	for j, lot := range r.b.lots[kind] {
		if lot.units > 0 {
			all = append(all, r.provider(kind, uint32(j)))
		}
	}
	slices.SortFunc(all, sellerRank.compare)
	out := make([]uint32, len(all))
	for i, x := range all {
		out[i] = x.provider
	}
	return out
}
