package cpu

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
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
	Threads int      // 0: as many as Go itself uses
	Kernels *asm.Set // nil: those that package asm chooses
	GrainNs int      // nanoseconds of work, as estimated, that are worth a thread; 0: 5,000
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
	r.apart.plan = sync.OnceValue(func() *plan.Plan { return plan.New(p, o.Kernels, false, o.GrainNs) })
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
	plan func() *plan.Plan
	mu   sync.Mutex
	free []*arena
}

// arena is the memory of one run.
type arena struct {
	workers []*kernel.Worker
	outputs []*tensor.Tensor // by node

	plan    *plan.Plan
	outside func(graph.Ref) *tensor.Tensor // the inputs of the run
	spare   []*tensor.Tensor               // memory for what outlives it, by slot
	team    *team

	task *plan.Task // at work
	args []*tensor.Tensor
	outs []*tensor.Tensor
	work func(worker, lo, hi int) error // its pieces
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
		a.workers = append(a.workers, kernel.NewWorker())
	}
	var err error
	a.outputs, err = p.plan().Allocate()
	return a, err
}

func (p *planned) give(a *arena) {
	for i, slot := range p.plan().Slot {
		if slot != plan.None {
			a.outputs[i] = nil
		}
	}
	clear(a.args[:cap(a.args)])
	clear(a.outs[:cap(a.outs)])
	a.outside, a.spare = nil, nil
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, a)
}

// spare takes the tensors of the spare state, by slot, but for those that are also
// part of an input, as what a program hands on is.
func spare(p *graph.Program, in graph.Inputs) ([]*tensor.Tensor, error) {
	if in.Spare == nil || in.Spare.Tensors == nil {
		return nil, nil
	}
	if err := in.Spare.Fits(p.Slots); err != nil {
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

// large is the size of a new state, in bytes, for which it is worth while to
// collect the last one before there is another.
const large = 16 << 20

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
	pl := p.plan()
	if a.spare, err = spare(r.program, in); err != nil {
		return nil, err
	}
	if pl.StateBytes >= large && a.spare == nil {
		runtime.GC() // of its own accord it would come when garbage is as much as all the rest
	}
	a.begin(r.threads, pl, outside)
	defer a.team.close()
	for i := range pl.Tasks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := a.perform(&pl.Tasks[i]); err != nil {
			n := pl.Tasks[i].Nodes[0]
			return nil, fmt.Errorf("node %d (%s): %w", n, r.program.Nodes[n].Origin.Op, err)
		}
		if observe != nil {
			if err := observe(i, a.outputs[i]); err != nil {
				return nil, err
			}
		}
	}
	out := &graph.State{Slots: r.program.Slots, Tensors: make([]*tensor.Tensor, len(r.program.Slots))}
	for i, ref := range r.program.Outputs {
		out.Tensors[i] = a.get(ref)
	}
	return out, nil
}

// begin makes a ready for a run.
func (a *arena) begin(threads int, pl *plan.Plan, outside func(graph.Ref) *tensor.Tensor) {
	a.plan, a.outside, a.team = pl, outside, newTeam(threads)
	if a.work == nil {
		a.work = func(worker, lo, hi int) error {
			return a.task.Run(a.workers[worker], a.outs, a.args, lo, hi)
		}
	}
}

func (a *arena) get(ref graph.Ref) *tensor.Tensor {
	if ref.Kind == graph.RefNode {
		return a.outputs[ref.Index]
	}
	return a.outside(ref)
}

// perform runs a task. What outlives the run gets memory of its own.
func (a *arena) perform(t *plan.Task) error {
	a.task, a.args, a.outs = t, a.args[:0], a.outs[:0]
	for _, ref := range t.Args {
		a.args = append(a.args, a.get(ref))
	}
	for _, i := range t.Outs {
		if a.plan.Slot[i] != plan.None {
			var err error
			if a.outputs[i], err = a.lasting(i); err != nil {
				return err
			}
		}
		a.outs = append(a.outs, a.outputs[i])
	}
	for _, w := range a.workers {
		w.Round++
	}
	return a.team.split(t.Blocks(), t.Grain, a.work)
}

// lasting returns a tensor for node i, which outlives the run.
func (a *arena) lasting(i int) (*tensor.Tensor, error) {
	n := &a.plan.Program.Nodes[i]
	if slot := a.plan.Slot[i]; a.spare != nil && a.spare[slot] != nil {
		return a.spare[slot], nil
	}
	x, err := tensor.New(n.Type, n.Shape)
	if err == nil {
		mem.HugePages(x.Bytes())
	}
	return x, err
}
