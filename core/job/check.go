package job

import (
	"errors"
	"fmt"
	"slices"
)

// Check returns an error if an invariant of the package does not hold.
func (l *Lease) Check() error {
	if err := l.checkForm(); err != nil {
		return err
	}
	if err := l.checkMoney(); err != nil {
		return err
	}
	for i := range l.Units {
		if err := l.checkUnit(i); err != nil {
			return fmt.Errorf("unit %d: %w", i, err)
		}
	}
	if err := l.checkFiles(); err != nil {
		return err
	}
	if err := l.checkReserve(); err != nil {
		return err
	}
	if err := l.checkQuestions(); err != nil {
		return err
	}
	if err := l.checkCount(); err != nil {
		return err
	}
	for r, m := range l.Merges {
		if m.Root.IsZero() != (r >= l.Round) {
			return fmt.Errorf("round %d of %d has merge %v", r, l.Round, m.Root.Short())
		}
	}
	return nil
}

// checkForm guards what the rest takes for granted, for leases read from a
// genesis file.
func (l *Lease) checkForm() error {
	if err := l.Order.Check(); err != nil {
		return err
	}
	if err := errors.Join(l.Params.Check(), l.checkBonds(), l.Providers.check(), l.Auditors.check()); err != nil {
		return err
	}
	p := &l.Order.Problem
	switch {
	case l.Phase < Active || l.Phase > Settled:
		return fmt.Errorf("phase %d does not exist", l.Phase)
	case l.Sweep > p.Shards:
		return fmt.Errorf("%d units of a round of %d are to be looked at", l.Sweep, p.Shards)
	case l.LeadIndex >= len(l.Leads) || l.Round > p.Rounds || l.Windows.Final > l.Round || l.Windows.Final == l.Round && l.Windows.Next != 0:
		return fmt.Errorf("lead %d of %d, round %d of %d", l.LeadIndex, len(l.Leads), l.Round, p.Rounds)
	case len(l.Units) != p.Units() || len(l.Past) != p.Units() || len(l.Merges) != p.Rounds:
		return fmt.Errorf("%d units, %d pasts and %d merges, want %d, %d and %d", len(l.Units), len(l.Past), len(l.Merges), p.Units(), p.Units(), p.Rounds)
	}
	for _, c := range l.Disputes {
		if err := c.Target.Check(); err != nil || l.roundOf(c.Target) >= p.Rounds {
			return fmt.Errorf("dispute %d is about nothing", c.ID)
		}
	}
	for i := range l.Past {
		if err := l.checkPast(i); err != nil {
			return err
		}
	}
	for i := range l.Units {
		if r := l.Units[i].Receipt; r != nil && len(r.Checkpoints) != p.Segments()+1 {
			return fmt.Errorf("the receipt of unit %d has %d checkpoints", i, len(r.Checkpoints))
		}
	}
	return nil
}

// checkPast: what counts of a unit's earlier attempts is about that unit, each once and
// before its present attempt.
func (l *Lease) checkPast(i int) error {
	p := &l.Order.Problem
	for j := range l.Past[i] {
		x := &l.Past[i][j]
		if x.Forced == nil {
			if x.Receipt == nil || x.Receipt.Unit != i || len(x.Receipt.Checkpoints) != p.Segments()+1 || len(x.Verdicts) == 0 || x.Refuted >= p.Segments() {
				return fmt.Errorf("verdicts about void work of unit %d are about nothing", i)
			}
		} else if err := l.checkShown(i, x.Forced); err != nil {
			return err
		}
		if n := x.Attempt(); n >= l.Units[i].Attempt || j > 0 && l.Past[i][j-1].Attempt() >= n {
			return fmt.Errorf("attempt %d of unit %d is not past, or out of order", n, i)
		}
	}
	return nil
}

func (l *Lease) checkShown(i int, f *Forced) error {
	p, r := &l.Order.Problem, f.Unit.Receipt
	if f.Index != i || f.Until > l.Windows.Truth || r == nil || len(r.Checkpoints) != p.Segments()+1 || find(l.Providers, f.Unit.Provider) == nil || len(f.Unit.Questions) > 0 || f.Unit.Attend != 0 {
		return fmt.Errorf("a forced attempt of unit %d is none", i)
	}
	for _, a := range f.Unit.Audits {
		for _, s := range a.Segments {
			if s >= p.Segments() {
				return fmt.Errorf("an audit of a forced attempt of unit %d is about segment %d", i, s)
			}
		}
	}
	return f.check(p)
}

