package graph

import (
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// Header is what a program's root hashes: counts and sub-roots, from which any
// single node, slot, constant or output can be opened. An output's leaf holds the slot of
// the result and what it gets.
type Header struct {
	Groups                        int
	Nodes, Slots, Consts, Outputs Part
	DataType                      tensor.DType // 0 if no batch is read
	DataShape                     tensor.Shape
	Rows                          int
	Cost                          Cost // of one run: the sum over the nodes
}

// Part is a committed list: its length and the root over its leaves.
type Part struct {
	Len  int
	Root canon.Hash
}

// Open checks that item, given by its encoder, stands at position i.
func (p Part) Open(i int, item func(*canon.Encoder), path []canon.Hash) error {
	return canon.Verify(p.Root, p.Len, i, leaf(canon.Encode(item)), path)
}

func leaf(item []byte) canon.Hash { return canon.Sum(canon.DomainOpcode, item) }

// Encode appends the canonical encoding of h.
func (h *Header) Encode(e *canon.Encoder) {
	e.Uint(uint64(h.Groups))
	for _, p := range []Part{h.Nodes, h.Slots, h.Consts, h.Outputs} {
		e.Uint(uint64(p.Len))
		e.Hash(p.Root)
	}
	e.U8(uint8(h.DataType))
	h.DataShape.Encode(e)
	e.Uint(uint64(h.Rows))
	h.Cost.Encode(e)
}

// DecodeHeader reads what Encode wrote.
func DecodeHeader(d *canon.Decoder) *Header {
	h := &Header{Groups: int(d.Uint(MaxNodes))}
	for _, p := range []*Part{&h.Nodes, &h.Slots, &h.Consts, &h.Outputs} {
		*p = Part{int(d.Uint(MaxNodes)), d.Hash()}
	}
	h.DataType = tensor.DType(d.U8())
	h.DataShape = tensor.DecodeShape(d)
	h.Rows = int(d.Uint(tensor.MaxDim))
	h.Cost = DecodeCost(d)
	return h
}

// Root returns the program root.
func (h *Header) Root() canon.Hash {
	return canon.Sum(canon.DomainProgram, canon.Encode(h.Encode))
}

// Commitment is a program with its Merkle trees, ready to open any part.
type Commitment struct {
	Header
	Leaves                                    []Leaf
	NodeTree, SlotTree, ConstTree, OutputTree *canon.Tree

	program *Program
	outputs []Output
}

// Commit hashes a checked program.
func (p *Program) Commit() *Commitment {
	all := p.Leaves()
	return p.CommitAs(all, total(all))
}

// CommitAs hashes a program as somebody might who lies about its nodes and its cost.
func (p *Program) CommitAs(nodes []Leaf, cost Cost) *Commitment {
	c := &Commitment{Header: Header{Groups: p.Groups, Rows: p.Rows, Cost: cost}, Leaves: nodes, program: p, outputs: p.outputs()}
	if p.Data != nil {
		c.DataType, c.DataShape = p.Data.Type, p.Data.Shape
	}
	c.NodeTree = leaves(nodes, func(n Leaf, e *canon.Encoder) { n.Encode(e) })
	c.SlotTree = leaves(p.Slots, Slot.Encode)
	c.OutputTree = leaves(c.outputs, Output.Encode)
	roots := make([]canon.Hash, len(p.Consts))
	for i, t := range p.Consts {
		roots[i] = t.Root()
	}
	c.ConstTree = canon.NewTree(roots)
	part := func(t *canon.Tree) Part { return Part{t.Len(), t.Root()} }
	c.Nodes, c.Slots, c.Consts, c.Outputs = part(c.NodeTree), part(c.SlotTree), part(c.ConstTree), part(c.OutputTree)
	return c
}

// Output is a slot of the state that a program gives, and what it gets.
type Output struct {
	Slot Slot
	From Ref
}

// Encode appends what an output is committed by.
func (o Output) Encode(e *canon.Encoder) {
	o.Slot.Encode(e)
	o.From.Encode(e)
}

// DecodeOutput reads what Encode wrote.
func DecodeOutput(d *canon.Decoder) Output { return Output{DecodeSlot(d), DecodeRef(d)} }

// Output returns output i of p.
func (p *Program) Output(i int) Output { return Output{p.Gives()[i], p.Outputs[i]} }

func (p *Program) outputs() []Output {
	out := make([]Output, len(p.Outputs))
	for i := range out {
		out[i] = p.Output(i)
	}
	return out
}

func leaves[T any](items []T, encode func(T, *canon.Encoder)) *canon.Tree {
	out := make([]canon.Hash, len(items))
	for i, it := range items {
		out[i] = leaf(canon.Encode(func(e *canon.Encoder) { encode(it, e) }))
	}
	return canon.NewTree(out)
}

// Encode appends what a slot is committed by.
func (s Slot) Encode(e *canon.Encoder) {
	e.String(s.Name)
	e.U8(uint8(s.Type))
	s.Shape.Encode(e)
}

// DecodeSlot reads what a slot is committed by.
func DecodeSlot(d *canon.Decoder) Slot {
	s := Slot{d.String(canon.MaxKey), tensor.DType(d.U8()), tensor.DecodeShape(d)}
	if !s.Type.Valid() {
		d.Fail("slot %q has type %v%v", s.Name, s.Type, s.Shape)
	}
	return s
}

// Trace is the roots of what the nodes of one run computed, in order.
type Trace []canon.Hash

// Root returns the trace root.
func (t Trace) Root() canon.Hash { return canon.Root(t) }
