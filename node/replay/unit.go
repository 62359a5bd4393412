package replay

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// Unit is one unit of an order: the steps of a shard in a round. Where steps are independent,
// all start from the order's start state, whatever state is given.
type Unit struct {
	Job     *Job
	Problem *job.Problem
	Round   int
	Shard   int
	first   int // steps of the unit before the one that is counted as step 0
}

// UnitOf returns unit i of the problem.
func (j *Job) UnitOf(p *job.Problem, i int) Unit {
	return Unit{j, p, i / p.Shards, i % p.Shards, 0}
}

// From returns the unit from a step on, which is its step 0.
func (u Unit) From(step int) Unit {
	u.first += step
	return u
}

// inputs returns what a local step of the unit reads.
func (u Unit) inputs(s *graph.State, step int) graph.Inputs {
	if u.Problem.Independent() {
		s = u.Job.Start
	}
	batch := u.Problem.RecordsOf(u.Round*u.Problem.Shards + u.Shard)
	rows := make([]int64, batch.Order.Batch)
	for i := range rows {
		rows[i] = batch.Row(u.first+step, i)
	}
	return graph.Inputs{States: []*graph.State{s}, Data: u.Job.Data, Crown: u.Job.Crown, Rows: rows}
}

// Play runs the local steps from…to−1 from the state before them, and returns the last
// state. after, if not nil, sees each with the number of steps done. It must copy what it
// keeps: the memory of a state is used again for the next but one.
func (u Unit) Play(ctx context.Context, s *graph.State, from, to int, after func(done int, s *graph.State) error) (*graph.State, error) {
	if err := u.Hold(ctx); err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(u.Job.Data) // its memory may not be Go's
	var last *graph.State               // before s, and made here
	for step := from; step < to; step++ {
		in := u.inputs(s, step)
		in.Spare = last
		next, err := u.Job.Step.Runner.Run(ctx, in, nil)
		if err != nil {
			return nil, fmt.Errorf("round %d, shard %d, step %d: %w", u.Round, u.Shard, step, err)
		}
		if step > from {
			last = s
		}
		s = next
		if after != nil {
			if err := after(step+1, s); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// MergeStates merges the states that the shards ended a round with.
func (j *Job) MergeStates(ctx context.Context, ends []*graph.State) (*graph.State, error) {
	return j.Merge.Runner.Run(ctx, graph.Inputs{States: ends}, nil)
}

// Accountant is a runner that answers for its own accumulators in a dispute.
// Others answer with what their operands give.
type Accountant interface {
	States(in graph.Inputs, node, element int, blocks []int) (states [][]tensor.Word, own bool, err error)
}

// execute runs a program once and keeps everything that a dispute can ask for.
func (p Program) execute(ctx context.Context, in graph.Inputs) (*dispute.Execution, error) {
	e, err := dispute.Execute(p.Program, p.Commitment, in, func(in graph.Inputs, observe graph.Observer) (*graph.State, error) {
		return p.Runner.Run(ctx, in, observe)
	})
	if err != nil {
		return nil, err
	}
	if a, ok := p.Runner.(Accountant); ok {
		honest := e.States
		e.States = func(node, element int, blocks []int) ([][]tensor.Word, error) {
			states, own, err := a.States(in, node, element, blocks)
			if err != nil || own {
				return states, err
			}
			return honest(node, element, blocks)
		}
	}
	return e, nil
}

// unitWitness replays a unit as far as a game asks. It holds few states: games
// go forward, within ever smaller parts of the unit.
type unitWitness struct {
	ctx   context.Context
	unit  Unit
	start *graph.State
	first int         // step that start is the state before
	held  []heldState // the latest asked for is the last
	roots map[int]canon.Hash
	last  *dispute.Execution
	at    int
}

type heldState struct {
	step  int
	state *graph.State
}

// Bounds on the states that a witness holds besides the first. A move of a game asks
// for up to 15 between two. Those that are not held are played again from the nearest.
const (
	maxHeld   = 16
	heldBytes = 1 << 30 // but two states are held, however large they are
)

// held returns how many states a witness of the work holds besides the first.
func (j *Job) held() int { return max(2, min(maxHeld, heldBytes/max(int(j.bytes), 1))) }

// WitnessBytes returns the memory of a witness at most: the states that it holds and
// all values of a step, or all of a merge.
func (j *Job) WitnessBytes() uint64 {
	unit := uint64(1+j.held())*uint64(j.bytes) + engine.Memory(j.Step.Program)
	if j.Merge.Program == nil {
		return unit
	}
	return max(unit, engine.Memory(j.Merge.Program))
}

// Witness returns a party's account of a unit, replayed when it is asked for.
// start is the state before the first step.
func (u Unit) Witness(ctx context.Context, start *graph.State) dispute.Witness {
	return u.WitnessFrom(ctx, start, 0)
}

// WitnessFrom returns an account of the steps from the given one on, which start
// is the state before.
func (u Unit) WitnessFrom(ctx context.Context, start *graph.State, step int) dispute.Witness {
	return &unitWitness{ctx: ctx, unit: u, start: start, first: step, roots: map[int]canon.Hash{}}
}

// state returns the state after the given steps, from the nearest one held.
func (w *unitWitness) state(step int) (*graph.State, error) {
	if step < w.first {
		return nil, fmt.Errorf("the account begins at step %d, step %d is asked for", w.first, step)
	}
	from, s := w.first, w.start
	for _, h := range w.held {
		if from <= h.step && h.step <= step {
			from, s = h.step, h.state
		}
	}
	if from < step && w.unit.Problem.Independent() {
		from = step - 1
	}
	s, err := w.unit.Play(w.ctx, s, from, step, nil)
	if err != nil {
		return nil, err
	}
	w.held = append(slices.DeleteFunc(w.held, func(h heldState) bool { return h.step == step }), heldState{step, s})
	w.held = slices.Delete(w.held, 0, max(len(w.held)-w.unit.Job.held(), 0))
	return s, nil
}

func (w *unitWitness) Root(step int) (canon.Hash, error) {
	if r, ok := w.roots[step]; ok {
		return r, nil
	}
	s, err := w.state(step)
	if err != nil {
		return canon.Hash{}, err
	}
	r, err := s.Root()
	w.roots[step] = r
	return r, err
}

func (w *unitWitness) Execution(step int) (*dispute.Execution, error) {
	if w.last != nil && w.at == step {
		return w.last, nil
	}
	s := w.start
	if !w.unit.Problem.Independent() {
		var err error
		if s, err = w.state(step); err != nil {
			return nil, err
		}
	}
	if err := w.unit.Hold(w.ctx); err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(w.unit.Job.Data)
	e, err := w.unit.Job.Step.execute(w.ctx, w.unit.inputs(s, step))
	if err == nil {
		w.last, w.at = e, step
	}
	return e, err
}

// Forget lets go of the last run that was asked for, which is all values of a step. If it is
// asked for again, the step is run again.
func (w *unitWitness) Forget() { w.last = nil }

// mergeWitness replays a merge.
type mergeWitness struct {
	ctx  context.Context
	job  *Job
	ends []*graph.State
	last *dispute.Execution
}

// MergeWitness returns a party's account of a merge.
func (j *Job) MergeWitness(ctx context.Context, ends []*graph.State) dispute.Witness {
	return &mergeWitness{ctx: ctx, job: j, ends: ends}
}

// Forget lets go of the run of the merge, until it is asked for again.
func (w *mergeWitness) Forget() { w.last = nil }

func (w *mergeWitness) Root(int) (canon.Hash, error) {
	return canon.Hash{}, fmt.Errorf("a merge is a single step")
}

func (w *mergeWitness) Execution(int) (*dispute.Execution, error) {
	if w.last == nil {
		e, err := w.job.Merge.execute(w.ctx, graph.Inputs{States: w.ends})
		if err != nil {
			return nil, err
		}
		w.last = e
	}
	return w.last, nil
}
