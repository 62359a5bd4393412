package job

import (
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/proof"
)

// Code walks all fields of l.
func (l *Lease) Code(w *canon.Codec) {
	l.Fixed().Code(w)
	l.Providers.Code(w)
	l.Auditors.Code(w)
	l.Mutable().Code(w)
	codeShares(w, &l.Ledger.SlashPaid, byName)
	canon.Seq(w, &l.Merges, MaxUnits, 39, func(w *canon.Codec, m *Merge) { m.Code(w) })
	canon.Seq(w, &l.Units, MaxUnits, 10, func(w *canon.Codec, u *Unit) { u.Code(w) })
	l.codePast(w)
}

// codePast walks those units of whose earlier attempts something counts.
func (l *Lease) codePast(w *canon.Codec) {
	type entry struct {
		unit int
		past []Past
	}
	var all []entry
	for i, past := range l.Past {
		if len(past) > 0 {
			all = append(all, entry{i, past})
		}
	}
	canon.Seq(w, &all, MaxUnits, 2, func(w *canon.Codec, e *entry) {
		w.Int(&e.unit, MaxUnits)
		canon.Seq(w, &e.past, maxAttempts, 2, func(w *canon.Codec, p *Past) { p.Code(w) })
	})
	if !w.Reading() {
		return
	}
	l.Past = make([][]Past, len(l.Units))
	for i, e := range all {
		if e.unit >= len(l.Past) || len(e.past) == 0 || i > 0 && all[i-1].unit >= e.unit {
			w.Fail("the past of unit %d is none, or out of order", e.unit)
			return
		}
		l.Past[e.unit] = e.past
	}
}

type fixed Lease

// Code walks the fields that are fixed when a lease begins, but its pools.
func (l *fixed) Code(w *canon.Codec) {
	l.Order.Code(w)
	l.Params.Code(w)
	w.U64(&l.FeeBps)
	l.Quote.code(w)
	w.U64(&l.Deposit)
	w.I64(&l.MatchedAt)
	w.String(&l.LeadOwner, maxAccount)
}

// Code walks the parties of a pool.
func (p *Pool) Code(w *canon.Codec) { canon.Seq(w, (*[]Party)(p), MaxParties, 7, codeParty) }

type mutable Lease

// Code walks the fields that events change, but units, merges, and who was paid out of
// bonds. The pools must be known: parties go by their numbers in these.
func (l *mutable) Code(w *canon.Codec) {
	name := roster{l.Providers, l.Auditors}.code
	canon.Seq(w, &l.Leads, MaxLine+1, 2, func(w *canon.Codec, d *Leader) {
		name(w, &d.Account)
		w.Bool(&d.Gone)
	})
	l.Files.Code(w)
	w.U8((*uint8)(&l.Phase))
	w.String(&l.Reason, 2*MaxText)
	w.Int(&l.LeadIndex, MaxLine)
	w.I64(&l.DueSince)
	w.I64(&l.OpenSince)
	w.I64(&l.BegunAt)
	w.I64(&l.StartedAt)
	w.Int(&l.Round, MaxUnits)
	w.Int(&l.Windows.Final, MaxUnits)
	w.I64(&l.Windows.Next)
	w.I64(&l.Windows.End)
	canon.Seq(w, &l.Disputes, maxRecords, 8, func(w *canon.Codec, c *Dispute) { c.code(w, name) })
	canon.Seq(w, &l.Asked, MaxParties, 2, func(w *canon.Codec, a *Asked) {
		name(w, &a.Custodian)
		w.Int(&a.Open, MaxUnits+1)
	})
	canon.Seq(w, &l.Faults, MaxParties, 2, func(w *canon.Codec, f *Fault) {
		name(w, &f.Provider)
		w.Int(&f.Late, maxAttempt)
	})
	canon.Seq(w, &l.Queue, MaxParties, 2, func(w *canon.Codec, q *Waiting) {
		name(w, &q.Provider)
		w.I64(&q.Since)
	})
	w.Int(&l.Sweep, MaxUnits)
	canon.Seq(w, &l.Barred, maxBarred, 1, name)
	for _, n := range []*int{&l.Audits.Drawn, &l.Audits.Passed, &l.Audits.Failed} {
		w.Int(n, 1<<40)
	}
	w.I64(&l.Windows.Truth)
	l.Count.code(w, name)
	l.Reserve.code(w, name)
	l.Ledger.code(w, name)
}

