package consume

import (
	"context"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
)

// Honest computes a whole order here, and returns the root that its lease ends with if nobody cheats.
func (d *Draft) Honest(ctx context.Context) (canon.Hash, error) {
	if !d.Problem.Merges() {
		return d.honestBatch(ctx)
	}
	s := d.Job.Start
	for r := range d.Problem.Rounds {
		var ends []*graph.State
		for shard := range d.Problem.Shards {
			end, err := d.Job.UnitOf(&d.Problem, r*d.Problem.Shards+shard).Play(ctx, s, 0, d.Problem.Steps, nil)
			if err != nil {
				return canon.Hash{}, err
			}
			ends = append(ends, end)
		}
		var err error
		if s, err = d.Job.MergeStates(ctx, ends); err != nil {
			return canon.Hash{}, err
		}
	}
	return s.Root()
}

// honestBatch returns the root over the ends of the units of a batch.
func (d *Draft) honestBatch(ctx context.Context) (canon.Hash, error) {
	var ends []canon.Hash
	for unit := range d.Problem.Units() {
		r := job.Receipt{Checkpoints: []canon.Hash{d.Problem.Start}}
		if _, err := d.Job.UnitOf(&d.Problem, unit).Play(ctx, d.Job.Start, 0, d.Problem.Steps, func(_ int, s *graph.State) error {
			root, err := s.Root()
			r.Checkpoints = append(r.Checkpoints, root)
			return err
		}); err != nil {
			return canon.Hash{}, err
		}
		ends = append(ends, d.Problem.End(&r))
	}
	return canon.Root(ends), nil
}
