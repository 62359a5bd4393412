package plan

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/fuse"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Task is what is run at a time: a kernel for one node, or a fusion of several.
type Task struct {
	Work
	Grain int         // blocks that are worth a thread
	Args  []graph.Ref // what it reads
	Outs  []int       // nodes whose output it writes
	Nodes []int       // nodes that it computes; the first names it in errors
}

// Work computes some outputs, in independent blocks.
type Work interface {
	// Blocks returns their number.
	Blocks() int

	// Run computes blocks lo…hi−1, as kernel.Kernel's Run does.
	Run(w *kernel.Worker, outs, args []*tensor.Tensor, lo, hi int) error

	// Describe says how it computes them.
	Describe() kernel.Description
}

// single is the work of a kernel that has one output.
type single struct{ kernel.Kernel }

func (s single) Run(w *kernel.Worker, outs, args []*tensor.Tensor, lo, hi int) error {
	return s.Kernel.Run(w, outs[0], args, lo, hi)
}

// Plan is a program as tasks, and the place of every output in one arena.
type Plan struct {
	Program    *graph.Program
	Tasks      []Task // in the order of execution
	Slot       []int  // by node, the first slot that it becomes the new value of; None for most
	StateBytes int    // of what outlives a run

	offset     []int  // by node, in the arena; None for what is not there or outlives a run
	aliased    []bool // by node: part of another's range, which is freed with that
	arenaBytes int
}

// None stands for a node, a slot or a place that there is not.
const None = -1

// New plans a program for the kernels of a set. If fused is not set, every node is a task
// of its own. grainNs is the nanoseconds of work, as estimated, that are worth a thread.
func New(p *graph.Program, set *asm.KernelSet, fused bool, grainNs int) *Plan {
	prog := newProgram(p, set, fused)
	groups := prog.fuseNodes()
	pl := &Plan{Program: p, offset: make([]int, len(p.Nodes)), Slot: make([]int, len(p.Nodes)), aliased: make([]bool, len(p.Nodes))}
	escapes := make([]bool, len(p.Nodes))
	last := make([]int, len(p.Nodes)) // by node, the task that reads it last
	for t, m := range groups {
		for _, i := range m.all() {
			escapes[i] = escapes[i] || prog.isOutput[i] || !fused
			prog.Producers(i, func(x int) {
				last[x] = t
				escapes[x] = escapes[x] || !slices.Contains(m.Nodes, x)
			})
		}
	}
	var arena mem.Planner
	budget := maxPrepacked
	for i := range pl.offset {
		pl.offset[i], pl.Slot[i] = None, None
	}
	for s, r := range p.Outputs {
		if r.Kind == graph.RefNode && pl.Slot[r.Index] == None {
			pl.Slot[r.Index] = s
			pl.StateBytes += pl.size(r.Index)
		}
	}
	joined := newConcats(prog, last)
	for t, m := range groups {
		var over func(o int) []int
		k, run := Task{Nodes: m.all()}, kernel.Kernel(m.producer)
		switch {
		case m.producer != nil:
			l := fuse.Build(set, prog, &m.Group, func(i int) bool { return escapes[i] && !m.recomputed[i] })
			k.Args, k.Outs = append(prog.sources(m.Head), l.Args...), append(l.Outs, m.Head)
			k.Work = fuse.WithEpilogue(m.producer, l.Fusion, len(k.Args)-len(l.Args))
			over = func(o int) []int { return l.OverwritesHead(o, m.Head, k.Args) }
		case m.isFusion:
			l := fuse.Build(set, prog, &m.Group, func(i int) bool { return escapes[i] && !m.recomputed[i] })
			k.Work, k.Args, k.Outs, over = l.Fusion, l.Args, l.Outs, l.Overwrites
		default:
			n := &p.Nodes[m.Nodes[0]]
			run = chooseKernel(n.Primitive, set)
			k.Work, k.Outs, k.Args = single{run}, m.Nodes, prog.sources(m.Nodes[0])
		}
		if fused {
			budget = prog.prepack(run, k.Nodes[0], budget)
		}
		k.Grain = grain(p, k.Nodes, k.Blocks(), grainNs)
		pl.Tasks = append(pl.Tasks, k)
		for _, i := range k.Outs {
			joined.place(pl, &arena, i)
		}
		if m.producer != nil {
			pl.placeHead(&arena, &k, over)
		}
		pl.placeOutputs(&arena, &k, t, last, over)
		joined.free(pl, &arena, t)
	}
	pl.arenaBytes = arena.Bytes
	return pl
}
