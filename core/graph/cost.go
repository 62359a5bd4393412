package graph

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
)

// Cost is what computing takes: floating-point operations, and the bytes that move between
// memory and the processor if nothing is fused.
type Cost struct{ FLOPs, Bytes uint64 }

// MaxCost bounds either part of a program's cost.
const MaxCost = 1 << 60

// plus cannot overflow where c is at most MaxCost and d the cost of one primitive.
func (c Cost) plus(d Cost) Cost { return Cost{c.FLOPs + d.FLOPs, c.Bytes + d.Bytes} }

// String returns c for people.
func (c Cost) String() string { return fmt.Sprintf("%d FLOP and %d bytes", c.FLOPs, c.Bytes) }

// Encode appends the canonical encoding of c.
func (c Cost) Encode(e *canon.Encoder) {
	e.Uint(c.FLOPs)
	e.Uint(c.Bytes)
}

// DecodeCost reads what Encode wrote.
func DecodeCost(d *canon.Decoder) Cost { return Cost{d.Uint(MaxCost), d.Uint(MaxCost)} }

// Leaf is what a node is committed by. A node costs something only if an output of the program
// follows from it, and it follows itself from what differs between runs: the Reader shows the
// one, the Source the other. Before sums up the nodes before it, so that a leaf that says
// something wrong is refuted by itself and at most one other part of the program (Refutation).
type Leaf struct {
	Opcode
	Before Cost // of all nodes before it
	Reader int  // what reads it and is of use: a later node, or from the number of nodes on an output; 0: nothing
	Source int  // the operand, counted from 1, that differs between runs; 0: none does
}

// Cost returns what the node costs, by what the leaf says.
func (n *Leaf) Cost() Cost {
	if n.Reader == 0 || n.Source == 0 {
		return Cost{}
	}
	f, b := n.Primitive.Cost()
	return Cost{uint64(f), uint64(b)}
}

// Encode appends the canonical encoding of n.
func (n *Leaf) Encode(e *canon.Encoder) {
	n.Opcode.Encode(e)
	n.Before.Encode(e)
	e.Uint(uint64(n.Reader))
	e.Uint(uint64(n.Source))
}

// DecodeLeaf reads what Encode wrote and checks the primitive.
func DecodeLeaf(d *canon.Decoder) *Leaf {
	return &Leaf{Opcode: *DecodeOpcode(d), Before: DecodeCost(d), Reader: int(d.Uint(MaxNodes + MaxSlots)), Source: int(d.Uint(MaxNodes))}
}

// varies reports whether a tensor differs between runs whatever its nodes are.
func (r Ref) varies() bool { return r.Kind == RefSlot || r.Kind == RefData || r.Kind == RefRows }

// Leaves returns what the nodes of a checked program are committed by.
func (p *Program) Leaves() []Leaf {
	out := make([]Leaf, len(p.Nodes))
	for i := range out {
		n := &out[i]
		n.Opcode = p.Nodes[i]
		for j, r := range n.From {
			if r.varies() || r.Kind == RefNode && out[r.Index].Source != 0 {
				n.Source = j + 1
				break
			}
		}
	}
	read := func(r Ref, by int) {
		if r.Kind == RefNode {
			out[r.Index].Reader = by
		}
	}
	for q := len(p.Outputs) - 1; q >= 0; q-- { // backwards, so that the first reader stays
		read(p.Outputs[q], len(out)+q)
	}
	for i := len(out) - 1; i >= 0; i-- {
		for _, r := range out[i].From {
			if out[i].Reader != 0 {
				read(r, i)
			}
		}
	}
	for i := 1; i < len(out); i++ {
		out[i].Before = out[i-1].Before.plus(out[i-1].Cost())
	}
	return out
}

// Cost returns what one run of a checked program costs. Nodes that no output needs, or that
// give the same in every run, count for nothing.
func (p *Program) Cost() Cost { return total(p.Leaves()) }

func total(leaves []Leaf) Cost {
	if len(leaves) == 0 {
		return Cost{}
	}
	last := &leaves[len(leaves)-1]
	return last.Before.plus(last.Cost())
}

// checkCost returns an error if the nodes cost more than can be counted.
func (p *Program) checkCost() error {
	var sum Cost
	for i := range p.Nodes {
		f, b := p.Nodes[i].Cost()
		if sum = sum.plus(Cost{uint64(f), uint64(b)}); max(sum.FLOPs, sum.Bytes) > MaxCost {
			return fmt.Errorf("up to node %d the program costs %v, the limit is %d of each", i, sum, uint64(MaxCost))
		}
	}
	return nil
}