// roster numbers the parties of a lease, from 1, so that what names many of them is
// short: its providers, then its auditors.
type roster [2]Pool

// number returns that of an account, 0 if it is no party.
func (r roster) number(account string) int {
	if i, is := r[0].at(account); is {
		return 1 + i
	}
	if i, is := r[1].at(account); is {
		return 1 + len(r[0]) + i
	}
	return 0
}

// account returns that of a number from 1 on.
func (r roster) account(n int) string {
	if n <= len(r[0]) {
		return r[0][n-1].Account
	}
	return r[1][n-1-len(r[0])].Account
}

// code walks an account: the number of a party, or 0 and the name of a stranger.
func (r roster) code(w *canon.Codec, account *string) {
	n, most := r.number(*account), len(r[0])+len(r[1])
	w.Int(&n, most)
	switch {
	case n == 0:
		w.String(account, maxAccount)
		if r.number(*account) != 0 {
			w.Fail("%s is a party, and stands by name", *account)
		}
	case n <= most:
		*account = r.account(n)
		if r.number(*account) != n {
			w.Fail("%s has another number than %d", *account, n)
		}
	}
}

// Code walks the fields of p.
func (p *Params) Code(w *canon.Codec) {
	for _, v := range []*uint64{&p.CustodianBps, &p.BurnBps, &p.RewardBps, &p.LateBps, &p.BondFactor, &p.MinBond, &p.ChallengeBond, &p.VerdictFactor, &p.KeepFactor, &p.AskFee,
		&p.TaxBps, &p.ForcedBps, &p.JackpotFactor, &p.Speed, &p.Link, &p.KeepGB, &p.DepositBps, &p.MinDeposit, &p.BurnUT} {
		w.U64(v)
	}
	w.Int(&p.MaxOpen, MaxUnits)
	w.Int(&p.MaxLate, MaxUnits)
	w.Int(&p.MaxAttempts, maxAttempt)
	w.Int(&p.AnswerLoad, MaxUnits)
	w.I64(&p.LeadTimeout)
	w.I64(&p.AnswerTime)
	w.I64(&p.Allowance)
	w.Bool(&p.AllLose)
}

func (q *Quote) code(w *canon.Codec) {
	for _, v := range []*uint64{&q.Unit, &q.Audit, &q.Keep, &q.Fee, &q.Burn, &q.Tax, &q.Price, &q.Honest} {
		w.U64(v)
	}
}

func codeParty(w *canon.Codec, p *Party) {
	w.String(&p.Account, maxAccount)
	w.Blob(&p.Key, 64)
	w.Blob(&p.VRF, 64)
	w.U64(&p.GFLOP)
	w.U64(&p.GB)
	w.String(&p.Owner, maxAccount)
	w.U64(&p.Weight)
}

// Code walks the fields of m.
func (m *Merge) Code(w *canon.Codec) {
	w.String(&m.By, maxAccount)
	w.Hash(&m.Root)
	w.Hashes(&m.Inputs, MaxUnits)
	m.Data.Code(w)
	w.Int(&m.Attempt, maxAttempt)
	w.I64(&m.Until)
}

func (c *Dispute) code(w *canon.Codec, name func(*canon.Codec, *string)) {
	w.U64(&c.ID)
	c.Target.Code(w)
	w.Int(&c.Attempt, maxAttempt)
	w.Int(&c.Segment, MaxSegments)
	for _, account := range []*string{&c.Defender, &c.Challenger, &c.Pledge} {
		name(w, account)
	}
	w.I64(&c.At)
	w.U64(&c.Gain)
	for _, b := range []*bool{&c.Void, &c.Holds, &c.Missed} {
		w.Bool(b)
	}
}

