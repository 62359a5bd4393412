package evidence

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine"
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

// Scores returns how well the state that the order wants does on its held-out records, and after which of its rounds that is, from 1;
// none if it has no such records.
func (p *Proof) Scores(ctx context.Context, exec engine.Executor) (round int, scores replay.Scores, err error) {
	held, err := p.scorer(exec)
	if err != nil || held == nil {
		return p.Lease.Round, nil, err
	}
	best := p.Job.Recipe.Best
	var all []replay.Scores
	for r := range p.Lease.Round {
		scores = nil
		if best.Metric != "" || r == p.Lease.Round-1 {
			s, err := p.state(p.Lease.Merges[r].Root)
			if err != nil {
				return 0, nil, err
			}
			if scores, err = held.Scores(ctx, s); err != nil {
				return 0, nil, err
			}
		}
		all = append(all, scores)
	}
	if round, _ = replay.Best(best, all); round < 0 {
		return 0, nil, nil
	}
	return round + 1, all[round], nil
}

// scorer scores states on the order's held-out records; it is nil if there are none.
func (p *Proof) scorer(exec engine.Executor) (*replay.Scorer, error) {
	f, ok := p.Lease.Order.Problem.File(replay.RoleHeldOut)
	if !ok || p.Job.Training == nil {
		return nil, nil
	}
	b, err := p.File(f)
	if err != nil {
		return nil, err
	}
	records, err := replay.ReadTensor(b)
	if err != nil {
		return nil, wrong("held-out records: %v", err)
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
