package job

import (
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
)

// A lease is stored in parts, so that an event reads and writes little. They are its fixed part, the pools
// that it draws from, its mutable part, each merge, a merge's inputs, each unit and a receipt's checkpoints. Others
// are each earlier attempt of which something counts, and who was paid out of bonds. The mutable
// part has an entry for each party and open dispute. Of units it has only numbers.

// Fixed returns the part of l that is fixed when it begins, without its pools.
func (l *Lease) Fixed() canon.Coded { return (*fixed)(l) }

// Mutable returns the part of l that events change, without its units and merges.
func (l *Lease) Mutable() canon.Coded { return (*mutable)(l) }

// MakeSkeleton gives a lease the units and merges that its fixed and its mutable part
// imply: units of merged rounds are accepted, the others open.
func (l *Lease) MakeSkeleton() {
	p := &l.Order.Problem
	l.Units, l.Past, l.Merges = make([]Unit, p.Units()), make([][]Past, p.Units()), make([]Merge, p.Rounds)
	for i := range l.Units {
		l.Units[i].Status = Open
		if i < l.Round*p.Shards {
			l.Units[i].Status = Accepted
		}
	}
}

// Part names what of a lease an event reads or changes beside its fixed and
// its mutable part.
type Part struct {
	Units  []int // in order
	Bare   []int // other units, in order: their present attempt alone, which the event does not change
	Merges []int // rounds, in order

	NoRoots   bool // of receipts the end will do, of merges all but the inputs
	NoPast    bool // of units the present attempt will do
	SlashPaid bool // who was paid out of bonds
}

// Everything is the whole lease.
func (l *Lease) Everything() Part {
	p := l.rounds(0, len(l.Merges))
	p.SlashPaid = true
	return p
}

// rounds returns the units and merges of the rounds from lo up to but not including
// hi.
func (l *Lease) rounds(lo, hi int) (p Part) {
	hi = min(hi, len(l.Merges))
	for r := lo; r < hi; r++ {
		p.Merges = append(p.Merges, r)
		for s := range l.Order.Problem.Shards {
			p.Units = append(p.Units, l.Unit(r, s))
		}
	}
	return p
}

// Touched returns what e may read or change at protocol time now. Of the rest a skeleton
// will do, for Apply and for Wake after it. It does not depend on what is still to be
// filled in from the lease.
func (l *Lease) Touched(e Event, now int64) (p Part) {
	units, merges := []int(nil), []int(nil)
	switch e := e.(type) {
	case Assign:
		p.NoRoots, p.NoPast = true, true
		for _, a := range e.Units {
			units = append(units, a.Unit)
		}
	case Submit:
		p.NoRoots, p.NoPast = true, true
		units, merges = append(units, e.Receipt.Unit), append(merges, e.Receipt.Unit/l.Order.Problem.Shards-1)
	case Commit:
		p.NoRoots, p.NoPast = true, true
		units = append(units, e.Unit)
	case Reveal:
		p.NoRoots, p.NoPast = true, true
		units, merges = append(units, e.Receipt.Unit), append(merges, e.Receipt.Unit/l.Order.Problem.Shards-1)
	case PostMerge:
		p = l.rounds(l.Round, l.Round+1)
		p.NoRoots, p.NoPast = true, true
		p.Merges = places(append(p.Merges, l.Windows.Final+1), len(l.Merges))
		return p
	case Halt, Stop:
		p.NoRoots, p.NoPast = true, true
		merges = append(merges, l.Round-1)
	case Attest:
		units = append(units, e.Unit)
	case Ask:
		units = append(units, e.Unit)
	case Report:
		units = append(units, e.Unit)
	case ProveDraw:
		units = append(units, e.Unit)
	case Expose:
		units = append(units, e.Unit)
	case Answer:
		units = append(units, e.Unit)
	case OpenDispute:
		p = l.About(e.Target)
	case CloseDispute:
		p = l.reachOfVerdict(e)
	case Tick:
		if l.settles(now) {
			return l.Everything()
		}
		units = append(units, e.Units...)
		units = append(units, l.sweep()...)
		if l.Windows.Final < l.Round && now >= l.Windows.Next {
			merges = append(merges, l.Windows.Final+1)
		}
	}
	p.Units, p.Merges = places(append(p.Units, units...), len(l.Units)), places(append(p.Merges, merges...), len(l.Merges))
	for _, i := range l.Count.Withheld { // who may get them decides whether the lead must act
		if _, whole := slices.BinarySearch(p.Units, i); !whole {
			p.Bare = append(p.Bare, i)
		}
	}
	return p
}

// About returns the work that t is about.
func (l *Lease) About(t Target) (p Part) {
	if t.kind == AboutMerge {
		p.Merges = places([]int{t.index}, len(l.Merges))
		return p
	}
	return l.AboutUnit(t.index)
}

// AboutUnit returns a unit alone, nothing if there is no such unit.
func (l *Lease) AboutUnit(i int) Part { return Part{Units: places([]int{i}, len(l.Units))} }

// reachOfVerdict returns what the end of a dispute may change: a conviction voids all
// that descends from the work, and perhaps from all of the convict's.
func (l *Lease) reachOfVerdict(e CloseDispute) (p Part) {
	i := slices.IndexFunc(l.Disputes, func(c Dispute) bool { return c.ID == e.ID })
	if i < 0 {
		return p
	}
	c := &l.Disputes[i]
	p = l.About(c.Target)
	if e.Loser != dispute.Defender || c.Target.kind == AboutVerdict {
		return p
	}
	s, err := l.judge(c)
	switch {
	case err != nil || !s.voids(c):
	case s.all || s.from < l.Round:
		all := l.rounds(s.from, l.Round+1)
		p.Units, p.Merges = append(p.Units, all.Units...), append(p.Merges, all.Merges...)
	default:
		p.Units = append(p.Units, l.opened(c.Defender)...)
	}
	return p
}

// roundOf returns the round of the work that t is about.
func (l *Lease) roundOf(t Target) int {
	if t.kind == AboutMerge {
		return t.index
	}
	return t.index / l.Order.Problem.Shards
}

// places returns numbers from 0 up to but not including n, each once and in order.
func places(all []int, n int) []int {
	all = slices.DeleteFunc(slices.Clone(all), func(i int) bool { return i < 0 || i >= n })
	slices.Sort(all)
	return slices.Compact(all)
}

// Split returns a unit of p as it is stored, with the end of its receipt in place of
// checkpoints, and all checkpoints, nil if it has no receipt or they were not read.
func (u *Unit) Split(p *Problem) (Unit, []canon.Hash) {
	bare := *u
	if u.Receipt == nil {
		return bare, nil
	}
	r := *u.Receipt
	all := r.Checkpoints
	r.Checkpoints = []canon.Hash{p.End(&r)}
	bare.Receipt = &r
	if len(all) == 1 {
		return bare, nil
	}
	return bare, all
}
