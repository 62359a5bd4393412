package wire

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// ReceiptToProto returns r as transactions carry it.
func ReceiptToProto(r *job.Receipt) workv1.Receipt {
	return workv1.Receipt{
		Order: r.Order.String(), Unit: uint32(r.Unit), Attempt: uint32(r.Attempt), Provider: r.Provider,
		Start: r.Start[:], Checkpoints: hashesToProto(r.Checkpoints), Flops: r.FLOPs, Data: FileToProto(r.Data),
	}
}

// ReceiptFromProto is the inverse of ReceiptToProto.
func ReceiptFromProto(m *workv1.Receipt) (r job.Receipt, err error) {
	r = job.Receipt{Unit: int(m.Unit), Attempt: int(m.Attempt), Provider: m.Provider, FLOPs: m.Flops, Data: FileFromProto(m.Data)}
	if r.Order, err = canon.ParseHash(m.Order); err != nil {
		return r, fmt.Errorf("order: %w", err)
	}
	if r.Start, err = canon.HashOf(m.Start); err != nil {
		return r, fmt.Errorf("start: %w", err)
	}
	if r.Checkpoints, err = hashesFromProto(m.Checkpoints, job.MaxSegments+1); err != nil {
		return r, fmt.Errorf("checkpoints: %w", err)
	}
	return r, nil
}

// FragmentToProto returns p as transactions carry it, nil for nil.
func FragmentToProto(p *job.Fragment) *workv1.Fragment {
	if p == nil {
		return nil
	}
	return &workv1.Fragment{Number: uint32(p.Number), Root: p.Root[:], Data: FileToProto(p.Data)}
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
	return &job.Fragment{Number: int(m.Number), Root: root, Data: FileFromProto(m.Data)}, nil
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
	if err := tooMany(len(ms), job.MaxSegments, "segments"); err != nil {
		return nil, err
	}
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

// RevealToProto returns what a replica shows as transactions carry it.
func RevealToProto(s *job.Reveal) *workv1.MsgReveal {
	return &workv1.MsgReveal{
		Provider: s.Receipt.Provider, Receipt: ReceiptToProto(&s.Receipt), Inner: hashesToProto(s.Inner), Salt: s.Salt[:], Signature: s.Signature,
	}
}

// RevealFromProto is the inverse of RevealToProto.
func RevealFromProto(m *workv1.MsgReveal) (s job.Reveal, err error) {
	if s.Receipt, err = ReceiptFromProto(&m.Receipt); err != nil {
		return s, err
	}
	if s.Inner, err = hashesFromProto(m.Inner, job.MaxSegments); err != nil {
		return s, fmt.Errorf("inner: %w", err)
	}
	if s.Salt, err = canon.HashOf(m.Salt); err != nil {
		return s, fmt.Errorf("salt: %w", err)
	}
	s.Signature = m.Signature
	return s, nil
}
