package dispute

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
)

// The toy order: a state of a matrix and a vector, a program of eight nodes
// that uses every kind of primitive and every kind of source, and a few steps.

const (
	toyRows, toyCols = 3, 40
	toyRecords       = 10
	toySteps         = 6
	toyInterval      = 2
)

func axes(as ...int) []tensor.Dim {
	out := make([]tensor.Dim, len(as))
	for i, a := range as {
		out[i] = tensor.Dim{Terms: []tensor.Term{{Axis: a, Step: 1}}}
	}
	return out
}

func arg(t tensor.DType, s tensor.Shape, d []tensor.Dim) tensor.Access {
	return tensor.Access{Type: t, Shape: s, Dims: d}
}

func toyProgram(t testing.TB) *graph.Program {
	f, i32, i64 := tensor.Float32, tensor.Int32, tensor.Int64
	mat, vec := tensor.Shape{toyRows, toyCols}, tensor.Shape{toyRows}
	half := tensor.Must(tensor.From(tensor.Shape{}, []float32{0.003}))
	node := func(fn tensor.Fn, typ tensor.DType, s tensor.Shape, fold []int, imm []tensor.Word, args []tensor.Access, from ...graph.Ref) graph.Opcode {
		return graph.Opcode{Primitive: &tensor.Primitive{Fn: fn, Type: typ, Shape: s, Fold: fold, Args: args, Imm: imm}, From: from, Origin: graph.Origin{Op: fn.String()}}
	}
	ref := func(k graph.RefKind, i int) graph.Ref { return graph.Ref{Kind: k, Index: i} }
	batch := tensor.Shape{toyRows, toyCols}
	p := &graph.Program{
		Groups: 1, Rows: toyRows,
		Slots:  []graph.Slot{{Name: "a", Type: f, Shape: mat}, {Name: "b", Type: f, Shape: vec}, {Name: "c", Type: i64, Shape: vec}},
		Data:   &graph.Slot{Name: "data", Type: i32, Shape: tensor.Shape{toyRecords, toyCols}},
		Consts: []*tensor.Tensor{half},
		Nodes: []graph.Opcode{
			// 0: the batch
			node(tensor.Copy, i32, batch, nil, []tensor.Word{0}, []tensor.Access{
				{Type: i32, Shape: tensor.Shape{toyRecords, toyCols}, Dims: []tensor.Dim{{Via: 1}, axes(1)[0]}},
				arg(i64, tensor.Shape{toyRows}, axes(0)),
			}, ref(graph.RefData, 0), ref(graph.RefRows, 0)),
			// 1: as floats
			node(tensor.Cast, f, batch, nil, nil, []tensor.Access{arg(i32, batch, axes(0, 1))}, ref(graph.RefNode, 0)),
			// 2: scaled
			node(tensor.Mul, f, batch, nil, nil, []tensor.Access{arg(f, batch, axes(0, 1)), arg(f, tensor.Shape{}, nil)}, ref(graph.RefNode, 1), ref(graph.RefConst, 0)),
			// 3: matrix · batchᵀ
			node(tensor.Dot, f, tensor.Shape{toyRows, toyRows}, []int{toyCols}, nil, []tensor.Access{arg(f, mat, axes(0, 2)), arg(f, batch, axes(1, 2))}, ref(graph.RefSlot, 0), ref(graph.RefNode, 2)),
			// 4: row sums
			node(tensor.FoldSum, f, vec, []int{toyRows}, nil, []tensor.Access{arg(f, tensor.Shape{toyRows, toyRows}, axes(0, 1))}, ref(graph.RefNode, 3)),
			// 5: new vector
			node(tensor.TanhF, f, vec, nil, nil, []tensor.Access{arg(f, vec, axes(0))}, ref(graph.RefNode, 4)),
			// 6: new matrix
			node(tensor.Add, f, mat, nil, nil, []tensor.Access{arg(f, mat, axes(0, 1)), arg(f, vec, axes(0))}, ref(graph.RefSlot, 0), ref(graph.RefNode, 5)),
			// 7: where each row is largest
			node(tensor.FoldArgMax, i64, vec, []int{toyCols}, []tensor.Word{0}, []tensor.Access{arg(f, mat, axes(0, 1))}, ref(graph.RefNode, 6)),
		},
		Outputs: []graph.Ref{ref(graph.RefNode, 6), ref(graph.RefNode, 5), ref(graph.RefNode, 7)},
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// kernel runs p node by node with k.
func kernel(p *graph.Program, k graph.Kernel) Run {
	return func(in graph.Inputs, observe graph.Observer) (*graph.State, error) { return p.Run(in, k, observe) }
}

// party is a witness that runs the toy order, honestly or with one fault.
type party struct {
	t     testing.TB
	p     *graph.Program
	com   *graph.Commitment
	data  *tensor.Tensor
	batch Batch
	apart bool // its steps are independent
	fault fault
	roots []canon.Hash
	runs  []*Execution
}

// fault changes one word where a dishonest party computes.
type fault struct {
	step, node, element, block int
	slot                       bool // change slot `node` of the result instead
}

var honest = fault{step: -1}

func newParty(t testing.TB, f fault) *party { return newPartyOf(t, false, f) }

// newPartyOf returns a party to an order whose steps go on from one another, or stand apart:
// then their results have slots of their own, and records are read in order.
func newPartyOf(t testing.TB, apart bool, f fault) *party {
	p := toyProgram(t)
	if apart {
		p.Results = []graph.Slot{{Name: "p", Type: p.Slots[0].Type, Shape: p.Slots[0].Shape}, {Name: "q", Type: p.Slots[1].Type, Shape: p.Slots[1].Shape},
			{Name: "r", Type: p.Slots[2].Type, Shape: p.Slots[2].Shape}}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	}
	data := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{toyRecords, toyCols}))
	for i := range data.Len() {
		data.Set(i, tensor.Word(i*7%11))
	}
	w := &party{t: t, p: p, com: p.Commit(), data: data, apart: apart, fault: f,
		batch: Batch{Order: record.Order{Seed: 5, Records: toyRecords, Shards: 2, Batch: toyRows}, Shard: 1, First: 12, Straight: apart}}
	if apart {
		w.batch.First = 0
	}
	a := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{toyRows, toyCols}))
	for i := range a.Len() {
		a.Set(i, tensor.F32(float32(i%13)/64))
	}
	s := &graph.State{Slots: p.Slots, Tensors: []*tensor.Tensor{a,
		tensor.Must(tensor.New(tensor.Float32, tensor.Shape{toyRows})), tensor.Must(tensor.New(tensor.Int64, tensor.Shape{toyRows}))}}
	w.add(s)
	for step := range toySteps {
		w.add(w.run(step, s))
		if !apart {
			s = w.runs[step].Out
		}
	}
	return w
}

