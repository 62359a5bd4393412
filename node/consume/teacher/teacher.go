// Package teacher joins a second model to the one that an order trains, which learns from its outputs: distillation.
//
// Call [Join] for a model that holds both, and [CostOf] for what the teacher takes of each step.
//
// Invariants: both read the same inputs, and the joined model has those of the student. All that is the teacher's is named teacher.…,
// and nothing of the student's is. The student's outputs come first, then the teacher's one.
//
// Source: docs/spec/programs.md, Distillation.
package teacher

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/onnx"
)

const (
	outputName = "teacher"
	prefix     = "teacher."
)

// Student is the model that learns.
type Student struct {
	*graph.Graph
	Output string // that its loss is of; "": its only one

	// Own are values of the graph by its inputs: what each was before the graph was made to read what the source has.
	Own map[string]graph.Value
}

// Read reads a teacher. Symbolic dimensions follow from the shapes of its inputs, if they are given.
type Read func(shapes map[string]tensor.Shape) (*graph.Graph, error)

// Join returns a model with the outputs of both, and the name of the teacher's. Each of the teacher's inputs reads what the student's input of
// that name does; one alone may be called otherwise. It takes values as the source has them, as models do that an order has
// trained. If it is not made for these, it takes them as the student does.
func Join(s Student, read Read) (joined *graph.Graph, output string, err error) {
	t, err := read(nil)
	var open *onnx.SymbolError
	if !errors.As(err, &open) {
		if err == nil {
			joined, output, err = s.join(t)
		}
		return joined, output, err
	}
	for _, own := range []bool{false, true} {
		shapes := map[string]tensor.Shape{}
		for _, in := range s.Inputs {
			shapes[in.Name] = in.Shape
			if v, ok := s.Own[in.Name]; ok && own {
				shapes[in.Name] = v.Shape
			}
		}
		if t, err = read(shapes); err == nil {
			if joined, output, err = s.join(t); err == nil {
				return joined, output, nil
			}
		}
	}
	return nil, "", fmt.Errorf("its dimensions %q have no size, and do not follow from the model's inputs %s: export it with fixed shapes: %w", open.Symbols, listed(s.Inputs), err)
}

func (s *Student) join(t *graph.Graph) (*graph.Graph, string, error) {
	if err := check(t); err != nil {
		return nil, "", err
	}
	b := graph.Extend(s.Graph)
	bind := map[string]string{}
	if len(t.Inputs) != len(s.Inputs) {
		return nil, "", fmt.Errorf("it has the inputs %s, but the model has %s: export both with the same", listed(t.Inputs), listed(s.Inputs))
	}
	typed := *t
	typed.Inputs = slices.Clone(t.Inputs)
	for i, in := range t.Inputs {
		v, err := s.reads(in)
		if err != nil {
			return nil, "", err
		}
		typed.Inputs[i].Shape = v.Shape
		if bind[in.Name] = v.Name; v.Type != in.Type {
			bind[in.Name] = b.Cast(v.Name, in.Type)
		}
	}
	all, err := op.Infer(&typed, lower.FP32)
	if err != nil {
		return nil, "", fmt.Errorf("it cannot be applied to the inputs %s: export it with a symbolic batch: %w", listed(s.Inputs), err)
	}
	of, err := s.output()
	if err != nil {
		return nil, "", err
	}
	says, err := like(of, all.Outputs)
	if err != nil {
		return nil, "", err
	}
	values := b.Import(prefix, t, bind)
	name := b.With(graph.Int("to", int(tensor.Float32))).As(outputName).Op("Cast", values[says.Name])
	b.Output(name, tensor.Float32, says.Shape)
	return b.Graph(), name, nil
}

// check returns an error for a teacher that nobody could join, whatever the student.
func check(t *graph.Graph) error {
	for _, c := range t.Consts {
		if len(prefix+c.Name) > graph.MaxName {
			return fmt.Errorf("an initializer has a name of %d bytes: export it with shorter ones", len(c.Name))
		}
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if a := n.Attr("training_mode"); n.Op == "BatchNormalization" && a != nil && a.Int != 0 {
			return fmt.Errorf("its BatchNormalization %.40q is in training mode, but a teacher is applied: export it in evaluation mode, as PyTorch does after eval()", n.Name)
		}
		for _, name := range append(slices.Clone(n.Outputs), n.Name) {
			if len(prefix+name) > graph.MaxName {
				return fmt.Errorf("a node or a value has a name of %d bytes: export it with shorter ones", len(name))
			}
		}
	}
	return nil
}

