package work

import (
	"fmt"

	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// ParamsToProto returns p, and the time for which the convicted are jailed, as
// genesis files and queries carry them.
func ParamsToProto(p job.Params, jail int64) workv1.Params {
	return workv1.Params{
		CustodianBps: p.CustodianBps, BurnBps: p.BurnBps, RewardBps: p.RewardBps, LateBps: p.LateBps, BondFactor: p.BondFactor,
		MaxOpen: uint32(p.MaxOpen), MaxLate: uint32(p.MaxLate), MaxAttempts: uint32(p.MaxAttempts), LeadTimeoutMs: p.LeadTimeout, ChallengeBond: p.ChallengeBond,
		JailMs: jail, VerdictFactor: p.VerdictFactor,
		KeepFactor: p.KeepFactor, AskFee: p.AskFee, AnswerMs: p.AnswerTime, AnswerLoad: uint32(p.AnswerLoad),
		TaxBps: p.TaxBps, ForcedBps: p.ForcedBps, JackpotFactor: p.JackpotFactor,
		Speed: p.Speed, Link: p.Link, AllowanceMs: p.Allowance, KeepGb: p.KeepGB,
		DepositBps: p.DepositBps, MinDeposit: p.MinDeposit,
	}
}

// ParamsFromProto is the inverse of ParamsToProto, without the jail.
func ParamsFromProto(m workv1.Params) job.Params {
	return job.Params{
		Tariff:    job.Tariff{CustodianBps: m.CustodianBps, BurnBps: m.BurnBps, TaxBps: m.TaxBps, KeepGB: m.KeepGb},
		RewardBps: m.RewardBps, LateBps: m.LateBps, BondFactor: m.BondFactor,
		MaxOpen: int(m.MaxOpen), MaxLate: int(m.MaxLate), MaxAttempts: int(m.MaxAttempts), LeadTimeout: m.LeadTimeoutMs, ChallengeBond: m.ChallengeBond,
		VerdictFactor: m.VerdictFactor,
		KeepFactor:    m.KeepFactor, AskFee: m.AskFee, AnswerTime: m.AnswerMs, AnswerLoad: int(m.AnswerLoad),
		ForcedBps: m.ForcedBps, JackpotFactor: m.JackpotFactor,
		Speed: m.Speed, Link: m.Link, Allowance: m.AllowanceMs,
		DepositBps: m.DepositBps, MinDeposit: m.MinDeposit,
	}
}

// ReceiptToProto returns r as transactions carry it.
func ReceiptToProto(r *job.Receipt) workv1.Receipt {
	return workv1.Receipt{
		Order: r.Order.String(), Unit: uint32(r.Unit), Attempt: uint32(r.Attempt), Provider: r.Provider,
		Start: r.Start[:], Checkpoints: hashesToProto(r.Checkpoints), Flops: r.FLOPs, Data: market.FileToProto(r.Data),
	}
}

// ReceiptFromProto is the inverse of ReceiptToProto.
func ReceiptFromProto(m *workv1.Receipt) (r job.Receipt, err error) {
	r = job.Receipt{Unit: int(m.Unit), Attempt: int(m.Attempt), Provider: m.Provider, FLOPs: m.Flops, Data: market.FileFromProto(m.Data)}
	if r.Order, err = canon.ParseHash(m.Order); err != nil {
		return r, fmt.Errorf("order: %w", err)
	}
	if r.Start, err = canon.HashOf(m.Start); err != nil {
		return r, fmt.Errorf("start: %w", err)
	}
	if r.Checkpoints, err = hashesFromProto(m.Checkpoints); err != nil {
		return r, fmt.Errorf("checkpoints: %w", err)
	}
	return r, nil
}

// FragmentToProto returns p as transactions carry it, nil for nil.
func FragmentToProto(p *job.Fragment) *workv1.Fragment {
	if p == nil {
		return nil
	}
	return &workv1.Fragment{Number: uint32(p.Number), Root: p.Root[:], Data: market.FileToProto(p.Data)}
}

// FragmentFromProto is the inverse of FragmentToProto.
func FragmentFromProto(m *workv1.Fragment) (*job.Fragment, error) {
	if m == nil {
		return nil, nil
	}
	root, err := canon.HashOf(m.Root)
	if err != nil {
		return nil, fmt.Errorf("root of the fragment: %w", err)
	}
	return &job.Fragment{Number: int(m.Number), Root: root, Data: market.FileFromProto(m.Data)}, nil
}

// OpeningToProto returns o as transactions carry it.
func OpeningToProto(o canon.Opening) workv1.Opening {
	return workv1.Opening{
		Count: uint32(o.N), Index: uint32(o.Index), Name: o.Entry.Key, Root: o.Entry.Value[:], Path: hashesToProto(o.Path),
	}
}

// OpeningFromProto is the inverse of OpeningToProto.
func OpeningFromProto(m *workv1.Opening) (o canon.Opening, err error) {
	o = canon.Opening{N: int(m.Count), Index: int(m.Index), Entry: canon.Entry{Key: m.Name}}
	if o.Entry.Value, err = canon.HashOf(m.Root); err != nil {
		return o, fmt.Errorf("root: %w", err)
	}
	if o.Path, err = hashesFromProto(m.Path); err != nil {
		return o, fmt.Errorf("path: %w", err)
	}
	return o, nil
}

// TargetToProto returns t as transactions carry it.
func TargetToProto(t job.Target) (m workv1.Target) {
	switch i := uint32(t.Index()); t.Kind() {
	case job.AboutUnit:
		m.Subject = &workv1.Target_Unit{Unit: i}
	case job.AboutMerge:
		m.Subject = &workv1.Target_Merge{Merge: i}
	case job.AboutVerdict:
		m.Subject = &workv1.Target_Verdict{Verdict: &workv1.VerdictTarget{Unit: i, Auditor: t.Auditor()}}
	case job.AboutTruth:
		m.Subject = &workv1.Target_Truth{Truth: &workv1.TruthTarget{Unit: i, Segment: uint32(t.Segment())}}
	}
	return m
}

// TargetFromProto is the inverse of TargetToProto. It refuses what names nothing in
// any order.
func TargetFromProto(m workv1.Target) (t job.Target, err error) {
	switch s := m.Subject.(type) {
	case *workv1.Target_Unit:
		t = job.UnitTarget(int(s.Unit))
	case *workv1.Target_Merge:
		t = job.MergeTarget(int(s.Merge))
	case *workv1.Target_Verdict:
		if s.Verdict != nil {
			t = job.VerdictTarget(int(s.Verdict.Unit), s.Verdict.Auditor)
		}
	case *workv1.Target_Truth:
		if s.Truth != nil {
			t = job.TruthTarget(int(s.Truth.Unit), int(s.Truth.Segment))
		}
	}
	return t, t.Check()
}

// OutcomesToProto returns what segments gave as transactions carry it.
func OutcomesToProto(outcomes []proof.Outcome) []workv1.Outcome {
	return list(outcomes, func(o proof.Outcome) workv1.Outcome {
		m := workv1.Outcome{End: o.End[:]}
		if !o.Before.IsZero() {
			m.Before = o.Before[:]
		}
		return m
	})
}

// OutcomesFromProto is the inverse of OutcomesToProto.
func OutcomesFromProto(ms []workv1.Outcome) ([]proof.Outcome, error) {
	out := make([]proof.Outcome, len(ms))
	for i, m := range ms {
		var err error
		if out[i].End, err = canon.HashOf(m.End); err != nil {
			return nil, fmt.Errorf("end of segment %d: %w", i, err)
		}
		if len(m.Before) == 0 {
			continue
		}
		if out[i].Before, err = canon.HashOf(m.Before); err != nil {
			return nil, fmt.Errorf("before the end of segment %d: %w", i, err)
		}
	}
	return out, nil
}

func hashesToProto(hs []canon.Hash) [][]byte {
	out := make([][]byte, len(hs))
	for i := range hs {
		out[i] = hs[i][:]
	}
	return out
}

func hashesFromProto(bs [][]byte) ([]canon.Hash, error) {
	out := make([]canon.Hash, len(bs))
	for i, b := range bs {
		h, err := canon.HashOf(b)
		if err != nil {
			return nil, err
		}
		out[i] = h
	}
	return out, nil
}
