package graph

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// Refutation shows that a program's root says something wrong about its cost. It opens the header,
// and of the rest nothing, one node, or one node and what it contradicts.
type Refutation struct {
	Header Header
	Opened []Opened // a node first
}

// Opened is a part of a program as it is committed to, and its path to the root of its list.
type Opened struct {
	List  List
	Index int
	Leaf  []byte // what is hashed; of a constant its type, its shape, and the root of its tiles
	Path  []canon.Hash
}

// List names one of the lists that a header commits to.
type List uint8

// The lists.
const (
	InNodes List = iota + 1
	InSlots
	InConsts
	InOutputs
)

// Limits on a refutation.
const (
	MaxLeaf       = 20 << 10 // bytes of a leaf; of a node with every number at its limit less
	MaxRefutation = 2*(MaxLeaf+maxPath*32) + 1<<10
	maxOpened     = 2
	maxPath       = 21 // levels of a tree over MaxNodes leaves, and one more
)

// ErrSound says that what was opened contradicts nothing.
var ErrSound = errors.New("what is opened says nothing wrong about the cost")

// String returns o for people.
func (o *Opened) String() string {
	names := [...]string{"nothing", "node", "slot", "constant", "output"}
	return fmt.Sprintf("%s %d", names[min(int(o.List), len(names))%len(names)], o.Index)
}

// seen is an opened part, decoded: one of its pointers is set.
type seen struct {
	*Opened
	node   *Leaf
	slot   *Slot // a constant has no name
	output *Output
}

// Judge returns what is wrong about the cost of the program with the given root. It executes
// nothing. An error says that nothing was shown.
func (x *Refutation) Judge(root canon.Hash) (why string, err error) {
	h := &x.Header
	if h.Root() != root {
		return "", fmt.Errorf("the header is not that of program %v", root.Short())
	}
	if len(x.Opened) > maxOpened {
		return "", fmt.Errorf("%d parts of the program are opened, at most %d are needed", len(x.Opened), maxOpened)
	}
	parts := make([]seen, len(x.Opened))
	for i := range x.Opened {
		o := &x.Opened[i]
		broken, err := parts[i].open(h, o)
		if err != nil {
			return "", fmt.Errorf("%v: %w", o, err)
		}
		if broken != nil {
			return fmt.Sprintf("%v is none: %v", o, broken), nil
		}
	}
	switch {
	case len(parts) == 0:
		why = h.alone()
	case parts[0].node == nil:
		return "", fmt.Errorf("%v is opened first, want a node", &x.Opened[0])
	default:
		why = h.node(parts[0].Index, parts[0].node)
	}
	if why == "" && len(parts) == 2 {
		why = h.contradicts(&parts[0], &parts[1])
	}
	if why == "" {
		return "", ErrSound
	}
	return why, nil
}

// open checks that o is a part of the program. What is broken, though the program's root
// commits to it, is no such part.
func (s *seen) open(h *Header, o *Opened) (broken, err error) {
	s.Opened = o
	if len(o.Leaf) > MaxLeaf {
		return nil, fmt.Errorf("a leaf of %d bytes, the limit is %d", len(o.Leaf), MaxLeaf)
	}
	hash, part := leaf(o.Leaf), Part{}
	switch o.List {
	case InNodes:
		part = h.Nodes
		broken = canon.Decode(o.Leaf, func(d *canon.Decoder) { s.node = DecodeLeaf(d) })
	case InSlots:
		part = h.Slots
		broken = canon.Decode(o.Leaf, func(d *canon.Decoder) { slot := DecodeSlot(d); s.slot = &slot })
	case InConsts:
		part = h.Consts
		var tiles canon.Hash
		s.slot = new(Slot)
		if err := canon.Decode(o.Leaf, func(d *canon.Decoder) {
			s.slot.Type, s.slot.Shape, tiles = tensor.DType(d.U8()), tensor.DecodeShape(d), d.Hash()
		}); err != nil {
			return nil, err
		}
		hash = tensor.LayoutOf(s.slot.Type, s.slot.Shape).Root(tiles)
	case InOutputs:
		part = h.Outputs
		broken = canon.Decode(o.Leaf, func(d *canon.Decoder) { out := DecodeOutput(d); s.output = &out })
	default:
		return nil, fmt.Errorf("list %d does not exist", o.List)
	}
	return broken, canon.Verify(part.Root, part.Len, o.Index, hash, o.Path)
}

// contradicts returns what cannot be true of a node and another part of its program.
func (h *Header) contradicts(n, o *seen) string {
	switch o.List {
	case InNodes:
		if n.Index < o.Index {
			return nodes(n.Index, o.Index, n.node, o.node)
		}
		return nodes(o.Index, n.Index, o.node, n.node)
	case InSlots:
		return operands(n.Index, n.node, RefSlot, o.Index, o.slot.Type, o.slot.Shape)
	case InConsts:
		return operands(n.Index, n.node, RefConst, o.Index, o.slot.Type, o.slot.Shape)
	}
	return h.output(n.Index, n.node, o.Index, o.output)
}

