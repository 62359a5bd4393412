package job

import (
	"errors"
	"fmt"
	"slices"
)

// Assign gives units of the round to providers that have signed for them.
type Assign struct {
	By      string
	Units   []Assignment
	Waiting []Standing // of the providers that wait for a unit and are active
}

var errFiles = errors.New("no quorum of custodians has the order's files yet: no unit is given out before")

// Standing is what the chain knows of a provider.
type Standing struct {
	Provider string
	Free     uint64 // utally of its stake that are not reserved
	Record   uint64 // its valid units since its last failure
}

// Assignment is one unit and its provider's signature over an Acceptance, which
// may be absent if the provider waits for a unit.
type Assignment struct {
	Unit, Attempt int
	Signature     []byte
	Standing
}

func (e Assign) apply(l *Lease, now int64) ([]Effect, error) {
	switch {
	case e.By != l.Lead():
		return nil, fmt.Errorf("%s does not lead this lease; %s does", e.By, l.Lead())
	case l.Phase != Active:
		return nil, fmt.Errorf("the lease is %v", l.Phase)
	case l.Files.Said != Had:
		return nil, errFiles
	case len(e.Units) == 0:
		return nil, fmt.Errorf("no unit is assigned")
	}
	id := l.Order.ID()
	var effects, reserved []Effect
	for _, a := range e.Units {
		u, err := l.current(a.Unit, a.Attempt, Open)
		if err != nil {
			return nil, err
		}
		if a.Attempt >= l.Params.MaxAttempts {
			return nil, fmt.Errorf("unit %d was given out %d times, the most that it may", a.Unit, l.Params.MaxAttempts)
		}
		if r := a.Unit / l.Order.Problem.Shards; r != l.Round {
			return nil, fmt.Errorf("unit %d belongs to round %d, the lease is at round %d", a.Unit, r, l.Round)
		}
		if l.replicated() {
			opened, err := l.openPlaces(a, now)
			if err != nil {
				return nil, err
			}
			effects = append(effects, opened...)
			continue
		}
		p, err := l.mayHave(a)
		if err != nil {
			return nil, err
		}
		if first := l.before(a.Unit, a.Provider, e.Waiting, reserved, now); first != "" {
			return nil, fmt.Errorf("%s waits for a unit and has had fewer of this round: serve it before %s", first, a.Provider)
		}
		waits := l.queued(a.Provider)
		acc := Acceptance{id, a.Unit, a.Attempt, a.Provider}
		if err := verify("the acceptance", p.Key, acc.SignBytes(), a.Signature); err != nil && waits < 0 {
			return nil, err
		}
		bond, audited, err := l.stand(a.Standing, reserved)
		if err != nil {
			return nil, err
		}
		*u = Unit{
			Status: Assigned, Attempt: a.Attempt, Provider: a.Provider, Audited: audited,
			Due: now + l.Order.Conditions.UnitTimeout, Withheld: u.Withheld,
		}
		if l.Forces() {
			l.await(a.Unit, now) // its forced draw is made in a later block
		}
		l.count()
		if waits >= 0 {
			l.Queue = slices.Delete(l.Queue, waits, waits+1)
		}
		held, err := l.Reserve.hold(a.Provider, ForWork, bond)
		if err != nil {
			return nil, err
		}
		reserved = append(reserved, held...)
		effects = append(append(effects, held...), Effect{Emit, a.Provider, uint64(a.Unit), "assigned"})
	}
	l.watchLead(now)
	return effects, nil
}

// mayHave returns the provider of an assignment, if nothing that the lease knows keeps it from
// the unit.
func (l *Lease) mayHave(a Assignment) (*Party, error) {
	p := find(l.Providers, a.Provider)
	if p == nil || slices.Contains(l.Barred, a.Provider) {
		return nil, fmt.Errorf("%s is not a provider of this lease, or barred from it", a.Provider)
	}
	if l.Withheld(a.Unit, a.Provider) {
		return nil, fmt.Errorf("the data of unit %d by %s could not be had: it goes to another provider", a.Unit, a.Provider)
	}
	if l.Suspended(a.Provider) {
		return nil, fmt.Errorf("%s has missed an answer in a dispute: it gets no units until it answers", a.Provider)
	}
	if n := l.openUnits(a.Provider); n >= l.Params.MaxOpen {
		return nil, fmt.Errorf("%s has %d units open, the most that it may", a.Provider, n)
	}
	return p, nil
}

