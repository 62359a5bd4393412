package evidence

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
)

// Claim is one thing that can be re-executed alone: a segment of a unit, or the
// merge of a round.
type Claim struct {
	Merge         bool
	Round         int // of a merge
	Unit, Segment int
}

// String names the claim for people.
func (c Claim) String() string {
	if c.Merge {
		return fmt.Sprintf("merge of round %d", c.Round)
	}
	return fmt.Sprintf("unit %d, segment %d", c.Unit, c.Segment)
}

// Claims returns everything that the final root rests on, in order.
func (p *Proof) Claims() []Claim {
	var out []Claim
	l := p.Lease
	for r := range l.Round {
		for s := range l.Order.Problem.Shards {
			for seg := range l.Order.Problem.Segments() {
				out = append(out, Claim{Unit: l.Unit(r, s), Segment: seg})
			}
		}
		if l.Order.Problem.Merges() {
			out = append(out, Claim{Merge: true, Round: r})
		}
	}
	return out
}

// Draw picks n of the segments and one merge at random, so that who made the
// bundle cannot know which.
func (p *Proof) Draw(n int) []Claim {
	var segments, merges []Claim
	for _, x := range p.Claims() {
		if x.Merge {
			merges = append(merges, x)
		} else {
			segments = append(segments, x)
		}
	}
	return append(draw(segments, n), draw(merges, 1)...)
}

func draw(from []Claim, n int) []Claim {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	r := mathrand.New(mathrand.NewChaCha8(key))
	r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	return from[:min(max(n, 0), len(from))]
}

// Execute computes a part again and compares where it ends.
func (p *Proof) Execute(ctx context.Context, x Claim) error {
	want, got, err := p.execute(ctx, x)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %v: %w", ErrUnchecked, x, err) // records and states were checked before
	}
	if err != nil {
		return err
	}
	if root, err := got.Root(); err != nil || root != want {
		return wrong("%v ends in %s, the record says %s (%v)", x, root.Short(), want.Short(), err)
	}
	return nil
}

func (p *Proof) execute(ctx context.Context, x Claim) (want canon.Hash, got *graph.State, err error) {
	l := p.Lease
	problem := &l.Order.Problem
	if x.Merge {
		var ends []*graph.State
		for _, root := range l.Merges[x.Round].Inputs {
			s, err := p.state(root)
			if err != nil {
				return want, nil, err
			}
			ends = append(ends, s)
		}
		got, err = p.Job.MergeStates(ctx, ends)
		return l.Merges[x.Round].Root, got, err
	}
	r := l.Units[x.Unit].Receipt
	start, err := p.state(problem.Before(r, x.Segment))
	if err != nil {
		return want, nil, err
	}
	from := x.Segment * problem.Interval
	to := min(from+problem.Interval, problem.Steps)
	got, err = p.Job.UnitOf(problem, x.Unit).Play(ctx, start, from, to, nil)
	return r.Checkpoints[x.Segment+1], got, err
}

// Final returns the trained state.
func (p *Proof) Final() (*graph.State, error) {
	if p.Job.Training == nil {
		return nil, fmt.Errorf("order %s trained nothing: it was a %s", p.Lease.Order.ID().Short(), p.Lease.Order.Problem.Kind)
	}
	return p.state(p.Lease.FinalRoot())
}