// reads returns the value of the student that an input of a teacher reads.
func (s *Student) reads(in graph.Value) (graph.Value, error) {
	at := slices.IndexFunc(s.Inputs, func(v graph.Value) bool { return v.Name == in.Name })
	if at < 0 && len(s.Inputs) == 1 {
		at = 0
	}
	if at < 0 {
		return in, fmt.Errorf("the model has no input %q, but %s: export both with the same", in.Name, listed(s.Inputs))
	}
	given := s.Inputs[at]
	own, prepared := s.Own[given.Name]
	switch {
	case fits(in, given):
		return given, nil
	case prepared && fits(in, own):
		return own, nil
	case prepared && (own.Type != given.Type || !own.Shape.Equal(given.Shape)):
		return in, fmt.Errorf("its input %s is neither like the source, %s, nor like the input of the model's file, %v%v: export it for one of these", listed([]graph.Value{in}), listed([]graph.Value{given}), own.Type, own.Shape)
	}
	return in, fmt.Errorf("its input %s is not like the model's, %s: export both for the same", listed([]graph.Value{in}), listed([]graph.Value{given}))
}

// fits reports whether an input takes a value as it is, or cast among whole numbers or among floats.
func fits(in, v graph.Value) bool {
	same := in.Type == v.Type || in.Type.Integer() && v.Type.Integer() && in.Type.Size() >= v.Type.Size() || in.Type.Float() && v.Type.Float()
	return same && len(in.Shape) > 0 && len(v.Shape) > 0 && in.Shape[1:].Equal(v.Shape[1:])
}

// output returns the student's output that a teacher's is compared with.
func (s *Student) output() (graph.Value, error) {
	for _, o := range s.Outputs {
		if o.Name != s.Output && (s.Output != "" || len(s.Outputs) > 1) {
			continue
		}
		if o.Shape != nil {
			return o, nil
		}
		t, err := op.Infer(s.Graph, lower.FP32)
		if err != nil {
			return o, err
		}
		return t.Outputs[slices.IndexFunc(t.Outputs, func(v graph.Value) bool { return v.Name == o.Name })], nil
	}
	return graph.Value{}, fmt.Errorf("the model has the outputs %s: name in loss.output the one that learns from the teacher", listed(s.Outputs))
}

// like returns the teacher's only output, or the one that is named as the student's, if it tells the same classes apart.
func like(of graph.Value, outputs []graph.Value) (graph.Value, error) {
	at := slices.IndexFunc(outputs, func(o graph.Value) bool { return len(outputs) == 1 || o.Name == of.Name })
	if at < 0 {
		return of, fmt.Errorf("it has the outputs %s: export it with one, or call one as the model's, %q", listed(outputs), of.Name)
	}
	if o := outputs[at]; o.Type.Float() && o.Shape.Equal(of.Shape) {
		return o, nil
	}
	return of, fmt.Errorf("it gives %v%v, but the model %v%v: both must tell the same classes apart, for the same inputs; of texts, with the same tokenizer", outputs[at].Type, outputs[at].Shape, of.Type, of.Shape)
}

// listed describes values to people.
func listed(vs []graph.Value) (out string) {
	for i, v := range vs {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%.40q %v%v", v.Name, v.Type, v.Shape)
	}
	return out
}

// Cost is what a teacher takes.
type Cost struct {
	FLOPs uint64 `json:"step_flops"` // of each step
	Bytes uint64 `json:"bytes"`      // of its weights, in the model that everybody fetches
}

// CostOf returns what the teacher of a joined model takes, for batches of so many records.
func CostOf(joined *graph.Graph, output string, rows int, p lower.Profile) (c Cost, err error) {
	t := *joined
	t.Outputs = slices.DeleteFunc(slices.Clone(joined.Outputs), func(o graph.Value) bool { return o.Name != output })
	t.Inputs = slices.Clone(joined.Inputs)
	for i := range t.Inputs {
		t.Inputs[i].Shape = append(tensor.Shape{rows}, t.Inputs[i].Shape[1:]...)
	}
	typed, err := op.Infer(&t, p)
	if err != nil {
		return c, err
	}
	for _, k := range typed.Consts {
		c.Bytes += uint64(len(k.Tensor.Bytes()))
	}
	f, err := typed.Function()
	if err != nil {
		return c, err
	}
	c.FLOPs = f.Cost().FLOPs
	return c, nil
}

// String says it to people, behind what else a step takes; nothing if there is no teacher.
func (c Cost) String() string {
	switch {
	case c == (Cost{}):
		return ""
	case c.FLOPs == 0:
		return fmt.Sprintf("; the teacher weighs nothing and no step computes it, but everybody fetches its %.3g MB, for it belongs to what is continued", float64(c.Bytes)/1e6)
	}
	return fmt.Sprintf("; the teacher takes %.4g GFLOP of each step, and everybody fetches its %.3g MB", float64(c.FLOPs)/1e9, float64(c.Bytes)/1e6)
}
