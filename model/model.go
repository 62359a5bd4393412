// Package model runs an ONNX model for given inputs, without a network.
//
// Programs are static: what shapes depend on must be known when one is made.
// Inputs of a model that do so (the shape that Reshape takes, the axes that a
// reduction takes) become constants of the program, and no others do. So a
// program made for one set of inputs serves all that agree in shapes and in
// these.
//
// Call [Load] first. [Model.Run] computes once; [Model.Prepare] gives what computes many
// times.
//
// Invariant: outputs have the same bits on every machine, and with every executor.
//
// Source: docs/spec/operators.md says what each operator means.
package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
)

// Executors are the names of executors, the default first.
var Executors = []string{"cpu", "reference"}

// Executor returns the executor of that name, with options for those that have some.
func Executor(name string, o cpu.Options) (engine.Executor, error) {
	switch name {
	case "cpu":
		return cpu.NewWith(o), nil
	case "reference":
		return engine.Reference{}, nil
	}
	return nil, fmt.Errorf("no executor %q: there are %s", name, strings.Join(Executors, " and "))
}

// Values are tensors by name.
type Values map[string]*tensor.Tensor

// Model is an ONNX model made a program for given inputs.
type Model struct {
	Program *graph.Program
	Inputs  []graph.Value // that the program reads
	Fixed   []graph.Const // inputs that became constants
	Outputs []graph.Value
	Draws   bool // by chance: other runtimes may draw other numbers
}

// Load reads the model in the first size bytes of src and makes the program
// that it is for the given inputs, in a profile. Shapes of opt need not be given.
func Load(src io.ReaderAt, size int64, opt onnx.Options, profile lower.Profile, in Values) (*Model, error) {
	opt.Shapes = make(map[string]tensor.Shape, len(in))
	for name, t := range in {
		opt.Shapes[name] = append(tensor.Shape{}, t.Shape...)
	}
	g, err := onnx.Read(src, size, opt)
	if err != nil {
		return nil, err
	}
	if err := check(g.Inputs, in); err != nil {
		return nil, err
	}
	m := &Model{}
	t, err := m.infer(g, profile, in)
	if err != nil {
		return nil, err
	}
	m.Inputs, m.Outputs, m.Draws = t.Inputs, t.Outputs, t.Draws()
	m.Program, err = t.Function()
	return m, err
}

// infer types g. Inputs that must be known for that are fixed, those alone.
func (m *Model) infer(g *graph.Graph, profile lower.Profile, in Values) (*lower.Typed, error) {
	for {
		t, err := op.Infer(g, profile)
		var open *lower.OpenError
		if !errors.As(err, &open) || len(open.Inputs) == 0 {
			return t, err
		}
		c := *g
		c.Consts = slices.Clone(g.Consts)
		for _, name := range open.Inputs {
			k := graph.Const{Name: name, Tensor: in[name]}
			m.Fixed = append(m.Fixed, k)
			c.Consts = append(c.Consts, k)
		}
		c.Inputs = slices.DeleteFunc(slices.Clone(g.Inputs), func(v graph.Value) bool { return slices.Contains(open.Inputs, v.Name) })
		g = &c
	}
}

// check returns an error unless the values are those that inputs take.
func check(inputs []graph.Value, in Values) error {
	known := make(map[string]bool, len(inputs))
	for _, v := range inputs {
		known[v.Name] = true
		t := in[v.Name]
		if t == nil {
			return fmt.Errorf("input %q, %v%v, is not given", v.Name, v.Type, v.Shape)
		}
		if t.Type != v.Type || !t.Shape.Equal(v.Shape) {
			return fmt.Errorf("input %q is %v%v, and %v%v is given", v.Name, v.Type, v.Shape, t.Type, t.Shape)
		}
	}
	for name := range in {
		if !known[name] {
			return fmt.Errorf("the model has no input %q", name)
		}
	}
	return nil
}

// Run computes the outputs for inputs that agree with those that m was made
// for.
func (m *Model) Run(ctx context.Context, e engine.Executor, in Values) (Values, error) {
	r, err := e.Prepare(m.Program)
	if err != nil {
		return nil, err
	}
	return (&Prepared{*m, r, e.Name()}).Run(ctx, in)
}

// Prepared is a model that an executor has prepared, for many runs.
type Prepared struct {
	model    Model
	runner   engine.Runner
	executor string
}

// Prepare hands m over to an executor: m is without its constants then, so that what the
// executor makes of them can replace them.
func (m *Model) Prepare(e engine.Executor) (*Prepared, error) {
	r, err := e.Prepare(m.Program)
	if err != nil {
		return nil, err
	}
	without := *m.Program
	without.Consts = nil
	m.Program = &without
	return &Prepared{*m, r, e.Name()}, nil
}

// Run computes the outputs for inputs that agree with those that the model was made for.
func (p *Prepared) Run(ctx context.Context, in Values) (Values, error) {
	return p.run(in, func(inputs graph.Inputs) (*graph.State, error) { return p.runner.Run(ctx, inputs, nil) })
}

// Explain computes the outputs twice, and returns them with the tasks of the second run: in
// the first, fresh memory is taken into use.
func (p *Prepared) Explain(ctx context.Context, in Values) (out Values, tasks []engine.Task, err error) {
	x, ok := p.runner.(engine.Explainer)
	if !ok {
		return nil, nil, fmt.Errorf("executor %s has no plan to explain: use cpu", p.executor)
	}
	if _, err := p.Run(ctx, in); err != nil {
		return nil, nil, err
	}
	out, err = p.run(in, func(inputs graph.Inputs) (after *graph.State, err error) {
		after, tasks, err = x.Explain(ctx, inputs)
		return after, err
	})
	return out, tasks, err
}

// run binds inputs, and returns the outputs of what do computes of them.
func (p *Prepared) run(in Values, do func(graph.Inputs) (*graph.State, error)) (Values, error) {
	state, err := p.model.bind(in)
	if err != nil {
		return nil, err
	}
	after, err := do(graph.Inputs{States: []*graph.State{state}})
	if err != nil {
		return nil, err
	}
	return p.model.outputs(after), nil
}

// bind returns the state from which a run computes the outputs for inputs.
func (m *Model) bind(in Values) (*graph.State, error) {
	given := Values{}
	for name, t := range in {
		given[name] = t
	}
	for _, k := range m.Fixed {
		if t := given[k.Name]; t == nil || !t.Equal(k.Tensor) {
			return nil, fmt.Errorf("input %q fixes shapes: make a program for its new value", k.Name)
		}
		delete(given, k.Name)
	}
	if err := check(m.Inputs, given); err != nil {
		return nil, err
	}
	state := &graph.State{Slots: m.Program.Slots}
	for _, s := range state.Slots {
		state.Tensors = append(state.Tensors, given[s.Name])
	}
	return state, nil
}

// outputs returns the outputs that a run has computed.
func (m *Model) outputs(after *graph.State) Values {
	out := Values{}
	for _, v := range m.Outputs {
		out[v.Name] = after.Find(v.Name)
	}
	return out
}
