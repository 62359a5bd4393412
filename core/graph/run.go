package graph

import (
	"fmt"

	"github.com/tally-network/tally/core/tensor"
)

// Inputs are what one run of a program reads.
type Inputs struct {
	States []*State       // one for each group
	Data   *tensor.Tensor // the training records
	Crown  *tensor.Crown  // of Data, if only the tiles that Rows name need be here, and the others of their runs
	Rows   []int64        // the batch: which records, of Data or of a state

	// Spare, if any, is a state of the result's slots that nobody reads any more, but
	// for tensors that are also in States. An executor may put the new state into
	// its memory, and then leaves it without tensors.
	Spare *State
}

// Kernel computes one node from its operands, which it must neither change nor
// keep. It must return the bits that tensor.Primitive.Eval defines.
type Kernel func(i int, n *Opcode, args []*tensor.Tensor) (*tensor.Tensor, error)

// Reference is the kernel that evaluates every node by its definition.
func Reference(_ int, n *Opcode, args []*tensor.Tensor) (*tensor.Tensor, error) { return n.Eval(args) }

// Observer sees the output of each node, in order. It must not change it, and
// must copy what it keeps: executors use the memory again.
type Observer func(i int, out *tensor.Tensor) error

// Run executes a checked program with the given kernel and returns the new
// state. Intermediate tensors are let go as soon as nothing reads them.
func (p *Program) Run(in Inputs, kernel Kernel, observe Observer) (*State, error) {
	outside, err := p.Bind(in)
	if err != nil {
		return nil, err
	}
	values := make([]*tensor.Tensor, len(p.Nodes))
	last := p.lastUse()
	get := func(r Ref) *tensor.Tensor {
		if r.Kind == RefNode {
			return values[r.Index]
		}
		return outside(r)
	}
	args := make([]*tensor.Tensor, 0, tensor.MaxArgs)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		args = args[:0]
		for _, r := range n.From {
			args = append(args, get(r))
		}
		if values[i], err = kernel(i, n, args); err != nil {
			return nil, fmt.Errorf("node %d (%s): %w", i, n.Origin.Op, err)
		}
		if observe != nil {
			if err := observe(i, values[i]); err != nil {
				return nil, err
			}
		}
		for _, r := range n.From {
			if r.Kind == RefNode && last[r.Index] == i {
				values[r.Index] = nil
			}
		}
		if last[i] == unused {
			values[i] = nil
		}
	}
	out := &State{Slots: p.Gives(), Tensors: make([]*tensor.Tensor, len(p.Outputs))}
	for i, r := range p.Outputs {
		out.Tensors[i] = get(r)
	}
	return out, nil
}

// Bind checks the inputs and returns what refs to them mean, other than RefNode.
func (p *Program) Bind(in Inputs) (func(Ref) *tensor.Tensor, error) {
	if len(in.States) != p.Groups {
		return nil, fmt.Errorf("program reads %d states, got %d", p.Groups, len(in.States))
	}
	slot, err := p.bindSlots(in.States)
	if err != nil {
		return nil, err
	}
	if p.Data != nil && (in.Data == nil || in.Data.Type != p.Data.Type || !in.Data.Shape.Equal(p.Data.Shape)) {
		return nil, fmt.Errorf("program reads data of type %v%v", p.Data.Type, p.Data.Shape)
	}
	var rows *tensor.Tensor
	if p.Rows > 0 {
		if rows, err = tensor.From(tensor.Shape{p.Rows}, in.Rows); err != nil {
			return nil, fmt.Errorf("batch: %w", err)
		}
	}
	return func(r Ref) *tensor.Tensor {
		switch r.Kind {
		case RefSlot:
			return slot(r)
		case RefConst:
			return p.Consts[r.Index]
		case RefData:
			return in.Data
		}
		return rows
	}, nil
}

// bindSlots checks the states and returns what a RefSlot means.
func (p *Program) bindSlots(states []*State) (func(Ref) *tensor.Tensor, error) {
	if !p.Mixed {
		for _, s := range states {
			if err := s.Fits(p.Slots); err != nil {
				return nil, err
			}
		}
		return func(r Ref) *tensor.Tensor { return states[r.Group].Tensors[r.Index] }, nil
	}
	found := map[Ref]*tensor.Tensor{}
	for _, r := range p.SlotsRead() {
		slot := p.Slots[r.Index]
		t := states[r.Group].Find(slot.Name)
		if t == nil || t.Type != slot.Type || !t.Shape.Equal(slot.Shape) {
			return nil, fmt.Errorf("state %d has no %q %v%v, which the program reads", r.Group, slot.Name, slot.Type, slot.Shape)
		}
		found[r] = t
	}
	return func(r Ref) *tensor.Tensor { return found[r] }, nil
}

// SlotsRead returns the slots that nodes and outputs read, each once, in the order in which they do.
func (p *Program) SlotsRead() (refs []Ref) {
	seen := map[Ref]bool{}
	note := func(from []Ref) {
		for _, r := range from {
			if r.Kind == RefSlot && !seen[r] {
				seen[r], refs = true, append(refs, r)
			}
		}
	}
	for i := range p.Nodes {
		note(p.Nodes[i].From)
	}
	note(p.Outputs)
	return refs
}

// unused and kept mark nodes that no node reads, and those that outputs read.
const (
	unused = -1
	kept   = MaxNodes + 1
)

func (p *Program) lastUse() []int {
	last := make([]int, len(p.Nodes))
	for i := range last {
		last[i] = unused
	}
	for i := range p.Nodes {
		for _, r := range p.Nodes[i].From {
			if r.Kind == RefNode {
				last[r.Index] = i
			}
		}
	}
	for _, r := range p.Outputs {
		if r.Kind == RefNode {
			last[r.Index] = kept
		}
	}
	return last
}

// Peak returns the bytes of the outputs of nodes that are in use at once, at
// most, when p runs in order: of those that are computed and either still to be
// read or part of the new state. What a run is given is not counted.
func (p *Program) Peak() int {
	last := p.lastUse()
	size := func(i int) int { return p.Nodes[i].Shape.Elements() * p.Nodes[i].Type.Size() }
	live, peak := 0, 0
	for i := range p.Nodes {
		live += size(i)
		peak = max(peak, live)
		if last[i] == unused {
			live -= size(i)
		}
		for _, r := range p.Nodes[i].From {
			if r.Kind == RefNode && last[r.Index] == i {
				live -= size(r.Index)
				last[r.Index] = kept // a node may read it twice
			}
		}
	}
	return peak
}
