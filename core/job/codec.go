package job

import (
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/proof"
)

// Code walks all fields of l.
func (l *Lease) Code(w *canon.Codec) {
	l.Terms().Code(w)
	l.Course().Code(w)
	canon.Seq(w, &l.Merges, MaxUnits, 38, func(w *canon.Codec, m *Merge) { m.Code(w) })
	canon.Seq(w, &l.Units, MaxUnits, 10, func(w *canon.Codec, u *Unit) { u.Code(w) })
}

type terms Lease

// Code walks the fields that are fixed when a lease begins.
func (l *terms) Code(w *canon.Codec) {
	l.Order.Code(w)
	l.Params.Code(w)
	w.U64(&l.FeeBps)
	l.Quote.code(w)
	w.U64(&l.Deposit)
	w.Hash(&l.Seed)
	w.I64(&l.MatchedAt)
	for _, p := range []*[]Party{&l.Providers, &l.Auditors} {
		canon.Seq(w, p, MaxParties, 5, codeParty)
	}
}

type course Lease

// Code walks the fields that events change, but units and merges.
func (l *course) Code(w *canon.Codec) {
	canon.Seq(w, &l.Leads, MaxParties+1, 3, func(w *canon.Codec, d *Leader) {
		w.String(&d.Account, maxAccount)
		w.U64(&d.Bond)
		w.Bool(&d.Gone)
	})
	l.Files.Code(w)
	w.U8((*uint8)(&l.Phase))
	w.String(&l.Reason, 2*MaxText)
	w.Int(&l.LeadIndex, MaxParties)
	w.I64(&l.DueSince)
	w.Int(&l.Round, MaxUnits)
	w.I64(&l.WindowEnd)
	canon.Seq(w, &l.Disputes, maxRecords, 8, codeContest)
	canon.Seq(w, &l.Verdicts, 2*maxRecords, 50, func(w *canon.Codec, v *Verdict) {
		w.Int(&v.Unit, MaxUnits)
		v.Receipt.Code(w)
		codeAudit(w, &v.Audit)
	})
	canon.Seq(w, &l.Requests, maxRequests, 38, codeRequest)
	canon.Seq(w, &l.Pending, MaxUnits, 2, codePending)
	canon.Seq(w, &l.Forced, maxRecords, 50, codeForced)
	canon.Seq(w, &l.Faults, MaxParties, 2, func(w *canon.Codec, f *Fault) {
		w.String(&f.Provider, maxAccount)
		w.Int(&f.Late, maxAttempts)
	})
	canon.Seq(w, &l.Queue, MaxParties, 2, func(w *canon.Codec, q *Waiting) {
		w.String(&q.Provider, maxAccount)
		w.I64(&q.Since)
	})
	w.Int(&l.Sweep, MaxUnits)
	canon.Seq(w, &l.Barred, maxBarred, 1, func(w *canon.Codec, s *string) { w.String(s, maxAccount) })
	for _, n := range []*int{&l.Audits.Drawn, &l.Audits.Passed, &l.Audits.Failed} {
		w.Int(n, 1<<40)
	}
	l.Count.Code(w)
	l.Ledger.code(w)
}

// Code walks the fields of p.
func (p *Params) Code(w *canon.Codec) {
	for _, v := range []*uint64{&p.KeeperBps, &p.BurnBps, &p.RewardBps, &p.LateBps, &p.BondFactor, &p.ChallengeBond, &p.VerdictFactor, &p.KeepFactor, &p.AskFee,
		&p.TaxBps, &p.ForcedBps, &p.JackpotFactor, &p.Speed, &p.Link, &p.KeepGB, &p.DepositBps, &p.MinDeposit} {
		w.U64(v)
	}
	w.Int(&p.MaxOpen, MaxUnits)
	w.Int(&p.MaxLate, MaxUnits)
	w.Int(&p.MaxAttempts, maxAttempts)
	w.Int(&p.AnswerLoad, MaxUnits)
	w.I64(&p.LeadTimeout)
	w.I64(&p.AnswerTime)
	w.I64(&p.Allowance)
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
}

// Code walks the fields of m.
func (m *Merge) Code(w *canon.Codec) {
	w.String(&m.By, maxAccount)
	w.Hash(&m.Root)
	w.Hashes(&m.Inputs, MaxUnits)
	m.Data.Code(w)
	w.Int(&m.Attempt, maxAttempts)
}

func codeContest(w *canon.Codec, c *Contest) {
	w.U64(&c.ID)
	c.Target.Code(w)
	w.Int(&c.Attempt, maxAttempts)
	w.Int(&c.Segment, MaxSegments)
	w.String(&c.Defender, maxAccount)
	w.String(&c.Challenger, maxAccount)
	w.String(&c.Pledge, maxAccount)
	w.I64(&c.At)
	w.U64(&c.Bond)
	for _, b := range []*bool{&c.Void, &c.Holds, &c.Missed} {
		w.Bool(b)
	}
}

// Code walks the fields of u.
func (u *Unit) Code(w *canon.Codec) {
	w.U8((*uint8)(&u.Status))
	w.Int(&u.Attempt, maxAttempts)
	w.String(&u.Provider, maxAccount)
	w.U64(&u.Bond)
	w.Int(&u.Audited, MaxSegments)
	w.Hash(&u.LotSeed)
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
	canon.Seq(w, &u.Withheld, maxTries, 1, func(w *canon.Codec, s *string) { w.String(s, maxAccount) })
	w.Bool(&u.Plain)
	w.I64(&u.Due)
	w.I64(&u.WindowEnd)
	w.I64(&u.HeldUntil)
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
	w.U64(&a.Bond)
}

// Code walks the fields of s.
func (s *Settlement) Code(w *canon.Codec) {
	w.Hash(&s.Order)
	for _, h := range []*canon.Hash{&s.Start, &s.Final, &s.Record} {
		w.Hash(h)
	}
	w.U64(&s.Price)
	w.U64(&s.Deposit)
	s.Ledger.code(w)
}

func (m *Ledger) code(w *canon.Codec) {
	for _, v := range []*uint64{&m.Escrow, &m.Refund, &m.Burnt, &m.Tax, &m.Slashed, &m.Insured} {
		w.U64(v)
	}
	for _, p := range []*[]Share{&m.Paid, &m.SlashPaid, &m.Prizes} {
		canon.Seq(w, p, maxRecords, 2, func(w *canon.Codec, s *Share) {
			w.String(&s.Account, maxAccount)
			w.U64(&s.Amount)
		})
	}
}
