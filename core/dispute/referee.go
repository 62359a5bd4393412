package dispute

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Block ends a game: it brings the operands of the fold block in hand, so that
// the referee can compute it. Record numbers need no source: they follow from
// the claim.
type Block struct {
	Sources []Source
	Tiles   []OperandTile
}

// Source proves the root of the tensor that operand Arg reads. Tiles is the root
// of the tensor's tree of tiles.
type Source struct {
	Arg   int
	Tiles canon.Hash
	Provenance
}

// Provenance proves the root of the tensor that a graph.Ref names. For a node,
// Path leads from it to an agreed subtree of the trace; for a constant, to the
// program's constants; a slot of a start state needs Slot; the data need
// nothing, the claim has their root.
type Provenance struct {
	Path []canon.Hash
	Slot *SlotProof
}

// SlotProof opens a slot in the program and its tensor in a start state.
type SlotProof struct {
	Slot  graph.Slot
	Path  []canon.Hash
	State canon.Opening
}

// OperandTile is one tile of an operand.
type OperandTile struct {
	Arg, Tile int
	Content   []byte
	Path      []canon.Hash
}

// Output ends a game over a slot of the resulting state: it opens the slot with the
// ref that fills it, and proves the root of the tensor that the ref names.
type Output struct {
	Output graph.Output
	Opened []canon.Hash // path of the output in the program
	Root   canon.Hash
	Provenance
}

func (m *Block) fits(s Stage) bool  { return s == ProveBlock }
func (m *Output) fits(s Stage) bool { return s == ProveOutput }

// play lets the referee compute the block in hand.
func (m *Block) play(g *Game) error {
	tiles, err := m.open(g)
	if err != nil {
		return err
	}
	op := g.Opcode
	state, err := Recompute(op.Primitive, g.Element, g.From, g.FromState, func(arg, i int) (tensor.Word, error) {
		if op.From[arg].Kind == graph.RefRows {
			return tensor.Word(g.Claim.Batch.Row(g.Lo, i)), nil
		}
		l := tensor.LayoutOf(op.Args[arg].Type, op.Args[arg].Shape)
		tile, place := l.Find(i)
		b, ok := tiles[[2]int{arg, tile}]
		if !ok {
			return 0, bad("tile %d of operand %d is missing", tile, arg)
		}
		return l.Word(b, place), nil
	})
	if err != nil {
		return err
	}
	if slices.Equal(state, g.ToState) {
		g.end(Challenger, fmt.Sprintf("fold block %d of node %d (%s) is as claimed", g.From, g.Node, op.Origin.Op))
	} else {
		g.end(Defender, fmt.Sprintf("fold block %d of node %d (%s) is not what its operands give", g.From, g.Node, op.Origin.Op))
	}
	return nil
}

// open checks all openings of m and returns the tiles by operand and number.
func (m *Block) open(g *Game) (map[[2]int][]byte, error) {
	op := g.Opcode
	roots := make(map[int]canon.Hash, len(m.Sources))
	for _, s := range m.Sources {
		if s.Arg >= len(op.From) {
			return nil, bad("node %d has no operand %d", g.Node, s.Arg)
		}
		a := op.Args[s.Arg]
		root := tensor.LayoutOf(a.Type, a.Shape).Root(s.Tiles)
		if err := g.provenance(op.From[s.Arg], root, s.Provenance); err != nil {
			return nil, bad("operand %d: %v", s.Arg, err)
		}
		roots[s.Arg] = s.Tiles
	}
	tiles := make(map[[2]int][]byte, len(m.Tiles))
	for _, t := range m.Tiles {
		root, ok := roots[t.Arg]
		if !ok {
			return nil, bad("a tile of operand %d comes without its source", t.Arg)
		}
		l := tensor.LayoutOf(op.Args[t.Arg].Type, op.Args[t.Arg].Shape)
		if t.Tile >= l.Tiles() || len(t.Content) != l.TileBytes(t.Tile) {
			return nil, bad("tile %d of operand %d has %d bytes", t.Tile, t.Arg, len(t.Content))
		}
		if err := canon.Verify(root, l.Tiles(), t.Tile, tensor.TileHash(t.Content), t.Path); err != nil {
			return nil, bad("tile %d of operand %d: %v", t.Tile, t.Arg, err)
		}
		tiles[[2]int{t.Arg, t.Tile}] = t.Content
	}
	return tiles, nil
}

