package dispute

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// A toy model: each of its steps adds up all that it reads. Its last column tells whether the request calls the judged token bad.

const toyLayers, toyPrompt, toyReply = 3, 100, 260

var toyVector = graph.Slot{Type: tensor.Int64, Shape: tensor.Shape{4}}

// toyState is a state of one vector.
func toyState(name string, x ...int64) *graph.State {
	slot := graph.Slot{Name: name, Type: tensor.Int64, Shape: tensor.Shape{len(x)}}
	return &graph.State{Slots: []graph.Slot{slot}, Tensors: []*tensor.Tensor{tensor.Must(tensor.From(slot.Shape, x))}}
}

// toyStep is the program of a column that reads so many chunks before: the sum of what the groups from 2 on have, and of the weights.
func toyStep(t testing.TB, column, past int) *graph.Program {
	add := func(fn tensor.Fn, typ tensor.DType, s tensor.Shape, args ...graph.Ref) graph.Opcode {
		p := &tensor.Primitive{Fn: fn, Type: typ, Shape: s}
		for range args {
			p.Args = append(p.Args, arg(tensor.Int64, s, axes(0)))
		}
		if fn == tensor.Cast {
			p.Args[0].Type = tensor.Bool
		}
		return graph.Opcode{Primitive: p, From: args, Origin: graph.Origin{Op: fn.String()}}
	}
	slot := func(i, group int) graph.Ref { return graph.Ref{Kind: graph.RefSlot, Index: i, Group: group} }
	node := func(i int) graph.Ref { return graph.Ref{Kind: graph.RefNode, Index: i} }
	one := tensor.Shape{1}
	p := &graph.Program{}
	if column == 2*toyLayers+1 {
		p.Groups = 4 + past + 2
		p.Slots = []graph.Slot{{Name: "bad", Type: tensor.Int64, Shape: one}, {Name: "judged", Type: tensor.Int64, Shape: one}}
		p.Results = RightState().Slots
		p.Nodes = []graph.Opcode{add(tensor.Eq, tensor.Bool, one, slot(0, 2), slot(1, 1)), add(tensor.Cast, tensor.Int64, one, node(0))}
		p.Outputs = []graph.Ref{node(1)}
	} else {
		names := []string{"k", "t", "w", "x"}
		for _, n := range names {
			p.Slots = append(p.Slots, graph.Slot{Name: n, Type: toyVector.Type, Shape: toyVector.Shape})
		}
		from, gives := []graph.Ref{slot(2, 0)}, "x"
		switch {
		case column == 0:
			p.Groups, from = 3, append(from, slot(1, 2))
		case column%2 == 1:
			p.Groups, from, gives = 3, append(from, slot(3, 2)), "k"
		default:
			p.Groups, from = 4+past, append(from, slot(3, 2), slot(0, 3))
			for j := range past {
				from = append(from, slot(0, 4+j))
			}
		}
		sum := from[0]
		for i, r := range from[1:] {
			p.Nodes = append(p.Nodes, add(tensor.Add, tensor.Int64, toyVector.Shape, sum, r))
			sum = node(i)
		}
		p.Results, p.Outputs = []graph.Slot{{Name: gives, Type: toyVector.Type, Shape: toyVector.Shape}}, []graph.Ref{sum}
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// committed is a program with its commitment.
type committed struct {
	*graph.Program
	*graph.Commitment
}

var toyTable = map[[2]int]committed{}

// committedStep returns a toyStep, made once.
func committedStep(t testing.TB, column, past int) committed {
	at := [2]int{column, past}
	if _, ok := toyTable[at]; !ok {
		p := toyStep(t, column, past)
		toyTable[at] = committed{p, p.Commit()}
	}
	return toyTable[at]
}

// lie is what a party adds to what a step gives, or to the node that gives it.
type lie struct {
	chunk, column int
	by            int64
}

// account is a party's account of the toy sequence.
type account struct {
	t       testing.TB
	lie     lie
	bad     int  // the token that the request calls bad
	blind   bool // it says that no token is wrong
	request *graph.State
	tokens  []*graph.State
	weights []*graph.State // by column
	steps   *canon.Tree
	cells   [][]*Execution // by chunk and column, but for the last
}

func newAccount(t testing.TB, bad int, l lie) *account {
	s := &Sequence{Prompt: toyPrompt, Reply: toyReply}
	a := &account{t: t, lie: l, bad: bad, request: toyState("bad", int64(bad))}
	for page := range s.tokenPages() {
		a.tokens = append(a.tokens, toyState("t", int64(page), 1, 2, 3))
	}
	var leaves []canon.Hash
	for column := range 2*toyLayers + 2 {
		a.weights = append(a.weights, toyState("w", int64(column), 10, 20, 30))
	}
	for c := range 4 {
		for column := range 2*toyLayers + 2 {
			leaves = append(leaves, StepLeaf(committedStep(t, column, c).Root(), a.root(a.weights[column])))
		}
	}
	a.steps = canon.NewTree(leaves)
	for c := range s.chunks() {
		a.cells = append(a.cells, nil)
		for column := range 2*toyLayers + 1 {
			a.cells[c] = append(a.cells[c], a.compute(c, column, 0))
		}
	}
	return a
}

func (a *account) root(s *graph.State) canon.Hash {
	r, err := s.Root()
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

func (a *account) sequence() *Sequence {
	chunks, tokens, _ := a.Pages()
	key := canon.Hash{7}
	return &Sequence{
		Model: Model{Layers: toyLayers, Chunks: 4, Steps: a.steps.Root()}, Request: a.root(a.request), Prompt: toyPrompt, Reply: toyReply,
		Tokens: canon.Root(tokens), Pages: SaltedPages(canon.Root(chunks), key[:]), Key: key,
	}
}

// compute runs a step, whose last node a lie may change.
func (a *account) compute(c, column, judged int) *Execution {
	s := &Sequence{Prompt: toyPrompt, Reply: toyReply}
	in := []*graph.State{a.weights[column], s.PlaceState(c, judged)}
	out := func(chunk, column int) *graph.State { return a.cells[chunk][column].Out }
	switch {
	case column == 2*toyLayers+1:
		in = append(append(in, a.request, out(c, column-1)), a.tokens[:c+1]...)
		in = append(in, a.tokens[min(c+1, len(a.tokens)-1)])
	case column == 0:
		in = append(in, a.tokens[c])
	case column%2 == 1:
		in = append(in, out(c, column-1))
	default:
		in = append(in, out(c, column-2), out(c, column-1))
		for j := range c {
			in = append(in, out(j, column-1))
		}
	}
	step := committedStep(a.t, column, c)
	p := step.Program
	e, err := Execute(p, step.Commitment, graph.Inputs{States: in}, func(_ graph.Inputs, observe graph.Observer) (*graph.State, error) {
		values := make([]*tensor.Tensor, len(p.Nodes))
		for i := range p.Nodes {
			var args []*tensor.Tensor
			for _, r := range p.Nodes[i].From {
				if r.Kind == graph.RefNode {
					args = append(args, values[r.Index])
				} else {
					args = append(args, in[r.Group].Find(p.Slots[r.Index].Name))
				}
			}
			var err error
			if values[i], err = p.Nodes[i].Eval(args); err != nil {
				return nil, err
			}
			if a.blind && column == 2*toyLayers+1 && i == len(p.Nodes)-1 {
				values[i] = RightState().Tensors[0]
			}
			if i == len(p.Nodes)-1 && a.lie.by != 0 && a.lie.chunk == c && a.lie.column == column {
				values[i] = values[i].Clone()
				tensor.Of[int64](values[i])[0] += a.lie.by
			}
			if err := observe(i, values[i]); err != nil {
				return nil, err
			}
		}
		return &graph.State{Slots: p.Gives(), Tensors: values[len(values)-1:]}, nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return e
}

func (a *account) Pages() (chunks, tokens []canon.Hash, err error) {
	for c := range a.cells {
		_, pages, _ := a.Chunk(c)
		chunks = append(chunks, canon.Root(pages))
	}
	for _, s := range a.tokens {
		tokens = append(tokens, a.root(s))
	}
	return chunks, tokens, nil
}

func (a *account) Chunk(c int) (values, pages []canon.Hash, err error) {
	for column, e := range a.cells[c] {
		if column%2 == 1 {
			pages = append(pages, a.root(e.Out))
		} else {
			values = append(values, a.root(e.Out))
		}
	}
	return values, pages, nil
}

func (a *account) Wrong(c int) (int, error) {
	if a.blind || a.bad < toyPrompt || (a.bad-1)/ChunkTokens != c {
		return -1, nil
	}
	return a.bad, nil
}

func (a *account) Step(c, column int) (program, weights canon.Hash, path []canon.Hash, err error) {
	return committedStep(a.t, column, c).Root(), a.root(a.weights[column]), a.steps.Prove(c*(2*toyLayers+2) + column), nil
}

func (a *account) Execute(c, column, judged int) (*Execution, error) {
	if column < 2*toyLayers+1 {
		return a.cells[c][column], nil
	}
	return a.compute(c, column, judged), nil
}

// toyTokens are tokens that a request may call bad: the first and the last of the reply, and those at the ends of chunks.
var toyTokens = []int{toyPrompt, 127, 128, 129, 255, 256, 257, toyPrompt + toyReply - 1}

func openSequence(t testing.TB, s *Sequence) Game {
	t.Helper()
	g, err := Open(Claim{Sequence: s}, toyRules, Opening{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A reply that is wrong in any step of any chunk, or in a token, costs who has given it the game. So does silence.
func TestFalseSequencesAreFound(t *testing.T) {
	test := func(name string, defender, challenger *account) {
		for _, from := range []int{-1, 1, 3, 5} {
			silent := Nobody
			if from >= 0 {
				silent = Defender
			}
			over := playOut(t, openSequence(t, defender.sequence()), WitnessOf(defender), WitnessOf(challenger), silent, from)
			if over.Loser != Defender {
				t.Errorf("%s, silent from %d: the %v has lost: %s", name, from, over.Loser, over.Reason)
			}
			stored(t, over)
			if over.Trim(); over.Tokens != nil || over.ChunkRoots != nil {
				t.Error("a game that is over keeps what only moves need")
			}
		}
	}
	for c := range 3 {
		for column := range 2 * toyLayers {
			test(fmt.Sprintf("chunk %d, column %d", c, column), newAccount(t, 0, lie{c, column, 5}), newAccount(t, 0, lie{}))
		}
	}
	for _, bad := range toyTokens {
		defender := newAccount(t, bad, lie{})
		defender.blind = true
		test(fmt.Sprintf("token %d", bad), defender, newAccount(t, bad, lie{}))
	}
}

// Who is right about a sequence beats every false challenge, and an honest challenger finds nothing in it.
func TestTrueSequencesStand(t *testing.T) {
	right := newAccount(t, 0, lie{})
	if m, err := Play(played(t, right, right, PickChunk), WitnessOf(right)); !errors.Is(err, ErrAgree) {
		t.Errorf("an honest challenger plays %v, %v", m, err)
	}
	// What the last layer gives is in no page: who is wrong there alone may still have drawn the right tokens.
	hidden := newAccount(t, 0, lie{1, 2 * toyLayers, 5})
	if m, err := Play(played(t, hidden, right, PickChunk), WitnessOf(right)); !errors.Is(err, ErrAgree) {
		t.Errorf("an honest challenger plays %v, %v", m, err)
	}
	var liars []*account
	for c := range 3 {
		for column := range 2 * toyLayers {
			liars = append(liars, newAccount(t, 0, lie{c, column, 5}))
		}
	}
	for _, bad := range toyTokens {
		liar := newAccount(t, 0, lie{})
		liar.bad = bad // and the request does not say so
		liars = append(liars, liar)
	}
	for i, liar := range liars {
		g := openSequence(t, right.sequence())
		for g.Stage != Over {
			w := right
			if g.Stage.Turn() == Challenger {
				w = liar
			}
			if winner, err := Right(&g, WitnessOf(right)); err != nil || winner != Defender {
				t.Fatalf("liar %d, stage %v: the defender bears out the %v, %v", i, g.Stage, winner, err)
			}
			m, err := Play(&g, WitnessOf(w))
			if errors.Is(err, ErrAgree) || g.Stage == ProveBlock && err == nil && refused(&g, m) {
				break // nothing that it could play is taken: its clock runs out
			}
			if err != nil {
				t.Fatalf("liar %d, stage %v: %v", i, g.Stage, err)
			}
			if g, err = Apply(g, g.Stage.Turn(), m, 1); err != nil {
				t.Fatalf("liar %d, stage %v: %v", i, g.Stage, err)
			}
		}
		if g = Expire(g, g.Deadline()+1); g.Loser != Challenger {
			t.Errorf("liar %d: the %v has lost: %s", i, g.Loser, g.Reason)
		}
	}
}

func refused(g *Game, m Move) bool {
	_, err := Apply(*g, g.Stage.Turn(), m, 1)
	return err != nil
}

// played plays a game up to a stage.
func played(t testing.TB, defender, challenger *account, until Stage) *Game {
	t.Helper()
	g := openSequence(t, defender.sequence())
	for g.Stage != until {
		w := defender
		if g.Stage.Turn() == Challenger {
			w = challenger
		}
		m, err := Play(&g, WitnessOf(w))
		if err != nil {
			t.Fatalf("stage %v: %v", g.Stage, err)
		}
		if g, err = Apply(g, g.Stage.Turn(), m, 1); err != nil {
			t.Fatalf("stage %v: %v", g.Stage, err)
		}
	}
	return &g
}

// Moves that are bent in any way are refused, and leave the game as it was.
func TestBentSequenceMovesAreRefused(t *testing.T) {
	right, page := newAccount(t, 0, lie{}), newAccount(t, 0, lie{2, 4, 5})
	token := newAccount(t, toyTokens[4], lie{})
	blind := newAccount(t, toyTokens[4], lie{})
	blind.blind = true
	noise := canon.Hash{1}
	for _, x := range []struct {
		what                 string
		defender, challenger *account
		stage                Stage
		bend                 func(m Move)
	}{
		{"a chunk too few", page, right, PostChunks, func(m Move) { m.(*Chunks).Chunks = m.(*Chunks).Chunks[1:] }},
		{"another chunk", page, right, PostChunks, func(m Move) { m.(*Chunks).Chunks[1] = noise }},
		{"another page of tokens", page, right, PostChunks, func(m Move) { m.(*Chunks).Tokens[1] = noise }},
		{"a page of tokens too many", page, right, PostChunks, func(m Move) { m.(*Chunks).Tokens = append(m.(*Chunks).Tokens, noise) }},
		{"no chunk", page, right, PickChunk, func(m Move) { m.(*Pick).Index = 3 }},
		{"outputs", page, right, PickChunk, func(m Move) { m.(*Pick).Outputs = true }},
		{"a layer of another chunk", page, right, PostSteps, func(m Move) { m.(*Steps).Pages[0] = noise }},
		{"a value too many", page, right, PostSteps, func(m Move) { m.(*Steps).Values = append(m.(*Steps).Values, noise) }},
		{"a layer too few", page, right, PostSteps, func(m Move) { m.(*Steps).Pages = m.(*Steps).Pages[1:] }},
		{"no column", page, right, PickStep, func(m Move) { m.(*Step).Column = 8 }},
		{"another column", page, right, PickStep, func(m Move) { m.(*Step).Column = 3 }},
		{"another program", page, right, PickStep, func(m Move) { m.(*Step).Program = noise }},
		{"other weights", page, right, PickStep, func(m Move) { m.(*Step).Weights = noise }},
		{"a token where none is judged", page, right, PickStep, func(m Move) { m.(*Step).Judged = toyPrompt }},
		{"a chunk before too few", page, right, PickStep, func(m Move) { m.(*Step).Past = m.(*Step).Past[1:] }},
		{"another layer before", page, right, PickStep, func(m Move) { m.(*Step).Past[0].Root = noise }},
		{"chunks before in another order", page, right, PickStep, func(m Move) { slices.Reverse(m.(*Step).Past) }},
		{"a token of another chunk", blind, token, PickStep, func(m Move) { m.(*Step).Judged = 257 }},
		{"a token of the prompt", blind, token, PickStep, func(m Move) { m.(*Step).Judged = toyPrompt - 1 }},
		{"no token", blind, token, PickStep, func(m Move) { m.(*Step).Judged = 0 }},
	} {
		g := played(t, x.defender, x.challenger, x.stage)
		w := x.defender
		if x.stage.Turn() == Challenger {
			w = x.challenger
		}
		m, err := Play(g, WitnessOf(w))
		if err != nil {
			t.Fatal(err)
		}
		if x.bend(m); x.what == "a layer of another chunk" && g.Chunk == 0 {
			t.Error("the lie is in the first chunk")
		}
		mustRefuse(t, g, x.stage.Turn(), m, 1, ErrMove)
	}
	// A step that reads nothing of chunks before names none.
	first := newAccount(t, 0, lie{2, 3, 5})
	g := played(t, first, right, PickStep)
	m, err := Play(g, WitnessOf(right))
	if err != nil {
		t.Fatal(err)
	}
	m.(*Step).Past = []Past{{Root: noise}}
	mustRefuse(t, g, Challenger, m, 1, ErrMove)
}

// What is no reply, or too long a one, has no game, and the largest moves fit a transaction.
func TestSequencesThatHaveNoGame(t *testing.T) {
	right := newAccount(t, 0, lie{}).sequence()
	for what, bend := range map[string]func(c *Claim, o *Opening){
		"no prompt":                func(c *Claim, _ *Opening) { c.Sequence.Prompt = 0 },
		"no reply":                 func(c *Claim, _ *Opening) { c.Sequence.Reply = 0 },
		"too long":                 func(c *Claim, _ *Opening) { c.Sequence.Reply = 4*ChunkTokens - toyPrompt + 2 },
		"far too long":             func(c *Claim, _ *Opening) { c.Sequence.Prompt, c.Sequence.Reply = 1<<62, 1<<62 },
		"no layers":                func(c *Claim, _ *Opening) { c.Sequence.Model.Layers = 0 },
		"too many chunks":          func(c *Claim, _ *Opening) { c.Sequence.Model.Chunks = MaxChunks + 1 },
		"a program":                func(c *Claim, _ *Opening) { c.Program = canon.Hash{1} },
		"steps":                    func(c *Claim, _ *Opening) { c.Steps = 1 },
		"an opening":               func(_ *Claim, o *Opening) { o.Segment = 1 },
		"more than a move can say": func(c *Claim, _ *Opening) { c.Sequence.Model.Chunks, c.Sequence.Model.Layers = MaxChunks, MaxLayers },
	} {
		s := *right
		c, o := Claim{Sequence: &s}, Opening{}
		bend(&c, &o)
		if _, err := Open(c, toyRules, o, 0); !errors.Is(err, ErrMove) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for layers := 1; layers <= MaxLayers; layers++ {
		m := Model{Layers: layers, Chunks: MostChunks(layers)}
		if m.Chunks++; m.Check() == nil {
			t.Fatalf("%d layers and %d chunks can be disputed", layers, m.Chunks)
		}
		m.Chunks--
		largest := &Step{Column: m.Columns(), Judged: maxSequence, Path: make([]canon.Hash, canonLevels(m.Chunks*m.Columns()))}
		for range m.Chunks - 1 {
			largest.Past = append(largest.Past, Past{Path: make([]canon.Hash, canonLevels(layers))})
		}
		if n := len(EncodeMove(largest)); m.Check() != nil || n > MaxMove {
			t.Fatalf("%d layers and %d chunks: %v, a move of %d bytes", layers, m.Chunks, m.Check(), n)
		}
	}
}

// canonLevels is how long paths in a tree of n leaves are at most.
func canonLevels(n int) int {
	t := canon.NewTree(make([]canon.Hash, n))
	return len(t.Prove(0))
}

// Who concedes has lost, in whatever stage.
func TestConceding(t *testing.T) {
	right, wrong := newAccount(t, 0, lie{}), newAccount(t, 0, lie{2, 4, 5})
	for _, stage := range []Stage{PostChunks, PickChunk, PostSteps, PickStep, PostTrace, PickTrace, PostNode, PostTile, PickElement} {
		g := played(t, wrong, right, stage)
		over, err := Apply(*g, stage.Turn(), &Concede{}, 1)
		if err != nil || over.Loser != stage.Turn() {
			t.Errorf("stage %v: %v, %v has lost", stage, err, over.Loser)
		}
		mustRefuse(t, &over, stage.Turn(), &Concede{}, 1, nil)
		mustRefuse(t, g, Defender+Challenger-stage.Turn(), &Concede{}, 1, ErrTurn)
	}
}
