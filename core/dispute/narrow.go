package dispute

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

func (m *Roots) play(g *Game) error {
	if len(m.Roots) != len(g.Cuts()) {
		return bad("%d state roots posted, %d wanted", len(m.Roots), len(g.Cuts()))
	}
	g.Posted, g.Stage = m.Roots, PickRoot
	return nil
}

func (m *Concede) play(g *Game) error {
	g.end(g.Stage.Turn(), fmt.Sprintf("the %v has conceded", g.Stage.Turn()))
	return nil
}

func (m *Trace) play(g *Game) error {
	h := m.Header
	if h.Root() != g.Claim.Program {
		return bad("the header is not that of program %v", g.Claim.Program.Short())
	}
	if h.Nodes.Len < 1 || h.Outputs.Len < 1 || h.Groups != len(g.Claim.Inputs) {
		return bad("program of %d nodes, %d outputs, %d states", h.Nodes.Len, h.Outputs.Len, h.Groups)
	}
	g.Header, g.Tree, g.Span = &h, TraceTree, canon.Full(h.Nodes.Len)
	top, err := g.Span.Join(g.Rules.Depth, m.Below)
	if err != nil {
		return bad("trace: %v", err)
	}
	g.Top, g.Posted, g.Stage = top, m.Below, PickTrace
	return nil
}

func (m *Below) play(g *Game) error {
	top, err := g.Span.Join(g.Rules.Depth, m.Below)
	if err != nil {
		return bad("subtrees: %v", err)
	}
	if g.Tree == OutputTree && g.Span == canon.Full(g.Header.Outputs.Len) {
		if canon.RootOf(g.Span.N, top) != g.HiRoot {
			return bad("the slots do not make up the disputed state")
		}
		g.Top = top
	}
	if top != g.Top {
		return bad("the subtrees do not make up the one in hand")
	}
	g.posted(m.Below)
	return nil
}

// posted takes the subtrees below the one in hand; a single one needs no pick.
func (g *Game) posted(below []canon.Hash) {
	if len(below) == 1 {
		g.leaf()
		return
	}
	g.Posted, g.Stage = below, PickSubtree
}

func (m *Node) play(g *Game) error {
	if err := g.Header.Nodes.Open(g.Node, m.Leaf.Encode, m.Path); err != nil {
		return bad("node %d: %v", g.Node, err)
	}
	op := m.Leaf.Opcode
	if g.Claim.Sequence != nil && slices.ContainsFunc(op.From, func(r graph.Ref) bool { return r.Kind == graph.RefData || r.Kind == graph.RefRows }) {
		return bad("node %d reads records, and a reply has none", g.Node)
	}
	l := tensor.LayoutOf(op.Type, op.Shape)
	if l.Tiles() == 0 { // an empty tensor has one possible root
		if g.Top == l.Root(canon.Root(nil)) {
			g.end(Challenger, "the output of the picked node is empty, as claimed")
		} else {
			g.end(Defender, "the output of the picked node is empty, and not claimed so")
		}
		return nil
	}
	g.Tree, g.Span = TileTree, canon.Full(l.Tiles())
	top, err := g.Span.Join(g.Rules.Depth, m.Below)
	if err != nil {
		return bad("tiles: %v", err)
	}
	if l.Root(canon.RootOf(l.Tiles(), top)) != g.Top {
		return bad("the tiles do not make up the output of node %d", g.Node)
	}
	g.Opcode, g.Top = &op, top
	g.posted(m.Below)
	return nil
}

func (m *Tile) play(g *Game) error {
	l := tensor.LayoutOf(g.Opcode.Type, g.Opcode.Shape)
	if len(m.Content) != l.TileBytes(g.Tile) || tensor.TileHash(m.Content) != g.Top {
		return bad("these are not the bytes of tile %d", g.Tile)
	}
	g.Content, g.Stage = m.Content, PickElement
	return nil
}

