package train

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train/pattern"
)

// Training is a consumer's graph made ready to be trained.
type Training struct {
	Graph   *graph.Graph   // of a step
	Program *graph.Program // of a step over the training records
	Start   *graph.State   // before the first step

	model  *graph.Graph // with its adapters, without its teacher
	recipe Recipe
	fields record.Fields
}

// Names of values of a step graph.
const (
	paramPrefix = "p/"
	lossSlot    = "loss"
	stepSlot    = "step"
	batchInput  = "batch"
)

// New writes the step graph of g. The training records have the shape [records,
// words] and are int32; what is in them is said by the recipe's fields.
func New(g *graph.Graph, r Recipe, records tensor.Shape) (*Training, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if err := records.Check(); err != nil || len(records) != 2 || records[0] < 1 {
		return nil, fmt.Errorf("records have shape %v, but should have [records words]", records)
	}
	fields, err := r.fields(records[1])
	if err != nil {
		return nil, err
	}
	g, teaches, err := r.split(g)
	if err != nil {
		return nil, err
	}
	if g, err = Adapt(g, r); err != nil {
		return nil, err
	}
	m, err := join(g, r, fields, r.Batch)
	if err != nil {
		return nil, err
	}
	if r.Weight > 0 {
		m.teacher = &teacher{graph: teaches, weight: r.Weight, temperature: cmp.Or(r.Temperature, defaultTemperature)}
	}
	if err := m.augment(r.Augment); err != nil {
		return nil, err
	}
	of, err := losses[r.Loss](m)
	if err != nil {
		return nil, err
	}
	m.b.Output(m.mean(of), tensor.Float32, nil)
	for _, r := range m.running {
		m.b.Output(r.batch, r.start.Type, r.start.Shape)
	}
	loss, err := op.Infer(m.b.Graph(), lower.FP32)
	if err != nil {
		return nil, err
	}
	forward, calls := loss.Differentiable()
	s, err := optimize(forward, calls, r, m.running)
	if err != nil {
		return nil, err
	}
	t := &Training{Start: &graph.State{}, model: g, recipe: r, fields: fields}
	for _, slot := range s.slots {
		t.Start.Slots = append(t.Start.Slots, graph.Slot{Name: slot.name, Type: slot.start.Type, Shape: slot.start.Shape})
		t.Start.Tensors = append(t.Start.Tensors, slot.start)
	}
	step := *s.b.Graph()
	step.Name, step.Outputs = "step", nil
	for i, slot := range t.Start.Slots {
		step.Outputs = append(step.Outputs, graph.Value{Name: s.slots[i].next, Type: slot.Type, Shape: slot.Shape})
	}
	typed, err := t.overSlots(&step)
	if err != nil {
		return nil, fmt.Errorf("step graph: %w", err)
	}
	t.Graph = typed.Graph
	t.Program, err = bindStep(typed, records)
	return t, err
}

// Step returns the program of a step graph over training records of the given
// shape. It is that of Training.Program if the graph is Training.Graph, or was
// read back from a file of it, and the profile that of the recipe.
func Step(g *graph.Graph, p lower.Profile, records tensor.Shape) (*graph.Program, error) {
	typed, err := op.Infer(g, p)
	if err != nil {
		return nil, fmt.Errorf("step graph: %w", err)
	}
	return bindStep(typed, records)
}

func bindStep(t *lower.Typed, records tensor.Shape) (*graph.Program, error) {
	outputs := make([]int, len(t.Outputs))
	for i := range outputs {
		outputs[i] = i
	}
	return bind(t, records, outputs)
}

// bind makes a program of a graph whose inputs are the slots of a state and,
// last, a batch of records.
func bind(t *lower.Typed, records tensor.Shape, outputs []int) (*graph.Program, error) {
	last := len(t.Inputs) - 1
	if last < 1 || t.Inputs[last].Name != batchInput || len(t.Inputs[last].Shape) != 2 {
		return nil, fmt.Errorf("the last input of a step graph is %q, the records [batch columns]", batchInput)
	}
	data := &graph.Slot{Name: "records", Type: tensor.Int32, Shape: records}
	b := lower.Binding{Groups: 1, Data: data, Rows: t.Inputs[last].Shape[0], Outputs: outputs}
	for i, in := range t.Inputs[:last] {
		if i > 0 && in.Name <= t.Inputs[i-1].Name {
			return nil, fmt.Errorf("slot %q comes after %q; put the slots of a step graph in ascending order", in.Name, t.Inputs[i-1].Name)
		}
		b.Slots = append(b.Slots, graph.Slot(in))
		b.Inputs = append(b.Inputs, graph.Ref{Kind: graph.RefSlot, Index: i})
	}
	b.Inputs = append(b.Inputs, graph.Ref{Kind: graph.RefData})
	return t.Program(b)
}

