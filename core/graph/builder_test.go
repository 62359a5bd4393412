package graph

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/tensor"
)

func TestBuilderNamesAreFree(t *testing.T) {
	b := NewBuilder("names")
	x := b.Input("x", tensor.Float32, tensor.Shape{2})
	names := []string{x, b.Fresh("x"), b.Fresh("x"), b.Fresh("x.1"), b.Op("Neg", x), b.Op("Neg", x), b.With().As("x").Op("Neg", x)}
	names = append(names, b.With(Int("axis", 0)).Ops("Split", 2, x)...)
	names = append(names, b.Init("neg", tensor.Scalar[float32](1)))
	seen := map[string]bool{"": true}
	for _, n := range names {
		if seen[n] {
			t.Errorf("%q was given twice, in %v", n, names)
		}
		seen[n] = true
	}
	if names[0] != "x" || names[1] != "x.1" || names[4] != "neg" {
		t.Errorf("names %v", names)
	}
}

func TestBuilderSharesSmallConstants(t *testing.T) {
	b := NewBuilder("constants")
	one, list := b.Scalar(1), b.Ints(1, 2)
	if again, other := b.Scalar(1), b.Ints(1, 2); again != one || other != list {
		t.Error("equal constants have two names")
	}
	for _, other := range []string{b.Scalar(-1), b.Ints(1), b.Ints(), b.Const(tensor.Scalar(int32(1))), b.Const(tensor.Must(tensor.From(tensor.Shape{1}, []float32{1})))} {
		if other == one {
			t.Error("different constants have one name")
		}
	}
}

func TestBuilderKeepsWhatItIsGiven(t *testing.T) {
	b := NewBuilder("given")
	x := b.Input("x", tensor.Float32, tensor.Shape{2})
	attrs := []Attr{Ints("pads", 1), Int("axis", 0)}
	in := []string{x, x}
	out := b.With(attrs...).Ops("Some", 2, in...)
	in[0], out[0], attrs[0].Name = "changed", "changed", "changed"
	n := b.Graph().Nodes[0]
	if n.Inputs[0] != x || n.Outputs[0] != "some" || n.Attrs[0].Name != "axis" || n.Attrs[1].Name != "pads" {
		t.Errorf("node %+v", n)
	}
	// What is added to an extension does not show in the graph that it extends.
	g := b.Graph()
	g.Nodes = slices.Grow(g.Nodes, 8)
	first, second := Extend(g), Extend(g)
	first.Op("Neg", x)
	second.Op("Abs", x)
	if len(g.Nodes) != 1 || first.Graph().Nodes[1].Op != "Neg" {
		t.Error("extensions of one graph share nodes")
	}
}

func TestImportBindsAndRenames(t *testing.T) {
	inner := NewBuilder("inner")
	x := inner.Input("x", tensor.Float32, tensor.Shape{2})
	w := inner.Init("w", tensor.Scalar[float32](2))
	v := inner.Init("v", tensor.Scalar[float32](3))
	y := inner.Op("Add", inner.Op("Mul", x, w), v)
	inner.With().Ops("Optional", 1, y, "", x)

	b := NewBuilder("outer")
	data := b.Input("data", tensor.Float32, tensor.Shape{2})
	param := b.Init("p/w", tensor.Scalar[float32](5))
	names := b.Import("model/", inner.Graph(), map[string]string{x: data, w: param})
	g := b.Graph()
	if names[y] != "model/add" || names[v] != "model/v" || len(g.Consts) != 2 {
		t.Fatalf("names %v, %d initializers", names, len(g.Consts))
	}
	if !slices.Equal(g.Nodes[0].Inputs, []string{data, param}) || !slices.Equal(g.Nodes[2].Inputs, []string{"model/add", "", data}) {
		t.Fatalf("nodes %+v", g.Nodes)
	}
	again := b.Import("model/", inner.Graph(), map[string]string{x: data})
	b.Output(again[y], tensor.Float32, nil)
	if _, err := g.Canonical(); err != nil || again[y] == names[y] {
		t.Fatalf("second import: %q, %v", again[y], err)
	}
	b.Op("Add", data, data)
	seen := map[string]bool{}
	for _, n := range b.Graph().Nodes {
		if seen[n.Name] {
			t.Errorf("two nodes are called %q", n.Name)
		}
		seen[n.Name] = true
	}
	if inner.Graph().Nodes[0].Inputs[0] != "x" {
		t.Error("the imported graph changed")
	}
}
