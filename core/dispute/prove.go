package dispute

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

func (e *Execution) postNode(g *Game) Move {
	t := canon.NewTree(e.Values[g.Node].Leaves())
	m := &Node{Leaf: e.commitment.Leaves[g.Node], Path: e.commitment.NodeTree.Prove(g.Node)}
	if t.Len() > 0 {
		m.Below = t.Nodes(canon.Full(t.Len()).Expand(g.Rules.Depth))
	}
	return m
}

// proveBlock runs the block in hand to see which tiles it reads, and opens them.
func (e *Execution) proveBlock(g *Game) (Move, error) {
	n := &e.Program.Nodes[g.Node]
	var read [][2]int // operand, tile
	load := e.load(n)
	_, err := Recompute(n.Primitive, g.Element, g.From, g.FromState, func(arg, i int) (tensor.Word, error) {
		tile, _ := tensor.LayoutOf(n.Args[arg].Type, n.Args[arg].Shape).Find(i)
		if at := [2]int{arg, tile}; n.From[arg].Kind != graph.RefRows && !slices.Contains(read, at) {
			read = append(read, at)
		}
		return load(arg, i)
	})
	if err != nil {
		return nil, err
	}
	m := &Block{}
	provers := map[int]prover{}
	for _, at := range read {
		arg, tile := at[0], at[1]
		first := provers[arg] == nil
		if first {
			provers[arg] = e.prover(n.From[arg])
		}
		root, path := provers[arg](tile)
		if first {
			p, err := e.provenance(g, n.From[arg])
			if err != nil {
				return nil, err
			}
			m.Sources = append(m.Sources, Source{arg, root, p})
		}
		m.Tiles = append(m.Tiles, OperandTile{arg, tile, e.Value(n.From[arg]).Tile(nil, tile), path})
	}
	return m, nil
}

// prover gives the root of a tensor's tree of tiles, and the path of one of them.
type prover func(tile int) (root canon.Hash, path []canon.Hash)

// prover proves the tiles of the tensor that r names. Of the records, those need be here alone that the run has read.
func (e *Execution) prover(r graph.Ref) prover {
	v := e.Value(r)
	if r.Kind == graph.RefData && e.In.Crown != nil {
		return tensor.Part{Tensor: v, Crown: e.In.Crown}.Prove
	}
	tree := canon.NewTree(v.Leaves())
	return func(tile int) (canon.Hash, []canon.Hash) { return tree.Root(), tree.Prove(tile) }
}

func (e *Execution) provenance(g *Game, r graph.Ref) (Provenance, error) {
	switch r.Kind {
	case graph.RefNode:
		for _, s := range g.Agreed {
			if s.Span.Has(r.Index) {
				return Provenance{Path: e.trace.Path(s.Span, r.Index)}, nil
			}
		}
		return Provenance{}, fmt.Errorf("node %d is not agreed on", r.Index)
	case graph.RefConst:
		return Provenance{Path: e.commitment.ConstTree.Prove(r.Index)}, nil
	case graph.RefSlot:
		k, err := e.In.States[r.Group].Keyed()
		if err != nil {
			return Provenance{}, err
		}
		return Provenance{Slot: &SlotProof{e.Program.Slots[r.Index], e.commitment.SlotTree.Prove(r.Index), k.Open(e.slot(r))}}, nil
	}
	return Provenance{}, nil
}

func (e *Execution) proveOutput(g *Game) (Move, error) {
	q := g.Span.Lo
	out := e.Program.Output(q)
	p, err := e.provenance(g, out.From)
	if err != nil {
		return nil, err
	}
	return &Output{out, e.commitment.OutputTree.Prove(q), e.Value(out.From).Root(), p}, nil
}