// join puts a graph before a batch of so many records, its only input. The initializers that may be
// trained are initializers there, called p/<name>.
func join(g *graph.Graph, r Recipe, fields record.Fields, rows int) (*model, error) {
	frozen, err := pattern.Chosen(g, r.Frozen)
	if err != nil {
		return nil, err
	}
	if g, err = g.Canonical(); err != nil {
		return nil, err
	}
	b := graph.NewBuilder("evaluation")
	m := &model{Graph: g, LossOptions: r.LossOptions, b: b, params: map[string]string{}, fields: fields, rows: rows, stats: statistics(g), seed: r.Seed}
	m.values = fields.Read(b, b.Input(batchInput, tensor.Int32, tensor.Shape{rows, fields.Words()}), rows)
	for _, c := range g.Consts {
		stays := frozen[c.Name] || r.Adapters.Rank > 0 && !isAdapter(c.Name)
		if m.stats[c.Name] = m.stats[c.Name] && !stays; m.stats[c.Name] {
			m.params[c.Name] = b.Init(statPrefix+c.Name, c.Tensor)
		} else if c.Tensor.Type == tensor.Float32 && !stays {
			m.params[c.Name] = b.Init(paramPrefix+c.Name, c.Tensor)
		}
	}
	return m, nil
}

// optimize extends the forward graph by the gradients and the new values of all
// slots, and returns them in ascending order of their names.
func optimize(forward *graph.Graph, calls []*lower.Call, r Recipe, running []stat) (*stepper, error) {
	b := graph.Extend(forward)
	var with []string
	for _, c := range forward.Consts {
		if strings.HasPrefix(c.Name, paramPrefix) {
			with = append(with, c.Name)
		}
	}
	loss := forward.Outputs[0].Name
	grads, err := Gradients(b, calls, loss, with, r.Recompute)
	if err != nil {
		return nil, err
	}
	if len(grads) == 0 {
		return nil, fmt.Errorf("no initializer that is not frozen has an influence on the loss")
	}
	s := &stepper{b: b, at: map[string]int{}}
	s.write(s.read(lossSlot, tensor.Scalar[float32](0)), "Identity", loss)
	step := s.read(stepSlot, tensor.Scalar[int64](0))
	step = s.write(step, "Add", step, b.Const(tensor.Scalar[int64](1)))
	for i, x := range running {
		old := s.read(x.name, x.start)
		now := b.Op("Mul", forward.Outputs[1+i].Name, b.Scalar(1-x.momentum))
		s.write(x.name, "Add", b.Op("Mul", old, b.Scalar(x.momentum)), now)
	}
	var params []param
	for _, c := range forward.Consts {
		if g, ok := grads[c.Name]; ok {
			params = append(params, param{strings.TrimPrefix(c.Name, paramPrefix), s.read(c.Name, c.Tensor), g, c.Tensor.Shape})
		}
	}
	s.accumulate(r, step, params)
	clip(b, r, params)
	update := optimizers[r.Optimizer](s, r, r.Rate.write(b, step))
	for _, p := range params {
		update(p)
	}
	slices.SortFunc(s.slots, func(x, y slot) int { return cmp.Compare(x.name, y.name) })
	return s, nil
}

// overSlots types g with the slots and the batch for its inputs; what was an
// initializer may be a slot.
func (t *Training) overSlots(g *graph.Graph) (*lower.Typed, error) {
	c := *g
	batch := g.Inputs[0]
	c.Inputs, c.Consts = nil, nil
	slots := map[string]bool{}
	for _, s := range t.Start.Slots {
		c.Inputs = append(c.Inputs, graph.Value(s))
		slots[s.Name] = true
	}
	c.Inputs = append(c.Inputs, batch)
	for _, k := range g.Consts {
		if !slots[k.Name] {
			c.Consts = append(c.Consts, k)
		}
	}
	return op.Infer(&c, t.recipe.Profile)
}

// Parameters names the initializers that a step from the state changes, in order.
func Parameters(s *graph.State) (out []string) {
	for _, slot := range s.Slots {
		if name, trained := strings.CutPrefix(slot.Name, paramPrefix); trained {
			out = append(out, name)
		}
	}
	return out
}

// Export returns g as the recipe trains it, with the initializers taken from
// the state. A teacher is no part of it.
func Export(s *graph.State, g *graph.Graph, r Recipe) (*graph.Graph, error) {
	g, _, err := r.split(g)
	if err != nil {
		return nil, err
	}
	g, err = Adapt(g, r)
	if err != nil {
		return nil, err
	}
	out := *g
	out.Consts = slices.Clone(g.Consts)
	at := map[string]int{}
	for i, c := range out.Consts {
		at[c.Name] = i
	}
	for i, slot := range s.Slots {
		name, trained := strings.CutPrefix(slot.Name, paramPrefix)
		if !trained {
			if name, trained = strings.CutPrefix(slot.Name, statPrefix); !trained {
				continue
			}
		}
		j, ok := at[name]
		if !ok || out.Consts[j].Tensor.Type != slot.Type || !out.Consts[j].Tensor.Shape.Equal(slot.Shape) {
			return nil, fmt.Errorf("the graph has no initializer %q of type %v%v", name, slot.Type, slot.Shape)
		}
		out.Consts[j].Tensor = s.Tensors[i]
	}
	return &out, nil
}