func (m *Element) play(g *Game) error {
	l := tensor.LayoutOf(g.Opcode.Type, g.Opcode.Shape)
	i, err := l.Element(g.Tile, m.Place)
	if err != nil {
		return bad("%v", err)
	}
	g.Element = i
	g.From, g.To = 0, max(g.Opcode.Blocks(), 1)
	g.FromState, g.ToState = nil, []tensor.Word{l.Word(g.Content, m.Place)}
	g.narrowBlocks()
	return nil
}

func (g *Game) narrowBlocks() {
	g.BlockState = nil
	if g.To-g.From > 1 {
		g.Stage = PostStates
	} else {
		g.Stage = ProveBlock
	}
}

func (m *States) play(g *Game) error {
	cuts := g.Cuts()
	if len(m.States) != len(cuts) {
		return bad("%d states posted, %d wanted", len(m.States), len(cuts))
	}
	c := tensor.NewCell(g.Opcode.Primitive, nil)
	if err := c.Seek(g.Element); err != nil {
		return bad("%v", err)
	}
	for i, b := range cuts {
		lo, _ := g.Opcode.Block(b)
		if len(m.States[i]) != c.StateLen(lo) {
			return bad("state before block %d has %d words, want %d", b, len(m.States[i]), c.StateLen(lo))
		}
	}
	g.BlockState, g.Stage = m.States, PickState
	return nil
}

func (m *Pick) play(g *Game) error {
	if m.Outputs != (g.Stage == PickTrace && m.Outputs) || m.Outputs && m.Index != 0 {
		return bad("outputs cannot be picked here")
	}
	switch g.Stage {
	case PickRoot:
		return g.pickRoot(m.Index)
	case PickState:
		return g.pickState(m.Index)
	case PickChunk:
		return g.pickChunk(m.Index)
	}
	if m.Outputs {
		g.Agreed = []Subtree{{g.Span, g.Top}}
		g.Tree, g.Span, g.Top, g.Posted = OutputTree, canon.Full(g.Header.Outputs.Len), canon.Hash{}, nil
		g.Stage = PostSubtree
		return nil
	}
	return g.pickSubtree(m.Index)
}

func (g *Game) pickRoot(i int) error {
	if i > len(g.Posted) {
		return bad("pick %d of %d", i, len(g.Posted)+1)
	}
	cuts := g.Cuts()
	lo := g.Lo
	if i > 0 {
		lo, g.LoRoot = cuts[i-1], g.Posted[i-1]
	}
	if i < len(cuts) {
		g.Hi, g.HiRoot = cuts[i], g.Posted[i]
	}
	g.Lo = lo
	g.narrowSteps()
	return nil
}

func (g *Game) pickState(i int) error {
	if i > len(g.BlockState) {
		return bad("pick %d of %d", i, len(g.BlockState)+1)
	}
	cuts := g.Cuts()
	from := g.From
	if i > 0 {
		from, g.FromState = cuts[i-1], g.BlockState[i-1]
	}
	if i < len(cuts) {
		g.To, g.ToState = cuts[i], g.BlockState[i]
	}
	g.From = from
	g.narrowBlocks()
	return nil
}

func (g *Game) pickSubtree(i int) error {
	spans := g.Below()
	if i >= len(spans) {
		return bad("pick %d of %d", i, len(spans))
	}
	if g.Tree == TraceTree {
		agreed := append([]Subtree{}, g.Agreed...)
		for j := range i {
			agreed = append(agreed, Subtree{spans[j], g.Posted[j]})
		}
		g.Agreed = agreed
	}
	g.Span, g.Top, g.Posted = spans[i], g.Posted[i], nil
	if g.Span.N > 1 {
		g.Stage = PostSubtree
		return nil
	}
	g.leaf()
	return nil
}

// leaf goes on from a single leaf of the tree in hand. Its hash is g.Top.
func (g *Game) leaf() {
	g.Posted = nil
	switch g.Tree {
	case TraceTree:
		g.Node, g.Stage = g.Span.Lo, PostNode
	case OutputTree:
		g.Stage = ProveOutput
	case TileTree:
		g.Tile, g.Stage = g.Span.Lo, PostTile
	}
}
