package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// Dataset is a model and the records that it shall be applied to.
type Dataset struct {
	Model   *graph.Graph
	Records *graph.State // for each input of the model a tensor [records …] of its name
	Batch   int          // records that a run of the model takes
	Profile lower.Profile
}

// NewBatch makes the program that applies a model to a batch of records.
func NewBatch(d Dataset, exec engine.Executor) (*Job, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	t, err := op.Infer(d.Model, d.Profile)
	if err != nil {
		return nil, err
	}
	p, err := t.Program(d.bind(t))
	if err != nil {
		return nil, err
	}
	j := &Job{Inputs: Inputs{Model: d.Model}, Start: d.Records, profile: d.Profile}
	if j.Step, err = prepare(p, exec); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	blank := &graph.State{Slots: p.Gives()}
	for _, s := range blank.Slots {
		x, err := tensor.New(s.Type, s.Shape)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", s.Name, err)
		}
		blank.Tensors = append(blank.Tensors, x)
	}
	j.bytes = int64(blank.Size())
	return j, nil
}

// check returns an error unless the records are those that the model's inputs take.
func (d *Dataset) check() error {
	var names []string
	for _, v := range d.Model.Inputs {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	if len(d.Records.Slots) == 0 || len(d.Model.Outputs) == 0 {
		return fmt.Errorf("the model has %d outputs, and its records %d tensors: it needs both", len(d.Model.Outputs), len(d.Records.Slots))
	}
	for i, s := range d.Records.Slots {
		if i >= len(names) || s.Name != names[i] {
			return fmt.Errorf("the records have tensor %q; the model takes %s", s.Name, strings.Join(names, ", "))
		}
		if len(s.Shape) == 0 || s.Shape[0] < 1 || s.Shape[0] != d.Records.Slots[0].Shape[0] {
			return fmt.Errorf("records %q have shape %v, and %q %v: every tensor has the same number of records, as its first extent", s.Name, s.Shape, d.Records.Slots[0].Name, d.Records.Slots[0].Shape)
		}
	}
	if len(names) > len(d.Records.Slots) {
		return fmt.Errorf("the records have no tensor %q, which the model takes", names[len(d.Records.Slots)])
	}
	return nil
}

// bind lets the inputs of a model take records, and its outputs be the result.
func (d *Dataset) bind(t *lower.Typed) lower.Binding {
	b := lower.Binding{Groups: 1, Slots: d.Records.Slots, Rows: d.Batch}
	for _, v := range t.Inputs {
		i := slices.IndexFunc(b.Slots, func(s graph.Slot) bool { return s.Name == v.Name })
		b.Inputs, b.Records = append(b.Inputs, graph.Ref{Kind: graph.RefSlot, Index: i}), append(b.Records, true)
	}
	b.Results, b.Outputs = lower.Slots(t.Outputs)
	return b
}

// TakesAxis reports whether the model of a batch takes records along a first axis, and not
// one record alone.
func (j *Job) TakesAxis() bool {
	for _, v := range j.Model.Inputs {
		if i := slices.IndexFunc(j.Start.Slots, func(s graph.Slot) bool { return s.Name == v.Name }); i >= 0 && len(v.Shape) == len(j.Start.Slots[i].Shape) {
			return true
		}
	}
	return false
}
