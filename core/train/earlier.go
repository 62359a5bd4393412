package train

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train/pattern"
)

// Earlier is training that other training goes on from. Whoever has its recipe and the roots of its step
// and of its last state can derive how the other starts, and so check it.
//
// If both have the same slots, the other starts in the last state, moments and steps done included.
// If not, parameters and running statistics carry over by name, and all else begins afresh: another
// optimizer, other patterns of what is frozen, or adapters.
type Earlier struct {
	Recipe  Recipe
	Records tensor.Shape // of its training records
	Step    canon.Hash   // root of the program of its step
	Last    *graph.State // that it ended in
}

// Run computes what a program makes of a state.
type Run func(*graph.Program, *graph.State) (*graph.State, error)

// Model returns g with the weights that the earlier training ended in, for training by r. g is the model of
// the earlier training: its trained initializers may have any values, for the last state has theirs.
//
// Adapters that r does not train in just the same way are merged into the matrices that they adapt, by the
// arithmetic of the forward pass: so the model computes the bits that it computed with them.
func (e *Earlier) Model(g *graph.Graph, r Recipe, run Run) (*graph.Graph, error) {
	if r.Output != e.Recipe.Output { // what it does not read of the model is not part of its program
		return nil, fmt.Errorf("the earlier order trained the model's output %q, and so does what goes on from it, not %q", e.Recipe.Output, r.Output)
	}
	if r.Teacher != e.Recipe.Teacher {
		return nil, fmt.Errorf("the earlier order had the model's output %q for its teacher, and so has what goes on from it, not %q: a weight of 0 leaves it out", e.Recipe.Teacher, r.Teacher)
	}
	was, err := New(g, e.Recipe, e.Records)
	if err != nil {
		return nil, fmt.Errorf("the model cannot be trained as the earlier order says: %w", err)
	}
	if root := was.Program.Commit().Root(); root != e.Step {
		return nil, fmt.Errorf("the model is not that of the earlier order: its step has root %v, that of the order %v", root.Short(), e.Step.Short())
	}
	if err := e.Last.Fits(was.Start.Slots); err != nil {
		return nil, fmt.Errorf("the state is not one of the earlier order: %w", err)
	}
	weights := map[string]*tensor.Tensor{}
	for i, slot := range e.Last.Slots {
		if name, is := carried(slot.Name); is {
			weights[name] = e.Last.Tensors[i]
		}
	}
	out := *g
	out.Consts = slices.Clone(g.Consts)
	for i, c := range out.Consts {
		if t := weights[c.Name]; t != nil {
			out.Consts[i].Tensor = t
		}
	}
	if !e.merges(r) {
		return &out, nil
	}
	if err := e.merge(&out, weights, run); err != nil {
		return nil, fmt.Errorf("adapters cannot be merged: %w", err)
	}
	return &out, nil
}

// merges reports whether adapters are merged before training by r: any but the same would mean something else.
func (e *Earlier) merges(r Recipe) bool {
	a, b := &e.Recipe.Adapters, &r.Adapters
	return a.Rank > 0 && (a.Rank != b.Rank || a.Alpha != b.Alpha || !slices.Equal(a.Of, b.Of))
}

// Start returns the state in which training by r starts that goes on from e. fresh is that in which it would start by
// itself with the model that [Earlier.Model] gives.
func (e *Earlier) Start(fresh *graph.State, r Recipe) *graph.State {
	switch {
	case e.merges(r): // the model has all that carries over, and adapters of the same names are others
		return fresh
	case e.Last.Fits(fresh.Slots) == nil:
		return e.Last
	}
	out := &graph.State{Slots: fresh.Slots, Tensors: slices.Clone(fresh.Tensors)}
	for i, slot := range out.Slots {
		if _, is := carried(slot.Name); !is {
			continue
		}
		if t := e.Last.Find(slot.Name); t != nil && t.Type == slot.Type && t.Shape.Equal(slot.Shape) {
			out.Tensors[i] = t
		}
	}
	return out
}

// carried returns the initializer whose value a slot holds, if it holds one.
func carried(slot string) (name string, is bool) {
	if name, is = strings.CutPrefix(slot, paramPrefix); is {
		return name, true
	}
	return strings.CutPrefix(slot, statPrefix)
}

// merge gives each adapted initializer of g the value that the forward pass makes of it and its adapters.
func (e *Earlier) merge(g *graph.Graph, weights map[string]*tensor.Tensor, run Run) error {
	adapted, err := pattern.Chosen(g, e.Recipe.Adapters.Of) // a graph may have adapters of its own
	if err != nil {
		return err
	}
	at, values := map[string]int{}, map[string]*tensor.Tensor{}
	for i, c := range g.Consts {
		if first, last := weights[c.Name+adapterA], weights[c.Name+adapterB]; adapted[c.Name] && first != nil && last != nil {
			at[c.Name], values[c.Name] = i, c.Tensor
			values[c.Name+adapterA], values[c.Name+adapterB] = first, last
		}
	}
	b, in, bind := graph.NewBuilder("merge adapters"), &graph.State{}, lower.Binding{Groups: 1}
	for i, name := range slices.Sorted(maps.Keys(values)) { // order: sorted
		t := values[name]
		s := graph.Slot{Name: b.Input(name, t.Type, t.Shape), Type: t.Type, Shape: t.Shape}
		in.Slots, in.Tensors = append(in.Slots, s), append(in.Tensors, t)
		bind.Inputs = append(bind.Inputs, graph.Ref{Kind: graph.RefSlot, Index: i})
	}
	bind.Slots = in.Slots
	for _, s := range in.Slots {
		if _, is := at[s.Name]; is {
			b.Output(e.Recipe.Adapters.write(b, s.Name, s.Name+adapterA, s.Name+adapterB), s.Type, s.Shape)
			bind.Outputs, bind.Results = append(bind.Outputs, len(bind.Outputs)), append(bind.Results, s)
		}
	}
	typed, err := op.Infer(b.Graph(), e.Recipe.Profile)
	if err != nil {
		return err
	}
	program, err := typed.Program(bind)
	if err != nil {
		return err
	}
	merged, err := run(program, in)
	if err != nil {
		return err
	}
	for i, s := range merged.Slots {
		g.Consts[at[s.Name]].Tensor = merged.Tensors[i]
	}
	return nil
}
