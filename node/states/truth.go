package states

import (
	"context"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/engine/merkle"
)

// Truth re-executes segments of a receipt's unit, each from the state that it begins
// with, and returns what they give.
func (h *Holder) Truth(ctx context.Context, l *job.Lease, r *job.Receipt, segments []int) ([]proof.Outcome, error) {
	j, err := h.Jobs.Get(ctx, l)
	if err != nil {
		return nil, err
	}
	p := &l.Order.Problem
	unit := j.UnitOf(p, r.Unit)
	var outcomes []proof.Outcome
	for _, s := range segments {
		state, err := h.Get(ctx, l, p.Before(r, s))
		if err != nil {
			return nil, err
		}
		o := proof.Outcome{Before: p.Before(r, s)}
		first, steps := p.Segment(s)
		last := first + steps - 1
		if steps > 1 {
			if state, err = unit.Play(ctx, state, first, last, nil); err != nil {
				return nil, err
			}
			if o.Before, err = merkle.StateRoot(state, h.Threads); err != nil {
				return nil, err
			}
		}
		if state, err = unit.Play(ctx, state, last, last+1, nil); err != nil {
			return nil, err
		}
		if o.End, err = merkle.StateRoot(state, h.Threads); err != nil {
			return nil, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}
