package job

import (
	"slices"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// Draws come after what they judge: see docs/adr/0019-draws-come-after.md. Who audits and keeps an
// attempt is drawn once its receipt is on chain, by the beacon's value of a later block. Drawn are those
// who can put up the bond, which is reserved at once. So nobody can draw again what is known, by
// declining, posting anew or making attempts. Whether an attempt is forced likewise follows from a block
// after its assignment, so that no lead can choose who has which forced draw.

// drawTries is how many candidates are looked at for each that is wanted, so that a
// draw reads few accounts however large the pool is.
const drawTries = 8

// redraws is how often a draw that found too few is made again within a unit's timeout.
const redraws = 8

// await lets the first tick after a protocol time attend to a unit.
func (l *Lease) await(unit int, after int64) {
	at := after + 1
	if u := &l.Units[unit]; u.Attend == 0 || at < u.Attend {
		u.Attend = at
	}
}

// tickAttended attends to the units whose time has come.
func (l *Lease) tickAttended(e *Tick, now int64) (effects []Effect, err error) {
	m := means{affords: e.Affords}
	for _, i := range l.known() {
		u := &l.Units[i]
		if u.Attend == 0 || now < u.Attend {
			continue
		}
		u.Attend = 0
		more, err := l.attend(i, e.Seed, &m, now)
		if err != nil {
			return nil, err
		}
		effects = append(effects, more...)
	}
	return effects, nil
}

// attend draws what an attempt's forced draw follows from, and who is missing for a unit, and
// lets go of verdicts that nobody can dispute any more.
func (l *Lease) attend(i int, seed canon.Hash, m *means, now int64) (effects []Effect, err error) {
	u := &l.Units[i]
	if u.Status == Assigned && l.replicated() {
		return l.drawPlaces(i, seed, m, now)
	}
	if !l.ForcedDrawn(i) && u.Status == Assigned {
		u.Seed = seed
		return []Effect{{Emit, u.Provider, uint64(i), "forced draw"}}, nil
	}
	if u.Status < Received {
		return nil, nil
	}
	if l.open(u) || u.windowRuns(&l.Order.Conditions, now) {
		done, drawn, err := l.draw(i, seed, m)
		if err != nil {
			return nil, err
		}
		effects = drawn
		if !done {
			l.await(i, now+l.Order.Conditions.UnitTimeout/redraws)
		} else if u.Status == Received && len(drawn) > 0 {
			u.Due = now + l.attestTime()
		}
	}
	if u.Status == Accepted && !u.windowRuns(&l.Order.Conditions, now) {
		effects = append(effects, l.dropCustodians(i, false, now)...)
	}
	if u.Status == Accepted && u.verdictBonds() {
		if now <= u.WindowEnd {
			l.await(i, u.WindowEnd)
		} else if l.verdictsDisputed(i) {
			l.await(i, now+l.Order.Conditions.UnitWindow)
		} else {
			effects = append(effects, l.releaseVerdicts(u)...)
		}
	}
	return effects, nil
}

// means is what accounts can put up as bonds, less what was drawn upon in this block.
type means struct {
	affords func(account string, bond uint64) bool
	spent   []Share
}

// take notes that an account puts up a bond, and reports whether it can.
func (m *means) take(account string, bond uint64) bool {
	var spent uint64
	for _, s := range m.spent {
		if s.Account == account {
			spent = s.Amount
		}
	}
	total, err := money.Sum(spent, bond)
	if err != nil || m.affords == nil || !m.affords(account, total) {
		return false
	}
	m.spent = addShare(m.spent, Share{account, bond})
	return true
}

// draw draws the auditors of an attempt, and as many custodians as it lacks. It reports
// whether they were to be had; if not, nobody is drawn.
func (l *Lease) draw(i int, seed canon.Hash, m *means) (done bool, effects []Effect, err error) {
	u, c := &l.Units[i], &l.Order.Conditions
	keep, verdict := l.keepBond(), l.verdictBond()
	first := len(u.Attested) == 0
	pool := l.apart(l.referees(), u.computers()...)
	before := slices.Clone(m.spent)
	others := l.apart(pool, u.custodians()...)
	custodians, err := m.able(l.lots(seed, beacon.Custodians, i, u.Attempt), others, min(c.Custodians-l.standing(u), maxKept-len(u.Attested)), each(keep))
	var auditors []string
	if err == nil && first {
		auditors, err = m.able(l.lots(seed, beacon.Auditors, i, u.Attempt), pool, c.Auditors, each(verdict))
	}
	if err != nil {
		return false, nil, err
	}
	if l.standing(u)+len(custodians) < c.Quorum() || first && len(auditors) < min(c.Auditors, Owners(pool)) {
		m.spent = before
		return false, nil, nil
	}
	for _, a := range custodians {
		held, err := l.Reserve.hold(a, ForData, keep)
		if err != nil {
			return false, nil, err
		}
		u.Attested = append(u.Attested, Attestation{Custodian: a})
		effects = append(append(effects, held...), Effect{Emit, a, uint64(i), "drawn to keep"})
	}
	for _, a := range auditors {
		held, err := l.Reserve.hold(a, ForVerdict, verdict)
		if err != nil {
			return false, nil, err
		}
		u.Audits = append(u.Audits, Audit{Auditor: a, Bonded: true})
		effects = append(append(effects, held...), Effect{Emit, a, uint64(i), "drawn to audit"})
	}
	l.Audits.Drawn += len(auditors)
	return true, effects, nil
}

// referees returns who may be drawn: nobody of the owner of the lead of the moment, nor who was
// convicted in this lease, or cannot keep it. That lead may have taken over from the first.
func (l *Lease) referees() []Party {
	gone := slices.Concat(l.Barred, l.Files.Unable)
	return slices.DeleteFunc(l.apart(l.Auditors, l.Lead()), func(p Party) bool { return slices.Contains(gone, p.Account) })
}

// computers returns who computes an attempt, or has computed it.
func (u *Unit) computers() (out []string) {
	for _, w := range markOf(u).workers {
		out = append(out, w.provider)
	}
	return out
}

// custodians returns who was drawn to keep an attempt.
func (u *Unit) custodians() (out []string) {
	for _, a := range u.Attested {
		out = append(out, a.Custodian)
	}
	return out
}

// able draws up to want of a pool who can put up their bonds, one of each owner.
func (m *means) able(lots beacon.Lots, pool []Party, want int, bond func(account string) (uint64, error)) ([]string, error) {
	if want <= 0 {
		return nil, nil
	}
	drawn, err := weighted(lots, pool, drawTries*(want+1))
	if err != nil {
		return nil, err
	}
	return m.first(drawn, want, nil, bond)
}

// first returns the first up to want of those drawn who can put up their bonds, one of each owner, and
// none of some owners.
func (m *means) first(drawn []Party, want int, owners []string, bond func(account string) (uint64, error)) (out []string, err error) {
	for _, p := range drawn {
		if len(out) == want || slices.Contains(owners, p.owner()) {
			continue
		}
		b, err := bond(p.Account)
		if err != nil {
			return nil, err
		}
		if m.take(p.Account, b) {
			out, owners = append(out, p.Account), append(owners, p.owner())
		}
	}
	return out, nil
}

// each is the same bond of everybody.
func each(bond uint64) func(string) (uint64, error) {
	return func(string) (uint64, error) { return bond, nil }
}

// weighted draws up to n of a pool, each next one in proportion to the weights that are left. So who
// divides its stake among accounts is drawn as often.
func weighted(lots beacon.Lots, pool []Party, n int) ([]Party, error) {
	weights := make([]uint64, len(pool))
	for i, p := range pool {
		weights[i] = p.Weight
	}
	at, err := lots.Weighted(weights, n)
	out := make([]Party, len(at))
	for i, j := range at {
		out[i] = pool[j]
	}
	return out, err
}

// lots returns the chance of a draw for an attempt of a unit, or of any number for the lease.
func (l *Lease) lots(value canon.Hash, p beacon.Purpose, unit, attempt int) beacon.Lots {
	id := l.Order.ID()
	return beacon.Draw(value, p, canon.Encode(func(e *canon.Encoder) {
		e.Hash(id)
		e.Uint(uint64(unit))
		e.Uint(uint64(attempt))
	}))
}
