package job

import (
	"fmt"
	"slices"
)

// Verdict is an auditor's word about work that was refuted or redone since. It is
// kept while somebody might challenge it: because it says that a segment holds
// over which the provider was convicted, or because it is in dispute already.
type Verdict struct {
	Unit    int
	Receipt *Receipt
	Audit   *Audit
}

// Verdicts returns the words about work that is void, by unit.
func (l *Lease) Verdicts() (out []Verdict) {
	for i, past := range l.Past {
		for _, p := range past {
			for j := range p.Verdicts {
				out = append(out, Verdict{i, p.Receipt, &p.Verdicts[j]})
			}
		}
	}
	return out
}

// past returns an earlier attempt of a unit of which something counts, nil if nothing
// does.
func (l *Lease) past(unit, attempt int) *Past {
	if unit < 0 || unit >= len(l.Past) {
		return nil
	}
	for j := range l.Past[unit] {
		if p := &l.Past[unit][j]; p.Attempt() == attempt {
			return p
		}
	}
	return nil
}

// forget ends what counts of an earlier attempt.
func (l *Lease) forget(unit, attempt int) {
	l.Past[unit] = slices.DeleteFunc(l.Past[unit], func(p Past) bool { return p.Attempt() == attempt })
}

// verdictBond is what an auditor reserves when it is drawn.
func (l *Lease) verdictBond() uint64 { return l.Quote.Unit * l.Params.VerdictFactor }

// unbind lets go of what is reserved behind an auditor's word.
func (l *Lease) unbind(a *Audit) []Effect {
	if !a.Bonded {
		return nil
	}
	a.Bonded = false
	return l.letGo(a.Auditor, ForVerdict)
}

