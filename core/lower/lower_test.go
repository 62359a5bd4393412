package lower_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// toys is a table of a few operators that are not ONNX's: the mechanism knows none.
func toys() lower.Table {
	t := lower.Table{}
	t.Add(
		lower.Operator{Name: "Plus", Min: 2, Max: 2, Outputs: 1,
			Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
				v, err := e.Map(tensor.Add, c.In[0].Type, c.In...)
				return []lower.View{v}, err
			},
			Grad: func(_ *lower.Call, _ *graph.Builder, dy []string) ([]string, error) {
				return []string{dy[0], dy[0]}, nil
			}},
		lower.Operator{Name: "Twice", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("times", 1)},
			Expand: func(c *lower.Call, b *graph.Builder) ([]string, error) {
				x := c.Inputs[0]
				for range c.Int("times") {
					x = b.Op("Plus", x, x)
				}
				return []string{x}, c.Settle()
			}},
		lower.Operator{Name: "Turned", Min: 1, Max: 1, Outputs: 1,
			Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
				v, err := e.Affine(c.In[0])
				return []lower.View{v.Transposed([]int{1, 0})}, err
			}},
		lower.Operator{Name: "Zeros", Min: 1, Max: 1, Outputs: 1,
			Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
				n, err := c.Constant(0)
				if err != nil {
					return nil, err
				}
				x, err := c.Account.NewConst(tensor.Float32, tensor.Shape{int(n.At(0))})
				if err != nil {
					return nil, err
				}
				return []lower.View{e.Const(x)}, nil
			}},
	)
	return t
}

// lowered lowers a graph of toys with the given output.
func lowered(b *graph.Builder, output string) (*lower.Typed, error) {
	b.Output(output, 0, nil)
	return toys().Infer(b.Graph(), lower.FP32)
}

func TestOperatorsAreDefinedOnce(t *testing.T) {
	emit := func(*lower.Call, *lower.Emitter) ([]lower.View, error) { return nil, nil }
	for what, o := range map[string]lower.Operator{
		"twice": {Name: "Plus", Lower: emit}, "without meaning": {Name: "New"},
		"with two meanings": {Name: "New", Lower: emit, Expand: func(*lower.Call, *graph.Builder) ([]string, error) { return nil, nil }},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("an operator is defined %s", what)
				}
			}()
			toys().Add(o)
		}()
	}
	if got := toys().Names(); !slices.Equal(got, []string{"Plus", "Turned", "Twice", "Zeros"}) {
		t.Errorf("names %v", got)
	}
}

// Whatever a node gets wrong is refused by its name and that of its operator.
func TestRefusalsNameTheNode(t *testing.T) {
	for want, build := range map[string]func(b *graph.Builder, x string) string{
		"not supported; write the model without it": func(b *graph.Builder, x string) string { return b.Op("Neg", x) },
		"it has 1 inputs, but takes 2":              func(b *graph.Builder, x string) string { return b.Op("Plus", x) },
		"input 0 is missing":                        func(b *graph.Builder, x string) string { return b.Op("Plus", "", x) },
		"it has 2 outputs, but gives 1":             func(b *graph.Builder, x string) string { return b.With().Ops("Plus", 2, x, x)[0] },
		`attribute "axis" is not supported`: func(b *graph.Builder, x string) string {
			return b.With(graph.Int("axis", 1)).Op("Twice", x)
		},
		`attribute "times" is a float, but should be an integer`: func(b *graph.Builder, x string) string {
			return b.With(graph.Float("times", 1)).Op("Twice", x)
		},
	} {
		b := graph.NewBuilder("wrong")
		y := build(b, b.Input("x", tensor.Float32, tensor.Shape{2}))
		if _, err := lowered(b, y); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `node "`+y+`"`) {
			t.Errorf("%v, want %q by the name of node %q", err, want, y)
		}
	}
}

// An expansion is the meaning of an operator: the program is that of the simpler
// operators, and so are the calls that are differentiated.
func TestExpansionIsTheMeaning(t *testing.T) {
	b := graph.NewBuilder("expanded")
	typed, err := lowered(b, b.With(graph.Int("times", 2)).Op("Twice", b.Input("x", tensor.Float32, tensor.Shape{3})))
	if err != nil {
		t.Fatal(err)
	}
	p := function(t, typed)
	if got := fns(p); !slices.Equal(got, []tensor.Fn{tensor.Add, tensor.Add}) || p.Nodes[0].Origin.Op != "Twice" {
		t.Errorf("lowered to %v of %s", got, p.Nodes[0].Origin.Op)
	}
	g, calls := typed.Differentiable()
	for i, c := range calls {
		if c.Op != "Plus" || g.Nodes[i].Op != "Plus" {
			t.Errorf("call %d is of %s", i, c.Op)
		}
		if _, err := c.Gradient(graph.Extend(g), []string{"dy"}); err != nil {
			t.Error(err)
		}
	}
	if len(calls) != 2 {
		t.Errorf("%d calls", len(calls))
	}
}