func (w *party) add(s *graph.State) {
	r, err := s.Root()
	if err != nil {
		w.t.Fatal(err)
	}
	w.roots = append(w.roots, r)
}

// run executes a step with the fault in it and returns the resulting state.
func (w *party) run(step int, s *graph.State) *graph.State {
	rows := make([]int64, toyRows)
	for i := range rows {
		rows[i] = w.batch.Row(step, i)
	}
	in := graph.Inputs{States: []*graph.State{s}, Data: w.data, Rows: rows}
	f := w.fault
	e, err := Execute(w.p, w.com, in, kernel(w.p, func(i int, n *graph.Opcode, args []*tensor.Tensor) (*tensor.Tensor, error) {
		out, err := n.Eval(args)
		if err == nil && f.step == step && f.node == i && !f.slot {
			faulty, err := faultyCell(n, args, f)
			if err != nil {
				return nil, err
			}
			out.Set(f.element, faulty[len(faulty)-1][0])
		}
		return out, err
	}))
	if err != nil {
		w.t.Fatal(err)
	}
	if f.step == step && !f.slot {
		truth := e.States
		e.States = func(node, element int, blocks []int) ([][]tensor.Word, error) {
			if node != f.node || element != f.element {
				return truth(node, element, blocks)
			}
			n := &w.p.Nodes[node]
			args := make([]*tensor.Tensor, len(n.From))
			for j, r := range n.From {
				args[j] = e.Value(r)
			}
			all, err := faultyCell(n, args, f)
			var out [][]tensor.Word
			for _, b := range blocks {
				out = append(out, all[b])
			}
			return out, err
		}
	}
	if f.step == step && f.slot {
		// The nodes are honest; the state does not follow from them.
		e.Out = &graph.State{Slots: e.Out.Slots, Tensors: append([]*tensor.Tensor{}, e.Out.Tensors...)}
		e.Out.Tensors[f.node] = e.Out.Tensors[f.node].Clone()
		e.Out.Tensors[f.node].Set(f.element, e.Out.Tensors[f.node].At(f.element)+1)
		e.out = stateTree{state: e.Out}
	}
	w.runs = append(w.runs, e)
	return e.Out
}

