package lower

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Binding says where the inputs of a graph come from and where its outputs go
// when it becomes a program.
type Binding struct {
	Groups  int
	Slots   []graph.Slot
	Data    *graph.Slot // the records that batches are taken from
	Rows    int         // records in a batch
	Inputs  []graph.Ref // of each input: a slot, or RefData for the batch
	Outputs []int       // for each slot: the output that it takes, or Keep
}

// Keep marks a slot whose value passes from the first state unchanged.
const Keep = -1

// Program returns the primitives of t as a checked program. It fails if b binds another
// number of inputs or slots, a slot takes an output that is not there, or types differ.
func (t *Typed) Program(b Binding) (*graph.Program, error) {
	if len(b.Inputs) != len(t.Inputs) || len(b.Outputs) != len(b.Slots) {
		return nil, fmt.Errorf("%d inputs and %d slots are bound, but there are %d and %d", len(b.Inputs), len(b.Outputs), len(t.Inputs), len(b.Slots))
	}
	p := &graph.Program{Groups: b.Groups, Slots: b.Slots, Data: b.Data, Rows: b.Rows}
	roots := make([]graph.Ref, len(b.Slots))
	for i, o := range b.Outputs {
		switch {
		case o == Keep:
		case o >= 0 && o < len(t.outputs):
			roots[i] = t.outputs[o]
		default:
			return nil, fmt.Errorf("slot %q takes output %d of %d", b.Slots[i].Name, o, len(t.outputs))
		}
	}
	link := linker{t: t, b: b, p: p, nodes: make([]int, len(t.l.emitter.nodes)), consts: map[int]int{}}
	order := t.l.emitter.ordered(roots)
	if err := link.batch(order, roots); err != nil {
		return nil, err
	}
	for _, i := range order {
		n := t.l.emitter.nodes[i]
		link.nodes[i] = len(p.Nodes)
		n.From = slices.Clone(n.From)
		for j, r := range n.From {
			n.From[j] = link.ref(r)
		}
		p.Nodes = append(p.Nodes, n)
	}
	for i, r := range roots {
		if b.Outputs[i] == Keep {
			p.Outputs = append(p.Outputs, graph.Ref{Kind: graph.RefSlot, Index: i})
		} else {
			p.Outputs = append(p.Outputs, link.ref(r))
		}
	}
	return p, p.Check()
}

// live marks the nodes that the roots need.
func (e *Emitter) live(roots []graph.Ref) []bool {
	live := make([]bool, len(e.nodes))
	mark := func(refs []graph.Ref) {
		for _, r := range refs {
			if r.Kind == graph.RefNode {
				live[r.Index] = true
			}
		}
	}
	mark(roots)
	for i, n := range slices.Backward(e.nodes) {
		if live[i] {
			mark(n.From)
		}
	}
	return live
}

// slots returns the inputs of the graph, by number, that a tensor follows from.
func (e *Emitter) slots(of graph.Ref) map[int]bool {
	read := map[int]bool{}
	note := func(r graph.Ref) {
		if r.Kind == graph.RefSlot {
			read[r.Index] = true
		}
	}
	note(of)
	live := e.live([]graph.Ref{of})
	for i, n := range e.nodes {
		for _, r := range n.From {
			if live[i] {
				note(r)
			}
		}
	}
	return read
}

// linker gives references their meaning in a program.
type linker struct {
	t      *Typed
	b      Binding
	p      *graph.Program
	nodes  []int       // of the program, by node of the lowering
	consts map[int]int // likewise
}

func (k *linker) ref(r graph.Ref) graph.Ref {
	switch r.Kind {
	case graph.RefNode:
		r.Index = k.nodes[r.Index]
	case graph.RefConst:
		i, ok := k.consts[r.Index]
		if !ok {
			i = len(k.p.Consts)
			k.consts[r.Index] = i
			k.p.Consts = append(k.p.Consts, k.t.l.emitter.consts[r.Index])
		}
		r.Index = i
	case graph.RefSlot:
		if r = k.b.Inputs[r.Index]; r.Kind == graph.RefData {
			return graph.Ref{Kind: graph.RefNode} // the batch is taken first of all
		}
	}
	return r
}

// batch begins the program with the node that takes the batch's records, if
// anything reads them.
func (k *linker) batch(order []int, roots []graph.Ref) error {
	reads := func(r graph.Ref) bool {
		return r.Kind == graph.RefSlot && k.b.Inputs[r.Index].Kind == graph.RefData
	}
	read := slices.ContainsFunc(roots, reads)
	for _, i := range order {
		read = read || slices.ContainsFunc(k.t.l.emitter.nodes[i].From, reads)
	}
	if !read {
		return nil
	}
	if k.b.Data == nil || len(k.b.Data.Shape) != 2 {
		return fmt.Errorf("the graph reads a batch, but no records [count columns] are bound")
	}
	s := tensor.Shape{k.b.Rows, k.b.Data.Shape[1]}
	take := copyOf(k.b.Data.Type, s)
	take.Args = []tensor.Access{
		{Type: k.b.Data.Type, Shape: k.b.Data.Shape, Dims: []tensor.Dim{{Via: 1}, Axis(1)}},
		{Type: tensor.Int64, Shape: s[:1], Dims: Axes(0, 1)},
	}
	k.p.Nodes = append(k.p.Nodes, graph.Opcode{
		Primitive: take,
		From:      []graph.Ref{{Kind: graph.RefData}, {Kind: graph.RefRows}},
		Origin:    graph.Origin{Node: len(k.t.Nodes), Op: "Gather"},
	})
	return nil
}

// Function returns t as a program over the slots in/<name> and out/<name>: it
// leaves the inputs and sets the outputs.
func (t *Typed) Function() (*graph.Program, error) {
	type bound struct {
		graph.Slot
		in, out int
	}
	var all []bound
	for i, v := range t.Inputs {
		all = append(all, bound{graph.Slot{Name: "in/" + v.Name, Type: v.Type, Shape: v.Shape}, i, Keep})
	}
	for i, v := range t.Outputs {
		all = append(all, bound{graph.Slot{Name: "out/" + v.Name, Type: v.Type, Shape: v.Shape}, -1, i})
	}
	slices.SortFunc(all, func(x, y bound) int { return cmp.Compare(x.Name, y.Name) })
	b := Binding{Groups: 1, Inputs: make([]graph.Ref, len(t.Inputs))}
	for i, s := range all {
		if s.in >= 0 {
			b.Inputs[s.in] = graph.Ref{Kind: graph.RefSlot, Index: i}
		}
		b.Slots = append(b.Slots, s.Slot)
		b.Outputs = append(b.Outputs, s.out)
	}
	return t.Program(b)
}
