package cpu

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/gemm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/reduce"
	"github.com/tally-network/tally/engine/cpu/spatial"
)

// task is what is run at a time: a kernel for one node, or a fusion of several.
type task struct {
	work
	grain int         // pieces that are worth a thread
	args  []graph.Ref // what it reads
	outs  []int       // nodes whose output it writes
	nodes []int       // nodes that it computes
}

// work computes some outputs, in independent pieces.
type work interface {
	Blocks() int
	Run(w *kernel.Worker, outs, args []*tensor.Tensor, lo, hi int) error
}

// alone is the work of a kernel.
type alone struct{ kernel.Kernel }

func (s alone) Run(w *kernel.Worker, outs, args []*tensor.Tensor, lo, hi int) error {
	return s.Kernel.Run(w, outs[0], args, lo, hi)
}

// plan is a program as tasks, and where in one arena every output lies. A place
// is free for another tensor once the last reader of the first has run.
type plan struct {
	program *graph.Program
	tasks   []task
	place   []int  // by node; none for what is not there or outlives a run
	lent    []bool // places that are parts of others, or are given back with those
	slot    []int  // by node, the first that it becomes the new value of; none for most
	alias   []graph.Ref
	bytes   int
	keeps   int // bytes of what outlives a run
}

const none = -1

func newPlan(p *graph.Program, set *asm.Set, fused bool, worthwhile int) *plan {
	prog := newProgram(p, set, fused)
	groups := prog.group()
	pl := &plan{program: p, place: make([]int, len(p.Nodes)), slot: make([]int, len(p.Nodes)), lent: make([]bool, len(p.Nodes)), alias: prog.alias}
	escapes := make([]bool, len(p.Nodes))
	last := make([]int, len(p.Nodes)) // the group that reads it last
	for t, m := range groups {
		for _, i := range m.all() {
			escapes[i] = escapes[i] || prog.kept[i] || !fused
			prog.producers(i, func(x int) {
				last[x] = t
				escapes[x] = escapes[x] || !slices.Contains(m.nodes, x)
			})
		}
	}
	var arena mem.Planner
	room := maxKept
	for i := range pl.place {
		pl.place[i], pl.slot[i] = none, none
	}
	for s, r := range p.Outputs {
		if r.Kind == graph.RefNode && pl.slot[r.Index] == none {
			pl.slot[r.Index] = s
			pl.keeps += pl.size(r.Index)
		}
	}
	wholes := newWholes(prog, last)
	for t, m := range groups {
		var over func(o int) []int
		k, run := task{nodes: m.all()}, kernel.Kernel(m.maker)
		switch {
		case m.maker != nil:
			l := prog.link(m, func(i int) bool { return escapes[i] && !m.again[i] })
			k.args, k.outs = append(prog.sources(m.head), l.args...), append(l.outs, m.head)
			k.work = &headed{m.maker, l.c, len(k.args) - len(l.args)}
			over = func(o int) []int { return l.overHead(o, m.head, k.args) }
		case m.fused:
			l := prog.link(m, func(i int) bool { return escapes[i] && !m.again[i] })
			k.work, k.args, k.outs, over = l.c, l.args, l.outs, l.overwrites
		default:
			n := &p.Nodes[m.nodes[0]]
			run = compile(n.Primitive, set)
			k.work, k.outs, k.args = alone{run}, m.nodes, prog.sources(m.nodes[0])
		}
		if fused {
			room = prog.prepack(run, k.nodes[0], room)
		}
		k.grain = grain(p, k.nodes, k.Blocks(), worthwhile)
		pl.tasks = append(pl.tasks, k)
		for _, i := range k.outs {
			wholes.lay(pl, &arena, i)
		}
		if m.maker != nil {
			pl.layHead(&arena, &k, over)
		}
		pl.lay(&arena, &k, t, last, over)
		wholes.remove(pl, &arena, t)
	}
	pl.bytes = arena.Bytes
	return pl
}

