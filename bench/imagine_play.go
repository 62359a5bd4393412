package bench

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// play plays the game to its end and shows each move beside the game before it.
func (g *imagined) play(see func(before *dispute.Game, m dispute.Move) error) (dispute.Game, error) {
	at, err := dispute.Open(g.claim, g.rules, g.opening, 0)
	for err == nil && at.Stage != dispute.Over {
		var m dispute.Move
		if m, err = g.move(&at); err != nil {
			break
		}
		before := at
		if at, err = dispute.Apply(at, at.Stage.Turn(), m, 0); err == nil {
			err = see(&before, m)
		}
	}
	if err == nil && (at.Loser != dispute.Defender || at.Lo != g.step || at.Node != g.node || at.Element != g.element || at.From != g.block) {
		err = fmt.Errorf("an imagined dispute about node %d ended at node %d, the %v lost: %s", g.node, at.Node, at.Loser, at.Reason)
	}
	return at, err
}

// move returns the move of the side whose turn it is.
func (g *imagined) move(at *dispute.Game) (dispute.Move, error) {
	switch at.Stage {
	case dispute.PostRoots:
		return &dispute.Roots{Roots: g.states(at, true)}, nil
	case dispute.PickRoot:
		return first(at.Posted, g.states(at, false)), nil
	case dispute.PostTrace:
		return &dispute.Trace{Header: g.commitment.Header, Below: g.lie.trace.nodes(canon.Full(g.trace.n).Expand(g.rules.Depth))}, nil
	case dispute.PostSubtree:
		return &dispute.Below{Below: g.tree(at, true).nodes(at.Below())}, nil
	case dispute.PickTrace, dispute.PickSubtree:
		return first(at.Posted, g.tree(at, false).nodes(at.Below())), nil
	case dispute.PostNode:
		below := g.lie.output.nodes(canon.Full(g.output.n).Expand(g.rules.Depth))
		return &dispute.Node{Leaf: g.commitment.Leaves[g.node], Path: g.commitment.NodeTree.Prove(g.node), Below: below}, nil
	case dispute.PostTile:
		return &dispute.Tile{Content: g.content}, nil
	case dispute.PickElement:
		_, place := tensor.LayoutOf(at.Opcode.Type, at.Opcode.Shape).Find(g.element)
		return &dispute.Element{Place: place}, nil
	case dispute.PostStates:
		return &dispute.States{States: g.accumulators(at, true)}, nil
	case dispute.PickState:
		for i, mine := range g.accumulators(at, false) {
			if !slices.Equal(mine, at.BlockState[i]) {
				return &dispute.Pick{Index: i}, nil
			}
		}
		return &dispute.Pick{Index: len(at.BlockState)}, nil
	case dispute.ProveBlock:
		return g.prove(at)
	}
	return nil, fmt.Errorf("an imagined dispute came to stage %v", at.Stage)
}

func (g *imagined) states(at *dispute.Game, defender bool) (out []canon.Hash) {
	for _, s := range at.Cuts() {
		out = append(out, g.state(s, defender))
	}
	return out
}

func (g *imagined) accumulators(at *dispute.Game, defender bool) (out [][]tensor.Word) {
	for _, b := range at.Cuts() {
		out = append(out, g.accumulator(b, defender))
	}
	return out
}

func (g *imagined) tree(at *dispute.Game, defender bool) woods {
	switch {
	case at.Tree == dispute.TileTree && defender:
		return g.lie.output
	case at.Tree == dispute.TileTree:
		return g.output
	case defender:
		return g.lie.trace
	}
	return g.trace
}

// first picks the first difference.
func first(posted, mine []canon.Hash) dispute.Move {
	for i := range posted {
		if posted[i] != mine[i] {
			return &dispute.Pick{Index: i}
		}
	}
	return &dispute.Pick{Index: len(posted)}
}

// prove opens all that the block reads.
func (g *imagined) prove(at *dispute.Game) (dispute.Move, error) {
	m := &dispute.Block{}
	for _, r := range g.read {
		ref := g.program.Nodes[g.node].From[r.arg]
		o := g.operands[ref]
		if !slices.ContainsFunc(m.Sources, func(s dispute.Source) bool { return s.Arg == r.arg }) {
			p, err := g.provenance(at, ref)
			if err != nil {
				return nil, err
			}
			m.Sources = append(m.Sources, dispute.Source{Arg: r.arg, Tiles: o.tiles.root(), Provenance: p})
		}
		m.Tiles = append(m.Tiles, dispute.OperandTile{Arg: r.arg, Tile: r.tile, Content: g.bytes(ref, o.Layout, r.tile), Path: o.tiles.prove(r.tile)})
	}
	return m, nil
}

func (g *imagined) provenance(at *dispute.Game, ref graph.Ref) (dispute.Provenance, error) {
	switch ref.Kind {
	case graph.RefNode:
		for _, s := range at.Agreed {
			if s.Span.Has(ref.Index) {
				return dispute.Provenance{Path: g.trace.path(s.Span, ref.Index)}, nil
			}
		}
		return dispute.Provenance{}, fmt.Errorf("node %d is not agreed on", ref.Index)
	case graph.RefConst:
		return dispute.Provenance{Path: g.commitment.ConstTree.Prove(ref.Index)}, nil
	case graph.RefSlot:
		slot := g.program.Slots[ref.Index]
		return dispute.Provenance{Slot: &dispute.SlotProof{
			Slot: slot, Path: g.commitment.SlotTree.Prove(ref.Index),
			State: canon.Opening{N: g.start.n, Index: ref.Index, Entry: canon.Entry{Key: slot.Name, Value: g.operands[ref].root()}, Path: g.start.prove(ref.Index)},
		}}, nil
	}
	return dispute.Provenance{}, nil
}
