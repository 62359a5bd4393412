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
	return &Executor{set, err, threads, 5_000}
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
	r := &runner{program: p, threads: e.threads}
	r.fused.plan = sync.OnceValue(func() *plan { return newPlan(p, e.set, true, e.worthwhile) })
	r.apart.plan = sync.OnceValue(func() *plan { return newPlan(p, e.set, false, e.worthwhile) })
	return r, nil
}

// runner keeps two plans: one for runs of which only the end counts, and one for
// those that somebody observes, where every node is a task of its own.
type runner struct {
	program      *graph.Program
	threads      int
	fused, apart planned
}

// planned is a plan, made when it is first needed, and the arenas that no run
// uses.
type planned struct {
	plan func() *plan
	mu   sync.Mutex
	free []*arena
}

// arena is the memory of one run.
type arena struct {
	workers []*worker
	outputs []*tensor.Tensor // by node
	args    []*tensor.Tensor // of a task
	outs    []*tensor.Tensor
}

func (p *planned) take(threads int) (*arena, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		a := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return a, nil
	}
	p.mu.Unlock()
	a := &arena{}
	for range threads {
		a.workers = append(a.workers, newWorker())
	}
	var err error
	a.outputs, err = p.plan().allocate()
	return a, err
}

func (p *planned) give(a *arena) {
	for i, kept := range p.plan().kept {
		if kept {
			a.outputs[i] = nil
		}
	}
	clear(a.args[:cap(a.args)])
	clear(a.outs[:cap(a.outs)])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, a)
}

// Run implements engine.Runner.
func (r *runner) Run(ctx context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	outside, err := r.program.Bind(in)
	if err != nil {
		return nil, err
	}
	p := &r.fused
	if observe != nil {
		p = &r.apart
	}
	a, err := p.take(r.threads)
	if err != nil {
		return nil, err
	}
	defer p.give(a)
	team := newTeam(r.threads)
	defer team.close()
	pl := p.plan()
	get := func(ref graph.Ref) *tensor.Tensor {
		if ref.Kind == graph.RefNode {
			return a.outputs[ref.Index]
		}
		return outside(ref)
	}
	for i := range pl.tasks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := pl.tasks[i].perform(a, team, pl, get); err != nil {
			n := &r.program.Nodes[pl.tasks[i].nodes[0]]
			return nil, fmt.Errorf("node %d (%s): %w", pl.tasks[i].nodes[0], n.Origin.Op, err)
		}
		if observe != nil {
			if err := observe(i, a.outputs[i]); err != nil {
				return nil, err
			}
		}
	}
	out := &graph.State{Slots: r.program.Slots, Tensors: make([]*tensor.Tensor, len(r.program.Slots))}
	for i, ref := range r.program.Outputs {
		out.Tensors[i] = get(ref)
	}
	return out, nil
}

// perform runs a task. What outlives the run gets memory of its own.
func (t *task) perform(a *arena, team *team, pl *plan, get func(graph.Ref) *tensor.Tensor) error {
	a.args, a.outs = a.args[:0], a.outs[:0]
	for _, ref := range t.args {
		a.args = append(a.args, get(ref))
	}
	for _, i := range t.outs {
		if pl.kept[i] {
			n := &pl.program.Nodes[i]
			var err error
			if a.outputs[i], err = tensor.New(n.Type, n.Shape); err != nil {
				return err
			}
		}
		a.outs = append(a.outs, a.outputs[i])
	}
	return team.split(t.pieces(), t.grain, func(worker, lo, hi int) error {
		return t.run(a.workers[worker], a.outs, a.args, lo, hi)
	})
}
