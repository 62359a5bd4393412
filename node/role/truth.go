package role

import (
	"context"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/engine"
)

// Truth re-executes segments of a receipt's unit, each from the checkpoint that it
// begins with.
func (k *Kit) Truth(ctx context.Context, l *job.Lease, r *job.Receipt, segments []int) ([]job.Truth, error) {
	w, err := k.Work(ctx, l)
	if err != nil {
		return nil, err
	}
	p := &l.Order.Problem
	unit := w.UnitOf(p, r.Unit)
	var out []job.Truth
	for _, s := range segments {
		start, err := k.State(ctx, l, r.Checkpoints[s])
		if err != nil {
			return nil, err
		}
		var after []canon.Hash
		from, to := s*p.Interval, min((s+1)*p.Interval, p.Steps)
		_, err = unit.Play(ctx, start, from, to, func(_ int, s *graph.State) error {
			root, err := engine.StateRoot(s, k.Threads)
			after = append(after, root)
			return err
		})
		if err != nil {
			return nil, err
		}
		out = append(out, job.Truth{End: after[len(after)-1], Trace: proof.Trace(r.Checkpoints[s], after)})
	}
	return out, nil
}