// Recompute runs one fold block of an element, or the whole element if it has
// none, on the state before it, which the first block does not need. It returns
// the state after it: after the last, the element itself.
func Recompute(p *tensor.Primitive, element, block int, state []tensor.Word, load tensor.Load) ([]tensor.Word, error) {
	c := tensor.NewCell(p, load)
	if err := c.Seek(element); err != nil {
		return nil, bad("%v", err)
	}
	s := slices.Clone(state) // Run may reuse the state it starts from
	var err error
	if block == 0 {
		if s, err = c.Start(); err != nil {
			return nil, err
		}
	}
	blocks := p.Blocks()
	if blocks > 0 {
		lo, hi := p.Block(block)
		if s, err = c.Run(s, lo, hi); err != nil {
			return nil, err
		}
	}
	if block+1 == max(blocks, 1) {
		w, err := c.Finish(s)
		return []tensor.Word{w}, err
	}
	return s, nil
}

// provenance checks that the tensor which ref names has the given root.
func (g *Game) provenance(ref graph.Ref, root canon.Hash, p Provenance) error {
	switch ref.Kind {
	case graph.RefNode:
		for _, s := range g.Agreed {
			if s.Span.Has(ref.Index) {
				h, err := s.Span.Climb(ref.Index, root, p.Path)
				if err == nil && h != s.Hash {
					err = canon.ErrProof
				}
				return err
			}
		}
		return fmt.Errorf("node %d is not agreed on", ref.Index)
	case graph.RefSlot:
		return g.slotProvenance(ref, root, p.Slot)
	case graph.RefConst:
		return canon.Verify(g.Header.Consts.Root, g.Header.Consts.Len, ref.Index, root, p.Path)
	case graph.RefData:
		if root != g.Claim.Data {
			return fmt.Errorf("these are not the order's data")
		}
		return nil
	}
	return fmt.Errorf("%v has no source", ref)
}

func (g *Game) slotProvenance(ref graph.Ref, root canon.Hash, p *SlotProof) error {
	inputs := g.Inputs()
	if p == nil || ref.Group >= len(inputs) {
		return fmt.Errorf("slot %d of start state %d is not opened", ref.Index, ref.Group)
	}
	if err := g.Header.Slots.Open(ref.Index, p.Slot.Encode, p.Path); err != nil {
		return err
	}
	if p.State.Entry.Key != p.Slot.Name || p.State.Entry.Value != root {
		return fmt.Errorf("the opening of slot %q shows %q", p.Slot.Name, p.State.Entry.Key)
	}
	return p.State.Verify(inputs[ref.Group])
}

// play compares the slot in hand with what the agreed trace puts there.
func (m *Output) play(g *Game) error {
	q := g.Span.Lo
	if err := g.Header.Outputs.Open(q, m.Output.Encode, m.Opened); err != nil {
		return bad("output %d: %v", q, err)
	}
	if err := g.provenance(m.Output.From, m.Root, m.Provenance); err != nil {
		return bad("output %d: %v", q, err)
	}
	name := m.Output.Slot.Name
	if (canon.Entry{Key: name, Value: m.Root}).Leaf() == g.Top {
		g.end(Challenger, fmt.Sprintf("slot %q holds what the trace says", name))
	} else {
		g.end(Defender, fmt.Sprintf("slot %q does not hold what the trace says", name))
	}
	return nil
}

// Code walks the fields of m.
func (m *Block) Code(c *canon.Codec) {
	canon.Seq(c, &m.Sources, tensor.MaxArgs, 34, func(c *canon.Codec, s *Source) {
		c.Int(&s.Arg, tensor.MaxArgs)
		c.Hash(&s.Tiles)
		s.Provenance.code(c)
	})
	canon.Seq(c, &m.Tiles, maxPosted, 4, func(c *canon.Codec, t *OperandTile) {
		c.Int(&t.Arg, tensor.MaxArgs)
		c.Int(&t.Tile, tensor.MaxElements)
		c.Blob(&t.Content, maxTile)
		c.Hashes(&t.Path, maxPath)
	})
}

// Code walks the fields of m.
func (m *Output) Code(c *canon.Codec) {
	canon.With(c, &m.Output, graph.Output.Encode, graph.DecodeOutput)
	c.Hashes(&m.Opened, maxPath)
	c.Hash(&m.Root)
	m.Provenance.code(c)
}

func (p *Provenance) code(c *canon.Codec) {
	c.Hashes(&p.Path, maxPath)
	optional(c, &p.Slot, func(c *canon.Codec, s *SlotProof) {
		canon.With(c, &s.Slot, graph.Slot.Encode, graph.DecodeSlot)
		c.Hashes(&s.Path, maxPath)
		c.Int(&s.State.N, graph.MaxSlots)
		c.Int(&s.State.Index, graph.MaxSlots)
		c.String(&s.State.Entry.Key, canon.MaxKey)
		c.Hash(&s.State.Entry.Value)
		c.Hashes(&s.State.Path, maxPath)
	})
}
