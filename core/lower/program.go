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
	Results []graph.Slot // nil if they are Slots
	Data    *graph.Slot  // the records that batches are taken from
	Rows    int          // records in a batch
	Inputs  []graph.Ref  // of each input: a slot, or RefData
	Records []bool       // by input: whether it takes the batch's records out of what it refers to, as it does from RefData; nil if none does
	Outputs []int        // for each slot of the result: the output that it takes, or Keep
}

// Keep marks a slot whose value passes from the first state unchanged, where the result has
// the slots of what is read.
const Keep = -1

// takes reports whether an input takes records.
func (b *Binding) takes(input int) bool {
	return b.Inputs[input].Kind == graph.RefData || b.Records != nil && b.Records[input]
}

// Program returns the primitives of t as a checked program. It fails if b binds another
// number of inputs or slots, a slot takes an output that is not there, or types differ.
func (t *Typed) Program(b Binding) (*graph.Program, error) {
	p := &graph.Program{Groups: b.Groups, Slots: b.Slots, Results: b.Results, Data: b.Data, Rows: b.Rows}
	if len(b.Inputs) != len(t.Inputs) || len(b.Outputs) != len(p.Gives()) || b.Records != nil && len(b.Records) != len(b.Inputs) {
		return nil, fmt.Errorf("%d inputs and %d slots are bound, but there are %d and %d", len(b.Inputs), len(b.Outputs), len(t.Inputs), len(p.Gives()))
	}
	roots := make([]graph.Ref, len(b.Outputs))
	for i, o := range b.Outputs {
		switch {
		case o == Keep && b.Results == nil:
		case o >= 0 && o < len(t.outputs):
			roots[i] = t.outputs[o]
		default:
			return nil, fmt.Errorf("slot %q takes output %d of %d", p.Gives()[i].Name, o, len(t.outputs))
		}
	}
	link := linker{t: t, b: b, p: p, nodes: make([]int, len(t.l.emitter.nodes)), consts: map[int]int{}, taken: map[int]int{}}
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
	taken  map[int]int // by input that takes records, the node that does
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
		if at, ok := k.taken[r.Index]; ok {
			return graph.Ref{Kind: graph.RefNode, Index: at}
		}
		r = k.b.Inputs[r.Index]
	}
	return r
}

// batch begins the program with the nodes that take the batch's records, for each input
// that takes some and is read.
func (k *linker) batch(order []int, roots []graph.Ref) error {
	read := make([]bool, len(k.b.Inputs))
	note := func(refs []graph.Ref) {
		for _, r := range refs {
			if r.Kind == graph.RefSlot {
				read[r.Index] = true
			}
		}
	}
	note(roots)
	for _, i := range order {
		note(k.t.l.emitter.nodes[i].From)
	}
	for i, from := range k.b.Inputs {
		if !read[i] || !k.b.takes(i) {
			continue
		}
		take, err := k.take(from, k.t.Inputs[i].Shape)
		if err != nil {
			return fmt.Errorf("input %q: %w", k.t.Inputs[i].Name, err)
		}
		k.taken[i] = len(k.p.Nodes)
		k.p.Nodes = append(k.p.Nodes, graph.Opcode{
			Primitive: take,
			From:      []graph.Ref{from, {Kind: graph.RefRows}},
			Origin:    graph.Origin{Node: len(k.t.Nodes), Op: "Gather"},
		})
	}
	return nil
}

// take returns the primitive that makes an input of a shape from the batch's records of what
// from refers to. Of a batch of one record the input may be the record itself.
func (k *linker) take(from graph.Ref, shape tensor.Shape) (*tensor.Primitive, error) {
	typ, all, err := k.p.Typed(from, 0)
	if err != nil || len(all) == 0 || k.b.Rows < 1 {
		return nil, fmt.Errorf("it takes a batch of %d records, but no records [count …] are bound", k.b.Rows)
	}
	p := copyOf(typ, shape)
	records, row := tensor.Access{Type: typ, Shape: all, Dims: []tensor.Dim{{Via: 1}}}, tensor.Access{Type: tensor.Int64, Shape: tensor.Shape{k.b.Rows}}
	record := all[1:]
	switch {
	case shape.Equal(append(tensor.Shape{k.b.Rows}, record...)):
		records.Dims, row.Dims = append(records.Dims, Axes(1, len(record))...), Axes(0, 1)
	case k.b.Rows == 1 && shape.Equal(record):
		records.Dims, row.Dims = append(records.Dims, Axes(0, len(record))...), []tensor.Dim{{}}
	default:
		return nil, fmt.Errorf("it is %v, which %d records of %v do not make", shape, k.b.Rows, record)
	}
	p.Args = []tensor.Access{records, row}
	return p, nil
}

// Function returns t as a program from its inputs to its outputs, as slots by their names.
func (t *Typed) Function() (*graph.Program, error) {
	b := Binding{Groups: 1, Inputs: make([]graph.Ref, len(t.Inputs))}
	var from []int
	if b.Slots, from = Slots(t.Inputs); len(t.Inputs) > 0 {
		for slot, input := range from {
			b.Inputs[input] = graph.Ref{Kind: graph.RefSlot, Index: slot}
		}
	}
	b.Results, b.Outputs = Slots(t.Outputs)
	return t.Program(b)
}

// Slots returns values as slots, in ascending order of their names, and which value each
// is. A value that is named twice is one slot.
func Slots(values []graph.Value) (slots []graph.Slot, order []int) {
	for i := range values {
		order = append(order, i)
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(values[i].Name, values[j].Name) })
	order = slices.CompactFunc(order, func(i, j int) bool { return values[i].Name == values[j].Name })
	for _, i := range order {
		slots = append(slots, graph.Slot(values[i]))
	}
	return slots, order
}
