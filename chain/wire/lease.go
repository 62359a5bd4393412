package wire

import (
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// LeaseToProto returns a lease as queries show it. Merges are those that l holds,
// at least the newest.
func LeaseToProto(id canon.Hash, l *job.Lease) workv1.Lease {
	root := l.RoundStart(l.Round)
	v := workv1.Lease{
		Id: id.String(), Order: OrderToProto(&l.Order), Phase: workv1.Phase(l.Phase), Reason: l.Reason,
		Lead: l.Lead(), LeadOwner: l.LeadOwner, Round: uint32(l.Round), Final: uint32(l.Windows.Final), Root: root[:], DueSince: l.DueSince, MatchedAt: l.MatchedAt,
		WindowEnd: l.Windows.End, FeeBps: l.FeeBps, Params: ParamsToProto(l.Params, Sentences{}), Barred: l.Barred,
		Quote: workv1.Quote(l.Quote), Deposit: l.Deposit,
		Ledger:    ledgerToProto(&l.Ledger),
		Providers: list(l.Providers, partyToProto), Auditors: list(l.Auditors, partyToProto), Files: filesToProto(&l.Files),
		Leads: list(l.Leads, func(d job.Leader) workv1.Leader { return workv1.Leader(d) }),
		Disputes: list(l.Disputes, func(c job.Dispute) workv1.Dispute {
			return workv1.Dispute{
				Dispute: c.ID, Target: TargetToProto(c.Target), Attempt: uint32(c.Attempt), Defender: c.Defender,
				Challenger: c.Challenger, At: c.At, Void: c.Void, Segment: uint32(c.Segment), Holds: c.Holds, Missed: c.Missed,
			}
		}),
		Reserve: list(l.Reserve, func(e job.Exposure) workv1.Exposure {
			return workv1.Exposure{
				Account: e.Account, Reason: workv1.Reason(e.Reason), Amount: e.Amount,
				Claims: uint32(e.Claims), First: uint32(e.First), Gains: e.Gains, Guilty: e.Guilty,
			}
		}),
		Queue:  list(l.Queue, func(w job.Waiting) workv1.Waiting { return workv1.Waiting(w) }),
		Faults: list(l.Faults, func(f job.Fault) workv1.Fault { return workv1.Fault{Provider: f.Provider, Late: uint32(f.Late)} }),
	}
	for r, m := range l.Merges {
		if !m.Root.IsZero() {
			v.Merges = append(v.Merges, workv1.Merge{
				Round: uint32(r), By: m.By, Root: m.Root[:], Inputs: hashesToProto(m.Inputs),
				Data: FileToProto(m.Data), Attempt: uint32(m.Attempt),
			})
		}
	}
	return v
}

func filesToProto(f *job.Files) workv1.Files {
	return workv1.Files{
		Custodians: list(f.Custodians, func(k job.FileCustodian) workv1.FileCustodian {
			return workv1.FileCustodian{Account: k.Account, Says: workv1.Word(k.Says)}
		}),
		Draws: uint32(f.Draws), Due: f.Due, Said: workv1.Word(f.Said), Questions: list(f.Questions, questionToProto),
	}
}

func partyToProto(p job.Party) workv1.Party {
	return workv1.Party{Account: p.Account, PeerKey: p.Key, VrfKey: p.VRF, UnitPrice: p.GFLOP, BytePrice: p.GB, Weight: p.Weight, Owner: p.Owner}
}

func ledgerToProto(m *job.Ledger) workv1.Ledger {
	share := func(s job.Share) workv1.Share { return workv1.Share(s) }
	return workv1.Ledger{
		Escrow: m.Escrow, Paid: list(m.Paid, share), Refund: m.Refund, Burnt: m.Burnt, Tax: m.Tax,
		Slashed: m.Slashed, SlashPaid: list(m.SlashPaid, share), Prizes: list(m.Prizes, share), Insured: m.Insured, Refuter: m.Refuter,
	}
}

// UnitToProto returns a unit of a lease as queries show it.
func UnitToProto(l *job.Lease, i int) workv1.Unit {
	v := attemptToProto(i, &l.Units[i])
	for _, p := range l.Past[i] {
		if f := p.Forced; f != nil {
			v.Forced = append(v.Forced, workv1.Forced{Unit: attemptToProto(i, &f.Unit), Truth: OutcomesToProto(f.Truth), Challengers: f.Challengers})
		}
		for _, a := range p.Verdicts {
			v.Verdicts = append(v.Verdicts, workv1.Verdict{Receipt: ReceiptToProto(p.Receipt), Audit: auditToProto(a)})
		}
	}
	return v
}

// attemptToProto returns an attempt of a unit as queries show it.
func attemptToProto(i int, u *job.Unit) workv1.Unit {
	v := workv1.Unit{
		Unit: uint32(i), Status: workv1.UnitStatus(u.Status), Attempt: uint32(u.Attempt), Provider: u.Provider,
		Attested: list(u.Attested, attestationToProto), Withheld: u.Withheld, Due: u.Due, WindowEnd: u.WindowEnd, HeldUntil: u.HeldUntil, Audited: uint32(u.Audited), Plain: u.Plain,
		Audits: list(u.Audits, auditToProto), Questions: list(u.Questions, questionToProto),
		Replicas: list(u.Replicas, replicaToProto), Missed: u.Missed, Sealed: u.Sealed, Differed: u.Differed,
		Results: list(u.Results, func(r job.Result) workv1.Result {
			return workv1.Result{Checkpoints: hashesToProto(r.Checkpoints), Inner: hashesToProto(r.Inner)}
		}),
	}
	if u.Receipt != nil {
		r, id := ReceiptToProto(u.Receipt), u.Receipt.ID()
		v.Receipt, v.ReceiptId, v.Signature = &r, id[:], u.Proof
	}
	return v
}

func replicaToProto(r job.Replica) workv1.Replica {
	v := workv1.Replica{Provider: r.Provider, Out: r.Out, Result: uint32(r.Result)}
	if !r.Commit.IsZero() {
		v.Commit = r.Commit[:]
	}
	return v
}

func auditToProto(a job.Audit) workv1.Audit {
	return workv1.Audit{
		Auditor: a.Auditor, Done: a.Done, Pass: a.Pass, Forfeit: a.Forfeit, Wrong: a.Wrong, Digest: a.Digest[:], Bonded: a.Bonded,
		Segments: list(a.Segments, func(s int) uint32 { return uint32(s) }),
	}
}

// SettlementToProto returns a settlement as queries show it.
func SettlementToProto(s *job.Settlement) workv1.Settlement {
	return workv1.Settlement{
		Order: s.Order.String(), Start: s.Start[:], Final: s.Final[:], Record: s.Record[:],
		Price: s.Price, Deposit: s.Deposit, Ledger: ledgerToProto(&s.Ledger),
	}
}

func attestationToProto(a job.Attestation) workv1.Attestation {
	return workv1.Attestation{Custodian: a.Custodian, Done: a.Done, Failed: a.Failed, Fragment: FragmentToProto(a.Fragment)}
}

func questionToProto(r job.Question) workv1.Question {
	unit, files := KeptToProto(r.Unit)
	v := workv1.Question{Sender: r.By, Custodian: r.Custodian, Unit: unit, Files: files, Fee: r.Fee, AskedAt: r.At, Due: r.Due}
	if r.Due != 0 {
		v.Seed = r.Seed[:]
	}
	return v
}
