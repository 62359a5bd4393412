package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
)

// Attestation is a custodian of a unit, and its word that it holds the data of the
// receipt. Stake is reserved when it is drawn, and stands until the lease ends or
// the unit is void; who has not attested when the unit is accepted is let go.
type Attestation struct {
	Custodian string
	Done      bool      // it has attested
	Failed    bool      // it did not show what it was asked for, or keeps what is wrong: its word counts no more
	Fragment  *Fragment // nil if each custodian keeps all
}

// keepBond is what a custodian reserves for each unit that it is drawn for.
func (l *Lease) keepBond() uint64 { return (l.Quote.Unit + l.Quote.Keep) * l.Params.KeepFactor }

// Attest is a custodian's word that it holds the data of a receipt.
type Attest struct {
	By            string
	Unit, Attempt int
	Fragment      *Fragment // if the checkpoints are cut among the custodians
}

func (e Attest) apply(l *Lease, now int64) ([]Effect, error) {
	u, err := l.current(e.Unit, e.Attempt, Received, Counted, Accepted)
	if err != nil {
		return nil, err
	}
	a := u.custodian(e.By)
	switch {
	case !l.open(u) && !u.attestable(&l.Order.Conditions):
		return nil, fmt.Errorf("unit %d is accepted: only a fragment of it that nobody keeps can still be attested to, while units are computed", e.Unit)
	case a == nil || a.Failed:
		return nil, fmt.Errorf("%s is not a custodian of unit %d", e.By, e.Unit)
	case !l.trusts(e.By):
		return nil, fmt.Errorf("%s was convicted in this lease: another is drawn to keep unit %d in its place", e.By, e.Unit)
	case a.Done:
		return nil, fmt.Errorf("%s has attested already", e.By)
	}
	if err := l.checkFragment(u, e.Fragment); err != nil {
		return nil, err
	}
	a.Done, a.Fragment = true, e.Fragment
	if u.Status != Received || l.custodians(u) < l.Order.Conditions.Quorum() {
		return nil, nil
	}
	u.Status = Counted
	u.WindowEnd = now + l.Order.Conditions.UnitWindow
	if !u.audited() { // nobody but the provider had to show them the data before
		u.Due = max(u.Due, now+l.Order.Conditions.UnitTimeout)
	}
	if u.owed("") { // nobody could dispute it before
		u.HeldUntil = max(u.HeldUntil, now+l.Order.Conditions.UnitTimeout)
	}
	l.askForcedDraw(u, now)
	return []Effect{{Emit, u.Provider, uint64(e.Unit), "counted"}}, nil
}

// custodian returns what a custodian was drawn for, nil if it was not.
func (u *Unit) custodian(account string) *Attestation {
	for i := range u.Attested {
		if a := &u.Attested[i]; a.Custodian == account {
			return a
		}
	}
	return nil
}

// standing counts the custodians of a unit whose word counts, or may still be given.
func (l *Lease) standing(u *Unit) (n int) {
	for i := range u.Attested {
		if a := &u.Attested[i]; l.counts(u, a) || !a.Done && !a.Failed && l.trusts(a.Custodian) {
			n++
		}
	}
	return n
}

// trusts reports whether an account was convicted of nothing in this lease, and has not
// said that it cannot keep it.
func (l *Lease) trusts(account string) bool { return !slices.Contains(l.Barred, account) }

// counts reports whether a custodian's word counts for a unit: it stands, and the custodian
// was convicted of nothing in the lease before the unit was accepted. Else others are drawn;
// its bond stands, and it can be asked, until the unit is accepted by their word.
func (l *Lease) counts(u *Unit, a *Attestation) bool {
	return a.Stands() && (u.Status == Accepted || l.trusts(a.Custodian))
}

// Stands reports whether the custodian has attested, and was not shown to be wrong.
func (a *Attestation) Stands() bool { return a.Done && !a.Failed }

// dropCustodians lets go of the custodians of a unit that is accepted whose word did not count: those who
// have not attested, unless they may still keep a fragment of it, and those who were convicted elsewhere.
func (l *Lease) dropCustodians(i int, first bool, now int64) (effects []Effect) {
	u, cuts := &l.Units[i], l.Order.Fragments().Cuts()
	u.Attested = slices.DeleteFunc(u.Attested, func(a Attestation) bool {
		drop := !a.Failed && (!a.Done && !cuts && !u.windowRuns(&l.Order.Conditions, now) || first && !l.trusts(a.Custodian))
		if drop {
			effects = append(effects, l.letGo(a.Custodian, ForData)...)
			effects = append(effects, l.dropQuestions(i, func(r *Question) bool { return r.Custodian == a.Custodian })...)
		}
		return drop
	})
	return effects
}

