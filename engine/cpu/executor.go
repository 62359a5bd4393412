package cpu

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/attention"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/plan"
	"github.com/tally-network/tally/engine/cpu/tuning"
	"github.com/tally-network/tally/engine/cpu/weights"
)

// Executor runs programs on a number of threads.
type Executor struct {
	options Options
	err     error // of choosing the kernels
	pools   *pools

	mu        sync.Mutex
	attenders map[attention.Shape][]*attender // that nobody uses
}

// Options say how an executor computes. They change its speed and no bit.
type Options struct {
	Threads int            // 0: as many as Go itself uses
	Kernels *asm.KernelSet // nil: those that package asm chooses
	GrainNs int            // nanoseconds of work, as estimated, that are worth a thread; 0: tuning.GrainNs
	Weights *weights.Store // where packed weights are; nil: in memory, for the whole process
}

// New returns an executor on the given number of threads, with the kernels that package
// asm chooses; 0 threads means as many as Go itself uses.
func New(threads int) *Executor { return NewWith(Options{Threads: threads}) }

// NewWith returns an executor with options.
func NewWith(o Options) *Executor {
	e := &Executor{options: o}
	if o.Threads <= 0 {
		e.options.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Kernels == nil {
		e.options.Kernels, e.err = asm.Chosen()
	}
	e.pools = newPools(e.options.Threads)
	if o.GrainNs == 0 {
		e.options.GrainNs = tuning.GrainNs
	}
	if o.Weights == nil {
		e.options.Weights = shared()
	}
	return e
}

// shared is the store of all executors that are given no other: half of the machine's memory.
var shared = sync.OnceValue(func() *weights.Store {
	s, _ := weights.New(weights.Options{Bytes: mem.Physical() / 2, IdleBytes: tuning.IdleWeights}) // without a directory nothing fails
	return s
})

// Name implements engine.Executor.
func (e *Executor) Name() string {
	return fmt.Sprintf("cpu/%s/t%d", e.options.Kernels.Name, e.options.Threads)
}

// Prepare implements engine.Executor. Who lets go of p and its constants afterwards gets
// their memory back where packed weights replace them.
func (e *Executor) Prepare(p *graph.Program) (engine.Runner, error) {
	if e.err != nil {
		return nil, e.err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	r := &runner{options: e.options, pools: e.pools, program: *p, planning: make(chan struct{}, 1)}
	r.program.Consts = slices.Clone(p.Consts)
	return r, nil
}

// runner keeps two plans of a program: one for runs of which only the end counts, and one
// for those that somebody observes, where every node is a task of its own.
type runner struct {
	options        Options
	pools          *pools
	program        graph.Program // whose constants are those of the fused plan
	planning       chan struct{} // holds one while a plan is being made
	like           *runner       // of a program with other extents, or nil
	fused, unfused planCache
}

// planCache is a plan, made when it is first needed, and the workspaces that no run uses.
type planCache struct {
	plan *plan.Plan
	mu   sync.Mutex
	free []*workspace
}

// prepared returns one of the runner's plans, ready to run.
func (r *runner) prepared(ctx context.Context, c *planCache) (*plan.Plan, error) {
	select {
	case r.planning <- struct{}{}:
		defer func() { <-r.planning }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	isNew := c.plan == nil
	if isNew {
		var p graph.Program
		var err error
		if c == &r.fused {
			p, err = r.folded(ctx)
		} else {
			p = r.program
			p.Consts, err = r.constants()
		}
		if err != nil {
			return nil, err
		}
		o, like := r.options, (*plan.Plan)(nil)
		if r.like != nil && c == &r.fused {
			if like, err = r.like.prepared(ctx, &r.like.fused); err != nil {
				return nil, err
			}
		}
		c.plan = plan.New(&p, plan.Options{Kernels: o.Kernels, Fused: c == &r.fused, GrainNs: o.GrainNs, Like: like, Weights: plan.Weights{
			Store: o.Weights, Root: func(x *tensor.Tensor) canon.Hash { return known.root(x, o.Threads) },
		}})
	}
	if err := c.plan.Pack(ctx); err != nil {
		return nil, err
	}
	for _, x := range c.plan.Program.Consts {
		if isNew {
			mem.HugePages(x.Bytes())
		}
	}
	return c.plan, nil
}

// folded returns the program with what it makes of constants alone computed. The first of
// its constants are the runner's, in the same memory, where packed weights replace them.
func (r *runner) folded(ctx context.Context) (graph.Program, error) {
	part, nodes := plan.ConstantPart(&r.program)
	if part == nil {
		return r.program, nil
	}
	once := &runner{options: r.options, pools: r.pools, program: *part, planning: make(chan struct{}, 1)}
	once.options.Weights = nil // for one run nothing is worth packing
	made, err := once.Run(ctx, graph.Inputs{States: []*graph.State{{}}}, nil)
	if err != nil {
		return graph.Program{}, err
	}
	p := plan.Substitute(r.program, nodes, made.Tensors)
	r.program.Consts = p.Consts[:len(r.program.Consts)]
	return p, nil
}

// Resize implements engine.Resizer: the runner that it returns blocks as this one does, and
// so shares its packed weights.
func (r *runner) Resize(p *graph.Program) (engine.Runner, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if len(p.Nodes) != len(r.program.Nodes) || len(p.Consts) != len(r.program.Consts) {
		return nil, fmt.Errorf("a program of %d nodes and %d constants differs in more than extents from one of %d and %d", len(p.Nodes), len(p.Consts), len(r.program.Nodes), len(r.program.Consts))
	}
	out := &runner{options: r.options, pools: r.pools, program: *p, planning: make(chan struct{}, 1), like: r}
	out.program.Consts = slices.Clone(p.Consts)
	return out, nil
}

// constants returns those of the program as they are, made again if they are hollow.
func (r *runner) constants() ([]*tensor.Tensor, error) {
	out := slices.Clone(r.program.Consts)
	if r.fused.plan == nil {
		return out, nil
	}
	for i := range out {
		var err error
		if out[i], err = r.fused.plan.Constant(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// acquire returns a workspace for a run.
func (p *planCache) acquire(pl *plan.Plan, threads int) (*workspace, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		a := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return a, nil
	}
	p.mu.Unlock()
	a := &workspace{plan: pl}
	for range threads {
		a.workers = append(a.workers, kernel.NewWorker())
	}
	var err error
	a.outputs, err = pl.Allocate()
	return a, err
}

// release takes a workspace back, without what belongs to the run or to its result.
func (p *planCache) release(a *workspace) {
	for i, slot := range a.plan.Slot {
		if slot != plan.None {
			a.outputs[i] = nil
		}
	}
	clear(a.args[:cap(a.args)])
	clear(a.outs[:cap(a.outs)])
	a.inputs, a.donated = nil, nil
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, a)
}
