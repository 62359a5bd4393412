package cpu

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/asm"
)

// Executor runs programs on a number of threads.
type Executor struct {
	set        *asm.Set
	err        error // of choosing the set
	threads    int
	worthwhile int // nanoseconds of work, as estimated, that a thread is worth
}

// New returns an executor on the given number of threads; 0 means as many as
// Go itself uses. Its kernels are those that package asm chooses.
func New(threads int) *Executor {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	set, err := asm.Chosen()
	return &Executor{set, err, threads, 20_000}
}

// Name implements engine.Executor.
func (e *Executor) Name() string { return fmt.Sprintf("cpu/%s/t%d", e.set.Name, e.threads) }

// Prepare implements engine.Executor.
func (e *Executor) Prepare(p *graph.Program) (engine.Runner, error) {
	if e.err != nil {
		return nil, e.err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	r := &runner{program: p, threads: e.threads, plan: newPlan(p)}
	for i := range p.Nodes {
		r.steps = append(r.steps, newStep(p.Nodes[i].Primitive, e.set, e.worthwhile))
	}
	return r, nil
}

// step is a node ready to run.
type step struct {
	kernel
	grain int // pieces that are worth a thread
}

func newStep(p *tensor.Primitive, set *asm.Set, worthwhile int) step {
	s := step{kernel: compile(p, set)}
	flops, bytes := p.Cost()
	// As measured: the estimate need only tell microseconds from milliseconds.
	ns := flops/3 + bytes/8
	s.grain = worthwhile/max(ns/max(s.pieces(), 1), 1) + 1
	return s
}

type runner struct {
	program *graph.Program
	threads int
	plan    *plan
	steps   []step

	mu   sync.Mutex
	free []*arena
}

// arena is the memory of one run.
type arena struct {
	workers []*worker
	outputs []tensor.Tensor // by node, over shared buffers
}

func (r *runner) take() (*arena, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		a := r.free[n-1]
		r.free = r.free[:n-1]
		return a, nil
	}
	a := &arena{}
	for range r.threads {
		a.workers = append(a.workers, newWorker())
	}
	var err error
	a.outputs, err = r.plan.allocate(r.program)
	return a, err
}

func (r *runner) give(a *arena) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, a)
}

// Run implements engine.Runner.
func (r *runner) Run(ctx context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	a, err := r.take()
	if err != nil {
		return nil, err
	}
	defer r.give(a)
	var now struct { // the node at work
		kernel
		out  *tensor.Tensor
		args []*tensor.Tensor
	}
	compute := func(worker, lo, hi int) error {
		return now.run(a.workers[worker], now.out, now.args, lo, hi)
	}
	return r.program.Run(in, func(i int, n *graph.Opcode, args []*tensor.Tensor) (*tensor.Tensor, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now.kernel, now.out, now.args = r.steps[i].kernel, &a.outputs[i], args
		if r.plan.kept(i) {
			var err error
			if now.out, err = tensor.New(n.Type, n.Shape); err != nil {
				return nil, err
			}
		}
		return now.out, engine.Split(r.threads, now.pieces(), r.steps[i].grain, compute)
	}, observe)
}