// Code walks the fields of u.
func (u *Unit) Code(w *canon.Codec) {
	w.U8((*uint8)(&u.Status))
	w.Int(&u.Attempt, maxAttempt)
	w.String(&u.Provider, maxAccount)
	w.Int(&u.Audited, MaxSegments)
	w.Hash(&u.Seed)
	given := u.Receipt != nil
	if w.Bool(&given); given {
		if u.Receipt == nil {
			u.Receipt = new(Receipt)
		}
		u.Receipt.Code(w)
	}
	w.Blob(&u.Proof, 64)
	canon.Seq(w, &u.Attested, maxKept, 3, codeAttestation)
	canon.Seq(w, &u.Audits, maxAuditors, 38, codeAudit)
	canon.Seq(w, &u.Questions, maxKept, 38, codeQuestion)
	canon.Seq(w, &u.Withheld, maxAttempts, 1, func(w *canon.Codec, s *string) { w.String(s, maxAccount) })
	w.Bool(&u.Plain)
	canon.Seq(w, &u.Replicas, MaxReplicas, 40, codeReplica)
	canon.Seq(w, &u.Results, MaxReplicas, 2, codeResult)
	canon.Seq(w, &u.Missed, maxMissed, 1, func(w *canon.Codec, s *string) { w.String(s, maxAccount) })
	w.Bool(&u.Sealed)
	w.Bool(&u.Differed)
	w.I64(&u.Due)
	w.I64(&u.WindowEnd)
	w.I64(&u.HeldUntil)
	w.I64(&u.Attend)
	w.I64(&u.Took)
}

// Code walks the fields of p.
func (p *Past) Code(w *canon.Codec) {
	forced := p.Forced != nil
	if w.Bool(&forced); forced {
		if p.Forced == nil {
			p.Forced = new(Forced)
		}
		codeForced(w, p.Forced)
		return
	}
	if p.Receipt == nil {
		p.Receipt = new(Receipt)
	}
	p.Receipt.Code(w)
	after := p.Refuted + 1
	w.Int(&after, MaxSegments)
	p.Refuted = after - 1
	canon.Seq(w, &p.Verdicts, maxAuditors, 38, codeAudit)
}

func codeForced(w *canon.Codec, f *Forced) {
	w.Int(&f.Index, MaxUnits)
	f.Unit.Code(w)
	canon.Seq(w, &f.Truth, MaxSegments, 64, func(w *canon.Codec, o *proof.Outcome) { o.Code(w) })
	canon.Seq(w, &f.Challengers, maxRivals, 1, func(w *canon.Codec, s *string) { w.String(s, maxAccount) })
	w.I64(&f.Until)
}

func codeAudit(w *canon.Codec, a *Audit) {
	w.String(&a.Auditor, maxAccount)
	for _, b := range []*bool{&a.Done, &a.Pass, &a.Forfeit, &a.Wrong} {
		w.Bool(b)
	}
	canon.Seq(w, &a.Segments, MaxSegments, 1, func(w *canon.Codec, s *int) { w.Int(s, MaxSegments) })
	w.Hash(&a.Digest)
	w.Bool(&a.Bonded)
}

// Code walks the fields of s.
func (s *Settlement) Code(w *canon.Codec) {
	w.Hash(&s.Order)
	for _, h := range []*canon.Hash{&s.Start, &s.Final, &s.Record} {
		w.Hash(h)
	}
	w.U64(&s.Price)
	w.U64(&s.Deposit)
	s.Ledger.code(w, byName)
	codeShares(w, &s.Ledger.SlashPaid, byName)
}

// code walks the fields of m but SlashPaid, which is a part of its own.
func (m *Ledger) code(w *canon.Codec, name func(*canon.Codec, *string)) {
	for _, v := range []*uint64{&m.Escrow, &m.Refund, &m.Burnt, &m.Tax, &m.Slashed, &m.Insured} {
		w.U64(v)
	}
	w.Int(&m.Strangers, maxRecords)
	name(w, &m.Refuter)
	codeShares(w, &m.Paid, name)
	codeShares(w, &m.Prizes, name)
}

func codeShares(w *canon.Codec, p *[]Share, name func(*canon.Codec, *string)) {
	canon.Seq(w, p, maxRecords, 2, func(w *canon.Codec, s *Share) {
		name(w, &s.Account)
		w.U64(&s.Amount)
	})
}

// byName walks an account by its name.
func byName(w *canon.Codec, account *string) { w.String(account, maxAccount) }
