package evidence

import (
	"context"
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/internal/scratch"
	"github.com/tally-network/tally/node/plausibility"
	"github.com/tally-network/tally/node/replay"
)

// Plausibility judges the states that the training went through: those at the
// ends of its rounds or, if they are few, at the checkpoints of the first shard,
// too. Losses are over held-out records if the order has them.
func (p *Proof) Plausibility(ctx context.Context, exec engine.Executor) (*plausibility.Report, error) {
	problem := &p.Lease.Order.Problem
	if p.Job.Training == nil {
		return nil, fmt.Errorf("%w: the six rules are about training, and this is a %s", plausibility.ErrFew, problem.Kind)
	}
	chain, err := p.chain(p.Lease.Round < plausibility.Least)
	if err != nil {
		return nil, err
	}
	held, err := p.scorer(exec)
	if err != nil {
		return nil, err
	}
	for i := range chain {
		c := &chain[i]
		if held == nil {
			c.Loss = float64(replay.LossOf(c.State))
			continue
		}
		scores, err := held.Scores(ctx, c.State)
		if err != nil {
			return nil, fmt.Errorf("loss after step %d: %w", c.Step, err)
		}
		c.Loss = scores.Of("loss")
	}
	if held == nil && len(chain) > 1 {
		chain[0].Loss = chain[1].Loss // a start records none of its own
	}
	return plausibility.Assess(chain)
}

// Rating returns how good the rounds were on the order's held-out records, if it has such, and whether they came to what is no number. That
// is there, too, where [replay.Unscored] knows the error.
func (p *Proof) Rating(ctx context.Context, exec engine.Executor) (r replay.Rating, err error) {
	l := p.Lease
	r.Round = l.Round
	if p.Job.Training == nil {
		return r, nil
	}
	state := func(round int) (*graph.State, error) { return p.state(l.Merges[round].Root) }
	if r.Diverged, err = p.Job.FindDivergence(l.Round, state); err != nil {
		return r, err
	}
	held, err := p.scorer(exec)
	if err != nil || held == nil {
		return r, err
	}
	best := p.Job.Recipe.Best
	all := make([]replay.Scores, l.Round)
	for round := range all {
		if best.Metric == "" && round < l.Round-1 {
			continue
		}
		s, err := state(round)
		if err != nil {
			return r, err
		}
		if all[round], err = held.Scores(ctx, s); err != nil {
			return r, err
		}
	}
	r.Rate(best, all, l.Reason != "")
	return r, nil
}

// scorer scores states on the order's held-out records; it is nil if there are none.
func (p *Proof) scorer(exec engine.Executor) (*replay.Scorer, error) {
	f, ok := p.Lease.Order.Problem.File(replay.RoleHeldOut)
	if !ok || p.Job.Training == nil {
		return nil, nil
	}
	in, err := p.open(f)
	if err != nil {
		return nil, err
	}
	records, err := replay.ReadRecords(in, in.Size(), scratch.Allocator(""))
	var unfit *replay.UnfitError
	if errors.As(err, &unfit) {
		return nil, wrong("held-out records: %v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: held-out records: %w", ErrUnchecked, err)
	}
	held, err := p.Job.Scorer(records, exec)
	if replay.Unscored(err) {
		return nil, err
	}
	if err != nil {
		return nil, wrong("held-out records: %v", err)
	}
	return held, nil
}

// chain returns the start, the merged states and, if fine, what the first shard
// committed to between them.
func (p *Proof) chain(fine bool) (out []plausibility.Checkpoint, err error) {
	l := p.Lease
	problem := &l.Order.Problem
	add := func(step int, root canon.Hash) {
		var s *graph.State
		if err != nil {
			return
		}
		if s, err = p.state(root); err == nil {
			out = append(out, plausibility.Checkpoint{Step: step, State: s})
		}
	}
	add(0, problem.Start)
	for r := range l.Round {
		if points := l.Units[l.Unit(r, 0)].Receipt.Checkpoints; fine {
			for i := 1; i < len(points)-1; i++ {
				add(r*problem.Steps+i*problem.Interval, points[i])
			}
		}
		add((r+1)*problem.Steps, l.Merges[r].Root)
	}
	return out, err
}
