package worktest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// Training is a party that really trains a small language model, with the scalar
// definitions: tokens are embedded in 40 numbers, so its matrix products take two
// fold blocks. A lie makes one of its accumulators wrong.
type Training struct {
	Problem job.Problem
	Lie     *Lie // nil if honest

	t           testing.TB
	step, merge program
	data        *tensor.Tensor
	states      map[canon.Hash]*graph.State // all that it has met, by root
}

// Lie is a wrong accumulator of one matrix product in one step of one unit.
type Lie struct {
	Unit, Step int
	Node       int // of the step program; NewTraining finds one
	Element    int
}

type program struct {
	*graph.Program
	*graph.Commitment
}

const (
	vocabulary = 16
	width      = 40
	columns    = 5
)

// NewTraining returns a party. All of them, honest or not, know the same order.
func NewTraining(t testing.TB, lie *Lie) *Training { return NewTrainingNamed(t, lie, "") }

// NewTrainingNamed is NewTraining of programs and states whose slots have names
// that end in tail, or in as much of it as names may hold.
func NewTrainingNamed(t testing.TB, lie *Lie, tail string) *Training {
	t.Helper()
	b := graph.NewBuilder("bigram")
	tokens := b.Input("tokens", tensor.Int32, tensor.Shape{2, columns - 1})
	fill := func(name string, s ...int) string {
		x := tensor.Must(tensor.New(tensor.Float32, s))
		for i := range x.Len() {
			x.Set(i, tensor.F32(float32(i*7%23)/23-0.4))
		}
		return b.Init(name, x)
	}
	x := b.Op("Gather", fill("embedding", vocabulary, width), tokens)
	b.Output(b.Op("MatMul", x, fill("head", width, vocabulary)), tensor.Float32, tensor.Shape{2, columns - 1, vocabulary})
	data := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{40, columns}))
	for i := range data.Len() {
		data.Set(i, tensor.Word(i*i%vocabulary))
	}
	recipe := train.Recipe{Loss: "next-token-cross-entropy", Optimizer: "sgd", Rate: train.Rate{LearningRate: 0.125}, Batch: 2}
	tr, err := train.New(b.Graph(), recipe, data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	p := Order().Problem
	p.Steps, p.Interval, p.Batch, p.Records = 4, 2, recipe.Batch, data.Shape[0]
	_, merge, err := train.Merge(tr.Start.Slots, p.Shards)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range tr.Program.Slots {
		tail = tail[:min(len(tail), canon.MaxKey-len(s.Name))]
	}
	for _, slots := range [][]graph.Slot{tr.Program.Slots, merge.Slots, tr.Start.Slots} {
		for i := range slots {
			slots[i].Name = strings.TrimSuffix(slots[i].Name, tail) + tail // the lists may share what they hold
		}
	}
	w := &Training{
		Lie: lie, t: t, data: data, states: map[canon.Hash]*graph.State{},
		step: program{tr.Program, tr.Program.Commit()}, merge: program{merge, merge.Commit()},
	}
	p.Step, p.Merge, p.Start, p.Data = w.step.Root(), w.merge.Root(), w.keep(tr.Start), data.Root()
	cost := w.step.Program.Cost()
	p.StepFLOPs, p.StepBytes = cost.FLOPs, cost.Bytes
	w.Problem = p
	if lie != nil {
		lie.Node = w.product()
	}
	return w
}

// Order returns the order that the party works on.
func (w *Training) Order() job.Order {
	o := Order()
	o.Problem = w.Problem
	return o
}

// product returns the first matrix product of at least two fold blocks.
func (w *Training) product() int {
	for i := range w.step.Nodes {
		if n := &w.step.Nodes[i]; n.Fn == tensor.Dot && n.Blocks() > 1 {
			return i
		}
	}
	w.t.Fatal("the step has no matrix product of two fold blocks")
	return 0
}

func (w *Training) keep(s *graph.State) canon.Hash {
	w.t.Helper()
	root, err := s.Root()
	if err != nil {
		w.t.Fatal(err)
	}
	w.states[root] = s
	return root
}

// Checkpoints implements Computer.
func (w *Training) Checkpoints(unit int, start canon.Hash) []canon.Hash {
	u := w.Unit(unit, start)
	out := []canon.Hash{start}
	for step := 1; step <= w.Problem.Steps; step++ {
		if step%w.Problem.Interval == 0 || step == w.Problem.Steps {
			out = append(out, u.roots[step])
		}
	}
	return out
}

// Merge implements Computer.
func (w *Training) Merge(ends []canon.Hash) canon.Hash {
	return w.keep(w.Merged(ends).runs[0].Out)
}

// Witness is the party's account of a unit or a merge.
type Witness struct {
	roots []canon.Hash
	runs  []*dispute.Execution
}

// Root implements dispute.Witness.
func (x *Witness) Root(step int) (canon.Hash, error) { return x.roots[step], nil }

// Execution implements dispute.Witness.
func (x *Witness) Execution(step int) (*dispute.Execution, error) { return x.runs[step], nil }

