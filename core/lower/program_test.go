package lower_test

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

func fns(p *graph.Program) (out []tensor.Fn) {
	for _, n := range p.Nodes {
		out = append(out, n.Fn)
	}
	return out
}

// Exported models compute shapes from shapes; none of that is left.
func TestShapeArithmeticDisappears(t *testing.T) {
	b := graph.NewBuilder("exported")
	x := b.Input("x", tensor.Float32, tensor.Shape{2, 3, 8})
	dim := func(i int) string {
		d := b.With(graph.Int("axis", 0)).Op("Gather", b.Op("Shape", x), b.Const(tensor.Scalar(int64(i))))
		return b.Op("Unsqueeze", d, b.Ints(0))
	}
	half := b.Op("Div", dim(2), b.Ints(2))
	shape := b.With(graph.Int("axis", 0)).Op("Concat", dim(0), b.Op("Mul", dim(1), b.Ints(2)), half)
	b.Output(b.Op("Neg", b.Op("Reshape", x, shape)), 0, nil)
	typed := infer(t, b)
	if got := fns(function(t, typed)); !slices.Equal(got, []tensor.Fn{tensor.Neg}) {
		t.Fatalf("lowered to %v", got)
	}
	if s := typed.Outputs[0].Shape; !s.Equal(tensor.Shape{2, 6, 4}) {
		t.Fatalf("shape %v", s)
	}
}

// Transposing, cutting and splitting heads is part of how a product reads.
func TestProductsReadThroughMovedData(t *testing.T) {
	b := graph.NewBuilder("attention")
	x := b.Input("x", tensor.Float32, tensor.Shape{6, 24})
	parts := b.With(graph.Int("axis", -1), graph.Int("num_outputs", 2)).Ops("Split", 2, x)
	heads := func(v string, perm ...int) string {
		return b.With(graph.Ints("perm", perm...)).Op("Transpose", b.Op("Reshape", v, b.Ints(2, 3, 4, 3)))
	}
	b.Output(b.Op("MatMul", heads(parts[0], 0, 2, 1, 3), heads(parts[1], 0, 2, 3, 1)), 0, nil)
	if got := fns(function(t, infer(t, b))); !slices.Equal(got, []tensor.Fn{tensor.Dot}) {
		t.Fatalf("lowered to %v", got)
	}
}

func TestSameWorkIsDoneOnceAndUselessWorkNever(t *testing.T) {
	b := graph.NewBuilder("twice")
	x := b.Input("x", tensor.Float32, tensor.Shape{4})
	b.Op("Exp", x) // nothing reads it
	y := b.Op("Add", b.Op("Tanh", x), b.Op("Tanh", b.Op("Identity", x)))
	parts := b.With(graph.Int("num_outputs", 2)).Ops("Split", 2, b.Op("Add", y, b.Const(tensor.Scalar[float32](1))))
	b.Output(b.Op("Add", parts[0], b.Init("one", tensor.Scalar[float32](1))), 0, nil)
	p := function(t, infer(t, b))
	if got := fns(p); !slices.Equal(got, []tensor.Fn{tensor.TanhF, tensor.Add, tensor.Add, tensor.Add}) || len(p.Consts) != 1 {
		t.Fatalf("lowered to %v with %d constants", got, len(p.Consts))
	}
	if p.Nodes[0].Origin.Op != "Tanh" || p.Nodes[3].Origin.Op != "Add" {
		t.Fatalf("origins %v and %v", p.Nodes[0].Origin, p.Nodes[3].Origin)
	}
}

func TestProgramRefusesWrongBindings(t *testing.T) {
	b := graph.NewBuilder("identity")
	x := b.Input("x", tensor.Float32, tensor.Shape{2})
	b.Output(b.Op("Neg", x), 0, nil)
	typed := infer(t, b)
	slot := graph.Slot{Name: "x", Type: tensor.Float32, Shape: tensor.Shape{2}}
	ref := graph.Ref{Kind: graph.RefSlot}
	for name, bad := range map[string]lower.Binding{
		"no inputs":        {Groups: 1, Slots: []graph.Slot{slot}, Outputs: []int{0}},
		"no outputs":       {Groups: 1, Slots: []graph.Slot{slot}, Inputs: []graph.Ref{ref}},
		"output outside":   {Groups: 1, Slots: []graph.Slot{slot}, Inputs: []graph.Ref{ref}, Outputs: []int{1}},
		"negative output":  {Groups: 1, Slots: []graph.Slot{slot}, Inputs: []graph.Ref{ref}, Outputs: []int{-2}},
		"slot outside":     {Groups: 1, Slots: []graph.Slot{slot}, Inputs: []graph.Ref{{Kind: graph.RefSlot, Index: 1}}, Outputs: []int{0}},
		"batch of nothing": {Groups: 1, Slots: []graph.Slot{slot}, Inputs: []graph.Ref{{Kind: graph.RefData}}, Outputs: []int{0}},
		"another type":     {Groups: 1, Slots: []graph.Slot{{Name: "x", Type: tensor.Int32, Shape: tensor.Shape{2}}}, Inputs: []graph.Ref{ref}, Outputs: []int{0}},
	} {
		if _, err := typed.Program(bad); err == nil {
			t.Errorf("%s: bound", name)
		}
	}
}
