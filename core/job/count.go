package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/canon"
)

// Count sums up the units of the round under way, so that an event reads only the
// units that it changes. Apply keeps it true: see docs/adr/0018-parts-of-a-lease.md.
type Count struct {
	Begun    bool              // a unit of the lease was given out
	Status   [Accepted + 1]int // units by status
	Loads    []Load            // of providers that have or have done units, in account order
	Withheld []int             // open units that a provider has withheld, in order
}

// Load is what a provider has of the round.
type Load struct {
	Provider string
	Had      int   // units that it has or has done
	Open     []int // those that it computes, in order
}

// mark is what of a unit is counted.
type mark struct {
	status   Status
	workers  []worker // its provider, and its replicas
	withheld bool
}

// worker is somebody who has or has done a unit.
type worker struct {
	provider string
	busy     bool // it computes it now
}

func markOf(u *Unit) mark {
	m := mark{status: u.Status, withheld: u.Status == Open && len(u.Withheld) > 0}
	if u.Provider != "" {
		m.workers = append(m.workers, worker{u.Provider, u.Status == Assigned})
	}
	for i := range u.Replicas {
		r := &u.Replicas[i]
		if r.Out {
			continue
		}
		m.workers = append(m.workers, worker{r.Provider, u.Status == Assigned && r.Commit.IsZero()})
	}
	return m
}

func (m mark) equal(o mark) bool {
	return m.status == o.status && m.withheld == o.withheld && slices.Equal(m.workers, o.workers)
}

// sight is which units of a lease are known, and how they are counted.
type sight struct {
	units []int // in order; those of the round under way if whole
	marks []mark
	whole bool
}

// See tells a lease that of its units only those given are known, the rest a
// skeleton.
func (l *Lease) See(units []int) { l.sight = &sight{units: units} }

// look notes how the known units are counted now.
func (l *Lease) look() {
	s := sight{whole: l.sight == nil || l.sight.whole}
	switch {
	case !s.whole:
		s.units = l.sight.units
	case l.Round < len(l.Merges):
		for i := range l.Order.Problem.Shards {
			s.units = append(s.units, l.Unit(l.Round, i))
		}
	}
	for _, i := range s.units {
		s.marks = append(s.marks, markOf(&l.Units[i]))
	}
	l.sight = &s
}

// knownOfRound returns the units of the round under way that are known.
func (l *Lease) knownOfRound() (out []int) {
	if l.sight == nil {
		l.look()
	}
	for _, i := range l.sight.units {
		if i/l.Order.Problem.Shards == l.Round {
			out = append(out, i)
		}
	}
	return out
}

// known returns all units that are known, of whatever round.
func (l *Lease) known() (out []int) {
	if l.sight == nil {
		l.look()
	}
	if !l.sight.whole {
		return l.sight.units
	}
	for i := range l.Units {
		out = append(out, i)
	}
	return out
}

// count brings the count up to date with the known units.
func (l *Lease) count() {
	if l.sight == nil {
		return // nothing has changed: no event is under way
	}
	for at, i := range l.sight.units {
		was, is := l.sight.marks[at], markOf(&l.Units[i])
		if was.equal(is) || i/l.Order.Problem.Shards != l.Round {
			continue
		}
		l.Count.drop(i, was)
		l.Count.add(i, is)
		l.sight.marks[at] = is
	}
}

// enter begins the count of a round of which no unit was given out.
func (l *Lease) enter(round int) {
	l.count()
	l.Round = round
	l.Count = Count{Begun: l.Count.Begun}
	if round < len(l.Merges) {
		l.Count.Status[Open] = l.Order.Problem.Shards
	}
	l.look()
}

// Recount counts the units of the round under way, all of which must be known.
func (l *Lease) Recount() {
	c := Count{Begun: l.Count.Begun || l.Round > 0}
	if l.Round < len(l.Merges) {
		for s := range l.round(l.Round) {
			i := l.Unit(l.Round, s)
			c.add(i, markOf(&l.Units[i]))
		}
	}
	c.Begun = c.Begun || slices.ContainsFunc(l.Units, func(u Unit) bool { return u.Attempt > 0 })
	l.Count = c
	l.look()
	l.sight = nil
}

