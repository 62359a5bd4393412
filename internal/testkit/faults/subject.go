package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/replay"
)

// steps is how many steps a unit has: of training, with one checkpoint at its end.
const steps = 3

// Subject is a unit of a model's order, computed honestly.
type Subject struct {
	*graph.Program
	job   *replay.Job
	lease job.Lease
	truth account
}

// seed of the order in which records are read.
const seed = 9

// Inputs are what a consumer brings to train the model in a profile.
func (m Model) Inputs(p lower.Profile) (in replay.Inputs, err error) {
	if in.Model, err = m.Graph(); err != nil {
		return in, err
	}
	in.Recipe = m.Recipe
	in.Recipe.Batch, in.Recipe.Rate, in.Recipe.Profile = batch, train.Rate{LearningRate: 0.01, Warmup: 2}, p
	if m.Fields == nil {
		in.Data, in.Recipe.Loss = text(), "next-token-cross-entropy"
		return in, nil
	}
	in.Recipe.Fields, in.Data, err = pack(m.Fields)
	return in, err
}

// Job returns the model's work, which exec computes, and the problem that an order would name.
func (m Model) Job(p lower.Profile, exec engine.Executor) (j *replay.Job, of *job.Problem, err error) {
	of = &job.Problem{Rounds: 3, Shards: 2, Steps: steps, Interval: steps, Seed: seed}
	if m.Recipe.Optimizer == "" {
		of.Rounds, of.Interval = 1, 1
		var g *graph.Graph
		if g, err = m.Graph(); err == nil {
			j, err = replay.NewBatch(replay.Dataset{Model: g, Records: state(m.Fields), Batch: batch, Profile: p}, exec)
		}
	} else {
		var in replay.Inputs
		if in, err = m.Inputs(p); err == nil {
			j, err = replay.New(context.Background(), in, of.Shards, exec)
		}
	}
	if err == nil {
		err = j.Bind(of)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", m.Name, err)
	}
	return j, of, err
}