// Verdict returns the standing word of an auditor about an attempt of a unit, and
// the receipt that it is about.
func (l *Lease) Verdict(unit, attempt int, auditor string) (*Audit, *Receipt, error) {
	if unit >= 0 && unit < len(l.Units) && l.Units[unit].Attempt == attempt {
		u := &l.Units[unit]
		for i := range u.Audits {
			if a := &u.Audits[i]; a.Auditor == auditor && a.Done && u.Receipt != nil {
				return a, u.Receipt, nil
			}
		}
	}
	if p := l.past(unit, attempt); p != nil {
		audits, receipt := p.Verdicts, p.Receipt
		if p.Forced != nil {
			audits, receipt = p.Forced.Unit.Audits, p.Forced.Unit.Receipt
		}
		for j := range audits {
			if a := &audits[j]; a.Auditor == auditor && a.Done {
				return a, receipt, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("no verdict of %s about attempt %d of unit %d stands", auditor, attempt, unit)
}

// challengeable returns an error unless the audit says that the segment holds.
func (a *Audit) challengeable(segment int) error {
	switch {
	case !a.Pass || !a.Bonded:
		return fmt.Errorf("%s did not say that the unit holds, or lost its word's bond already", a.Auditor)
	case !slices.Contains(a.Segments, segment):
		return fmt.Errorf("%s audited segments %v, not segment %d", a.Auditor, a.Segments, segment)
	}
	return nil
}

// refute takes the bond behind a wrong verdict: a share for the challenger, the
// rest insures. The auditor is drawn no more; a unit that rests on its word is
// held for a dispute.
func (l *Lease) refute(c Dispute, offence Offence, now int64) ([]Effect, error) {
	a, _, err := l.Verdict(c.Target.index, c.Attempt, c.Target.account)
	if err != nil {
		return nil, err
	}
	effects, err := l.forfeit(a.Auditor, ForVerdict, c.Challenger)
	if err != nil {
		return nil, err
	}
	a.Bonded, a.Wrong = false, true
	l.bar(a.Auditor)
	if u := &l.Units[c.Target.index]; u.Attempt == c.Attempt && u.Status == Counted {
		u.HeldUntil = max(u.HeldUntil, now+l.Order.Conditions.UnitTimeout)
	}
	if p := l.past(c.Target.index, c.Attempt); p != nil && p.Forced == nil {
		p.Verdicts = slices.DeleteFunc(p.Verdicts, func(a Audit) bool { return !a.Bonded })
		if len(p.Verdicts) == 0 {
			l.forget(c.Target.index, c.Attempt)
		}
	}
	return append(effects, jail(l, c.Defender, offence), Effect{Emit, c.Defender, c.ID, "convicted"}), nil
}

// clear lets go of a verdict about void work once the last dispute about it has ended,
// unless it says that a segment holds that was refuted.
func (l *Lease) clear(t Target, attempt int) (effects []Effect) {
	p := l.past(t.index, attempt)
	if p == nil || p.Forced != nil || len(l.DisputesAbout(t, attempt)) > 0 {
		return nil
	}
	p.Verdicts = slices.DeleteFunc(p.Verdicts, func(a Audit) bool {
		over := a.Auditor == t.account && a.challengeable(p.Refuted) != nil
		if over {
			effects = append(effects, l.unbind(&a)...)
		}
		return over
	})
	if len(p.Verdicts) == 0 {
		l.forget(t.index, attempt)
	}
	return effects
}

// retire lets go of custodians' bonds and of the verdicts about unit i, which is about
// to be done again.
// Those that say that the refuted segment holds, and those in dispute, stay; −1
// stands for no segment.
func (l *Lease) retire(i, refuted int) (effects []Effect) {
	u := &l.Units[i]
	effects = l.freeCustodians(i)
	var kept []Audit
	for _, a := range u.Audits {
		disputed := len(l.DisputesAbout(VerdictTarget(i, a.Auditor), u.Attempt)) > 0
		switch {
		case !a.Bonded:
		case disputed || a.challengeable(refuted) == nil:
			kept = append(kept, a)
		default:
			effects = append(effects, l.unbind(&a)...)
		}
	}
	if len(kept) > 0 {
		l.Past[i] = append(l.Past[i], Past{Receipt: u.Receipt, Verdicts: kept, Refuted: refuted})
	}
	return effects
}

// falseAlarms takes the bonds of auditors that reported a mismatch in a unit that
// is now accepted: nobody could show it. The provider that they delayed gets the
// share of a challenger.
func (l *Lease) falseAlarms(i int) (effects []Effect, err error) {
	u := &l.Units[i]
	for j := range u.Audits {
		a := &u.Audits[j]
		if !a.Done || a.Pass || !a.Bonded {
			continue
		}
		more, err := l.alarm(i, a)
		if err != nil {
			return nil, err
		}
		effects = append(effects, more...)
	}
	return effects, nil
}

// pledge returns the challenger of a unit if its own report of a mismatch can stand
// behind the dispute: nobody is asked for a second bond to show what it was drawn to
// look for. Each report stands behind one dispute at a time, and falls with it; what a
// defender then gets of its bond is worth more than replaying the unit.
func (l *Lease) pledge(c *Dispute) string {
	taken := slices.ContainsFunc(l.Disputes, func(d Dispute) bool { return d.sameClaim(*c) && d.Pledge == c.Challenger })
	if c.Target.kind != AboutUnit || taken || l.Units[c.Target.index].mismatch(c.Challenger) == nil {
		return ""
	}
	return c.Challenger
}

// mismatch returns an auditor's report that segments do not hold, if a bond stands
// behind it, else nil.
func (u *Unit) mismatch(auditor string) *Audit {
	for i := range u.Audits {
		if a := &u.Audits[i]; a.Auditor == auditor && a.Done && !a.Pass && a.Bonded {
			return a
		}
	}
	return nil
}

// owed reports whether an auditor other than the given one has reported that segments do
// not hold, and must be given its time to show it: another's game shows nothing.
func (u *Unit) owed(but string) bool {
	return slices.ContainsFunc(u.Audits, func(a Audit) bool { return a.Auditor != but && u.mismatch(a.Auditor) != nil })
}

// redeem takes the bond of a report whose dispute was lost: it was a false alarm. The
// word about work that is void is gone, and with it the pledge.
func (l *Lease) redeem(c Dispute) ([]Effect, error) {
	if c.Pledge == "" || c.Void {
		return nil, nil
	}
	if a := l.Units[c.Target.index].mismatch(c.Pledge); a != nil {
		return l.alarm(c.Target.index, a)
	}
	return nil, nil
}

// alarm takes the bond of a report that nobody could show to be right.
func (l *Lease) alarm(unit int, a *Audit) ([]Effect, error) {
	effects, err := l.forfeit(a.Auditor, ForVerdict, l.Units[unit].Provider)
	a.Bonded, a.Wrong = false, true
	return append(effects, Effect{Emit, a.Auditor, uint64(unit), "false alarm"}), err
}

// verdictBonds reports whether bonds stand behind verdicts about the unit.
func (u *Unit) verdictBonds() bool {
	return slices.ContainsFunc(u.Audits, func(a Audit) bool { return a.Bonded })
}

// final reports whether nobody can dispute the verdicts about an attempt of a unit any
// more: it was accepted, and their window is over.
func (l *Lease) final(unit, attempt int, now int64) bool {
	u := &l.Units[unit]
	return u.Status == Accepted && u.Attempt == attempt && now > u.WindowEnd
}

// verdictsDisputed reports whether a verdict about a unit is in dispute.
func (l *Lease) verdictsDisputed(i int) bool {
	u := &l.Units[i]
	return slices.ContainsFunc(u.Audits, func(a Audit) bool { return len(l.DisputesAbout(VerdictTarget(i, a.Auditor), u.Attempt)) > 0 })
}

// releaseVerdicts lets go of the bonds behind the verdicts about a unit: nobody can
// dispute them any more.
func (l *Lease) releaseVerdicts(u *Unit) (effects []Effect) {
	for j := range u.Audits {
		effects = append(effects, l.unbind(&u.Audits[j])...)
	}
	return effects
}