func (c *Count) add(unit int, m mark) {
	c.Status[m.status]++
	if m.withheld {
		at, _ := slices.BinarySearch(c.Withheld, unit)
		c.Withheld = slices.Insert(slices.Clone(c.Withheld), at, unit)
	}
	if m.status == Open {
		return
	}
	c.Begun = true
	c.Loads = slices.Clone(c.Loads)
	for _, w := range m.workers {
		at, found := c.load(w.provider)
		if !found {
			c.Loads = slices.Insert(c.Loads, at, Load{Provider: w.provider})
		}
		x := &c.Loads[at]
		x.Had++
		if w.busy {
			at, _ := slices.BinarySearch(x.Open, unit)
			x.Open = slices.Insert(slices.Clone(x.Open), at, unit)
		}
	}
}

func (c *Count) drop(unit int, m mark) {
	without := func(all []int) []int {
		return slices.DeleteFunc(slices.Clone(all), func(i int) bool { return i == unit })
	}
	c.Status[m.status]--
	if m.withheld {
		c.Withheld = without(c.Withheld)
	}
	c.Loads = slices.Clone(c.Loads)
	for _, w := range m.workers {
		at, found := c.load(w.provider)
		if m.status == Open || !found {
			continue
		}
		x := &c.Loads[at]
		x.Had--
		x.Open = without(x.Open)
		if x.Had == 0 {
			c.Loads = slices.Delete(c.Loads, at, at+1)
		}
	}
}

// load returns the place of a provider's load.
func (c *Count) load(provider string) (at int, found bool) {
	return slices.BinarySearchFunc(c.Loads, provider, func(x Load, p string) int { return strings.Compare(x.Provider, p) })
}

// shut reports whether the lead has no unit to give, or none but those that were withheld from some.
func (c *Count) shut() bool { return c.Status[Open] <= len(c.Withheld) }

// openUnits counts the units that a provider computes now.
func (l *Lease) openUnits(provider string) int { return len(l.opened(provider)) }

// opened returns the units that a provider computes now.
func (l *Lease) opened(provider string) []int {
	if at, found := l.Count.load(provider); found {
		return l.Count.Loads[at].Open
	}
	return nil
}

// had counts the units of the round that a provider has or has done.
func (l *Lease) had(provider string) int {
	if at, found := l.Count.load(provider); found {
		return l.Count.Loads[at].Had
	}
	return 0
}

// underWay reports whether a unit is being computed or checked.
func (l *Lease) underWay() bool {
	s := &l.Count.Status
	return s[Assigned]+s[Received]+s[Counted] > 0
}

// Begun reports whether a unit was ever given out.
func (l *Lease) Begun() bool { return l.Count.Begun }

// checkCount: the count is that of the units.
func (l *Lease) checkCount() error {
	c := *l
	c.Recount()
	if string(canon.Marshal(c.Mutable())) != string(canon.Marshal(l.Mutable())) {
		return fmt.Errorf("the units of round %d are counted as %+v, and are %+v", l.Round, l.Count, c.Count)
	}
	return nil
}

// code walks the fields of c.
func (c *Count) code(w *canon.Codec, name func(*canon.Codec, *string)) {
	w.Bool(&c.Begun)
	for i := range c.Status {
		w.Int(&c.Status[i], MaxUnits)
	}
	unit := func(w *canon.Codec, i *int) { w.Int(i, MaxUnits) }
	canon.Seq(w, &c.Loads, MaxParties, 3, func(w *canon.Codec, x *Load) {
		name(w, &x.Provider)
		w.Int(&x.Had, MaxUnits)
		canon.Seq(w, &x.Open, MaxUnits, 1, unit)
	})
	canon.Seq(w, &c.Withheld, MaxUnits, 1, unit)
}
