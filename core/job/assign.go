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
	Free     uint64 // utally that it can put up
	Record   uint64 // its valid units since its last failure
	Staked   uint64 // utally of Free that lie in its stake
	Since    int64  // protocol time, ms, since when Staked is no less, and nothing keeps it from work
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
	id, served := l.Order.ID(), l.served(e.Waiting, now)
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
		if first := l.before(a.Unit, a.Provider, served); first != "" {
			return nil, fmt.Errorf("%s waits for a unit and has had fewer of this round: serve it before %s", first, a.Provider)
		}
		waits := l.queued(a.Provider)
		acc := Acceptance{id, a.Unit, a.Attempt, a.Provider}
		if err := verify("the acceptance", p.Key, acc.SignBytes(), a.Signature); err != nil && waits < 0 {
			return nil, err
		}
		gain, audited, err := l.stand(a.Standing, reserved)
		if err != nil {
			return nil, err
		}
		*u = Unit{
			Status: Assigned, Attempt: a.Attempt, Provider: a.Provider, Audited: audited,
			Times: Times{Due: now + l.Order.Conditions.UnitTimeout}, Withheld: u.Withheld,
		}
		if l.Forces() {
			l.await(a.Unit, now) // its forced draw is made in a later block
		}
		l.count()
		if waits >= 0 {
			l.Queue = slices.Delete(l.Queue, waits, waits+1)
			served = slices.DeleteFunc(served, func(p string) bool { return p == a.Provider })
		}
		held, err := l.answer(a.Provider, l.Round, gain)
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

// stand returns what the next unit of the round adds to a provider's gains, and the segments of
// it that each auditor draws, if the provider can put up what its reserve then lacks, beside what
// is reserved already.
func (l *Lease) stand(p Standing, reserved []Effect) (gain uint64, audited int, err error) {
	audited = l.Order.Conditions.Audited(p.Record)
	gain, odds, err := l.Quote.gain(&l.Order.Problem, &l.Order.Conditions, audited)
	if err != nil {
		return 0, 0, err
	}
	e, bond, err := l.burdened(p.Provider, l.Round, gain)
	if err != nil {
		return 0, 0, err
	}
	for _, r := range reserved {
		if r.Account == p.Provider {
			p.Free -= min(p.Free, r.Amount)
		}
	}
	if bond.Odds = odds; e.Claims > 1 {
		bond.Odds = 0
	}
	return gain, audited, bond.Covered(p.Provider, e.Amount, p.Free)
}

// free ends what stands behind a unit that is about to be done again, unless it is in dispute.
func (l *Lease) free(i int) (effects []Effect, err error) {
	for _, w := range markOf(&l.Units[i]).workers {
		more, err := l.freeOne(i, w.provider)
		if err != nil {
			return nil, err
		}
		effects = append(effects, more...)
	}
	return effects, nil
}

// freeOne is free of one of those who compute a unit.
func (l *Lease) freeOne(i int, provider string) ([]Effect, error) {
	t := UnitTarget(i)
	if l.Units[i].Provider != provider {
		t = ResultTarget(i, provider, 0)
	}
	gain, err := l.gain(l.Units[i].Audited)
	if err != nil || l.ghost(t, gain) {
		return nil, err
	}
	return l.drop(provider, ForWork, gain)
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
	effects, err := l.relieve(i, why)
	l.reopen(i)
	return effects, err
}

// relieve is giveUp of a unit that may go on.
func (l *Lease) relieve(i int, why string) ([]Effect, error) {
	u := &l.Units[i]
	effects, err := l.fine(u.Provider, ForWork)
	if err != nil {
		return nil, err
	}
	freed, err := l.freeOne(i, u.Provider)
	if err != nil {
		return nil, err
	}
	effects = append(append(effects, freed...), Effect{Emit, u.Provider, uint64(i), why})
	if l.countFault(u.Provider) > l.Params.MaxLate {
		l.bar(u.Provider)
		sale := l.Reserve.Held(u.Provider, ForSale)
		effects = append(effects, l.slash(u.Provider, ForSale, sale, []Share{{Insurance, sale}})...)
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
		if find(l.Auditors, account) != nil && l.Begun() {
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

// Offence is for what an account gets no new work. How long that lasts is the chain's to say.
type Offence uint64

// The offences.
const (
	Carelessness Offence = iota + 1 // it passed what was wrong by duty
	Absence                         // it did not show what it keeps, or did not answer for what it did
	Fraud                           // what it did was shown to be wrong
)

// offence is what a defender has lost for. Of who is silent nothing was shown, whoever then plays in its place: it may only have
// been away.
func (e *CloseDispute) offence() Offence {
	if e.Silent {
		return Absence
	}
	return Fraud
}

// String returns the offence's name.
func (o Offence) String() string {
	return [...]string{"unknown", "carelessness", "absence", "fraud"}[min(o, Fraud)]
}

// jail keeps an account from new work: for fraud for good, and with it whoever has the same owner.
func jail(l *Lease, account string, o Offence) Effect {
	if o == Fraud {
		return Effect{Kind: Exclude, Account: account, Amount: uint64(o), Note: l.ownerOf(account)}
	}
	return Effect{Kind: Jail, Account: account, Amount: uint64(o)}
}
