package cpu

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/plan"
)

// Executor runs programs on a number of threads.
type Executor struct {
	options Options
	err     error // of choosing the kernels
}

// Options say how an executor computes. They change its speed and no bit.
type Options struct {
	Threads int            // 0: as many as Go itself uses
	Kernels *asm.KernelSet // nil: those that package asm chooses
	GrainNs int            // nanoseconds of work, as estimated, that are worth a thread; 0: 5,000
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
	if o.GrainNs == 0 {
		e.options.GrainNs = 5_000
	}
	return e
}

// Name implements engine.Executor.
func (e *Executor) Name() string {
	return fmt.Sprintf("cpu/%s/t%d", e.options.Kernels.Name, e.options.Threads)
}

// Prepare implements engine.Executor.
func (e *Executor) Prepare(p *graph.Program) (engine.Runner, error) {
	if e.err != nil {
		return nil, e.err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	for _, x := range p.Consts {
		mem.HugePages(x.Bytes())
	}
	o := e.options
	r := &runner{program: p, threads: o.Threads}
	r.fused.plan = sync.OnceValue(func() *plan.Plan { return plan.New(p, o.Kernels, true, o.GrainNs) })
	r.unfused.plan = sync.OnceValue(func() *plan.Plan { return plan.New(p, o.Kernels, false, o.GrainNs) })
	return r, nil
}

// runner keeps two plans of a program: one for runs of which only the end counts, and one
// for those that somebody observes, where every node is a task of its own.
type runner struct {
	program        *graph.Program
	threads        int
	fused, unfused planCache
}

// planCache is a plan, made when it is first needed, and the workspaces that no run uses.
type planCache struct {
	plan func() *plan.Plan
	mu   sync.Mutex
	free []*workspace
}

// acquire returns a workspace for a run.
func (p *planCache) acquire(threads int) (*workspace, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		a := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return a, nil
	}
	p.mu.Unlock()
	a := &workspace{}
	for range threads {
		a.workers = append(a.workers, kernel.NewWorker())
	}
	var err error
	a.outputs, err = p.plan().Allocate()
	return a, err
}

// release takes a workspace back, without what belongs to the run or to its result.
func (p *planCache) release(a *workspace) {
	for i, slot := range p.plan().Slot {
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
