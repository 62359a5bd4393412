package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// Evaluation is the programs that score a state on held-out records. Whoever has both gets the same scores,
// bit for bit.
//
//	Batch  maps a state and a full batch to its sums
//	Rest   does it for the first records of a batch alone: those after the last full one, with others behind them
//	Add    adds two states of sums
//	Score  turns sums into an int64 for each metric: the metric times [ScoreUnit], or [NoScore]
type Evaluation struct {
	Metrics     []string
	Batch, Rest *graph.Program // nil where there are no such records
	Add, Score  *graph.Program
}

// ScoreUnit is 1 in units of scores: one of 500,000 is 0.5.
const ScoreUnit = 1_000_000

// NoScore is the score of a metric that is no number.
const NoScore = math.MinInt64

// sum is what a metric adds up over batches: a name, the value of a batch, and its type and shape.
type sum struct {
	name, value string
	t           tensor.DType
	s           tensor.Shape
}

// metric is one way to judge a model.
type metric struct {
	name  string
	fits  func(*terms) bool
	sums  func(*model, *terms) []sum
	score func(b *graph.Builder, of func(name string) string) string // float64, from sums
	falls bool                                                       // the less, the better
}

// metricsOf returns the metrics that fit a loss.
func metricsOf(of *terms) (out []metric) {
	for _, m := range metrics {
		if m.fits(of) {
			out = append(out, m)
		}
	}
	return out
}

// Evaluate returns how a state is scored on held-out records of the given shape.
func (t *Training) Evaluate(records tensor.Shape) (*Evaluation, error) {
	if err := records.Check(); err != nil || len(records) != 2 || records[0] < 1 || records[1] != t.fields.Words() {
		return nil, fmt.Errorf("held-out records have shape %v, but should have [records %d]", records, t.fields.Words())
	}
	out := &Evaluation{}
	var slots []graph.Slot
	var chosen []metric
	batch := func(valid int) (*graph.Program, error) { // graphs may be made for one batch alone
		m, err := join(t.model, t.recipe, t.fields, t.recipe.Batch)
		if err != nil {
			return nil, err
		}
		m.scored = true
		of, err := losses[t.recipe.Loss](m)
		if err != nil {
			return nil, err
		}
		if valid < m.rows {
			if of.n%m.rows != 0 {
				return nil, nil // a loss of the whole batch
			}
			of = m.first(of, valid)
		}
		var sums []sum
		chosen = metricsOf(&of)
		for _, c := range chosen {
			for _, s := range c.sums(m, &of) {
				if !slices.ContainsFunc(sums, func(o sum) bool { return o.name == s.name }) {
					sums = append(sums, s)
				}
			}
		}
		slices.SortFunc(sums, func(a, b sum) int { return strings.Compare(a.name, b.name) })
		slots = nil
		for _, s := range sums {
			m.b.Output(s.value, s.t, nil)
			slots = append(slots, graph.Slot{Name: s.name, Type: s.t, Shape: s.s})
		}
		return t.summed(m.b.Graph(), records, slots)
	}
	var err error
	full, rest := records[0]/t.recipe.Batch, records[0]%t.recipe.Batch
	if full > 0 {
		if out.Batch, err = batch(t.recipe.Batch); err != nil {
			return nil, fmt.Errorf("evaluation: %w", err)
		}
	}
	if rest > 0 {
		if out.Rest, err = batch(rest); err != nil {
			return nil, fmt.Errorf("evaluation of the last %d records: %w", rest, err)
		}
	}
	if len(slots) == 0 {
		return nil, fmt.Errorf("%d held-out records do not fill a batch of %d, of which the loss is: hold out more", records[0], t.recipe.Batch)
	}
	for _, c := range chosen {
		out.Metrics = append(out.Metrics, c.name)
	}
	slices.Sort(out.Metrics)
	if out.Add, err = added(slots); err != nil {
		return nil, err
	}
	out.Score, err = scored(slots, chosen)
	return out, err
}

// first leaves the terms of the first records alone.
func (m *model) first(t terms, records int) terms {
	counts := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{t.n}))
	for i := range records * (t.n / m.rows) {
		counts.Set(i, tensor.F32(1))
	}
	b := m.b
	valid := b.Const(counts)
	t.losses = b.Op("Where", b.Op("Greater", valid, b.Scalar(0)), t.losses, b.Scalar(0))
	if t.counts != "" {
		valid = b.Op("Where", b.Op("Greater", valid, b.Scalar(0)), t.counts, b.Scalar(0))
	}
	t.counts = valid
	return t
}

// summed is the program of the sums of a batch.
func (t *Training) summed(g *graph.Graph, records tensor.Shape, sums []graph.Slot) (*graph.Program, error) {
	typed, err := t.overSlots(g)
	if err != nil {
		return nil, err
	}
	b := lower.Binding{
		Groups: 1, Slots: t.Start.Slots, Results: sums, Rows: g.Inputs[0].Shape[0],
		Data: &graph.Slot{Name: "records", Type: tensor.Int32, Shape: records},
	}
	for i := range typed.Inputs[:len(typed.Inputs)-1] {
		b.Inputs = append(b.Inputs, graph.Ref{Kind: graph.RefSlot, Index: i})
	}
	b.Inputs = append(b.Inputs, graph.Ref{Kind: graph.RefData})
	for i := range sums {
		b.Outputs = append(b.Outputs, i)
	}
	return typed.Program(b)
}

// added is the program that adds two states of sums.
func added(sums []graph.Slot) (*graph.Program, error) {
	b := graph.NewBuilder("add")
	binding := lower.Binding{Groups: 2, Slots: sums}
	var in [2][]string
	for group := range in {
		for i, s := range sums {
			in[group] = append(in[group], b.Input(fmt.Sprintf("%d/%s", group, s.Name), s.Type, s.Shape))
			binding.Inputs = append(binding.Inputs, graph.Ref{Kind: graph.RefSlot, Group: group, Index: i})
		}
	}
	for i, s := range sums {
		b.Output(b.Op("Add", in[0][i], in[1][i]), s.Type, s.Shape)
		binding.Outputs = append(binding.Outputs, i)
	}
	typed, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		return nil, err
	}
	return typed.Program(binding)
}

// scored is the program that makes scores of sums.
func scored(sums []graph.Slot, of []metric) (*graph.Program, error) {
	b := graph.NewBuilder("score")
	binding := lower.Binding{Groups: 1, Slots: sums}
	in := map[string]string{}
	for i, s := range sums {
		in[s.Name] = b.Input(s.Name, s.Type, s.Shape)
		binding.Inputs = append(binding.Inputs, graph.Ref{Kind: graph.RefSlot, Index: i})
	}
	slices.SortFunc(of, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	for i, m := range of {
		v := m.score(b, func(name string) string { return in[name] })
		v = b.Op("Reshape", b.Op("Round", b.Op("Mul", v, b.Const(tensor.Scalar[float64](ScoreUnit)))), b.Ints(1))
		v = b.Op("Where", b.Op("Equal", v, v), b.Cast(v, tensor.Int64), b.Const(tensor.Scalar[int64](NoScore)))
		b.Output(v, tensor.Int64, nil)
		binding.Results = append(binding.Results, graph.Slot{Name: m.name, Type: tensor.Int64, Shape: tensor.Shape{1}})
		binding.Outputs = append(binding.Outputs, i)
	}
	typed, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		return nil, err
	}
	return typed.Program(binding)
}
