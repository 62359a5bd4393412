package auction

import "math/bits"

// offered is a provider in the supply of one kind. Nothing is offered by one beyond what all budgets could pay for.
type offered struct {
	upto uint64 // units of it and of all before it
	cost uint64 // their scores together
}

// costless is more than all budgets together: supply beyond it can be left out.
const costless = 1 << 63

// supply is what is offered of one kind, in the order in which it is sold.
//
//	score │        ┌───
//	      │   ┌────┘        a task takes the next q units, wherever u is and whoever has taken the
//	      │───┘             units before: they cost q · score(u+q), and their sellers ask cost(u+q) − cost(u)
//	      └──────────── units
type supply struct {
	lots    []lot    // of each provider, by its place in the book
	sellers []uint32 // their places, in the order in which they sell
	order   []offered
}

// add appends the next seller.
func (s *supply) add(j uint32) {
	units, score := s.lots[j].units, s.lots[j].score
	var before offered
	if n := len(s.order); n > 0 {
		before = s.order[n-1]
	}
	if hi, lo := bits.Mul64(units, score); hi > 0 || lo > costless-before.cost {
		units = (costless - before.cost) / score
	}
	s.order = append(s.order, offered{before.upto + units, before.cost + units*score})
}

// level is how much of a supply is sold.
type level struct {
	units, cost uint64
	at          int // who sells the next unit
}

// take returns the level after q more units. It looks near where the last one was.
func (s *supply) take(l level, q uint64) (level, bool) {
	want, all := l.units+q, s.order
	low, jump := l.at, 1 // all before low end below what is wanted
	for low+jump-1 < len(all) && all[low+jump-1].upto < want {
		low += jump
		jump *= 2
	}
	high := min(low+jump-1, len(all)) // ends at it, or nobody's does
	for low < high {
		if mid := (low + high) / 2; all[mid].upto < want {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(all) {
		return l, false
	}
	left := all[low].upto - want
	next := level{want, all[low].cost - left*s.lots[s.sellers[low]].score, low}
	if left == 0 {
		next.at++
	}
	return next, true
}

// stock is the supply of all kinds.
type stock [Kinds]supply

// levels is how much of each kind is sold.
type levels [Kinds]level

// take returns the levels after a task, and what it takes at least to pay for it: everybody gets what the dearest who sells
// the kind asks. ok is false if there is not all that it demands for at most so much.
func (s *stock) take(l *levels, t *Task, most uint64) (next levels, score uint64, ok bool) {
	return s.takeBy(supply.dearest, l, t, most)
}

// takeEach is take where each gets what it asks itself.
func (s *stock) takeEach(l *levels, t *Task, most uint64) (next levels, score uint64, ok bool) {
	return s.takeBy(supply.sum, l, t, most)
}

func (s *stock) takeBy(price func(supply, level, level) (uint64, bool), l *levels, t *Task, most uint64) (next levels, score uint64, ok bool) {
	next = *l
	for k, q := range t.Demand {
		if q == 0 {
			continue
		}
		if next[k], ok = s[k].take(l[k], q); !ok {
			return next, 0, false
		}
		part, ok := price(s[k], l[k], next[k])
		if score += part; !ok || part > most || score > most { // most is below 2⁶³
			return next, 0, false
		}
	}
	return next, score, true
}

// sum is the scores of what lies between two levels.
func (s supply) sum(from, to level) (uint64, bool) { return to.cost - from.cost, true }

// dearest is the score of the last of these units, for as many as there are.
func (s supply) dearest(from, to level) (uint64, bool) {
	last := to.at
	if last > 0 && s.order[last-1].upto == to.units {
		last--
	}
	hi, lo := bits.Mul64(to.units-from.units, s.lots[s.sellers[last]].score)
	return lo, hi == 0
}
