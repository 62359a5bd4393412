package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
)

// openPlaces lets the places of a unit be drawn in a later block.
func (l *Lease) openPlaces(a Assignment, now int64) ([]Effect, error) {
	if a.Provider != "" || len(a.Signature) > 0 {
		return nil, fmt.Errorf("unit %d is computed by %d providers: they are drawn, the lead names none", a.Unit, l.Order.Conditions.Replicas)
	}
	u := &l.Units[a.Unit]
	*u = Unit{Status: Assigned, Attempt: u.Attempt, Due: now + l.Order.Conditions.UnitTimeout, Withheld: u.Withheld}
	l.await(a.Unit, now)
	l.count()
	return []Effect{{Emit, l.Lead(), uint64(a.Unit), "given out"}}, nil
}

// drawPlaces draws who computes a unit in the places that are empty. If not all can be filled, it
// is tried again until the unit's time is over.
func (l *Lease) drawPlaces(i int, seed canon.Hash, m *means, now int64) (effects []Effect, err error) {
	u, c := &l.Units[i], &l.Order.Conditions
	want := c.Replicas - len(u.Replicas)
	if u.Sealed || want == 0 {
		return nil, nil
	}
	bond, err := l.unitBond(i, u)
	if err != nil {
		return nil, err
	}
	l.count()
	before := slices.Clone(m.spent)
	drawn, err := m.able(l.lots(seed, beacon.Replicas, i, u.Attempt), l.placeable(i), want, bond)
	if err != nil {
		return nil, err
	}
	if len(drawn) < want {
		m.spent = before
		l.await(i, now+c.UnitTimeout/drawTries)
		return nil, nil
	}
	if u.Seed.IsZero() {
		u.Seed = seed
	}
	u.Due = now + c.UnitTimeout
	for _, a := range drawn {
		held, err := l.Reserve.hold(a, ForWork, bond)
		if err != nil {
			return nil, err
		}
		u.Replicas = append(u.Replicas, Replica{Provider: a})
		effects = append(append(effects, held...), Effect{Emit, a, uint64(i), "drawn to compute"})
	}
	l.count()
	return effects, nil
}

// placeable returns who may be drawn for a place of a unit, of no owner that has one: those whose data of it could not be
// had are the last resort.
func (l *Lease) placeable(i int) (out []Party) {
	u := &l.Units[i]
	var placed []string
	for _, r := range u.Replicas {
		placed = append(placed, r.Provider)
	}
	var last []Party
	for _, p := range l.apart(l.Providers, placed...) {
		switch a := p.Account; {
		case !l.mayWork(a) || l.openUnits(a) >= l.Params.MaxOpen || slices.Contains(u.Missed, a):
		case slices.Contains(u.Withheld, a):
			last = append(last, p)
		default:
			out = append(out, p)
		}
	}
	if Owners(out) < l.Order.Conditions.Replicas-len(u.Replicas) {
		out = append(out, last...)
	}
	return out
}