// From is the account from a step on, which is its step 0.
func (x *Witness) From(step int) *Witness { return &Witness{x.roots[step:], x.runs[step:]} }

// Segment returns what a segment gives by this account.
func (x *Witness) Segment(p *job.Problem, s int) proof.Outcome {
	first, steps := p.Segment(s)
	return proof.Outcome{Before: x.roots[first+steps-1], End: x.roots[first+steps]}
}

// Knows reports whether the party has met a state.
func (w *Training) Knows(root canon.Hash) bool { return w.states[root] != nil }

// State returns a state that the party knows.
func (w *Training) State(root canon.Hash) *graph.State { return w.state(root) }

// Records returns the training records.
func (w *Training) Records() *tensor.Tensor { return w.data }

// Unit computes a unit from a state that the party knows.
func (w *Training) Unit(unit int, start canon.Hash) *Witness {
	return w.Stretch(unit, 0, w.Problem.Steps, start)
}

// Stretch computes the steps first to last of a unit, from a state that the party
// knows, which is the account's step 0.
func (w *Training) Stretch(unit, first, last int, start canon.Hash) *Witness {
	w.t.Helper()
	p := &w.Problem
	x := &Witness{roots: []canon.Hash{start}}
	for step := first; step < last; step++ {
		in := graph.Inputs{
			States: []*graph.State{w.state(x.roots[step-first])}, Data: w.data,
			Rows: p.Order().Rows(unit%p.Shards, unit/p.Shards*p.Steps+step),
		}
		var lie *Lie
		if w.Lie != nil && w.Lie.Unit == unit && w.Lie.Step == step {
			lie = w.Lie
		}
		e := w.execute(w.step, in, lie)
		x.runs, x.roots = append(x.runs, e), append(x.roots, w.keep(e.Out))
	}
	return x
}

// Merged computes a merge of states that the party knows.
func (w *Training) Merged(ends []canon.Hash) *Witness {
	w.t.Helper()
	var in graph.Inputs
	for _, end := range ends {
		in.States = append(in.States, w.state(end))
	}
	e := w.execute(w.merge, in, nil)
	return &Witness{roots: []canon.Hash{ends[0], w.keep(e.Out)}, runs: []*dispute.Execution{e}}
}

func (w *Training) state(root canon.Hash) *graph.State {
	w.t.Helper()
	s := w.states[root]
	if s == nil {
		w.t.Fatalf("the party does not know state %s", root)
	}
	return s
}

// Learn gives the party the states that others know.
func (w *Training) Learn(from *Training) {
	for root, s := range from.states {
		w.states[root] = s
	}
}

func (w *Training) execute(p program, in graph.Inputs, lie *Lie) *dispute.Execution {
	w.t.Helper()
	kernel := func(i int, n *graph.Opcode, args []*tensor.Tensor) (*tensor.Tensor, error) {
		out, err := n.Eval(args)
		if err == nil && lie != nil && lie.Node == i {
			states, err := lie.states(n, args)
			if err != nil {
				return nil, err
			}
			out.Set(lie.Element, states[len(states)-1][0])
		}
		return out, err
	}
	e, err := dispute.Execute(p.Program, p.Commitment, in, func(in graph.Inputs, observe graph.Observer) (*graph.State, error) {
		return p.Run(in, kernel, observe)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if lie == nil {
		return e
	}
	truth := e.States
	e.States = func(node, element int, blocks []int) ([][]tensor.Word, error) {
		if node != lie.Node || element != lie.Element {
			return truth(node, element, blocks)
		}
		n := &p.Nodes[node]
		args := make([]*tensor.Tensor, len(n.From))
		for j, r := range n.From {
			if args[j] = operand(e, r); args[j] == nil {
				return nil, fmt.Errorf("operand %v", r)
			}
		}
		all, err := lie.states(n, args)
		var out [][]tensor.Word
		for _, b := range blocks {
			out = append(out, all[b])
		}
		return out, err
	}
	return e
}

func operand(e *dispute.Execution, r graph.Ref) *tensor.Tensor {
	switch r.Kind {
	case graph.RefNode:
		return e.Values[r.Index]
	case graph.RefSlot:
		return e.In.States[r.Group].Tensors[r.Index]
	case graph.RefConst:
		return e.Program.Consts[r.Index]
	case graph.RefData:
		return e.In.Data
	}
	return nil
}

// states returns the accumulators before each fold block and, last, the element
// itself, of a party that gets the second block wrong.
func (l *Lie) states(n *graph.Opcode, args []*tensor.Tensor) ([][]tensor.Word, error) {
	c := tensor.NewCell(n.Primitive, func(arg, i int) (tensor.Word, error) { return args[arg].At(i), nil })
	if err := c.Seek(l.Element); err != nil {
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
		if b == 1 {
			s[len(s)-1] ^= 1 << 20 // far above what rounding could swallow
		}
	}
	v, err := c.Finish(s)
	return append(out, []tensor.Word{v}), err
}