// New computes the last unit of the model's order in the given profile.
func New(m Model, p lower.Profile) (*Subject, error) {
	j, of, err := m.Job(p, cpu.New(1))
	if err != nil {
		return nil, err
	}
	s := &Subject{Program: j.Step.Program, job: j}
	s.lease = job.Lease{Order: job.Order{Problem: *of}, Units: make([]job.Unit, of.Units())}
	s.truth = account{runs: map[int]*dispute.Execution{}}
	if err := s.truth.reach(j.Start); err != nil {
		return nil, err
	}
	from := j.Start
	for step := range steps {
		e, err := s.execute(s.inputs(step, from), func(in graph.Inputs, observe graph.Observer) (*graph.State, error) {
			return j.Step.Runner.Run(context.Background(), in, observe)
		})
		if err != nil {
			return nil, err
		}
		s.truth.runs[step], from = e, e.Out
		if err := s.truth.reach(from); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// unit is the number of the unit, the last of the order.
func (s *Subject) unit() int { return len(s.lease.Units) - 1 }

// independent reports whether every step starts from the same state.
func (s *Subject) independent() bool { return s.lease.Order.Problem.Independent() }

func (s *Subject) inputs(step int, from *graph.State) graph.Inputs {
	if s.independent() {
		from = s.job.Start
	}
	of := s.lease.Order.Problem.RecordsOf(s.unit())
	rows := make([]int64, of.Order.Batch)
	for i := range rows {
		rows[i] = of.Row(step, i)
	}
	return graph.Inputs{States: []*graph.State{from}, Data: s.job.Data, Rows: rows}
}

func (s *Subject) execute(in graph.Inputs, run dispute.Run) (*dispute.Execution, error) {
	return dispute.Execute(s.Program, s.job.Step.Commitment, in, run)
}

// account is what one party says of the training: it implements
// dispute.Witness.
type account struct {
	roots []canon.Hash
	runs  map[int]*dispute.Execution // of the steps that a game can come to
}

func (a *account) reach(s *graph.State) error {
	root, err := s.Root()
	a.roots = append(a.roots, root)
	return err
}

// Root implements dispute.Witness.
func (a *account) Root(step int) (canon.Hash, error) { return a.roots[step], nil }

// Execution implements dispute.Witness.
func (a *account) Execution(step int) (*dispute.Execution, error) {
	if e := a.runs[step]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("the game is about step %d, in which both sides agree", step)
}

// claim is what the receipt of a party with this account asserts.
func (s *Subject) claim(a *account) (c dispute.Claim, checkpoints []canon.Hash, err error) {
	r := &job.Receipt{Unit: s.unit(), Start: a.roots[0]}
	for step := 0; step <= steps; step += s.lease.Order.Problem.Interval {
		r.Checkpoints = append(r.Checkpoints, a.roots[step])
	}
	s.lease.Units[s.unit()].Receipt = r
	subject, err := s.lease.Subject(job.UnitTarget(s.unit()), 0)
	return subject.Claim, subject.Points, err
}

// Fault is one wrong bit and what became of it.
type Fault struct {
	Step, Node, Element int
	Block               int  // fold block whose accumulator is wrong; −1: the element itself is
	Swallowed           bool // by later nodes, so that a slot of the state was bent, too
}

// faulty returns the account of a party that puts a random fault into a node.
func (s *Subject) faulty(r *rand.Rand, node int) (*account, Fault, error) {
	f := Fault{Step: r.IntN(steps), Node: node, Block: -1}
	out, states, err := s.plant(r, &f)
	if err != nil {
		return nil, f, err
	}
	for {
		a, err := s.follow(r, &f, out)
		if err != nil {
			return nil, f, err
		}
		if !slices.Equal(a.roots, s.truth.roots) && (s.independent() || a.roots[steps] != s.truth.roots[steps]) {
			e := a.runs[f.Step]
			e.States = miscounted(e.States, &f, states)
			return a, f, nil
		}
		f.Swallowed = true
	}
}

// follow computes everything from the faulty output of a node on.
func (s *Subject) follow(r *rand.Rand, f *Fault, out *tensor.Tensor) (*account, error) {
	honest := s.truth.runs[f.Step]
	e, err := s.execute(honest.In, func(in graph.Inputs, observe graph.Observer) (*graph.State, error) {
		end, err := s.Run(in, s.downstream(honest, f.Node, out), observe)
		if err == nil && f.Swallowed {
			end = bend(r, end)
		}
		return end, err
	})
	if err != nil {
		return nil, err
	}
	a := &account{roots: slices.Clone(s.truth.roots[:f.Step+1]), runs: map[int]*dispute.Execution{f.Step: e}}
	state := e.Out
	for step := f.Step + 1; ; step++ {
		if err := a.reach(state); err != nil || step == steps {
			return a, err
		}
		if s.independent() {
			a.roots = append(a.roots, s.truth.roots[step+1:]...)
			return a, nil
		}
		if state, err = s.job.Step.Runner.Run(context.Background(), s.inputs(step, state), nil); err != nil {
			return nil, err
		}
	}
}

// accumulators are those of an element before each of some fold blocks.
type accumulators func(node, element int, blocks []int) ([][]tensor.Word, error)

// miscounted answers with the author's own accumulators, if it has any, where
// the fault is.
func miscounted(honest accumulators, f *Fault, states [][]tensor.Word) accumulators {
	return func(node, element int, blocks []int) ([][]tensor.Word, error) {
		if states == nil || node != f.Node || element != f.Element {
			return honest(node, element, blocks)
		}
		var at [][]tensor.Word
		for _, b := range blocks {
			at = append(at, states[b])
		}
		return at, nil
	}
}

// downstream computes a step in which node has the given output. What does not
// depend on it is taken from an honest run.
func (s *Subject) downstream(honest *dispute.Execution, node int, out *tensor.Tensor) graph.Kernel {
	wrong := make([]bool, len(s.Nodes))
	wrong[node] = true
	return func(i int, n *graph.Opcode, args []*tensor.Tensor) (*tensor.Tensor, error) {
		if i == node {
			return out, nil
		}
		if !slices.ContainsFunc(n.From, func(r graph.Ref) bool { return r.Kind == graph.RefNode && wrong[r.Index] }) {
			return honest.Values[i], nil
		}
		v, err := n.Eval(args)
		wrong[i] = err == nil && !v.Equal(honest.Values[i])
		return v, err
	}
}

// plant chooses an element of the node in f and returns the node's output with
// the fault in it. Where the fault is in an accumulator, states holds the
// author's accumulators before every fold block.
func (s *Subject) plant(r *rand.Rand, f *Fault) (out *tensor.Tensor, states [][]tensor.Word, err error) {
	honest, n := s.truth.runs[f.Step], &s.Nodes[f.Node]
	out = honest.Values[f.Node].Clone()
	f.Element = r.IntN(out.Len())
	if blocks := n.Blocks(); blocks > 1 && r.IntN(2) == 0 {
		block := r.IntN(blocks)
		states, word, err := s.miscount(r, honest, f, block)
		if err != nil {
			return nil, nil, err
		}
		if word != out.At(f.Element) { // else rounding swallowed it at once
			f.Block = block
			out.Set(f.Element, word)
			return out, states, nil
		}
	}
	for ; ; f.Element = r.IntN(out.Len()) {
		before := out.At(f.Element)
		if out.Set(f.Element, before^1); out.At(f.Element) != before {
			return out, nil, nil
		} // a NaN stays one
	}
}

// miscount folds an element with one wrong bit in the accumulator after a block.
func (s *Subject) miscount(r *rand.Rand, honest *dispute.Execution, f *Fault, block int) (states [][]tensor.Word, out tensor.Word, err error) {
	n := &s.Nodes[f.Node]
	c := tensor.NewCell(n.Primitive, func(arg, i int) (tensor.Word, error) { return honest.Value(n.From[arg]).At(i), nil })
	if err := c.Seek(f.Element); err != nil {
		return nil, 0, err
	}
	at, err := c.Start()
	for b := 0; b < n.Blocks() && err == nil; b++ {
		states = append(states, slices.Clone(at))
		lo, hi := n.Block(b)
		if at, err = c.Run(at, lo, hi); b == block && err == nil {
			at[r.IntN(len(at))] ^= 1
		}
	}
	if err != nil {
		return nil, 0, err
	}
	out, err = c.Finish(at)
	return states, out, err
}

// bend returns s with one wrong bit.
func bend(r *rand.Rand, s *graph.State) *graph.State {
	out := &graph.State{Slots: s.Slots, Tensors: slices.Clone(s.Tensors)}
	i := r.IntN(len(out.Tensors))
	out.Tensors[i] = out.Tensors[i].Clone()
	at := r.IntN(out.Tensors[i].Len())
	out.Tensors[i].Set(at, out.Tensors[i].At(at)^1)
	return out
}