// alone returns what is wrong with a header by itself.
func (h *Header) alone() string {
	if h.Nodes.Len == 0 && h.Cost != (Cost{}) {
		return fmt.Sprintf("a program without nodes costs %v", h.Cost)
	}
	return ""
}

// node returns what is wrong with the leaf of node i by itself.
func (h *Header) node(i int, n *Leaf) string {
	if i == 0 && n.Before != (Cost{}) {
		return fmt.Sprintf("before the first node there are %v", n.Before)
	}
	if sum := n.Before.plus(n.Cost()); i == h.Nodes.Len-1 && sum != h.Cost {
		return fmt.Sprintf("the nodes cost %v, the header says %v", sum, h.Cost)
	}
	if n.Reader != 0 && (n.Reader <= i || n.Reader >= h.Nodes.Len+h.Outputs.Len) {
		return fmt.Sprintf("node %d is said to be read at %d, which does not come after it", i, n.Reader)
	}
	if n.Source > len(n.From) {
		return fmt.Sprintf("node %d has %d operands, and is said to follow from operand %d", i, len(n.From), n.Source)
	}
	for j, r := range n.From {
		if why := h.operand(i, n, j, r); why != "" {
			return why
		}
	}
	return ""
}

// operand returns what is wrong with what node i says by itself of an operand.
func (h *Header) operand(i int, n *Leaf, j int, r Ref) string {
	a, shape, typ := &n.Args[j], tensor.Shape(nil), tensor.DType(0)
	exists := r.Group == 0
	switch r.Kind {
	case RefNode:
		exists = exists && r.Index < i
	case RefSlot:
		exists = r.Index < h.Slots.Len && r.Group < h.Groups
	case RefConst:
		exists = exists && r.Index < h.Consts.Len
	case RefData:
		exists, typ, shape = exists && r.Index == 0 && h.DataType != 0, h.DataType, h.DataShape
	case RefRows:
		exists, typ, shape = exists && r.Index == 0 && h.Rows > 0, tensor.Int64, tensor.Shape{h.Rows}
	default:
		exists = false
	}
	switch {
	case !exists:
		return fmt.Sprintf("node %d reads %v, which does not exist there", i, r)
	case typ != 0 && (typ != a.Type || !shape.Equal(a.Shape)):
		return fmt.Sprintf("node %d reads the %v as %v%v, they are %v%v", i, r, a.Type, a.Shape, typ, shape)
	case r.varies() && n.Source == 0:
		return fmt.Sprintf("node %d is said to be constant, and reads %v", i, r)
	case r.Kind == RefConst && n.Source == j+1:
		return fmt.Sprintf("node %d is said to follow from %v", i, r)
	}
	return ""
}

// operands returns what is wrong with how node i reads a slot or a constant.
func operands(i int, n *Leaf, kind RefKind, index int, typ tensor.DType, shape tensor.Shape) string {
	for j, r := range n.From {
		if a := &n.Args[j]; r.Kind == kind && r.Index == index && (typ != a.Type || !shape.Equal(a.Shape)) {
			return fmt.Sprintf("node %d reads %v as %v%v, it is %v%v", i, r, a.Type, a.Shape, typ, shape)
		}
	}
	return ""
}

// nodes returns what cannot be true of two nodes, of which a, number lo, comes first.
func nodes(lo, hi int, a, b *Leaf) string {
	if lo == hi { // a leaf is judged by itself elsewhere
		return ""
	}
	if sum := a.Before.plus(a.Cost()); hi == lo+1 && sum != b.Before {
		return fmt.Sprintf("the nodes up to %d cost %v, node %d says %v", lo, sum, hi, b.Before)
	}
	if why := operands(hi, b, RefNode, lo, a.Type, a.Shape); why != "" {
		return why
	}
	reads := false
	for j, r := range b.From {
		if r != (Ref{Kind: RefNode, Index: lo}) {
			continue
		}
		reads = true
		if b.Source == j+1 && a.Source == 0 {
			return fmt.Sprintf("node %d is said to follow from node %d, which is constant", hi, lo)
		}
		if b.Source == 0 && a.Source != 0 {
			return fmt.Sprintf("node %d is said to be constant, and reads node %d, which is not", hi, lo)
		}
	}
	switch {
	case a.Reader == hi && !reads:
		return fmt.Sprintf("node %d is said to be read by node %d, which does not read it", lo, hi)
	case a.Reader == hi && b.Reader == 0:
		return fmt.Sprintf("node %d is said to be read by node %d, which is of no use", lo, hi)
	case a.Reader == 0 && reads && b.Reader != 0:
		return fmt.Sprintf("node %d is said to be of no use, and node %d reads it", lo, hi)
	}
	return ""
}