// faultyCell returns the states before every block and, last, the element, of a
// party that flips a bit of the state after block f.block.
func faultyCell(n *graph.Opcode, args []*tensor.Tensor, f fault) ([][]tensor.Word, error) {
	c := tensor.NewCell(n.Primitive, func(arg, i int) (tensor.Word, error) { return args[arg].At(i), nil })
	if err := c.Seek(f.element); err != nil {
		return nil, err
	}
	s, err := c.Start()
	if err != nil {
		return nil, err
	}
	var out [][]tensor.Word
	for b := range n.Blocks() {
		out = append(out, append([]tensor.Word{}, s...))
		lo, hi := n.Block(b)
		if s, err = c.Run(s, lo, hi); err != nil {
			return nil, err
		}
		if b == f.block {
			word := 0
			if n.Fn == tensor.Dot {
				word = len(s) - 1 // the chain, or the K-block that it has just become
			}
			s[word] ^= 1 << 21 // large enough for rounding not to swallow it
		}
	}
	w, err := c.Finish(s)
	if n.Blocks() == 0 {
		w ^= 1 << 3
	}
	if n.Fn == tensor.FoldArgMax {
		w++ // its first word is the value, not the position
	}
	return append(out, []tensor.Word{w}), err
}

func (w *party) Root(step int) (canon.Hash, error) { return w.roots[step], nil }

func (w *party) Execution(step int) (*Execution, error) { return w.runs[step], nil }

func (w *party) claim() (Claim, []canon.Hash) {
	c := Claim{Program: w.com.Root(), Independent: w.apart, Inputs: w.roots[:1], Data: w.data.Root(), Batch: w.batch, Steps: toySteps, Interval: toyInterval}
	if w.apart {
		c.Interval = 1
	} else {
		c.End = w.roots[toySteps]
	}
	var points []canon.Hash
	for s := 0; s <= toySteps; s += c.Interval {
		points = append(points, w.roots[s])
	}
	c.Checkpoints = canon.Root(points)
	return c, points
}

// eachKind runs a test for steps that go on from one another, and for independent ones.
func eachKind(t *testing.T, test func(t *testing.T, party func(fault) *party)) {
	for name, apart := range map[string]bool{"chained": false, "independent": true} {
		t.Run(name, func(t *testing.T) {
			test(t, func(f fault) *party { return newPartyOf(t, apart, f) })
		})
	}
}

var toyRules = Rules{Depth: 1, Clock: 1000, Answer: 200, Parallel: 1}

// stored sends a game through its encoding, as the chain does between moves.
func stored(t testing.TB, g Game) Game {
	t.Helper()
	b := canon.Marshal(&g)
	var back Game
	if err := canon.Unmarshal(b, &back); err != nil {
		t.Fatalf("stage %v: %v", g.Stage, err)
	}
	if string(canon.Marshal(&back)) != string(b) {
		t.Fatal("a game changed in storage")
	}
	return back
}

