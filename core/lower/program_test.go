package lower_test

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
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

// Inputs take the batch's records out of slots; one record may come without its axis.
func TestBatchesAreTakenFromSlots(t *testing.T) {
	records := graph.Slot{Name: "all", Type: tensor.Int32, Shape: tensor.Shape{5, 3}}
	all := tensor.Must(tensor.New(tensor.Int32, records.Shape))
	for i := range all.Len() {
		all.Set(i, tensor.Word(i))
	}
	for name, c := range map[string]struct {
		input tensor.Shape
		rows  []int64
		want  []int32
	}{
		"a batch":         {tensor.Shape{2, 3}, []int64{4, 1}, []int32{-12, -13, -14, -3, -4, -5}},
		"a batch of one":  {tensor.Shape{1, 3}, []int64{2}, []int32{-6, -7, -8}},
		"a record":        {tensor.Shape{3}, []int64{3}, []int32{-9, -10, -11}},
		"another shape":   {tensor.Shape{3, 1}, []int64{3}, nil},
		"two, as one":     {tensor.Shape{3}, []int64{3, 4}, nil},
		"another extents": {tensor.Shape{2, 4}, []int64{3, 4}, nil},
		"no batch":        {tensor.Shape{3}, nil, nil},
	} {
		b := graph.NewBuilder("negate")
		b.Output(b.Op("Neg", b.Input("x", tensor.Int32, c.input)), 0, nil)
		p, err := infer(t, b).Program(lower.Binding{
			Groups: 1, Slots: []graph.Slot{records}, Results: []graph.Slot{{Name: "y", Type: tensor.Int32, Shape: c.input}}, Rows: len(c.rows),
			Inputs: []graph.Ref{{Kind: graph.RefSlot}}, Records: []bool{true}, Outputs: []int{0},
		})
		if (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		in := graph.Inputs{States: []*graph.State{{Slots: p.Slots, Tensors: []*tensor.Tensor{all}}}, Rows: c.rows}
		out, err := engine.Run(t.Context(), engine.Reference{}, p, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := tensor.Of[int32](out.Find("y")); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
