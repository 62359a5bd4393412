package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/plan"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// workspace is the memory of one run at a time.
type workspace struct {
	workers []*kernel.Worker
	outputs []*tensor.Tensor // by node, in an arena of the plan

	plan    *plan.Plan
	inputs  func(graph.Ref) *tensor.Tensor
	donated []*tensor.Tensor // memory for the new state, by slot
	pool    *threadPool

	task *plan.Task // that is run, on args and outs
	args []*tensor.Tensor
	outs []*tensor.Tensor
	run  func(worker, lo, hi int) error // computes blocks of the task
}

// donated takes the tensors of the spare state, by slot, but for those that are also part
// of an input, as what a program hands on unchanged.
func donated(p *graph.Program, in graph.Inputs) ([]*tensor.Tensor, error) {
	if in.Spare == nil || in.Spare.Tensors == nil {
		return nil, nil
	}
	if err := in.Spare.Fits(p.Gives()); err != nil {
		return nil, fmt.Errorf("the spare state: %w", err)
	}
	out := in.Spare.Tensors
	in.Spare.Tensors = nil
	taken := map[*byte]bool{}
	for _, s := range in.States {
		for _, x := range s.Tensors {
			taken[unsafe.SliceData(x.Bytes())] = true
		}
	}
	for i, x := range out {
		if at := unsafe.SliceData(x.Bytes()); taken[at] {
			out[i] = nil
		} else {
			taken[at] = true
		}
	}
	return out, nil
}

// Run implements engine.Runner.
func (r *runner) Run(ctx context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	p := &r.fused
	if observe != nil {
		p = &r.unfused
	}
	return r.run(ctx, p, in, func(a *workspace, t int) error {
		if err := a.runTask(t); err != nil || observe == nil {
			return err
		}
		return observe(t, a.outputs[t])
	})
}

// run runs a plan of the program, task after task, by do.
func (r *runner) run(ctx context.Context, p *planCache, in graph.Inputs, do func(a *workspace, t int) error) (*graph.State, error) {
	pl, err := r.prepared(ctx, p)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(pl) // and the packed weights that it holds, which may be mapped files
	inputs, err := pl.Program.Bind(in)
	if err != nil {
		return nil, err
	}
	a, err := p.acquire(pl, r.options.Threads)
	if err != nil {
		return nil, err
	}
	defer p.release(a)
	if a.donated, err = donated(pl.Program, in); err != nil {
		return nil, err
	}
	if pl.StateBytes >= tuning.CollectBytes && a.donated == nil {
		runtime.GC() // of its own accord it would come when garbage is as much as all the rest
	}
	if r.options.Threads == 1 {
		// The scheduler would take it to another core every ten milliseconds. Several threads
		// stay unlocked: they yield to one another, which costs a locked one two switches.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	a.begin(r.pools.take(), pl, inputs)
	defer r.pools.give(a.pool)
	defer a.stopWith(ctx)()
	for i := range pl.Tasks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := do(a, i); errors.Is(err, kernel.ErrStopped) {
			return nil, ctx.Err()
		} else if err != nil {
			return nil, err
		}
	}
	out := &graph.State{Slots: pl.Program.Gives(), Tensors: make([]*tensor.Tensor, len(pl.Outputs))}
	for i, ref := range pl.Outputs {
		if out.Tensors[i], err = inShape(a.get(ref), out.Slots[i].Shape); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// inShape returns x in a shape of as many elements.
func inShape(x *tensor.Tensor, s tensor.Shape) (*tensor.Tensor, error) {
	if x.Shape.Equal(s) {
		return x, nil
	}
	return x.Part(0, x.Type, s)
}

// stopWith lets the workers stop once ctx is done, until what it returns is called. Each
// run has a flag of its own: that of the last one may be set late.
func (a *workspace) stopWith(ctx context.Context) (release func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	flag := new(atomic.Bool)
	for _, w := range a.workers {
		w.Stop = flag
	}
	stop := context.AfterFunc(ctx, func() { flag.Store(true) })
	return func() {
		stop()
		for _, w := range a.workers {
			w.Stop = nil
		}
	}
}

// begin makes the workspace ready for a run.
func (a *workspace) begin(pool *threadPool, pl *plan.Plan, inputs func(graph.Ref) *tensor.Tensor) {
	a.plan, a.inputs, a.pool = pl, inputs, pool
	if a.run == nil {
		a.run = func(worker, lo, hi int) error {
			return a.task.Run(a.workers[worker], a.outs, a.args, lo, hi)
		}
	}
}

// get returns a tensor of the run.
func (a *workspace) get(ref graph.Ref) *tensor.Tensor {
	if ref.Kind == graph.RefNode {
		return a.outputs[ref.Index]
	}
	return a.inputs(ref)
}

// runTask runs task i of the plan. What outlives the run gets memory of its own.
func (a *workspace) runTask(i int) error {
	t := &a.plan.Tasks[i]
	a.task, a.args, a.outs = t, a.args[:0], a.outs[:0]
	for _, ref := range t.Args {
		a.args = append(a.args, a.get(ref))
	}
	for _, i := range t.Outs {
		if a.plan.Slot[i] != plan.None {
			var err error
			if a.outputs[i], err = a.stateTensor(i); err != nil {
				return err
			}
		}
		a.outs = append(a.outs, a.outputs[i])
	}
	for _, w := range a.workers {
		w.Round++
	}
	if err := a.pool.run(t.Blocks(), t.Grain, a.run); err != nil {
		return fmt.Errorf("node %d (%s): %w", t.Nodes[0], a.plan.Program.Nodes[t.Nodes[0]].Origin.Op, err)
	}
	return nil
}

// stateTensor returns a tensor for node i, which is part of the new state.
func (a *workspace) stateTensor(i int) (*tensor.Tensor, error) {
	n := &a.plan.Program.Nodes[i]
	if slot := a.plan.Slot[i]; a.donated != nil && a.donated[slot] != nil {
		return inShape(a.donated[slot], n.Shape)
	}
	x, err := tensor.New(n.Type, n.Shape)
	if err == nil {
		mem.HugePages(x.Bytes())
	}
	return x, err
}
