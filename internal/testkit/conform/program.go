package conform

import (
	"math/rand/v2"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Single returns a program that computes p alone, into slot "z".
func Single(r *rand.Rand, p *tensor.Primitive) (*graph.Program, graph.Inputs) {
	b := builder{r: r, p: &graph.Program{Groups: 1}}
	out := b.apply(p)
	b.slot("z", p.Type, p.Shape, out)
	return b.p, b.inputs()
}

// Program returns a random program of a few primitives, and inputs for it.
func Program(r *rand.Rand) (*graph.Program, graph.Inputs) { return program(r, usual) }

func program(r *rand.Rand, size int) (*graph.Program, graph.Inputs) {
	b := builder{r: r, p: &graph.Program{Groups: 1 + r.IntN(2)}}
	if r.IntN(2) == 0 {
		b.p.Data = &graph.Slot{Name: "data", Type: tensor.Int32, Shape: tensor.Shape{1 + r.IntN(9), 1 + r.IntN(9)}}
		b.p.Rows = 1 + r.IntN(5)
		b.known = append(b.known, graph.Ref{Kind: graph.RefData}, graph.Ref{Kind: graph.RefRows})
	}
	for range 1 + r.IntN(3) {
		b.newSlot()
	}
	for range 1 + r.IntN(10) {
		b.known = append(b.known, b.apply(sized(r, pick(r, Functions...), size)))
	}
	for i := range b.p.Slots {
		s := &b.p.Slots[i]
		b.p.Outputs[i] = b.adapt(pick(r, b.known...), s.Type, s.Shape)
	}
	return b.p, b.inputs()
}

type builder struct {
	r     *rand.Rand
	p     *graph.Program
	known []graph.Ref // what later nodes may read
}

func (b *builder) slot(name string, t tensor.DType, s tensor.Shape, out graph.Ref) {
	b.p.Slots = append(b.p.Slots, graph.Slot{Name: name, Type: t, Shape: s})
	b.p.Outputs = append(b.p.Outputs, out)
}

func (b *builder) newSlot() {
	i := len(b.p.Slots)
	ref := graph.Ref{Kind: graph.RefSlot, Index: i}
	b.slot(string(rune('a'+i)), anyType(b.r), shape(b.r, 3, 500), ref)
	for g := range b.p.Groups {
		ref.Group = g
		b.known = append(b.known, ref)
	}
}

func (b *builder) node(p *tensor.Primitive, from []graph.Ref) graph.Ref {
	b.p.Nodes = append(b.p.Nodes, graph.Opcode{Primitive: p, From: from, Origin: graph.Origin{Op: p.Fn.String()}})
	return graph.Ref{Kind: graph.RefNode, Index: len(b.p.Nodes) - 1}
}

// apply appends p with operands from anywhere.
func (b *builder) apply(p *tensor.Primitive) graph.Ref {
	var from []graph.Ref
	m := mixture(b.r.Uint32())
	if p.Fn == tensor.Dot && b.r.IntN(3) == 0 {
		m = hazards(b.r)
	}
	for i, a := range p.Args {
		if p.Fn == tensor.Before && i == 1 && a.Type == p.Args[0].Type && a.Shape.Equal(p.Args[0].Shape) && b.r.IntN(4) > 0 {
			from = append(from, from[0]) // as sorting does
			continue
		}
		if b.r.IntN(6) == 0 {
			m = mixture(b.r.Uint32())
		}
		if len(b.known) > 0 && b.r.IntN(3) > 0 {
			from = append(from, b.adapt(pick(b.r, b.known...), a.Type, a.Shape))
			continue
		}
		b.p.Consts = append(b.p.Consts, m.tensor(b.r, a.Type, a.Shape))
		from = append(from, graph.Ref{Kind: graph.RefConst, Index: len(b.p.Consts) - 1})
	}
	return b.node(p, from)
}

// adapt brings a value to a type and shape by a cast and a copy, if need be.
func (b *builder) adapt(ref graph.Ref, t tensor.DType, s tensor.Shape) graph.Ref {
	has, from, err := b.p.Typed(ref, len(b.p.Nodes))
	if err != nil {
		panic(err)
	}
	if has != t {
		ref = b.node(&tensor.Primitive{Fn: tensor.Cast, Type: t, Shape: from, Args: []tensor.Access{{Type: has, Shape: from, Dims: identity(len(from))}}}, []graph.Ref{ref})
	}
	if from.Equal(s) {
		return ref
	}
	a := tensor.Access{Type: t, Shape: from}
	if from.Elements() == s.Elements() {
		a.Flat = true
	} else {
		a.Dims = identity(len(from))
		for d := len(s); d < len(from); d++ {
			a.Dims[d] = tensor.Dim{}
		}
	}
	return b.node(&tensor.Primitive{Fn: tensor.Copy, Type: t, Shape: s, Imm: []tensor.Word{1}, Args: []tensor.Access{a}}, []graph.Ref{ref})
}

func identity(rank int) []tensor.Dim {
	out := make([]tensor.Dim, rank)
	for d := range out {
		out[d].Terms = []tensor.Term{{Axis: d, Step: 1}}
	}
	return out
}

// inputs returns random inputs of the program.
func (b *builder) inputs() graph.Inputs {
	var in graph.Inputs
	for range b.p.Groups {
		s := &graph.State{Slots: b.p.Slots}
		for _, slot := range b.p.Slots {
			s.Tensors = append(s.Tensors, Tensor(b.r, slot.Type, slot.Shape))
		}
		in.States = append(in.States, s)
	}
	if d := b.p.Data; d != nil {
		in.Data = Tensor(b.r, d.Type, d.Shape)
		for range b.p.Rows {
			in.Rows = append(in.Rows, int64(b.r.IntN(d.Shape[0])))
		}
	}
	return in
}
