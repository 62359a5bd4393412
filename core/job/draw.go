package job

import (
	"slices"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// Draws come after what they judge: see docs/adr/0019-draws-come-after.md. Who audits
// and keeps an attempt is drawn once its receipt is on chain, from the hash of a block
// that holds it. Drawn are those who can put up the bond, which is reserved at once. So
// nobody can draw again what is known, by declining, posting anew or making attempts.
// Whether an attempt is forced likewise follows from a block after its
// assignment, so that no lead can choose who has which forced draw.

// drawTries is how many candidates are looked at for each that is wanted, so that a
// draw reads few accounts however large the pool is.
const drawTries = 8

// await lets the first tick after a protocol time attend to a unit.
func (l *Lease) await(unit int, after int64) {
	at := after + 1
	if u := &l.Units[unit]; u.Attend == 0 || at < u.Attend {
		u.Attend = at
	}
}

// tickAttended attends to the units whose time has come.
func (l *Lease) tickAttended(e *Tick, now int64) (effects []Effect, err error) {
	m := means{free: e.Free}
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
			l.await(i, now+l.Order.Conditions.UnitTimeout/drawTries)
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
	free  func(account string) uint64
	spent []Share
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
	if err != nil || m.free == nil || m.free(account) < total {
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
	pool := l.referees()
	before := slices.Clone(m.spent)
	others := slices.DeleteFunc(slices.Clone(pool), func(p Party) bool { return u.custodian(p.Account) != nil })
	custodians, err := m.able(l.lots(seed, beacon.Custodians, i, u.Attempt), others, min(c.Custodians-l.standing(u), maxKept-len(u.Attested)), keep)
	var auditors []string
	if err == nil && first {
		auditors, err = m.able(l.lots(seed, beacon.Auditors, i, u.Attempt), pool, c.Auditors, verdict)
	}
	if err != nil {
		return false, nil, err
	}
	if l.standing(u)+len(custodians) < c.Quorum() || first && len(auditors) < min(c.Auditors, len(pool)) {
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

// referees returns who may be drawn: never the lead of the moment, who may have taken
// over from the first, nor who was convicted in this lease.
func (l *Lease) referees() (out []Party) {
	for _, p := range l.Auditors {
		if p.Account != l.Lead() && !slices.Contains(l.Barred, p.Account) {
			out = append(out, p)
		}
	}
	return out
}

// able draws up to want of a pool who can put up a bond.
func (m *means) able(lots beacon.Lots, pool []Party, want int, bond uint64) (out []string, err error) {
	if want <= 0 {
		return nil, nil
	}
	drawn, err := weighted(lots, pool, drawTries*(want+1))
	for _, p := range drawn {
		if len(out) < want && m.take(p.Account, bond) {
			out = append(out, p.Account)
		}
	}
	return out, err
}

// weighted draws some of a pool, each next one in proportion to the weights that are left: who
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
