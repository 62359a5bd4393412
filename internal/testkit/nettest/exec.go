package nettest

import (
	"context"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/node/replay"
)

// Run is one run of a program of an order by a role: a local step, or a merge.
type Run struct {
	Role  string
	Merge bool
	Round int
	Shard int // of a step
	Step  int // of a step, within its unit
}

// Bend says what a role does that others would not. Either may be nil. A role
// computes the same steps again when it defends them.
type Bend struct {
	// Before is called before each run, and may wait.
	Before func(ctx context.Context, r Run) error
	// Wrong reports whether the state that results is wrong in one bit.
	Wrong func(r Run) bool
}

// bent is an executor that tells what runs, and bends it.
type bent struct {
	engine.Executor
	role string
	bend Bend
	of   *job.Problem
}

// Prepare implements engine.Executor.
func (b bent) Prepare(p *graph.Program) (engine.Runner, error) {
	r, err := b.Executor.Prepare(p)
	if err != nil {
		return nil, err
	}
	if p.Results != nil && p.Rows > 0 { // a batch: its first result is bent
		return &bentRunner{r, b, p, -1, 0}, nil
	}
	counter := slices.IndexFunc(p.Slots, func(s graph.Slot) bool { return s.Name == "step" })
	parameter := slices.IndexFunc(p.Slots, func(s graph.Slot) bool { return s.Type == tensor.Float32 && len(s.Shape) > 0 })
	// An evaluation leaves the parameters as they are, and a speaker has no counter.
	if counter < 0 || parameter < 0 || p.Outputs[parameter].Kind != graph.RefNode {
		return r, nil
	}
	return &bentRunner{r, b, p, counter, parameter}, nil
}

type bentRunner struct {
	engine.Runner
	bent
	program            *graph.Program
	counter, parameter int // slots; a batch counts no steps
}

// Run implements engine.Runner.
func (r *bentRunner) Run(ctx context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	at := r.at(in)
	if r.bend.Before != nil {
		if err := r.bend.Before(ctx, at); err != nil {
			return nil, err
		}
	}
	out, err := r.Runner.Run(ctx, in, observe)
	if err != nil || r.bend.Wrong == nil || !r.bend.Wrong(at) {
		return out, err
	}
	wrong := &graph.State{Slots: out.Slots, Tensors: slices.Clone(out.Tensors)}
	t := wrong.Tensors[r.parameter].Clone()
	t.Set(0, t.At(0)^1)
	wrong.Tensors[r.parameter] = t
	return wrong, nil
}

// at names a run by its inputs.
func (r *bentRunner) at(in graph.Inputs) Run {
	if r.counter < 0 {
		step := int(in.Rows[0]) / r.program.Rows
		return Run{Role: r.role, Shard: step / r.of.Steps, Step: step % r.of.Steps}
	}
	done := int(tensor.Of[int64](in.States[0].Tensors[r.counter])[0])
	if r.program.Data == nil {
		return Run{Role: r.role, Merge: true, Round: done/r.of.Steps - 1}
	}
	run := Run{Role: r.role, Round: done / r.of.Steps, Shard: -1, Step: done % r.of.Steps}
	order := r.of.Order()
	for s := range r.of.Shards {
		if slices.Equal(order.Rows(s, done), in.Rows) {
			run.Shard = s
		}
	}
	return run
}

// States implements replay.Accountant for executors that are bent further in.
func (r *bentRunner) States(in graph.Inputs, node, element int, blocks []int) ([][]tensor.Word, bool, error) {
	if a, ok := r.Runner.(replay.Accountant); ok {
		return a.States(in, node, element, blocks)
	}
	return nil, false, nil
}

// Gate lets nobody through before it is opened.
type Gate struct{ open chan struct{} }

// NewGate returns a gate that is shut.
func NewGate() *Gate { return &Gate{make(chan struct{})} }

// Open opens the gate for good. It must be called once.
func (g *Gate) Open() { close(g.open) }

// Wait waits until the gate is open or ctx is done.
func (g *Gate) Wait(ctx context.Context) error {
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
