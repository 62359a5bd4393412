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
	*u = Unit{Status: Assigned, Attempt: u.Attempt, Times: Times{Due: now + l.Order.Conditions.UnitTimeout}, Withheld: u.Withheld}
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
	gain, err := l.gain(u.Audited)
	if err != nil {
		return nil, err
	}
	lacks := func(provider string) (uint64, error) {
		e, need, err := l.burdened(provider, l.Round, gain)
		return need.Amount - min(e.Amount, need.Amount), err
	}
	l.count()
	before := slices.Clone(m.spent)
	drawn, err := l.draft(l.lots(seed, beacon.Replicas, i, u.Attempt), i, want, m, lacks)
	if err != nil {
		return nil, err
	}
	if len(drawn) < want {
		m.spent = before
		l.await(i, now+c.UnitTimeout/redraws)
		return nil, nil
	}
	if u.Seed.IsZero() {
		u.Seed = seed
	}
	u.Due = now + c.UnitTimeout
	for _, a := range drawn {
		held, err := l.answer(a, l.Round, gain)
		if err != nil {
			return nil, err
		}
		u.Replicas = append(u.Replicas, Replica{Provider: a})
		effects = append(append(effects, held...), Effect{Emit, a, uint64(i), "drawn to compute"})
	}
	l.count()
	return effects, nil
}

// placeTries is how many providers are looked at for the places of a unit.
const placeTries = 128

// draft draws up to want for the empty places of a unit. Those whose data of it could not be had come last.
// All providers are drawn from, and who may not work is passed by. Were they left out, one who is
// busy or not as it likes could choose among draws.
func (l *Lease) draft(lots beacon.Lots, i, want int, m *means, bond func(string) (uint64, error)) ([]string, error) {
	u := &l.Units[i]
	drawn, err := weighted(lots, l.Providers, placeTries)
	if err != nil {
		return nil, err
	}
	var fit, withheld []Party
	for _, p := range drawn {
		switch a := p.Account; {
		case !l.MayWork(a) || l.openUnits(a) >= l.Params.MaxOpen || slices.Contains(u.Missed, a):
		case slices.Contains(u.Withheld, a):
			withheld = append(withheld, p)
		default:
			fit = append(fit, p)
		}
	}
	var owners []string
	for _, r := range u.Replicas {
		owners = append(owners, l.ownerOf(r.Provider))
	}
	return m.first(append(fit, withheld...), want, owners, bond)
}

// expel takes a convict out of all its places: nothing stands behind its word any more. Where
// others have said the same, they answer for it: who loses on purpose cannot undo what others have
// done. Work is void from the first round on in which nobody does. It returns what others lose by
// units that begin again.
func (l *Lease) expel(c *Dispute, s *ruling, now int64) (lost []Share, effects []Effect, err error) {
	first := s.from
	s.from = l.Order.Problem.Rounds
	for i := first * l.Order.Problem.Shards; i < len(l.Units); i++ {
		u := &l.Units[i]
		var more []Effect
		switch {
		case u.Provider == c.Defender && len(u.Replicas) == 0:
			s.from = min(s.from, l.roundOf(UnitTarget(i)))
		case u.Provider == c.Defender:
			more = l.succeed(i, now)
		case u.Replica(c.Defender) == nil:
		case u.Status == Assigned:
			lost, more, err = l.vacate(i, c.Defender, lost, now)
		default:
			u.Replicas = slices.DeleteFunc(u.Replicas, func(r Replica) bool { return r.Provider == c.Defender })
		}
		if err != nil {
			return nil, nil, err
		}
		effects = append(effects, more...)
	}
	for i := range l.Disputes { // with it nobody disputes any more
		if d := &l.Disputes[i]; d.Defender == c.Defender && d.reason() == ForWork {
			d.Void = true
		}
	}
	return lost, effects, nil
}

// vacate takes a convict out of its place of a unit that is computed. Until all have committed,
// the place is drawn again.
func (l *Lease) vacate(i int, convict string, lost []Share, now int64) ([]Share, []Effect, error) {
	u := &l.Units[i]
	if r := u.Replica(convict); r.Result != 0 {
		r.Out = true
	} else {
		u.Replicas = slices.DeleteFunc(u.Replicas, func(r Replica) bool { return r.Provider == convict })
	}
	switch {
	case !u.Sealed:
		l.await(i, now)
		return lost, nil, nil
	case len(u.Replicas) >= least:
		effects, err := l.compare(i, now)
		return lost, effects, err
	}
	for _, w := range markOf(u).workers { // who has committed has computed it
		pay, err := l.pay(w.provider)
		if err != nil {
			return nil, nil, err
		}
		lost = addShare(lost, Share{w.provider, pay})
	}
	effects, err := l.free(i)
	l.reopen(i)
	return lost, effects, err
}

// succeed lets the next replica answer for the receipt of a unit. It must be possible to dispute
// that, too.
func (l *Lease) succeed(i int, now int64) (effects []Effect) {
	u := &l.Units[i]
	if u.Status == Received { // what custodians have is of the one before
		effects = l.retire(i, -1)
	}
	l.promote(i, now)
	if u.Status == Counted {
		u.HeldUntil = max(u.HeldUntil, now+l.Order.Conditions.UnitTimeout)
	}
	if l.Phase == Closing {
		l.Windows.End = max(l.Windows.End, now+l.Order.Conditions.Window)
	}
	return effects
}

// passOn lets the next replica show the data of a unit that could not be had of the one before.
func (l *Lease) passOn(i int, now int64) ([]Effect, error) {
	effects, err := l.relieve(i, "unattested")
	if err == nil {
		l.promote(i, now)
	}
	return effects, err
}

// promote lets the next replica answer for the receipt of a unit. Whoever is to keep the unit has
// its data of that one.
func (l *Lease) promote(i int, now int64) {
	u := &l.Units[i]
	u.promote()
	if u.Status == Received {
		u.Attested, u.Due = nil, now+l.Order.Conditions.UnitTimeout
		l.await(i, now)
	}
}