// playOut plays a game to its end. Every move travels encoded. mute says at
// which move a side falls silent (−1: never).
func playOut(t testing.TB, g Game, defender, challenger Witness, silent Side, from int) Game {
	t.Helper()
	now := int64(10)
	for g.Stage != Over {
		g = stored(t, g)
		now += 3
		side, w := g.Stage.Turn(), defender
		if side == Challenger {
			w = challenger
		}
		if winner, err := Right(&g, challenger); err != nil || winner != Challenger {
			t.Fatalf("stage %v: the challenger bears out the %v, %v", g.Stage, winner, err)
		}
		if side == silent && g.Moves >= from {
			if g.Expired(g.Deadline()) || !g.Expired(g.Deadline()+1) {
				t.Fatal("the clock runs out at another time than the deadline")
			}
			return Expire(g, g.Deadline()+1)
		}
		m, err := Play(&g, w)
		if err != nil {
			t.Fatalf("stage %v: %v", g.Stage, err)
		}
		b := EncodeMove(m)
		if m, err = DecodeMove(b); err != nil {
			t.Fatalf("stage %v: %v", g.Stage, err)
		}
		if _, err := Apply(g, 3-side, m, now); !errors.Is(err, ErrTurn) {
			t.Fatalf("stage %v: a move out of turn gave %v", g.Stage, err)
		}
		next, err := Apply(g, side, m, now)
		if err != nil {
			t.Fatalf("stage %v: %v", g.Stage, err)
		}
		if next.Moves > 60 {
			t.Fatal("the game does not end")
		}
		g = next
	}
	return g
}

// faults yields every single fault of the toy order: each step, node, block and
// a few elements, and each slot of the result.
func faults(p *graph.Program, yield func(fault)) {
	for step := range toySteps {
		for node := range p.Nodes {
			n := p.Nodes[node].Shape.Elements()
			for _, element := range []int{0, n / 2, n - 1} {
				for block := range max(p.Nodes[node].Blocks(), 1) {
					yield(fault{step, node, element, block, false})
				}
			}
		}
		for slot := range p.Slots {
			yield(fault{step, slot, 1, 0, true})
		}
	}
}

func TestEveryFaultIsFoundAndItsAuthorLoses(t *testing.T) {
	eachKind(t, everyFaultIsFound)
}