// A view emits nothing; what reads through it finds the elements where they were.
func TestViewsAreReadThrough(t *testing.T) {
	b := graph.NewBuilder("turned")
	x := b.Input("x", tensor.Float32, tensor.Shape{2, 3})
	y := b.Op("Turned", b.Op("Turned", b.Op("Turned", x)))
	typed, err := lowered(b, b.Op("Plus", y, y))
	if err != nil {
		t.Fatal(err)
	}
	if got := fns(function(t, typed)); !slices.Equal(got, []tensor.Fn{tensor.Add}) {
		t.Fatalf("lowered to %v", got)
	}
	out := evaluate(t, typed, tensor.Must(tensor.From(tensor.Shape{2, 3}, []float32{1, 2, 3, 4, 5, 6})))[0]
	if want := []float64{2, 8, 4, 10, 6, 12}; !slices.Equal(floats(out), want) || !out.Shape.Equal(tensor.Shape{3, 2}) {
		t.Errorf("%v%v, want %v", floats(out), out.Shape, want)
	}
}

func TestOpenValuesNameTheInputsTheyFollowFrom(t *testing.T) {
	b := graph.NewBuilder("open")
	b.Input("unread", tensor.Int64, tensor.Shape{})
	n, m := b.Input("n", tensor.Int64, tensor.Shape{}), b.Input("m", tensor.Int64, tensor.Shape{})
	_, err := lowered(b, b.Op("Zeros", b.Op("Plus", n, b.Op("Plus", m, n))))
	var open *lower.OpenError
	if !errors.As(err, &open) || !slices.Equal(open.Inputs, []string{"n", "m"}) {
		t.Errorf("%v", err)
	}
}

// A short graph may ask for much: it is charged before it is made. What is our own
// may take it.
func TestAccountBoundsWhatOperatorsMake(t *testing.T) {
	build := func(n int) *graph.Builder {
		b := graph.NewBuilder("large")
		b.Output(b.Op("Zeros", b.Const(tensor.Scalar(int64(n)))), 0, nil)
		return b
	}
	typed, err := toys().Infer(build(1<<20).Graph(), lower.FP32)
	if err != nil || typed.Charged() < 4<<20 {
		t.Fatalf("4 MB are charged as %d bytes, %v", typed.Charged(), err)
	}
	if _, err := toys().Infer(build(1<<24).Graph(), lower.FP32); err == nil || !strings.Contains(err.Error(), "more than 52 MB") {
		t.Errorf("64 MB: %v", err)
	}
	if _, err := toys().InferOwn(build(1 << 24).Graph()); err != nil {
		t.Errorf("64 MB of our own: %v", err)
	}
}

// infer lowers a graph of ONNX's operators that has the given outputs.
func infer(t testing.TB, b *graph.Builder, outputs ...string) *lower.Typed {
	t.Helper()
	for _, o := range outputs {
		b.Output(o, 0, nil)
	}
	typed, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

func function(t testing.TB, typed *lower.Typed) *graph.Program {
	t.Helper()
	p, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// evaluate runs a lowered graph by the definition of its primitives.
func evaluate(t testing.TB, typed *lower.Typed, inputs ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	p := function(t, typed)
	s := &graph.State{Slots: p.Slots, Tensors: make([]*tensor.Tensor, len(p.Slots))}
	for i, slot := range p.Slots {
		s.Tensors[i] = tensor.Must(tensor.New(slot.Type, slot.Shape))
		for j, in := range typed.Inputs {
			if slot.Name == in.Name {
				s.Tensors[i] = inputs[j]
			}
		}
	}
	end, err := engine.Run(context.Background(), engine.Reference{}, p, graph.Inputs{States: []*graph.State{s}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]*tensor.Tensor, len(typed.Outputs))
	for i, o := range typed.Outputs {
		out[i] = end.Find(o.Name)
	}
	return out
}

// floats returns the elements of a tensor of floats.
func floats(x *tensor.Tensor) []float64 {
	out := make([]float64, x.Len())
	for i := range out {
		out[i] = tensor.FloatOf(x.Type, x.At(i))
	}
	return out
}
