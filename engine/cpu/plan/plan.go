package plan

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Task is what is run at a time: a kernel for one node, a fusion of several, or a loop.
type Task struct {
	kernel.Work
	Grain int         // blocks that are worth a thread
	Args  []graph.Ref // what it reads
	Outs  []int       // nodes whose output it writes
	Nodes []int       // nodes that it computes; the first names it in errors

	kernel kernel.Kernel // of the first node; nil for a fusion
	shifts []int         // bytes behind the beginning of each of Args at which it reads; nil if there are none
}

// single is the work of a kernel that has one output.
type single struct{ kernel.Kernel }

func (s single) Run(w *kernel.Worker, outs, args []*tensor.Tensor, lo, hi int) error {
	return s.Kernel.Run(w, outs[0], args, lo, hi)
}

// Plan is a program as tasks, and the place of every output in one arena.
type Plan struct {
	Program    *graph.Program
	Tasks      []Task      // in the order of execution
	Outputs    []graph.Ref // by slot, what becomes its new value, perhaps in another shape
	Slot       []int       // by node, the first slot that it becomes the new value of; None for most
	StateBytes int         // of what outlives a run

	offset     []int  // by node, in the arena; None for what is not there or outlives a run
	aliased    []bool // by node: part of another's range, which is freed with that
	arenaBytes int
	options    Options
	consts     []constant            // of the program
	kernels    map[int]kernel.Kernel // by the node that they compute
	blocks     map[int]quant.Type    // that contractions read, by node
	packed     bool
}

// Options say how to plan.
type Options struct {
	Kernels *asm.KernelSet
	Fused   bool    // else every node is a task of its own, and reads constants as they are
	GrainNs int     // nanoseconds of work, as estimated, that are worth a thread
	Weights Weights // where a fused plan has its packed weights
	Like    *Plan   // of a program that differs in extents alone: its kernels serve where they can; nil if there is none
}

// None stands for a node, a slot or a place that there is not.
const None = -1

// New plans a program. Call Pack before the first run. Constants that their packed forms
// replace become hollow in p, which belongs to the plan.
func New(p *graph.Program, o Options) *Plan {
	set, fused := o.Kernels, o.Fused
	prog := newProgram(p, set, fused)
	groups := prog.fuseNodes()
	pl := &Plan{Program: p, Outputs: prog.outputs, options: o, offset: make([]int, len(p.Nodes)), Slot: make([]int, len(p.Nodes)), aliased: make([]bool, len(p.Nodes))}
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
	for i := range pl.offset {
		pl.offset[i], pl.Slot[i] = None, None
	}
	for s, r := range prog.outputs {
		if r.Kind == graph.RefNode && pl.Slot[r.Index] == None {
			pl.Slot[r.Index] = s
			pl.StateBytes += pl.size(r.Index)
		}
	}
	joined := newConcats(prog, last)
	b := newBuilder(prog, groups, escapes, o.Like)
	for t, m := range groups {
		k, over := b.task(m)
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
	pl.kernels, pl.blocks = map[int]kernel.Kernel{}, map[int]quant.Type{}
	for i, b := range prog.blocks { // each has its own
		pl.blocks[i] = b.of
	}
	for t := range pl.Tasks {
		if k := &pl.Tasks[t]; k.kernel != nil {
			pl.kernels[k.Nodes[0]] = k.kernel
		}
	}
	if fused {
		pl.consts = pl.readers()
	}
	pl.roll(b.recurrences)
	return pl
}
