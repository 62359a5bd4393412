package role

import (
	"context"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine"
)

// Truth re-executes segments of a receipt's unit, each from the checkpoint that it
// begins with, and returns the states that they lead to.
func (k *Kit) Truth(ctx context.Context, l *job.Lease, r *job.Receipt, segments []int) ([]canon.Hash, error) {
	w, err := k.Work(ctx, l)
	if err != nil {
		return nil, err
	}
	p := &l.Order.Problem
	unit := w.UnitOf(p, r.Unit)
	var ends []canon.Hash
	for _, s := range segments {
		start, err := k.State(ctx, l, r.Checkpoints[s])
		if err != nil {
			return nil, err
		}
		end, err := unit.Play(ctx, start, s*p.Interval, min((s+1)*p.Interval, p.Steps), nil)
		if err != nil {
			return nil, err
		}
		root, err := engine.StateRoot(end, k.Threads)
		if err != nil {
			return nil, err
		}
		ends = append(ends, root)
	}
	return ends, nil
}
