package dispute

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Witness is a party's own account of a claim: what it computed, or, for a
// challenger, recomputed.
type Witness interface {
	// Root returns the state root after the given number of steps, for a claim
	// of more than one.
	Root(step int) (canon.Hash, error)
	// Execution returns the complete run of the step after the given one.
	Execution(step int) (*Execution, error)
}

// ErrAgree is returned to a challenger that finds nothing wrong.
var ErrAgree = errors.New("nothing to dispute: the claim agrees with the witness")

// Challenge finds the first wrong segment of a claim whose checkpoint roots are
// known, and returns the opening of a game. Checkpoints is empty for a claim
// of a single step.
func Challenge(c Claim, checkpoints []canon.Hash, w Witness) (Opening, error) {
	if c.Checkpoints.IsZero() {
		e, err := w.Execution(0)
		if err != nil {
			return Opening{}, err
		}
		root, err := e.out.root()
		if err == nil && root == c.End {
			err = ErrAgree
		}
		return Opening{}, err
	}
	if canon.Root(checkpoints) != c.Checkpoints || len(checkpoints) != c.Segments()+1 {
		return Opening{}, fmt.Errorf("the checkpoints given are not those of the claim")
	}
	open := func(i int) (Opening, error) { return OpeningOf(checkpoints, i), nil }
	last := len(checkpoints) - 1
	if checkpoints[0] != c.Inputs[0] {
		return open(0)
	}
	for i := 1; i <= last; i++ {
		mine, err := w.Root(min(i*c.Interval, c.Steps))
		if err != nil {
			return Opening{}, err
		}
		if checkpoints[i] != mine {
			return open(i - 1)
		}
	}
	if checkpoints[last] != c.End && !c.Independent {
		return open(last - 1)
	}
	return Opening{}, ErrAgree
}

// OpeningOf returns the opening of a game about a segment of a claim, which is wrong
// in itself: from its own first checkpoint it does not lead to its second.
func OpeningOf(checkpoints []canon.Hash, segment int) Opening {
	tree := canon.NewTree(checkpoints)
	return Opening{segment, checkpoints[segment], checkpoints[segment+1], tree.Prove(segment), tree.Prove(segment + 1)}
}

// Play returns the move that a party with the given witness makes in g. It is
// the same for both sides: the stage says whose turn it is.
func Play(g *Game, w Witness) (Move, error) {
	switch g.Stage {
	case PostRoots:
		roots, err := cutRoots(g, w)
		return &Roots{roots}, err
	case PickRoot:
		roots, err := cutRoots(g, w)
		return &Pick{Index: firstDifference(g.Posted, roots)}, err
	case PostChunks, PickChunk, PostSteps, PickStep:
		return playSequence(g, w)
	case Over:
		return nil, fmt.Errorf("the dispute is over: %s", g.Reason)
	}
	e, err := execution(g, w)
	if err != nil {
		return nil, err
	}
	switch g.Stage {
	case PostTrace:
		return &Trace{e.commitment.Header, e.trace.Nodes(canon.Full(e.trace.Len()).Expand(g.Rules.Depth))}, nil
	case PickTrace, PickSubtree:
		return pick(g, e)
	case PostSubtree:
		t, err := e.tree(g)
		if err != nil {
			return nil, err
		}
		return &Below{t.Nodes(g.Below())}, nil
	case PostNode:
		return e.postNode(g), nil
	case PostTile:
		return &Tile{e.Values[g.Node].Tile(nil, g.Tile)}, nil
	case PickElement:
		return pickElement(g, e)
	case PostStates, PickState:
		return playStates(g, e)
	case ProveBlock:
		return e.proveBlock(g)
	case ProveOutput:
		return e.proveOutput(g)
	}
	return nil, fmt.Errorf("no move in stage %v", g.Stage)
}

