package job

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/proof"
)

// Forced errors: see docs/adr/0014-forced-errors.md. Some attempts, which the provider's VRF picks after
// the assignment and nobody else knows, must be presented wrong in one segment. A unit is accepted only
// after its provider has shown its forced draw: that it was not forced. If it was, the provider shows the
// truth beside it, the attempt is void without blame, and auditors that did not see it lose their bond.

// Forced is a forced attempt that was shown. What is said there to be true is a claim of its provider,
// open to dispute until the lease ends; then it is paid for, by the lease's own consumer.
type Forced struct {
	Index       int
	Unit        Unit            // as it was, with its receipt, bond, audits and attestations
	Truth       []proof.Outcome // what each segment gives from the checkpoint before it; zero Before: nobody audited it
	Challengers []string        // the first, in one block; each gets the jackpot over 2^(n−1)
	Until       int64           // protocol time, ms: the lease does not settle before, so that an auditor can refute it
}

// ProveDraw is a provider's word whether an attempt of its own was forced. Output is that of its VRF over
// proof.ForcedDrawInput, which the caller has verified. It must not come before audits are answered and
// the unit's window is over, so that its time tells nothing; a dispute ends the secret.
type ProveDraw struct {
	By            string
	Unit, Attempt int
	Output        []byte
	Truth         []proof.Outcome // as in Forced, if the attempt was forced
}

func (e ProveDraw) apply(l *Lease, now int64) ([]Effect, error) {
	u, err := l.current(e.Unit, e.Attempt, Received, Counted)
	if err != nil {
		return nil, err
	}
	switch {
	case !l.Forces():
		return nil, fmt.Errorf("no attempt of this lease is forced")
	case e.By != u.Provider:
		return nil, fmt.Errorf("unit %d is %s's, not %s's", e.Unit, u.Provider, e.By)
	case u.Plain:
		return nil, fmt.Errorf("attempt %d of unit %d was shown already", e.Attempt, e.Unit)
	case !l.ForcedDrawDue(e.Unit, now):
		return nil, fmt.Errorf("unit %d is shown once it is disputed, or its audits are answered and its window is over at protocol time %d ms", e.Unit, u.WindowEnd)
	}
	if !proof.Forced(e.Output, l.Params.ForcedBps) {
		if len(e.Truth) > 0 {
			return nil, fmt.Errorf("attempt %d of unit %d was not forced: there is no other truth", e.Attempt, e.Unit)
		}
		u.Plain = true
		return []Effect{{Emit, e.By, uint64(e.Unit), "plain"}}, nil
	}
	f := &Forced{Index: e.Unit, Unit: *u, Truth: e.Truth, Until: now + l.Order.Conditions.Window}
	if err := f.check(&l.Order.Problem); err != nil {
		return nil, err
	}
	if f.contradicts() {
		f.Until = max(f.Until, now+l.Order.Conditions.UnitTimeout)
	}
	f.Unit.Attested, f.Unit.Audits = slices.Clone(u.Attested), slices.Clone(u.Audits)
	f.Unit.Questions, f.Unit.Attend = nil, 0
	effects := l.freeCustodians(e.Unit) // what they keep is of no use any more
	for i := range f.Unit.Audits {
		if a := &f.Unit.Audits[i]; !a.Done {
			effects = append(effects, l.unbind(a)...)
		}
	}
	first := now
	for _, c := range l.DisputesAbout(UnitTarget(e.Unit), e.Attempt) {
		first = min(first, c.At)
	}
	for _, c := range l.DisputesAbout(UnitTarget(e.Unit), e.Attempt) {
		// The first dispute ends the secret, as the window does. Who comes later, or
		// beside this, may have seen a forced draw that no block held yet.
		if c.At == first && c.At < now && (u.Status == Received || c.At < u.WindowEnd) && !f.holds(c.Segment) && len(f.Challengers) < maxRivals {
			f.Challengers = append(f.Challengers, c.Challenger)
		}
	}
	l.Disputes = slices.DeleteFunc(l.Disputes, func(c Dispute) bool { return !c.Void && c.Target == UnitTarget(e.Unit) })
	l.Past[e.Unit] = append(l.Past[e.Unit], Past{Forced: f})
	l.Windows.Truth = max(l.Windows.Truth, f.Until)
	l.reopen(e.Unit)
	l.watchLead(now)
	return append(effects, Effect{Emit, e.By, uint64(e.Unit), "forced"}), nil
}

// ForcedDrawDue reports whether the provider of a unit may show its forced draw at protocol
// time now, and must before the unit is accepted.
func (l *Lease) ForcedDrawDue(unit int, now int64) bool {
	switch u := &l.Units[unit]; {
	case !l.Forces() || u.Plain || u.Status != Received && u.Status != Counted:
		return false
	case len(l.DisputesAbout(UnitTarget(unit), u.Attempt)) > 0:
		return true
	default:
		return u.Status == Counted && u.audited() && now >= u.secretUntil(&l.Order.Conditions)
	}
}