// size returns the bytes of a node's output.
func (pl *plan) size(i int) int {
	n := &pl.program.Nodes[i]
	return n.Shape.Elements() * n.Type.Size()
}

// lay gives the outputs of task t places, and takes those of what it reads last.
func (pl *plan) lay(arena *mem.Planner, k *task, t int, last []int, over func(o int) []int) {
	dies := func(r graph.Ref) bool {
		return r.Kind == graph.RefNode && last[r.Index] == t && pl.place[r.Index] != none && !pl.lent[r.Index]
	}
	inherited := map[int]bool{}
	made := map[int]bool{} // and read by this task itself
	for o, i := range k.outs {
		if pl.slot[i] != none || pl.place[i] != none {
			made[i] = true
			continue
		}
		if over != nil {
			for _, a := range over(o) {
				if r := k.args[a]; dies(r) && !inherited[r.Index] && pl.size(r.Index) == pl.size(i) {
					inherited[r.Index] = true
					pl.place[i] = pl.place[r.Index]
					break
				}
			}
		}
		if pl.place[i] == none {
			pl.place[i] = arena.Allocate(pl.size(i))
		}
	}
	done := map[int]bool{}
	for _, r := range k.args {
		if dies(r) && !inherited[r.Index] && !done[r.Index] {
			done[r.Index] = true
			arena.Free(pl.place[r.Index])
		}
	}
	for _, i := range k.outs {
		if pl.place[i] != none && last[i] <= t && !made[i] { // nobody reads it
			arena.Free(pl.place[i])
		}
	}
}

// grain estimates how many pieces are worth a thread.
func grain(p *graph.Program, nodes []int, pieces, worthwhile int) int {
	ns := 0
	for _, i := range nodes {
		flops, bytes := p.Nodes[i].Cost()
		// As measured: the estimate need only tell microseconds from milliseconds.
		ns += flops/20 + bytes/40
	}
	return worthwhile/max(ns/max(pieces, 1), 1) + 1
}

// allocate returns a tensor for each node that has a place.
func (pl *plan) allocate() ([]*tensor.Tensor, error) {
	arena, err := tensor.New(tensor.Uint8, tensor.Shape{pl.bytes})
	if err != nil {
		return nil, fmt.Errorf("memory for a program: %w", err)
	}
	mem.HugePages(arena.Bytes())
	out := make([]*tensor.Tensor, len(pl.place))
	for i, at := range pl.place {
		if at != none {
			n := &pl.program.Nodes[i]
			if out[i], err = arena.Part(at, n.Type, n.Shape); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// maxKept bounds the memory of a plan for packed constants, in bytes. What is beyond
// it is packed in every run.
const maxKept = 512 << 20

// prepack lets the kernel of a node pack the constants that it reads, the weights of
// inference, once, within so many bytes. It returns how many are left.
func (p *program) prepack(k kernel.Kernel, node, left int) int {
	x, ok := k.(kernel.Prepacker)
	if !ok {
		return left
	}
	consts := make([]*tensor.Tensor, len(p.nodes[node].From))
	for i, ref := range p.sources(node) {
		if ref.Kind == graph.RefConst {
			consts[i] = p.Consts[ref.Index]
		}
	}
	return x.Prepack(consts, left)
}

// compile returns the fastest kernel for a checked primitive that is not a link
// of a fusion.
func compile(p *tensor.Primitive, set *asm.Set) kernel.Kernel {
	var k kernel.Kernel
	switch {
	case p.Fn.Scatters():
		k = reduce.NewScatter(p)
	case p.Fn.Kind() == tensor.KindFold:
		if k = spatial.NewPooling(p, set); k == nil {
			k = reduce.New(p, set)
		}
	case p.Fn == tensor.Dot:
		if k = spatial.NewDepthwise(p, set); k == nil {
			k = gemm.New(p, set)
		}
	case p.Fn == tensor.Before:
		k = reduce.NewRank(p)
	}
	if k == nil {
		k = kernel.ByDefinition(p)
	}
	return k
}