func (l *Lease) checkMoney() error {
	total := func(shares []Share) (t uint64) {
		for _, s := range shares {
			t += s.Amount
		}
		return t
	}
	m := &l.Ledger
	if t := m.Escrow + total(m.Paid) + m.Refund + m.Burnt + m.Tax; t != l.Quote.Price+l.Deposit {
		return fmt.Errorf("escrow, pay, refund, burn and tax are %d utally, the price was %d and the deposit %d", t, l.Quote.Price, l.Deposit)
	}
	if l.Phase == Settled && m.Escrow != 0 {
		return fmt.Errorf("settled with %d utally in escrow", m.Escrow)
	}
	if m.Insured > m.Slashed/2 {
		return fmt.Errorf("the insurance fund paid %d utally, %d were slashed", m.Insured, m.Slashed)
	}
	if m.Tax > l.Quote.Tax {
		return fmt.Errorf("taxed with %d utally, the quote says at most %d", m.Tax, l.Quote.Tax)
	}
	if t := total(m.Prizes); t > m.Tax {
		return fmt.Errorf("forced attempts were paid %d utally out of a tax of %d", t, m.Tax)
	}
	if n := l.outsiders(m.SlashPaid); n > m.Strangers {
		return fmt.Errorf("%d accounts that are no parties were rewarded out of bonds, %d are counted", n, m.Strangers)
	}
	if t := total(m.SlashPaid); t != m.Slashed {
		return fmt.Errorf("%d utally were slashed, %d paid out of it", m.Slashed, t)
	}
	return nil
}

func (l *Lease) checkUnit(i int) error {
	u := &l.Units[i]
	round := i / l.Order.Problem.Shards
	switch {
	case round < l.Round && u.Status != Accepted:
		return fmt.Errorf("round %d is merged, the unit is %v", round, u.Status)
	case round > l.Round && u.Status != Open:
		return fmt.Errorf("round %d is not begun, the unit is %v", round, u.Status)
	case (u.Status >= Received) != (u.Receipt != nil):
		return fmt.Errorf("the unit is %v, and its receipt is there or not", u.Status)
	case u.Status == Counted && l.Sweep == 0 && l.custodians(u) < l.Order.Conditions.Quorum() || u.Status == Accepted && len(u.Attested) < l.Order.Conditions.Quorum():
		return fmt.Errorf("the unit is %v with %d attestations, %d of which count", u.Status, len(u.Attested), l.custodians(u))
	case u.Receipt != nil && u.Receipt.Start != l.RoundStart(round):
		return fmt.Errorf("the receipt does not start where the round starts")
	case l.Phase != Settled && u.Attend == 0 && (u.Status == Received && len(u.Attested) == 0 || u.Status == Assigned && (!l.ForcedDrawn(i) || l.replicated() && len(u.Replicas) == 0) || u.Status == Accepted && u.verdictBonds()):
		return fmt.Errorf("the unit is %v, and no tick attends to it", u.Status)
	case u.Status == Accepted && (!u.audited() || u.HeldUntil != 0 || l.awaitsForcedDraw(u)):
		return fmt.Errorf("accepted with an audit outstanding, or a forced draw not shown")
	}
	if err := l.checkReplicas(i); err != nil {
		return err
	}
	code := l.Order.Fragments()
	for _, a := range u.Attested {
		if (a.Fragment != nil) != (a.Done && code.Cuts()) || a.Fragment != nil && a.Fragment.Number >= code.Fragments {
			return fmt.Errorf("the attestation of %s does not fit the code %+v", a.Custodian, code)
		}
	}
	return nil
}

// outsiders counts accounts that were rewarded and are no parties.
func (l *Lease) outsiders(shares []Share) (n int) {
	for _, s := range shares {
		leads := slices.ContainsFunc(l.Leads, func(d Leader) bool { return d.Account == s.Account })
		if s.Account != Insurance && !leads && find(l.Providers, s.Account) == nil && find(l.Auditors, s.Account) == nil {
			n++
		}
	}
	return n
}