// ForcedDrawn reports whether the forced draw of a unit's attempt follows from what is known,
// as far as it has one. Before, its provider does not begin, and posts nothing.
func (l *Lease) ForcedDrawn(unit int) bool { return !l.Forces() || !l.Units[unit].Seed.IsZero() }

// Forces reports whether attempts of the lease can be forced.
func (l *Lease) Forces() bool { return l.Params.ForcedBps > 0 && !l.replicated() }

// awaitsForcedDraw reports whether nothing but its provider's word keeps a unit from
// being accepted, as far as its audits go.
func (l *Lease) awaitsForcedDraw(u *Unit) bool { return l.Forces() && u.audited() && !u.Plain }

// askForcedDraw gives the provider of a unit whose audits are answered its time to show the forced draw.
func (l *Lease) askForcedDraw(u *Unit, now int64) {
	if u.Status == Counted && l.awaitsForcedDraw(u) {
		u.Due = max(now, u.secretUntil(&l.Order.Conditions)) + l.Order.Conditions.UnitTimeout
	}
}

// check returns an error unless as much truth is shown as auditors can be judged by.
func (f *Forced) check(p *Problem) error {
	u := &f.Unit
	if len(f.Truth) != p.Segments() {
		return fmt.Errorf("attempt %d of unit %d was forced: show the truth of its %d segments, not of %d", u.Attempt, f.Index, p.Segments(), len(f.Truth))
	}
	audited := u.AuditedSegments()
	for s, t := range f.Truth {
		_, steps := p.Segment(s)
		switch {
		case t.Before.IsZero() && slices.Contains(audited, s):
			return fmt.Errorf("segment %d of unit %d was audited: show the state before its last step, too", s, f.Index)
		case steps == 1 && !t.Before.IsZero() && t.Before != p.Before(u.Receipt, s):
			return fmt.Errorf("segment %d of unit %d has one step: the state before it is %v", s, f.Index, p.Before(u.Receipt, s).Short())
		}
	}
	return nil
}

// holds reports whether the receipt says the truth about a segment.
func (f *Forced) holds(segment int) bool {
	return f.Truth[segment].End == f.Unit.Receipt.Checkpoints[segment+1]
}

// Segments returns the numbers of all segments of the attempt.
func (f *Forced) Segments() (all []int) {
	for s := range f.Truth {
		all = append(all, s)
	}
	return all
}

// Points returns the states that a segment goes through, as its provider says: where it begins, before
// its last step if that is shown and no checkpoint, and where it ends.
func (f *Forced) Points(p *Problem, segment int) []canon.Hash {
	t, begin := f.Truth[segment], p.Before(f.Unit.Receipt, segment)
	if _, steps := p.Segment(segment); steps > 1 && !t.Before.IsZero() {
		return []canon.Hash{begin, t.Before, t.End}
	}
	return []canon.Hash{begin, t.End}
}

