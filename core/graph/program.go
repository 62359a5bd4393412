package graph

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// Program turns Groups states, and a batch of data, into one
// state. A training step has one group; a merge has one for each shard. Whose results
// have the slots of what it reads can go on from what it gave.
type Program struct {
	Groups  int
	Slots   []Slot // of the states that it reads
	Mixed   bool   // states differ in their slots: Slots are those that are read of any, and each state has those that are read of it
	Results []Slot // of the state that it gives; nil if they are Slots
	Data    *Slot  // records × columns, if the program reads a batch
	Rows    int    // records in a batch
	Consts  []*tensor.Tensor
	Nodes   []Opcode
	Outputs []Ref // the value of each slot of the result
}

// Gives returns the slots of the state that p gives.
func (p *Program) Gives() []Slot {
	if p.Results != nil {
		return p.Results
	}
	return p.Slots
}

// Opcode is one node: a primitive and where its operands come from.
type Opcode struct {
	*tensor.Primitive
	From   []Ref
	Origin Origin
}

// Origin names the node of the step graph that an opcode was lowered from.
type Origin struct {
	Node int
	Op   string
}

// Ref names a tensor that a node can read.
type Ref struct {
	Kind  RefKind
	Index int
	Group int // of a slot
}

// RefKind says what a Ref refers to.
type RefKind uint8

// The kinds of Ref.
const (
	RefNode  RefKind = iota + 1 // output of an earlier node
	RefSlot                     // slot Index of start state Group
	RefConst                    // constant of the program
	RefData                     // the training records
	RefRows                     // int64 numbers of the records of the batch, which follow from the order
)

// String returns a short form for people.
func (r Ref) String() string {
	switch r.Kind {
	case RefNode:
		return fmt.Sprintf("%%%d", r.Index)
	case RefSlot:
		return fmt.Sprintf("slot %d of state %d", r.Index, r.Group)
	case RefConst:
		return fmt.Sprintf("constant %d", r.Index)
	case RefData:
		return "data"
	case RefRows:
		return "rows"
	}
	return "nothing"
}

// Typed returns the element type and shape of what r refers to when seen from
// node at (use len(Nodes) for outputs).
func (p *Program) Typed(r Ref, at int) (tensor.DType, tensor.Shape, error) {
	bad := func() (tensor.DType, tensor.Shape, error) {
		return 0, nil, fmt.Errorf("node %d refers to %v, which does not exist there", at, r)
	}
	if r.Index < 0 || r.Kind != RefSlot && r.Group != 0 {
		return bad()
	}
	switch r.Kind {
	case RefNode:
		if r.Index < min(at, len(p.Nodes)) {
			return p.Nodes[r.Index].Type, p.Nodes[r.Index].Shape, nil
		}
	case RefSlot:
		if r.Index < len(p.Slots) && r.Group >= 0 && r.Group < p.Groups {
			return p.Slots[r.Index].Type, p.Slots[r.Index].Shape, nil
		}
	case RefConst:
		if r.Index < len(p.Consts) {
			return p.Consts[r.Index].Type, p.Consts[r.Index].Shape, nil
		}
	case RefData:
		if p.Data != nil && r.Index == 0 {
			return p.Data.Type, p.Data.Shape, nil
		}
	case RefRows:
		if p.Rows > 0 && r.Index == 0 {
			return tensor.Int64, tensor.Shape{p.Rows}, nil
		}
	}
	return bad()
}

// Check returns an error unless every node is well-formed, reads only what is
// computed before it, and every slot gets a new value of its own type.
func (p *Program) Check() error {
	if p.Groups < 1 || len(p.Slots) > MaxSlots || len(p.Nodes) > MaxNodes {
		return fmt.Errorf("program with %d states, %d slots, %d nodes", p.Groups, len(p.Slots), len(p.Nodes))
	}
	if p.Data != nil && (len(p.Data.Shape) != 2 || p.Data.Shape[0] < 1 || p.Rows < 1) {
		return fmt.Errorf("program reads batches of %d records from data of shape %v", p.Rows, p.Data.Shape)
	}
	if p.Rows < 0 || p.Rows > tensor.MaxElements {
		return fmt.Errorf("program reads batches of %d records", p.Rows)
	}
	if err := p.checkSlots(); err != nil {
		return err
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if err := n.Check(); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
		if len(n.From) != len(n.Args) {
			return fmt.Errorf("node %d has %d operands and %d sources", i, len(n.Args), len(n.From))
		}
		for j, r := range n.From {
			t, s, err := p.Typed(r, i)
			if err != nil {
				return err
			}
			if t != n.Args[j].Type || !s.Equal(n.Args[j].Shape) {
				return fmt.Errorf("node %d, operand %d: %v is %v%v, wanted %v%v", i, j, r, t, s, n.Args[j].Type, n.Args[j].Shape)
			}
		}
	}
	for i, r := range p.Outputs {
		t, s, err := p.Typed(r, len(p.Nodes))
		if err != nil {
			return err
		}
		if slot := p.Gives()[i]; t != slot.Type || !s.Equal(slot.Shape) {
			return fmt.Errorf("slot %q gets %v%v, holds %v%v", slot.Name, t, s, slot.Type, slot.Shape)
		}
	}
	return p.checkCost()
}

// checkSlots returns an error unless there is a value for every slot of the result, and
// each slot has a name of its own, in order.
func (p *Program) checkSlots() error {
	gives := p.Gives()
	if len(gives) == 0 || len(gives) > MaxSlots || len(p.Outputs) != len(gives) {
		return fmt.Errorf("program gives %d values for %d slots", len(p.Outputs), len(gives))
	}
	for i := 1; p.Mixed && i < len(p.Slots); i++ { // they are found by their names
		if p.Slots[i-1].Name >= p.Slots[i].Name {
			return fmt.Errorf("slot %q comes after %q", p.Slots[i].Name, p.Slots[i-1].Name)
		}
	}
	for i := 1; i < len(p.Results); i++ {
		if p.Results[i-1].Name >= p.Results[i].Name {
			return fmt.Errorf("result %q comes after %q", p.Results[i].Name, p.Results[i-1].Name)
		}
	}
	return nil
}

// Encode appends the canonical encoding of r.
func (r Ref) Encode(e *canon.Encoder) {
	e.U8(uint8(r.Kind))
	e.Uint(uint64(r.Index))
	e.Uint(uint64(r.Group))
}

// DecodeRef reads what Encode wrote.
func DecodeRef(d *canon.Decoder) Ref {
	return Ref{RefKind(d.U8()), int(d.Uint(MaxNodes)), int(d.Uint(MaxNodes))}
}

// Encode appends the canonical encoding of n.
func (n *Opcode) Encode(e *canon.Encoder) {
	n.Primitive.Encode(e)
	canon.List(e, n.From, func(e *canon.Encoder, r Ref) { r.Encode(e) })
	e.Uint(uint64(n.Origin.Node))
	e.String(n.Origin.Op)
}

// DecodeOpcode reads what Encode wrote and checks the primitive.
func DecodeOpcode(d *canon.Decoder) *Opcode {
	n := &Opcode{Primitive: tensor.DecodePrimitive(d)}
	n.From = canon.ReadList(d, tensor.MaxArgs, 3, DecodeRef)
	n.Origin = Origin{int(d.Uint(MaxNodes)), d.String(MaxName)}
	if d.Err() == nil && len(n.From) != len(n.Args) {
		d.Fail("%d sources for %d operands", len(n.From), len(n.Args))
	}
	return n
}
