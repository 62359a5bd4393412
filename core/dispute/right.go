package dispute

import (
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// Right returns the side that w bears out in what is left of g: the defender if
// the commitment in hand is what w computes from what is agreed, else the
// challenger. Whoever takes a seat in mid-game must know it: a side that was right
// at first may have spoilt its game since.
func Right(g *Game, w Witness) (Side, error) {
	sound, err := holds(g, w)
	switch {
	case err != nil:
		return Nobody, err
	case sound:
		return Defender, nil
	}
	return Challenger, nil
}

// holds reports whether the commitment in hand is what w computes.
func holds(g *Game, w Witness) (bool, error) {
	switch {
	case g.Stage == PostChunks || g.Stage == PickChunk || g.Stage == PostSteps || g.Stage == PickStep:
		return holdsSequence(g, w)
	case g.Hi-g.Lo > 1:
		mine, err := w.Root(g.Hi)
		return mine == g.HiRoot, err
	}
	e, err := execution(g, w)
	if err != nil {
		return false, err
	}
	mine, err := e.out.root()
	end := mine == g.HiRoot
	switch {
	case err != nil:
		return false, err
	case g.Stage == PostTrace || g.Tree == OutputTree && g.Top.IsZero():
		return end, nil
	case g.Stage == PickTrace && end:
		return slices.Equal(e.trace.Nodes(g.Below()), g.Posted), nil
	case g.Stage == PickTrace:
		return false, nil
	}
	switch g.Stage {
	case PickElement:
		return slices.Equal(e.Values[g.Node].Tile(nil, g.Tile), g.Content), nil
	case PostStates, PickState, ProveBlock:
		return e.reaches(g)
	case PostNode:
		return e.Values[g.Node].Root() == g.Top, nil
	}
	t, err := e.tree(g)
	if err != nil {
		return false, err
	}
	return t.Nodes([]canon.Span{g.Span})[0] == g.Top, nil
}

// reaches reports whether e has the disputed accumulator, or element, after the
// last of the fold blocks in hand.
func (e *Execution) reaches(g *Game) (bool, error) {
	if g.To < max(g.Opcode.Blocks(), 1) {
		states, err := e.States(g.Node, g.Element, []int{g.To})
		return err == nil && slices.Equal(states[0], g.ToState), err
	}
	v := e.Values[g.Node]
	return slices.Equal([]tensor.Word{v.At(g.Element)}, g.ToState), nil
}