// AuditedSegments returns the segments that auditors answered for, in order.
func (u *Unit) AuditedSegments() (out []int) {
	for _, a := range u.Audits {
		out = append(out, a.Segments...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Right reports whether an auditor said what a diligent one would have: its digest
// shows that it computed the segments.
func (f *Forced) Right(a *Audit) bool {
	var outcomes []proof.Outcome
	pass := true
	for _, s := range a.Segments {
		outcomes = append(outcomes, f.Truth[s])
		pass = pass && f.holds(s)
	}
	return a.Pass == pass && a.Digest == proof.Digest(a.Auditor, f.Unit.Receipt.ID(), outcomes)
}

// contradicts reports whether an auditor would lose its bond by what is shown. It has
// as long to dispute that as if it had reported a mismatch.
func (f *Forced) contradicts() bool {
	return slices.ContainsFunc(f.Unit.Audits, func(a Audit) bool { return a.Done && a.Bonded && !f.Right(&a) })
}

// Forced returns the forced attempts that were shown and not paid for yet, by unit.
func (l *Lease) Forced() (out []*Forced) {
	for _, past := range l.Past {
		for _, p := range past {
			if p.Forced != nil {
				out = append(out, p.Forced)
			}
		}
	}
	return out
}

// Shown returns a forced attempt of a unit that was shown, nil if there is none.
func (l *Lease) Shown(unit, attempt int) *Forced {
	if p := l.past(unit, attempt); p != nil {
		return p.Forced
	}
	return nil
}

// disprove ends what was shown of a forced attempt, for it is not true, and returns what those
// whose work it spoilt have lost.
func (l *Lease) disprove(c Dispute) (lost []Share, effects []Effect, err error) {
	past := l.past(c.Target.index, c.Attempt)
	f := past.Forced
	var disputed []Audit
	for _, a := range f.Unit.Audits {
		if !a.Done || !a.Bonded {
			continue
		}
		wage, err := l.auditWage(&f.Unit)
		if err != nil {
			return nil, nil, err
		}
		lost = addShare(lost, Share{a.Auditor, wage})
		if len(l.DisputesAbout(VerdictTarget(f.Index, a.Auditor), c.Attempt)) > 0 {
			disputed = append(disputed, a)
			continue
		}
		effects = append(effects, l.unbind(&a)...)
	}
	for _, k := range f.Unit.Attested {
		if k.Stands() {
			lost = addShare(lost, Share{k.Custodian, l.Quote.Keep})
		}
	}
	l.Disputes = slices.DeleteFunc(l.Disputes, func(d Dispute) bool {
		return d.Target.kind == AboutTruth && d.Target.index == f.Index && d.Attempt == c.Attempt
	})
	*past = Past{Receipt: f.Unit.Receipt, Verdicts: disputed, Refuted: -1}
	if len(disputed) == 0 {
		l.forget(f.Index, c.Attempt)
	}
	gain, err := l.gain(f.Unit.Audited)
	if err != nil {
		return nil, nil, err
	}
	_, err = l.drop(c.Defender, ForWork, gain)
	return lost, effects, err
}

// jackpot is what the first challenger of a forced receipt gets if it is the only
// one. It is never so much that challenging blindly, when forced attempts are as
// rare as they are, would pay for the bonds that it loses.
func (l *Lease) jackpot() (uint64, error) {
	j, err := money.Scale(l.Quote.Unit, l.Params.JackpotFactor, 1)
	if err != nil {
		return 0, err
	}
	blind, err := money.Scale(l.Params.ChallengeBond, bps-l.Params.ForcedBps, l.Params.ForcedBps)
	return min(j, max(blind, 1)-1), err
}

// forcedDue settles the forced attempts, and returns what they are due. A provider that did as it should is paid as if the unit had been
// accepted. Auditors that were blind lose their bond, a share of it to the provider. Each of c
// challengers gets the jackpot over 2^(c−1), so that to challenge under many names does not pay; the
// provider gets what they leave of it, so that to tell one of them does not. The word of a provider that is
// barred judges nobody, and earns it nothing.
func (l *Lease) forcedDue() (due []Share, effects []Effect, err error) {
	for _, f := range l.Forced() {
		prizes, more, err := l.prizes(f)
		if err != nil {
			return nil, nil, err
		}
		effects = append(effects, more...)
		for _, s := range prizes {
			due = addShare(due, s)
		}
	}
	return due[:min(len(due), maxRecords)], effects, nil // more cannot be recorded
}

// prizes returns what a forced attempt is worth to whom, and what becomes of the bonds behind it.
func (l *Lease) prizes(f *Forced) (prizes []Share, effects []Effect, err error) {
	u := &f.Unit
	pay, err := l.pay(u.Provider)
	if err != nil {
		return nil, nil, err
	}
	jackpot, err := l.jackpot()
	if err != nil {
		return nil, nil, err
	}
	for _, c := range f.Challengers {
		prizes = append(prizes, Share{c, jackpot >> (len(f.Challengers) - 1)})
	}
	for _, s := range prizes {
		jackpot -= s.Amount
	}
	if pay, err = money.Sum(pay, jackpot); err != nil {
		return nil, nil, err
	}
	trusted := !slices.Contains(l.Barred, u.Provider)
	if trusted {
		prizes = append(prizes, Share{u.Provider, pay})
	}
	for j := range u.Audits {
		a := &u.Audits[j]
		switch {
		case !a.Bonded:
		case !trusted || f.Right(a):
			wage, err := l.auditWage(u)
			if err != nil {
				return nil, nil, err
			}
			prizes = append(prizes, Share{a.Auditor, wage})
		default:
			more, err := l.forfeit(a.Auditor, ForVerdict, u.Provider)
			if err != nil {
				return nil, nil, err
			}
			effects = append(effects, more...)
			effects = append(effects, jail(l, a.Auditor, Carelessness), Effect{Emit, a.Auditor, uint64(f.Index), "blind"})
		}
	}
	for _, k := range u.Attested {
		if k.Stands() {
			prizes = append(prizes, Share{k.Custodian, l.Quote.Keep})
		}
	}
	return prizes, effects, nil
}

// within returns shares that add up to no more than limit, each cut in the same
// proportion; none is empty.
func within(shares []Share, limit uint64) (out []Share, err error) {
	var total uint64
	for _, s := range shares {
		if total, err = money.Sum(total, s.Amount); err != nil {
			return nil, err
		}
	}
	for _, s := range shares {
		if total > limit {
			hi, lo := bits.Mul64(s.Amount, limit)
			s.Amount, _ = bits.Div64(hi, lo, total) // hi < total: limit < total, and the amount fits 64 bits
		}
		if s.Amount > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}