// stand returns the bond of the next unit of the round, and the segments of it
// that each auditor draws, if a provider can take it beside what is reserved
// already.
func (l *Lease) stand(p Standing, reserved []Effect) (amount uint64, audited int, err error) {
	audited = l.Order.Conditions.Audited(p.Record)
	bond, err := l.Quote.Bond(&l.Order.Problem, &l.Order.Conditions, &l.Params, l.Round, audited)
	if err != nil {
		return 0, 0, err
	}
	for _, r := range reserved {
		if r.Account == p.Provider {
			p.Free -= min(p.Free, r.Amount)
		}
	}
	return bond.Amount, audited, bond.Covered(p.Provider, p.Free)
}

// unitBond returns what is reserved behind an attempt of unit i.
func (l *Lease) unitBond(i int, u *Unit) (uint64, error) {
	b, err := l.Quote.Bond(&l.Order.Problem, &l.Order.Conditions, &l.Params, i/l.Order.Problem.Shards, u.Audited)
	return b.Amount, err
}

// free lets go of what is reserved behind a unit that is about to be done again, unless it is
// in dispute.
func (l *Lease) free(i int, bond uint64) []Effect {
	if l.ghost(UnitTarget(i), bond) {
		return nil
	}
	return l.Reserve.release(l.Units[i].Provider, ForWork, bond)
}

// reopen makes a unit open again, for the next attempt. If there can be none, the
// lease goes no further.
func (l *Lease) reopen(i int) {
	u := &l.Units[i]
	*u = Unit{Status: Open, Attempt: u.Attempt + 1, Withheld: u.Withheld}
	switch {
	case l.Reason != "":
		return
	case u.Attempt >= l.Params.MaxAttempts:
		l.Reason = fmt.Sprintf("unit %d was given out %d times, the most that it may", i, u.Attempt)
	case len(u.Withheld) > 0 && !l.couldHave(u):
		l.Reason = fmt.Sprintf("the data of unit %d could be had of no provider", i)
	default:
		return
	}
	if l.Phase == Active {
		l.Phase = Stopping
	}
}

// couldHave reports whether the data of a unit might be had of a provider that is not
// barred.
func (l *Lease) couldHave(u *Unit) bool {
	return slices.ContainsFunc(l.Providers, func(p Party) bool {
		return !slices.Contains(u.Withheld, p.Account) && !slices.Contains(l.Barred, p.Account)
	})
}

// Withheld reports whether a provider may not get a unit because the data of an
// attempt by it could not be had, and others could still do it.
func (l *Lease) Withheld(unit int, provider string) bool {
	u := &l.Units[unit]
	return slices.Contains(u.Withheld, provider) && l.couldHave(u)
}

// giveUp takes a unit from a provider that did not deliver, and says why: a small
// penalty, the rest of its bond back, and after too many the lease is closed to it.
func (l *Lease) giveUp(i int, why string) ([]Effect, error) {
	effects, err := l.fine(i, why)
	l.reopen(i)
	return effects, err
}

// fine is giveUp of a unit that may go on.
func (l *Lease) fine(i int, why string) ([]Effect, error) {
	u := &l.Units[i]
	penalty, err := l.lateFee()
	if err != nil {
		return nil, err
	}
	bond, err := l.unitBond(i, u)
	if err != nil {
		return nil, err
	}
	penalty = min(penalty, bond)
	effects := l.slash(u.Provider, ForWork, penalty, []Share{{Insurance, penalty}})
	effects = append(effects, l.free(i, bond-penalty)...)
	effects = append(effects, Effect{Emit, u.Provider, uint64(i), why})
	if l.countFault(u.Provider) > l.Params.MaxLate {
		l.bar(u.Provider)
	}
	return effects, nil
}

func (l *Lease) countFault(provider string) int {
	for i := range l.Faults {
		if l.Faults[i].Provider == provider {
			l.Faults[i].Late++
			return l.Faults[i].Late
		}
	}
	l.Faults = append(l.Faults, Fault{provider, 1})
	return 1
}

// bar gives an account no more work in this lease. What it keeps of units that are under
// way is looked at again.
func (l *Lease) bar(account string) {
	if !slices.Contains(l.Barred, account) && (find(l.Providers, account) != nil || find(l.Auditors, account) != nil) {
		l.Barred = append(l.Barred, account)
		if find(l.Auditors, account) != nil {
			l.Sweep = l.Order.Problem.Shards
		}
	}
}

// addShare adds s to the share of its account, keeping accounts in order.
func addShare(shares []Share, s Share) []Share {
	i, found := slices.BinarySearchFunc(shares, s.Account, func(x Share, account string) int {
		switch {
		case x.Account < account:
			return -1
		case x.Account > account:
			return 1
		}
		return 0
	})
	if found {
		shares[i].Amount += s.Amount
		return shares
	}
	return slices.Insert(shares, i, s)
}
