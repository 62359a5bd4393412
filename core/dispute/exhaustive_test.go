package dispute

import (
	"errors"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Every sequence of picks against an honest defender, each ended by the only
// proof there is, the true one: the challenger loses all of them.
func TestNoSequenceOfPicksBeatsAnHonestDefender(t *testing.T) {
	eachKind(t, noSequenceOfPicksWins)
}

func noSequenceOfPicksWins(t *testing.T, party func(fault) *party) {
	right := party(honest)
	c, points := right.claim()
	tree := canon.NewTree(points)
	games := 0
	var explore func(g Game)
	explore = func(g Game) {
		var moves []Move
		if g.Stage != Over {
			if side, err := Right(&g, right); err != nil || side != Defender {
				t.Fatalf("stage %v: an honest defender is found wrong: %v, %v", g.Stage, side, err)
			}
		}
		switch g.Stage {
		case Over:
			games++
			if g.Loser != Challenger {
				t.Fatalf("an honest defender lost: %s", g.Reason)
			}
			return
		case PickRoot:
			for i := 0; i <= len(g.Posted); i++ {
				moves = append(moves, &Pick{Index: i})
			}
		case PickTrace, PickSubtree:
			for i := range g.Posted {
				moves = append(moves, &Pick{Index: i})
			}
			if g.Stage == PickTrace {
				moves = append(moves, &Pick{Outputs: true})
			}
		case PickElement:
			n := len(g.Content) / g.Opcode.Type.Size()
			for _, place := range []int{0, n / 3, n - 1} {
				moves = append(moves, &Element{place})
			}
		case PickState:
			for i := 0; i <= len(g.BlockState); i++ {
				moves = append(moves, &Pick{Index: i})
			}
		default:
			m, err := Play(&g, right)
			if err != nil {
				t.Fatalf("stage %v: %v", g.Stage, err)
			}
			moves = append(moves, m)
		}
		for _, m := range moves {
			next, err := Apply(g, g.Stage.Turn(), m, 0)
			if err != nil {
				t.Fatalf("stage %v, %+v: %v", g.Stage, m, err)
			}
			explore(next)
		}
	}
	for s := range c.Segments() {
		g, err := Open(c, toyRules, Opening{s, points[s], points[s+1], tree.Prove(s), tree.Prove(s + 1)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		explore(g)
	}
	if games < 200 {
		t.Fatalf("only %d games", games)
	}
	t.Logf("%d games", games)
}

// mergeParty is a witness of a claim of one step that reads two states.
type mergeParty struct{ e *Execution }

func (m mergeParty) Root(int) (canon.Hash, error) {
	return canon.Hash{}, errors.New("a merge is one step")
}

func (m mergeParty) Execution(int) (*Execution, error) { return m.e, nil }

// longName is a slot's name at its limit, which is four times as long when quoted.
var longName = "y" + strings.Repeat("\x01", canon.MaxKey-1)

func newMerge(t *testing.T, bend int) (Claim, mergeParty) {
	s := tensor.Shape{40}
	acc := tensor.Access{Type: tensor.Float32, Shape: s, Dims: axes(0)}
	p := &graph.Program{Groups: 2, Slots: []graph.Slot{{Name: "x", Type: tensor.Float32, Shape: s}, {Name: longName, Type: tensor.Float32, Shape: s}},
		Nodes: []graph.Opcode{{
			Primitive: &tensor.Primitive{Fn: tensor.Add, Type: tensor.Float32, Shape: s, Args: []tensor.Access{acc, acc}},
			From:      []graph.Ref{{Kind: graph.RefSlot, Index: 0}, {Kind: graph.RefSlot, Index: 0, Group: 1}},
		}},
		Outputs: []graph.Ref{{Kind: graph.RefNode}, {Kind: graph.RefSlot, Index: 1, Group: 1}},
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	var in graph.Inputs
	var roots []canon.Hash
	for g := range 2 {
		x, y := tensor.Must(tensor.New(tensor.Float32, s)), tensor.Must(tensor.New(tensor.Float32, s))
		for i := range x.Len() {
			x.Set(i, tensor.F32(float32(i+g)))
			y.Set(i, tensor.F32(float32(i*g)))
		}
		st := &graph.State{Slots: p.Slots, Tensors: []*tensor.Tensor{x, y}}
		r, err := st.Root()
		if err != nil {
			t.Fatal(err)
		}
		in.States, roots = append(in.States, st), append(roots, r)
	}
	com := p.Commit()
	e, err := Execute(p, com, in, kernel(p, func(i int, n *graph.Opcode, args []*tensor.Tensor) (*tensor.Tensor, error) {
		out, err := n.Eval(args)
		if err == nil && bend == 0 {
			out.Set(33, out.At(33)+1)
		}
		return out, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	if bend == 1 { // the passed-through slot comes from the wrong state
		e.Out = &graph.State{Slots: e.Out.Slots, Tensors: []*tensor.Tensor{e.Out.Tensors[0], in.States[0].Tensors[1]}}
		e.out = stateTree{state: e.Out}
	}
	end, err := e.Out.Root()
	if err != nil {
		t.Fatal(err)
	}
	return Claim{Program: com.Root(), Inputs: roots, Steps: 1, End: end}, mergeParty{e}
}

func TestMergesAreDisputedLikeUnits(t *testing.T) {
	_, right := newMerge(t, -1)
	for bend := range 2 {
		c, wrong := newMerge(t, bend)
		o, err := Challenge(c, nil, right)
		if err != nil {
			t.Fatal(err)
		}
		g, err := Open(c, toyRules, o, 10)
		if err != nil {
			t.Fatal(err)
		}
		if g = playOut(t, g, wrong, right, Nobody, 0); g.Loser != Defender {
			t.Fatalf("bend %d: %v lost: %s", bend, g.Loser, g.Reason)
		}
	}
	c, honestMerge := newMerge(t, -1)
	if _, err := Challenge(c, nil, honestMerge); !errors.Is(err, ErrAgree) {
		t.Fatalf("an honest merge was challenged: %v", err)
	}
}

// A long contraction: accumulators are searched in several posts, across
// K-blocks.
func TestFaultInALongContraction(t *testing.T) {
	faultInALongContraction(t, nil, 0, 1, 127, 128, 200, 256, 386)
	band := &tensor.Band{From: tensor.Dim{Offset: 3300}, To: tensor.Dim{Offset: 2*tensor.KBlock + 50}} // blocks 103 to 257
	faultInALongContraction(t, band, 103, 104, 127, 128, 200, 256, 257, 258, 386)
}

func faultInALongContraction(t *testing.T, band *tensor.Band, blocks ...int) {
	const k = 3*tensor.KBlock + 77
	s := tensor.Shape{k}
	one := tensor.Shape{1}
	p := &graph.Program{Groups: 1, Slots: []graph.Slot{{Name: "x", Type: tensor.Float32, Shape: s}, {Name: "y", Type: tensor.Float32, Shape: one}},
		Nodes: []graph.Opcode{{
			Primitive: &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: one, Fold: []int{k}, Band: band,
				Args: []tensor.Access{{Type: tensor.Float32, Shape: s, Dims: axes(1)}, {Type: tensor.Float32, Shape: s, Dims: axes(1)}}},
			From: []graph.Ref{{Kind: graph.RefSlot}, {Kind: graph.RefSlot}},
		}},
		Outputs: []graph.Ref{{Kind: graph.RefSlot}, {Kind: graph.RefNode}},
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	x := tensor.Must(tensor.New(tensor.Float32, s))
	for i := range x.Len() {
		x.Set(i, tensor.F32(float32(i%17)/16-0.4))
	}
	in := graph.Inputs{States: []*graph.State{{Slots: p.Slots, Tensors: []*tensor.Tensor{x, tensor.Must(tensor.New(tensor.Float32, one))}}}}
	start, err := in.States[0].Root()
	if err != nil {
		t.Fatal(err)
	}
	run := func(block int) mergeParty {
		f := fault{block: block}
		e, err := Execute(p, p.Commit(), in, kernel(p, func(i int, n *graph.Opcode, args []*tensor.Tensor) (*tensor.Tensor, error) {
			out, err := n.Eval(args)
			if err == nil && block >= 0 {
				var all [][]tensor.Word
				all, err = faultyCell(n, args, f)
				out.Set(0, all[len(all)-1][0])
			}
			return out, err
		}))
		if err != nil {
			t.Fatal(err)
		}
		if block >= 0 {
			e.States = func(node, element int, blocks []int) ([][]tensor.Word, error) {
				all, err := faultyCell(&p.Nodes[0], []*tensor.Tensor{x, x}, f)
				var out [][]tensor.Word
				for _, b := range blocks {
					out = append(out, all[b])
				}
				return out, err
			}
		}
		return mergeParty{e}
	}
	right := run(-1)
	for _, block := range blocks {
		wrong := run(block)
		end, err := wrong.e.Out.Root()
		if err != nil {
			t.Fatal(err)
		}
		c := Claim{Program: p.Commit().Root(), Inputs: []canon.Hash{start}, Steps: 1, End: end}
		o, err := Challenge(c, nil, right)
		if err != nil {
			t.Fatalf("block %d: %v", block, err)
		}
		g, err := Open(c, Rules{Depth: 4, Clock: 1000, Answer: 200, Parallel: 1}, o, 0)
		if err != nil {
			t.Fatal(err)
		}
		if g = playOut(t, g, wrong, right, Nobody, 0); g.Loser != Defender || g.From != block {
			t.Fatalf("fault in block %d: %v lost over block %d: %s", block, g.Loser, g.From, g.Reason)
		}
	}
}