// output returns what cannot be true of node i and output q.
func (h *Header) output(i int, n *Leaf, q int, o *Output) string {
	reads := o.From == Ref{Kind: RefNode, Index: i}
	switch {
	case n.Reader == h.Nodes.Len+q && !reads:
		return fmt.Sprintf("node %d is said to be output %d, which is %v", i, q, o.From)
	case n.Reader == 0 && reads:
		return fmt.Sprintf("node %d is said to be of no use, and is output %d", i, q)
	case reads && (o.Slot.Type != n.Type || !o.Slot.Shape.Equal(n.Shape)):
		return fmt.Sprintf("node %d gives %v%v, output %d is %v%v", i, n.Type, n.Shape, q, o.Slot.Type, o.Slot.Shape)
	}
	return ""
}

// Refute returns what shows that c says something wrong about its program's cost, nil if it
// does not. What [Program.Commit] returns never does.
func (c *Commitment) Refute() *Refutation {
	if c.alone() != "" {
		return c.Open()
	}
	at := func(l List, i int) Opened { return Opened{List: l, Index: i} }
	for i := range c.Leaves {
		n := &c.Leaves[i]
		me := at(InNodes, i)
		if !n.whole() || c.node(i, n) != "" {
			return c.Open(me)
		}
		if i > 0 && nodes(i-1, i, &c.Leaves[i-1], n) != "" {
			return c.Open(me, at(InNodes, i-1))
		}
		for _, r := range n.From {
			if o := c.source(i, n, r); o != nil {
				return c.Open(me, *o)
			}
		}
		if r := n.Reader; r >= len(c.Leaves) {
			if q := r - len(c.Leaves); c.output(i, n, q, &c.outputs[q]) != "" {
				return c.Open(me, at(InOutputs, q))
			}
		} else if r > 0 && c.Leaves[r].whole() && nodes(i, r, n, &c.Leaves[r]) != "" {
			return c.Open(me, at(InNodes, r))
		}
	}
	for q := range c.outputs {
		if r := c.outputs[q].From; r.Kind == RefNode && r.Index < len(c.Leaves) && c.output(r.Index, &c.Leaves[r.Index], q, &c.outputs[q]) != "" {
			return c.Open(at(InNodes, r.Index), at(InOutputs, q))
		}
	}
	return nil
}

// whole reports whether n can be read once it is encoded.
func (n *Leaf) whole() bool { return len(n.From) == len(n.Args) && n.Check() == nil }

// source returns what node i reads as r, if it contradicts the node.
func (c *Commitment) source(i int, n *Leaf, r Ref) *Opened {
	why, list := "", InNodes
	switch r.Kind {
	case RefNode:
		why = nodes(r.Index, i, &c.Leaves[r.Index], n)
	case RefSlot:
		s := &c.program.Slots[r.Index]
		list, why = InSlots, operands(i, n, r.Kind, r.Index, s.Type, s.Shape)
	case RefConst:
		t := c.program.Consts[r.Index]
		list, why = InConsts, operands(i, n, r.Kind, r.Index, t.Type, t.Shape)
	}
	if why == "" {
		return nil
	}
	return &Opened{List: list, Index: r.Index}
}

// Open returns a refutation that opens parts of c, which are named by their lists and numbers.
func (c *Commitment) Open(parts ...Opened) *Refutation {
	for i := range parts {
		o := &parts[i]
		switch o.List {
		case InNodes:
			o.Leaf, o.Path = canon.Encode(c.Leaves[o.Index].Encode), c.NodeTree.Prove(o.Index)
		case InSlots:
			o.Leaf, o.Path = canon.Encode(c.program.Slots[o.Index].Encode), c.SlotTree.Prove(o.Index)
		case InConsts:
			t := c.program.Consts[o.Index]
			o.Path = c.ConstTree.Prove(o.Index)
			o.Leaf = canon.Encode(func(e *canon.Encoder) {
				e.U8(uint8(t.Type))
				t.Shape.Encode(e)
				e.Hash(canon.Root(t.Leaves()))
			})
		case InOutputs:
			o.Leaf, o.Path = canon.Encode(c.outputs[o.Index].Encode), c.OutputTree.Prove(o.Index)
		}
	}
	return &Refutation{c.Header, parts}
}

// Code walks the fields of x.
func (x *Refutation) Code(w *canon.Codec) {
	canon.With(w, &x.Header, func(h Header, e *canon.Encoder) { h.Encode(e) }, func(d *canon.Decoder) Header { return *DecodeHeader(d) })
	canon.Seq(w, &x.Opened, maxOpened, 4, func(w *canon.Codec, o *Opened) {
		w.U8((*uint8)(&o.List))
		w.Int(&o.Index, MaxNodes)
		w.Blob(&o.Leaf, MaxLeaf)
		w.Hashes(&o.Path, maxPath)
	})
}
