package sim

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/replay"
)

// Sizes of the order that all simulations play: a bigram model of a few hundred
// parameters, so that thousands of orders can be played.
const (
	vocabulary = 8
	width      = 4
	columns    = 5
	batch      = 4
	records    = 64
	rounds     = 2
	shards     = 2
	steps      = 8
	interval   = 2
	segments   = steps / interval
)

// training is the work of the order, and every state that anybody has met.
type training struct {
	job     *replay.Job
	problem job.Problem
	states  map[canon.Hash]*graph.State
	next    map[transition]canon.Hash
	merged  map[canon.Hash]canon.Hash

	verdicts map[canon.Hash]dispute.Side // of games about the first unit
}

// transition is one step of a shard from a state.
type transition struct {
	from canon.Hash
	unit int
	step int
}

func newTraining() (*training, error) {
	b := graph.NewBuilder("bigram")
	tokens := b.Input("tokens", tensor.Int32, tensor.Shape{batch, columns - 1})
	weights := func(name string, shape ...int) string {
		x := tensor.Must(tensor.New(tensor.Float32, shape))
		for i := range x.Len() {
			x.Set(i, tensor.F32(float32(i*7%23)/23-0.4))
		}
		return b.Init(name, x)
	}
	x := b.Op("Gather", weights("embedding", vocabulary, width), tokens)
	b.Output(b.Op("MatMul", x, weights("head", width, vocabulary)), 0, nil)
	data := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{records, columns}))
	for i := range data.Len() {
		data.Set(i, tensor.Word(uint32(i+1)*2654435761>>29)) // scattered, so that no two shards are alike
	}
	w, err := replay.New(context.Background(), replay.Inputs{
		Model: b.Graph(), Data: data,
		Recipe: train.Recipe{Loss: "next-token-cross-entropy", Optimizer: "sgd", Rate: train.Rate{LearningRate: 0.125}, Batch: batch},
	}, shards, cpu.New(1))
	if err != nil {
		return nil, err
	}
	t := &training{job: w, states: map[canon.Hash]*graph.State{}, next: map[transition]canon.Hash{}, merged: map[canon.Hash]canon.Hash{}, verdicts: map[canon.Hash]dispute.Side{}}
	t.problem = job.Problem{Rounds: rounds, Steps: steps, Interval: interval, Seed: 1}
	if err := w.Bind(&t.problem); err != nil {
		return nil, err
	}
	_, err = t.keep(w.Start)
	return t, err
}

// keep remembers a state and returns its root.
func (t *training) keep(s *graph.State) (canon.Hash, error) {
	root, err := s.Root()
	if err == nil && t.states[root] == nil {
		t.states[root] = s
	}
	return root, err
}

// step returns the state that one step of a unit honestly leads to.
func (t *training) step(from canon.Hash, unit, step int) (canon.Hash, error) {
	key := transition{from, unit, step}
	if to, ok := t.next[key]; ok {
		return to, nil
	}
	s := t.states[from]
	if s == nil {
		return canon.Hash{}, fmt.Errorf("nobody has state %v", from.Short())
	}
	s, err := t.job.UnitOf(&t.problem, unit).Play(context.Background(), s, step, step+1, nil)
	if err != nil {
		return canon.Hash{}, err
	}
	to, err := t.keep(s)
	t.next[key] = to
	return to, err
}

// play returns the states before and after each of the given steps of a unit.
func (t *training) play(from canon.Hash, unit, lo, hi int) ([]canon.Hash, error) {
	roots := []canon.Hash{from}
	for s := lo; s < hi; s++ {
		to, err := t.step(roots[len(roots)-1], unit, s)
		if err != nil {
			return nil, err
		}
		roots = append(roots, to)
	}
	return roots, nil
}

// merge returns what the ends of a round honestly merge into.
func (t *training) merge(ends []canon.Hash) (canon.Hash, error) {
	key := canon.Root(ends)
	if to, ok := t.merged[key]; ok {
		return to, nil
	}
	in := make([]*graph.State, len(ends))
	for i, e := range ends {
		in[i] = t.states[e]
	}
	s, err := t.job.MergeStates(context.Background(), in)
	if err != nil {
		return canon.Hash{}, err
	}
	to, err := t.keep(s)
	t.merged[key] = to
	return to, err
}

// checkpoints are the states of a unit that a receipt shows.
func checkpoints(roots []canon.Hash) (out []canon.Hash) {
	for s := 0; s <= steps; s += interval {
		out = append(out, roots[s])
	}
	return out
}

// account is what somebody says the states of a unit were, after each step. Its
// owner runs every step that it is asked about, and then shows the state that it
// claims.
type account struct {
	t     *training
	unit  int
	first int // step of the unit from which the states are
	roots []canon.Hash
}

// Root implements dispute.Witness.
func (a account) Root(step int) (canon.Hash, error) { return a.roots[step], nil }

// Execution implements dispute.Witness.
func (a account) Execution(step int) (*dispute.Execution, error) {
	p := &a.t.problem
	in := graph.Inputs{
		States: []*graph.State{a.t.states[a.roots[step]]}, Data: a.t.job.Data,
		Rows: p.Order().Rows(a.unit%p.Shards, a.unit/p.Shards*p.Steps+a.first+step),
	}
	return a.t.execute(a.t.job.Step, in, a.roots[step+1])
}

// mergeAccount is what somebody says a merge came to.
type mergeAccount struct {
	t     *training
	ends  []canon.Hash
	claim canon.Hash
}

// Root implements dispute.Witness.
func (a mergeAccount) Root(int) (canon.Hash, error) { return a.claim, nil }

// Execution implements dispute.Witness.
func (a mergeAccount) Execution(int) (*dispute.Execution, error) {
	var in graph.Inputs
	for _, e := range a.ends {
		in.States = append(in.States, a.t.states[e])
	}
	return a.t.execute(a.t.job.Merge, in, a.claim)
}

func (t *training) execute(p replay.Program, in graph.Inputs, claim canon.Hash) (*dispute.Execution, error) {
	return dispute.Execute(p.Program, p.Commitment, in, func(in graph.Inputs, observe graph.Observer) (*graph.State, error) {
		if _, err := p.Runner.Run(context.Background(), in, observe); err != nil {
			return nil, err
		}
		return t.states[claim], nil
	})
}

// rows returns the records that a step of a unit reads.
func (t *training) rows(unit, step int) []int64 {
	return t.problem.Order().Rows(unit%shards, unit/shards*steps+step)
}

// stepOn returns the state that a step on other records leads to.
func (t *training) stepOn(from canon.Hash, rows []int64) (canon.Hash, error) {
	s, err := t.job.Step.Runner.Run(context.Background(), graph.Inputs{States: []*graph.State{t.states[from]}, Data: t.job.Data, Rows: rows}, nil)
	if err != nil {
		return canon.Hash{}, err
	}
	return t.keep(s)
}