func everyFaultIsFound(t *testing.T, party func(fault) *party) {
	right := party(honest)
	played, absorbed := 0, 0
	faults(right.p, func(f fault) {
		wrong := party(f)
		c, points := wrong.claim()
		o, err := Challenge(c, points, right)
		if errors.Is(err, ErrAgree) {
			absorbed++ // rounding or a later step swallowed it: the claim is true
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		g, err := Open(c, toyRules, o, 10)
		if err != nil {
			t.Fatal(err)
		}
		g = playOut(t, g, wrong, right, Nobody, 0)
		if g.Loser != Defender {
			t.Fatalf("fault %+v: %v lost: %s", f, g.Loser, g.Reason)
		}
		if g.Lo != f.step || !f.slot && (g.Node != f.node || g.Element != f.element || g.From != f.block) {
			t.Fatalf("fault %+v was found at step %d, node %d, element %d, block %d", f, g.Lo, g.Node, g.Element, g.From)
		}
		played++
	})
	if played < 120 {
		t.Fatalf("only %d games were played, %d faults were absorbed", played, absorbed)
	}
	t.Logf("%d games, %d faults absorbed by rounding", played, absorbed)
}

func TestHonestDefenderBeatsEveryFalseChallenge(t *testing.T) {
	eachKind(t, honestDefenderWins)
}

func honestDefenderWins(t *testing.T, party func(fault) *party) {
	right := party(honest)
	c, points := right.claim()
	tree := canon.NewTree(points)
	faults(right.p, func(f fault) {
		// The challenger believes its own faulty account.
		wrong := party(f)
		s := f.step / c.Interval
		o := Opening{s, points[s], points[s+1], tree.Prove(s), tree.Prove(s + 1)}
		g, err := Open(c, toyRules, o, 10)
		if err != nil {
			t.Fatal(err)
		}
		now := int64(10)
		for g.Stage != Over {
			w := Witness(right)
			if g.Stage.Turn() == Challenger {
				w = wrong
			}
			m, err := Play(&g, w)
			if err == nil {
				now++
				g, err = Apply(g, g.Stage.Turn(), m, now)
			}
			if err != nil {
				if g.Stage.Turn() == Defender {
					t.Fatalf("fault %+v, stage %v: %v", f, g.Stage, err)
				}
				g = Expire(g, g.Deadline()+1) // nothing true is left to say
			}
		}
		if g.Loser != Challenger {
			t.Fatalf("fault %+v: %v lost: %s", f, g.Loser, g.Reason)
		}
	})
}

func TestSilenceLoses(t *testing.T) {
	right := newParty(t, honest)
	wrong := newParty(t, fault{3, 3, 4, 1, false})
	c, points := wrong.claim()
	o, err := Challenge(c, points, right)
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []Side{Defender, Challenger} {
		for from := 1; from < 20; from++ {
			g, err := Open(c, toyRules, o, 10)
			if err != nil {
				t.Fatal(err)
			}
			g = playOut(t, g, wrong, right, side, from)
			if want := side; g.Loser != want && g.Reason[:6] == "silent" {
				t.Fatalf("%v fell silent at move %d, %v lost", side, from, g.Loser)
			}
		}
	}
}

func TestClockIsSharedByAllMovesOfASide(t *testing.T) {
	right := newParty(t, honest)
	wrong := newParty(t, fault{3, 3, 4, 1, false})
	c, points := wrong.claim()
	o, _ := Challenge(c, points, right)
	g, err := Open(c, Rules{Depth: 1, Clock: 100, Answer: 50, Parallel: 1}, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	for g.Stage != Over {
		w := Witness(right)
		if g.Stage.Turn() == Defender {
			w = wrong
			now += 40 // the third move of the defender is late
		}
		m, err := Play(&g, w)
		if err != nil {
			t.Fatal(err)
		}
		next, err := Apply(g, g.Stage.Turn(), m, now)
		if errors.Is(err, ErrLate) {
			g = Expire(g, now)
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		g = next
	}
	if g.Loser != Defender || g.Moves > 8 {
		t.Fatalf("%v lost after %d moves", g.Loser, g.Moves)
	}
}

// Bent moves: whatever a move's bytes, a game either refuses it or goes on to
// the same verdict.
func TestBentMovesAreRefused(t *testing.T) {
	right := newParty(t, honest)
	wrong := newParty(t, fault{3, 3, 4, 1, false})
	c, points := wrong.claim()
	o, _ := Challenge(c, points, right)
	g, err := Open(c, toyRules, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	for g.Stage != Over {
		w := Witness(right)
		if g.Stage.Turn() == Defender {
			w = wrong
		}
		m, err := Play(&g, w)
		if err != nil {
			t.Fatal(err)
		}
		b := EncodeMove(m)
		for i := 0; i < len(b); i += 1 + len(b)/97 {
			bent := append([]byte{}, b...)
			bent[i] ^= 0x11
			x, err := DecodeMove(bent)
			if err != nil {
				continue
			}
			if after, err := Apply(g, g.Stage.Turn(), x, 0); err == nil && after.Stage == Over {
				if g.Stage.Turn() == Challenger && after.Loser == Defender {
					t.Fatalf("stage %v: a bent proof convicted (byte %d)", g.Stage, i)
				}
			}
		}
		if g, err = Apply(g, g.Stage.Turn(), m, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRefusesAndConvictsOutright(t *testing.T) {
	right := newParty(t, honest)
	c, points := right.claim()
	tree := canon.NewTree(points)
	o := Opening{0, points[0], points[1], tree.Prove(0), tree.Prove(1)}
	for name, bend := range map[string]func(*Claim, *Opening, *Rules){
		"segment":     func(c *Claim, o *Opening, r *Rules) { o.Segment = 99 },
		"path":        func(c *Claim, o *Opening, r *Rules) { o.ToPath = o.FromPath },
		"root":        func(c *Claim, o *Opening, r *Rules) { o.From[0] ^= 1 },
		"steps":       func(c *Claim, o *Opening, r *Rules) { c.Steps = 0 },
		"inputs":      func(c *Claim, o *Opening, r *Rules) { c.Inputs = nil },
		"checkpoints": func(c *Claim, o *Opening, r *Rules) { c.Checkpoints = canon.Hash{} },
		"depth":       func(c *Claim, o *Opening, r *Rules) { r.Depth = 0 },
		"answer":      func(c *Claim, o *Opening, r *Rules) { r.Answer = r.Clock + 1 },
	} {
		c, o, r := c, o, toyRules
		bend(&c, &o, &r)
		if _, err := Open(c, r, o, 0); err == nil {
			t.Errorf("%s: a game was opened", name)
		}
	}
	one := c
	one.Checkpoints, one.Steps = canon.Hash{}, 1
	for name, o := range map[string]Opening{
		"segment": {Segment: 257}, "below": {Segment: -1}, "from": {From: points[0]}, "to": {To: points[0]},
		"path": {FromPath: points[:1]}, "other path": {ToPath: points[:1]},
	} {
		if _, err := Open(one, toyRules, o, 0); !errors.Is(err, ErrMove) {
			t.Errorf("an opening with a %s of a claim with one step: %v", name, err)
		}
	}
	if _, err := Open(one, toyRules, Opening{}, 0); err != nil {
		t.Errorf("a claim with one step: %v", err)
	}
	c.Inputs = []canon.Hash{points[1]}
	if g, err := Open(c, toyRules, o, 0); err != nil || g.Loser != Defender {
		t.Errorf("a claim whose checkpoints start elsewhere: %v, %v", g.Loser, err)
	}
	c, _ = right.claim()
	c.End = points[0]
	n := len(points) - 2
	o = Opening{n, points[n], points[n+1], tree.Prove(n), tree.Prove(n + 1)}
	if g, err := Open(c, toyRules, o, 0); err != nil || g.Loser != Defender {
		t.Errorf("a claim whose checkpoints end elsewhere: %v, %v", g.Loser, err)
	}
}

func TestMovesGrowWithTheLogarithm(t *testing.T) {
	right := newParty(t, honest)
	wrong := newParty(t, fault{3, 3, 4, 1, false})
	c, points := wrong.claim()
	o, _ := Challenge(c, points, right)
	counts := map[int]int{}
	for _, depth := range []int{1, 6} {
		g, err := Open(c, Rules{Depth: depth, Clock: 1000, Answer: 200, Parallel: 1}, o, 0)
		if err != nil {
			t.Fatal(err)
		}
		counts[depth] = playOut(t, g, wrong, right, Nobody, 0).Moves
	}
	if counts[6] >= counts[1] || counts[6] > 16 {
		t.Fatalf("moves by depth: %v", counts)
	}
}

// However many parts a move has, the longest accumulators fit it.
func TestAccumulatorsFitAMove(t *testing.T) {
	for depth := 1; depth <= MaxDepth; depth++ {
		g := Game{Stage: PostStates, To: 1 << 20, Rules: Rules{Depth: depth}}
		m := &States{}
		for range g.Cuts() {
			m.States = append(m.States, slices.Repeat([]tensor.Word{math.MaxUint64}, tensor.Lanes))
		}
		if n := len(EncodeMove(m)); n > MaxMove {
			t.Errorf("%d accumulators take %d bytes, a move has %d", len(m.States), n, MaxMove)
		}
	}
}

func FuzzMove(f *testing.F) {
	f.Add(EncodeMove(&Pick{Index: 3}))
	f.Add(EncodeMove(&Roots{[]canon.Hash{{1}}}))
	f.Add(EncodeMove(&Block{}))
	right := newParty(f, honest)
	wrong := newParty(f, fault{3, 3, 4, 1, false})
	c, points := wrong.claim()
	o, _ := Challenge(c, points, right)
	var games []Game
	g, err := Open(c, toyRules, o, 0)
	for err == nil && g.Stage != Over {
		games = append(games, g)
		w := Witness(right)
		if g.Stage.Turn() == Defender {
			w = wrong
		}
		var m Move
		if m, err = Play(&g, w); err == nil {
			f.Add(EncodeMove(m))
			g, err = Apply(g, g.Stage.Turn(), m, 0)
		}
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMove(b)
		if err != nil {
			return
		}
		if string(EncodeMove(m)) != string(b) {
			t.Fatal("a move has two encodings")
		}
		for _, g := range games {
			if after, err := Apply(g, g.Stage.Turn(), m, 0); err == nil && after.Stage == Over && after.Loser == Challenger && g.Stage.Turn() == Defender {
				t.Fatal("the defender won by its own move")
			}
		}
	})
}

func ExampleStage_String() {
	fmt.Println(PostRoots, ProveBlock, ProveBlock.Turn())
	// Output: post roots prove block challenger
}