// attestation returns the standing word of a custodian about a unit, nil if there is none.
func (u *Unit) attestation(custodian string) *Attestation {
	for i := range u.Attested {
		if a := &u.Attested[i]; a.Custodian == custodian && a.Stands() {
			return a
		}
	}
	return nil
}

// Keeps reports whether a custodian's word about the unit stands.
func (u *Unit) Keeps(custodian string) bool { return u.attestation(custodian) != nil }

// custodians counts those whose word counts for a unit.
func (l *Lease) custodians(u *Unit) (n int) {
	for i := range u.Attested {
		if l.counts(u, &u.Attested[i]) {
			n++
		}
	}
	return n
}

// failCustodian takes the bond of a custodian whose word about a unit, or about the order's
// files, was shown to be false: a share for who has shown it, the rest insures. Who asks it
// has the fee back. Another custodian is drawn in its place. A unit that is not accepted and
// has lost its quorum waits for attestations again; accepted work stays.
func (l *Lease) failCustodian(custodian string, unit int, by string, offence Offence, now int64) ([]Effect, error) {
	if !l.keeps(custodian, unit) {
		return nil, fmt.Errorf("no attestation of %s to %s stands", custodian, Kept(unit))
	}
	reason := ForData
	if unit == OfFiles {
		reason = ForFiles
	}
	effects, err := l.forfeit(custodian, reason, by)
	if err != nil {
		return nil, err
	}
	effects = append(effects, l.dropQuestions(unit, func(r *Question) bool { return r.Custodian == custodian })...)
	l.bar(custodian)
	at, why := uint64(l.Files.Draws), "unanswered"
	if offence == Fraud {
		why = "exposed"
	}
	if unit == OfFiles {
		why = "files " + why
	} else {
		at = uint64(unit)
		l.Units[unit].attestation(custodian).Failed = true
		effects = append(effects, l.redraw(unit, now)...)
	}
	files, err := l.dropFileCustodian(custodian, now)
	if err != nil {
		return nil, err
	}
	effects = append(effects, files...)
	return append(effects, jail(l, custodian, offence), Effect{Emit, custodian, at, why}), nil
}

// lapse draws another in the place of a custodian of a unit that was convicted. A unit that has counted
// without a quorum waits for attestations again; if none come, that is no fault of its provider's.
func (l *Lease) redraw(i int, now int64) []Effect {
	u := &l.Units[i]
	l.await(i, now)
	if u.Status != Counted || l.custodians(u) >= l.Order.Conditions.Quorum() {
		return nil
	}
	u.Status, u.Due = Received, now+l.Order.Conditions.UnitTimeout
	return []Effect{{Emit, u.Provider, uint64(i), "quorum lost"}}
}

// sweepUnits is how many units of the round a tick looks at after a conviction, so that
// what it does in one block does not grow with the order.
const sweepUnits = 64

// sweep returns the units of the round that a tick looks at next, since somebody was
// convicted who may keep them.
func (l *Lease) sweep() (units []int) {
	if l.Round == len(l.Merges) {
		return nil
	}
	for s := l.Order.Problem.Shards - l.Sweep; l.Sweep > 0 && s < l.Order.Problem.Shards && len(units) < sweepUnits; s++ {
		units = append(units, l.Unit(l.Round, s))
	}
	return units
}

// tickSweep lets others be drawn for the next units of the round in the place of custodians
// that were convicted elsewhere.
func (l *Lease) tickSweep(now int64) (effects []Effect) {
	units := l.sweep()
	for _, i := range units {
		u := &l.Units[i]
		lost := func(a Attestation) bool { return !a.Failed && !l.trusts(a.Custodian) }
		if (u.Status == Received || u.Status == Counted) && slices.ContainsFunc(u.Attested, lost) {
			effects = append(effects, l.redraw(i, now)...)
		}
	}
	l.Sweep -= len(units)
	if len(units) == 0 {
		l.Sweep = 0
	}
	return effects
}

// freeCustodians lets go of what custodians have reserved for a unit that is about to be
// void, and of what they are asked about it.
func (l *Lease) freeCustodians(i int) (effects []Effect) {
	for _, a := range l.Units[i].Attested {
		if !a.Failed {
			effects = append(effects, l.letGo(a.Custodian, ForData)...)
		}
	}
	return append(effects, l.dropQuestions(i, func(*Question) bool { return true })...)
}

func codeAttestation(w *canon.Codec, a *Attestation) {
	w.String(&a.Custodian, maxAccount)
	w.Bool(&a.Done)
	w.Bool(&a.Failed)
	given := a.Fragment != nil
	if w.Bool(&given); given {
		if a.Fragment == nil {
			a.Fragment = new(Fragment)
		}
		a.Fragment.code(w)
	}
}