func cutRoots(g *Game, w Witness) ([]canon.Hash, error) {
	var out []canon.Hash
	for _, step := range g.Cuts() {
		r, err := w.Root(step)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// firstDifference returns the first position at which a and b differ, or their
// common length.
func firstDifference[T comparable](a, b []T) int {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

func pick(g *Game, e *Execution) (Move, error) {
	t, err := e.tree(g)
	if err != nil {
		return nil, err
	}
	i := firstDifference(g.Posted, t.Nodes(g.Below()))
	if i == len(g.Posted) {
		if g.Stage == PickTrace {
			return &Pick{Outputs: true}, nil
		}
		return nil, ErrAgree
	}
	return &Pick{Index: i}, nil
}

func pickElement(g *Game, e *Execution) (Move, error) {
	l := tensor.LayoutOf(g.Opcode.Type, g.Opcode.Shape)
	mine := e.Values[g.Node].Tile(nil, g.Tile)
	for place := range len(mine) / g.Opcode.Type.Size() {
		if l.Word(mine, place) != l.Word(g.Content, place) {
			return &Element{place}, nil
		}
	}
	return nil, ErrAgree
}

func playStates(g *Game, e *Execution) (Move, error) {
	states, err := e.States(g.Node, g.Element, g.Cuts())
	if err != nil {
		return nil, err
	}
	if g.Stage == PostStates {
		return &States{states}, nil
	}
	for i := range g.BlockState {
		if firstDifference(g.BlockState[i], states[i]) < len(states[i]) {
			return &Pick{Index: i}, nil
		}
	}
	return &Pick{Index: len(states)}, nil
}

// Execution is one complete run of a program: everything that a party can be
// asked for in a game about it.
type Execution struct {
	Program *graph.Program
	In      graph.Inputs
	Values  []*tensor.Tensor // what each node computed
	Out     *graph.State
	// States returns the accumulators of one element of a node's output before
	// each of the given fold blocks.
	States func(node, element int, blocks []int) ([][]tensor.Word, error)

	commitment *graph.Commitment
	trace      *canon.Tree
	out        stateTree
}

// stateTree is the tree of a state, made when it is first wanted.
type stateTree struct {
	state *graph.State
	keyed *canon.Keyed
}

func (s *stateTree) tree() (*canon.Keyed, error) {
	if s.keyed == nil {
		k, err := s.state.Keyed()
		if err != nil {
			return nil, err
		}
		s.keyed = k
	}
	return s.keyed, nil
}

func (s *stateTree) root() (canon.Hash, error) {
	k, err := s.tree()
	if err != nil {
		return canon.Hash{}, err
	}
	return k.Root(), nil
}

// Run executes the program of a claim.
type Run func(in graph.Inputs, observe graph.Observer) (*graph.State, error)

// Execute lets run execute p and keeps a copy of every value.
func Execute(p *graph.Program, c *graph.Commitment, in graph.Inputs, run Run) (*Execution, error) {
	e := &Execution{Program: p, In: in, Values: make([]*tensor.Tensor, len(p.Nodes)), commitment: c}
	roots := make([]canon.Hash, len(p.Nodes))
	out, err := run(in, func(i int, t *tensor.Tensor) error {
		e.Values[i], roots[i] = t.Clone(), t.Root()
		return nil
	})
	if err != nil {
		return nil, err
	}
	e.Out, e.out, e.trace = out, stateTree{state: out}, canon.NewTree(roots)
	e.States = e.honestStates
	return e, nil
}

// Value returns the tensor that r names.
func (e *Execution) Value(r graph.Ref) *tensor.Tensor {
	switch r.Kind {
	case graph.RefNode:
		return e.Values[r.Index]
	case graph.RefSlot:
		return e.In.States[r.Group].Tensors[e.slot(r)]
	case graph.RefConst:
		return e.Program.Consts[r.Index]
	case graph.RefData:
		return e.In.Data
	}
	return tensor.Must(tensor.From(tensor.Shape{len(e.In.Rows)}, e.In.Rows))
}

// slot returns which tensor of its state a ref names: states may have other slots beside those that a program reads of them.
func (e *Execution) slot(r graph.Ref) int {
	s, name := e.In.States[r.Group], e.Program.Slots[r.Index].Name
	if r.Index < len(s.Slots) && s.Slots[r.Index].Name == name {
		return r.Index
	}
	return slices.IndexFunc(s.Slots, func(x graph.Slot) bool { return x.Name == name })
}

// tree returns the party's own version of the tree in hand.
func (e *Execution) tree(g *Game) (*canon.Tree, error) {
	switch g.Tree {
	case OutputTree:
		k, err := e.out.tree()
		if err != nil {
			return nil, err
		}
		return k.Tree, nil
	case TileTree:
		return canon.NewTree(e.Values[g.Node].Leaves()), nil
	}
	return e.trace, nil
}

func (e *Execution) honestStates(node, element int, blocks []int) ([][]tensor.Word, error) {
	n := &e.Program.Nodes[node]
	c := tensor.NewCell(n.Primitive, e.load(n))
	if err := c.Seek(element); err != nil {
		return nil, err
	}
	s, err := c.Start()
	var out [][]tensor.Word
	at := 0
	for _, b := range blocks {
		if err != nil {
			return nil, err
		}
		lo, _ := n.Block(b)
		s, err = c.Run(s, at, lo)
		out, at = append(out, append([]tensor.Word{}, s...)), lo
	}
	return out, err
}

// load reads the operands of a node from the run's own values.
func (e *Execution) load(n *graph.Opcode) tensor.Load {
	args := make([]*tensor.Tensor, len(n.From))
	for j, r := range n.From {
		args[j] = e.Value(r)
	}
	return func(arg, i int) (tensor.Word, error) { return args[arg].At(i), nil }
}
