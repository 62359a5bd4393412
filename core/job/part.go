package job

import "github.com/tally-network/tally/core/canon"

// A lease is stored in parts, so that an event reads and writes little: its
// terms, its course, and every merge and unit by itself.

// Terms returns the part of l that is fixed when it begins.
func (l *Lease) Terms() canon.Coded { return (*terms)(l) }

// Course returns the part of l that events change, but units and merges.
func (l *Lease) Course() canon.Coded { return (*course)(l) }

// Outline gives a lease of which only terms and course are known the units and
// merges that these imply: units of merged rounds are accepted, the others open.
func (l *Lease) Outline() {
	p := &l.Order.Problem
	l.Units, l.Merges = make([]Unit, p.Units()), make([]Merge, p.Rounds)
	for i := range l.Units {
		l.Units[i].Status = Open
		if i < l.Round*p.Shards {
			l.Units[i].Status = Accepted
		}
	}
}

// Reach returns the rounds, from lo up to but not including hi, whose units e
// may read or change; and, of merges, those and the one before lo. Of all others
// an outline will do, for Apply and for Wake after it.
func (l *Lease) Reach(e Event) (lo, hi int) {
	rounds := len(l.Merges)
	lo, hi = min(l.Round, rounds-1), min(l.Round+1, rounds)
	switch e := e.(type) {
	case Tick:
		if l.Phase == Closing || l.Round == 0 {
			lo, hi = 0, rounds // it may settle, at once if nothing is accepted
		}
		for _, r := range l.Requests {
			if r.Due != 0 { // its keeper may be late
				lo = min(lo, r.Unit/l.Order.Problem.Shards)
			}
		}
	case Attest:
		lo = min(lo, max(e.Unit, 0)/l.Order.Problem.Shards)
	case Ask:
		lo = min(lo, max(e.Unit, 0)/l.Order.Problem.Shards)
	case Expose:
		lo = min(lo, max(e.Unit, 0)/l.Order.Problem.Shards)
	case Answer:
		lo = min(lo, max(e.Unit, 0)/l.Order.Problem.Shards)
	case OpenDispute:
		lo = min(lo, l.roundOf(e.Target))
	case CloseDispute:
		for _, c := range l.Disputes {
			if c.ID == e.ID {
				lo = min(lo, l.roundOf(c.Target))
			}
		}
	}
	return max(lo, 0), hi
}

// roundOf returns the round of the work that t is about.
func (l *Lease) roundOf(t Target) int {
	if t.kind == AboutMerge {
		return t.index
	}
	return t.index / l.Order.Problem.Shards
}
