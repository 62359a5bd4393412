package onnx

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// same reports whether two graphs are equal, nil and empty lists being alike.
// A model is stamped with the first operator set that has what it uses.
func TestWrittenSet(t *testing.T) {
	for want, n := range map[int]graph.Node{
		21: {Op: "Cast", Attrs: []graph.Attr{graph.Int("saturate", 1)}},
		23: {Op: "RMSNormalization"},
		24: {Op: "Cast", Attrs: []graph.Attr{graph.String("round_mode", "up")}},
		25: {Op: "Attention"},
		26: {Op: "CumProd"},
		27: {Op: "Range", Attrs: []graph.Attr{graph.Int("stash_type", 1)}},
	} {
		n.Outputs = []string{"y"}
		g := &graph.Graph{Name: "g", Nodes: []graph.Node{n}, Outputs: []graph.Value{{Name: "y", Type: tensor.Float32, Shape: tensor.Shape{}}}}
		b, err := Write(g)
		if err != nil {
			t.Fatal(err)
		}
		if got := int(b[len(b)-1]); got != want || int64(b[1]) != irVersions[want] {
			t.Errorf("%s %v is written in set %d, IR %d", n.Op, n.Attrs, got, b[1])
		}
		if back, err := read(b, Options{}); err != nil || !same(g, back) {
			t.Errorf("%s: read back as %+v (%v)", n.Op, back, err)
		}
	}
	for set := oldestWritten; set <= NewestSet; set++ {
		if irVersions[set] < irVersions[set-1] || irVersions[set] > newestIR {
			t.Errorf("set %d has IR version %d", set, irVersions[set])
		}
	}
}

func same(a, b *graph.Graph) bool {
	value := func(v, w graph.Value) bool { return v.Name == w.Name && v.Type == w.Type && v.Shape.Equal(w.Shape) }
	tensors := func(t, u *tensor.Tensor) bool { return t == u || t != nil && u != nil && t.Equal(u) }
	bits := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	return a.Name == b.Name &&
		slices.EqualFunc(a.Inputs, b.Inputs, value) && slices.EqualFunc(a.Outputs, b.Outputs, value) &&
		slices.EqualFunc(a.Consts, b.Consts, func(c, d graph.Const) bool { return c.Name == d.Name && tensors(c.Tensor, d.Tensor) }) &&
		slices.EqualFunc(a.Nodes, b.Nodes, func(m, n graph.Node) bool {
			return m.Name == n.Name && m.Op == n.Op && slices.Equal(m.Inputs, n.Inputs) && slices.Equal(m.Outputs, n.Outputs) &&
				slices.EqualFunc(m.Attrs, n.Attrs, func(x, y graph.Attr) bool {
					return x.Name == y.Name && x.Kind == y.Kind && x.Int == y.Int && bits(x.Float, y.Float) && x.String == y.String &&
						slices.Equal(x.Ints, y.Ints) && slices.Equal(x.Strings, y.Strings) && slices.EqualFunc(x.Floats, y.Floats, bits) && tensors(x.Tensor, y.Tensor)
				})
		})
}

func drawShape(t *rapid.T) tensor.Shape {
	return rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "shape")
}

func drawType(t *rapid.T) tensor.DType {
	return rapid.SampledFrom([]tensor.DType{tensor.Float32, tensor.Int32, tensor.Int64, tensor.Bool}).Draw(t, "type")
}

func drawTensor(t *rapid.T) *tensor.Tensor {
	x := tensor.Must(tensor.New(drawType(t), drawShape(t)))
	for i := range x.Len() {
		switch x.Type {
		case tensor.Bool:
			x.Set(i, uint64(rapid.IntRange(0, 1).Draw(t, "b")))
		case tensor.Float32:
			x.Set(i, tensor.F32(rapid.Float32().Draw(t, "f")))
		default:
			x.Set(i, rapid.Uint64().Draw(t, "i"))
		}
	}
	return x
}

func drawAttr(t *rapid.T, name string) graph.Attr {
	a := graph.Attr{Name: name}
	switch a.Kind = rapid.SampledFrom([]graph.AttrKind{1, 2, 3, 4, 6, 7, 8}).Draw(t, "kind"); a.Kind {
	case graph.AttrFloat:
		a.Float = rapid.Float32().Draw(t, "f")
	case graph.AttrInt:
		a.Int = rapid.Int64().Draw(t, "i")
	case graph.AttrString:
		a.String = string(rapid.SliceOf(rapid.Byte()).Draw(t, "s"))
	case graph.AttrTensor:
		a.Tensor = drawTensor(t)
	case graph.AttrFloats:
		a.Floats = rapid.SliceOf(rapid.Float32()).Draw(t, "fs")
	case graph.AttrInts:
		a.Ints = rapid.SliceOf(rapid.Int64()).Draw(t, "is")
	case graph.AttrStrings:
		a.Strings = rapid.SliceOf(rapid.String()).Draw(t, "ss")
	}
	return a
}

// drawGraph returns a graph whose nodes are in any topological order, some of
// them unused.
func drawGraph(t *rapid.T) *graph.Graph {
	g := &graph.Graph{Name: rapid.StringN(1, 20, 100).Draw(t, "name")}
	var values []string
	name := func(kind string) string {
		values = append(values, fmt.Sprintf("%s%d", kind, len(values)))
		return values[len(values)-1]
	}
	for range rapid.IntRange(1, 3).Draw(t, "inputs") {
		g.Inputs = append(g.Inputs, graph.Value{Name: name("in"), Type: drawType(t), Shape: drawShape(t)})
	}
	for range rapid.IntRange(0, 3).Draw(t, "consts") {
		g.Consts = append(g.Consts, graph.Const{Name: name("const"), Tensor: drawTensor(t)})
	}
	for range rapid.IntRange(0, 12).Draw(t, "nodes") {
		n := graph.Node{Op: rapid.SampledFrom([]string{"Add", "Identity", "Foo"}).Draw(t, "op"), Name: rapid.StringN(0, 10, 40).Draw(t, "node")}
		for range rapid.IntRange(0, 3).Draw(t, "ins") {
			n.Inputs = append(n.Inputs, rapid.SampledFrom(append(values, "")).Draw(t, "in"))
		}
		for _, a := range slices.Sorted(slices.Values(rapid.SliceOfNDistinct(rapid.StringN(1, 8, 32), 0, 3, rapid.ID).Draw(t, "attrs"))) {
			n.Attrs = append(n.Attrs, drawAttr(t, a))
		}
		for range rapid.IntRange(1, 2).Draw(t, "outs") {
			n.Outputs = append(n.Outputs, name("v"))
		}
		g.Nodes = append(g.Nodes, n)
	}
	for _, v := range rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, min(3, len(values)), rapid.ID).Draw(t, "outputs") {
		g.Outputs = append(g.Outputs, graph.Value{Name: v, Type: drawType(t), Shape: drawShape(t)})
	}
	return g
}

func TestReadingBackChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		want, err := g.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		b, err := Write(g)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !same(got, want) {
			t.Fatalf("wrote %+v\nread %+v", want, got)
		}
		again, err := Write(got)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("the graph read back is written in other bytes (%v)", err)
		}
		if b, err := Write(want); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("node order before Canonical shows in the file (%v)", err)
		}
	})
}

// TestCanonicalFile spells out a whole file.
func TestCanonicalFile(t *testing.T) {
	g := &graph.Graph{
		Name:    "g",
		Inputs:  []graph.Value{{Name: "x", Type: tensor.Float32, Shape: tensor.Shape{2, 0}}},
		Outputs: []graph.Value{{Name: "y", Type: tensor.Int64}},
		Consts:  []graph.Const{{Name: "c", Tensor: tensor.Must(tensor.From(tensor.Shape{1}, []int32{-2}))}, {Name: "unused", Tensor: tensor.Scalar(int64(1))}},
		Nodes: []graph.Node{{Op: "Foo", Inputs: []string{"x", "", "c"}, Outputs: []string{"", "y"}, Attrs: []graph.Attr{
			{Name: "f", Kind: graph.AttrFloat, Float: 1.5}, {Name: "fs", Kind: graph.AttrFloats, Floats: []float32{0, 1}},
			{Name: "i", Kind: graph.AttrInt, Int: -1}, {Name: "is", Kind: graph.AttrInts, Ints: []int64{1, 0}},
			{Name: "s", Kind: graph.AttrString, String: "\xff"}, {Name: "t", Kind: graph.AttrTensor, Tensor: tensor.Must(tensor.New(tensor.Bool, tensor.Shape{0}))},
		}}},
	}
	attr := func(kind int64, name string, value ...[]byte) []byte {
		return msg(nodeAttr, str(attrName, name), join(value...), num(attrKind, kind))
	}
	want := join(num(1, 10), str(2, "tally"), msg(7,
		msg(1, str(1, "x"), str(1, ""), str(1, "c"), str(2, ""), str(2, "y"), str(4, "Foo"),
			attr(1, "f", flt(2, 1.5)), attr(6, "fs", flt(7, 0), flt(7, 1)), attr(2, "i", num(3, -1)), attr(7, "is", num(8, 1), num(8, 0)),
			attr(3, "s", str(4, "\xff")), attr(4, "t", msg(5, num(1, 0), num(2, 9)))),
		str(2, "g"), msg(5, num(1, 1), num(2, 6), str(8, "c"), str(9, "\xfe\xff\xff\xff")),
		input("x", 2, 0), valueOf(graphOutput, "y", 7)),
		msg(8, str(1, ""), num(2, 21)))
	if got, err := Write(g); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %x (%v)\nwant %x", got, err, want)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*graph.Graph)
		want  string
	}{
		"no graph name":    {func(g *graph.Graph) { g.Name = "" }, "name of the graph"},
		"input name":       {func(g *graph.Graph) { g.Inputs[0].Name, g.Nodes[0].Inputs[0] = "\xff", "\xff" }, "UTF-8"},
		"input type":       {func(g *graph.Graph) { g.Inputs[0].Type = 0 }, "unknown element type"},
		"input shape":      {func(g *graph.Graph) { g.Inputs[0].Shape = tensor.Shape{-1} }, `input "x": shape`},
		"output shape":     {func(g *graph.Graph) { g.Outputs[0].Shape = tensor.Shape{1 << 40, 1 << 24} }, `output "y": shape`},
		"long node name":   {func(g *graph.Graph) { g.Nodes[0].Name = strings.Repeat("n", graph.MaxName+1) }, "limit 512"},
		"no tensor":        {func(g *graph.Graph) { g.Consts[0].Tensor = nil }, `initializer "w": no tensor`},
		"attribute order":  {func(g *graph.Graph) { g.Nodes[0].Attrs = []graph.Attr{{Name: "b", Kind: 2}, {Name: "a", Kind: 2}} }, "not in order"},
		"attribute kind":   {func(g *graph.Graph) { g.Nodes[0].Attrs = []graph.Attr{{Name: "b", Kind: 9}} }, "unknown kind 9"},
		"attribute graph":  {func(g *graph.Graph) { g.Nodes[0].Attrs = []graph.Attr{{Name: "b", Kind: 5}} }, `attribute "b" is not supported`},
		"attribute tensor": {func(g *graph.Graph) { g.Nodes[0].Attrs = []graph.Attr{{Name: "b", Kind: 4}} }, "no tensor"},
		"long text": {func(g *graph.Graph) {
			g.Nodes[0].Attrs = []graph.Attr{{Name: "b", Kind: 3, String: strings.Repeat("s", windowSize+1)}}
		}, "limit 32768"},
		"no operator":       {func(g *graph.Graph) { g.Nodes[0].Op = "" }, "operator"},
		"undefined":         {func(g *graph.Graph) { g.Inputs = nil }, `"x" is not defined`},
		"same output twice": {func(g *graph.Graph) { g.Outputs = append(g.Outputs, g.Outputs[0]) }, "given twice"},
	} {
		g := linear(2, 3)
		c.spoil(g)
		if b, err := Write(g); err == nil {
			t.Errorf("%s: wrote %d bytes", name, len(b))
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %q", name, err, c.want)
		}
	}
}

// linear is y = x·w + b with a made-up attribute of each kind.
func linear(in, out int) *graph.Graph {
	w := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{in, out}))
	for i, v := range tensor.Of[float32](w) {
		tensor.Of[float32](w)[i] = v + float32(i)/8
	}
	return &graph.Graph{
		Name:    "linear",
		Inputs:  []graph.Value{{Name: "x", Type: tensor.Float32, Shape: tensor.Shape{4, in}}},
		Outputs: []graph.Value{{Name: "y", Type: tensor.Float32, Shape: tensor.Shape{4, out}}},
		Consts:  []graph.Const{{Name: "w", Tensor: w}, {Name: "b", Tensor: tensor.Must(tensor.New(tensor.Float32, tensor.Shape{out}))}},
		Nodes: []graph.Node{
			{Name: "product", Op: "MatMul", Inputs: []string{"x", "w"}, Outputs: []string{"xw"}},
			{Name: "scale", Op: "Constant", Outputs: []string{"s"}, Attrs: []graph.Attr{{Name: "value", Kind: graph.AttrTensor, Tensor: tensor.Scalar(float32(0.5))}}},
			{Name: "sum", Op: "Gemm", Inputs: []string{"xw", "i", "b"}, Outputs: []string{"z"}, Attrs: []graph.Attr{
				{Name: "alpha", Kind: graph.AttrFloat, Float: 1}, {Name: "transB", Kind: graph.AttrInt, Int: 1}}},
			{Op: "EyeLike", Inputs: []string{"e"}, Outputs: []string{"i"}},
			{Op: "ConstantOfShape", Inputs: []string{"n"}, Outputs: []string{"e"}},
			{Op: "Constant", Outputs: []string{"n"}, Attrs: []graph.Attr{{Name: "value_ints", Kind: graph.AttrInts, Ints: []int64{int64(out), int64(out)}}}},
			{Op: "Mul", Inputs: []string{"z", "s"}, Outputs: []string{"y"}},
		},
	}
}

func BenchmarkWrite(b *testing.B) {
	g := linear(1024, 4096)
	file, _ := Write(g)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Write(g); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name string
		g    *graph.Graph
	}{{"weights", linear(1024, 4096)}, {"nodes", chain(10000)}} {
		file, err := Write(c.g)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(file, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// chain is a graph of n nodes, each reading the one before.
func chain(n int) *graph.Graph {
	v := func(name string) []graph.Value {
		return []graph.Value{{Name: name, Type: tensor.Float32, Shape: tensor.Shape{4, 4}}}
	}
	g := &graph.Graph{Name: "chain", Inputs: v("v0"), Outputs: v(fmt.Sprintf("v%d", n))}
	for i := range n {
		g.Nodes = append(g.Nodes, graph.Node{
			Op: "Softmax", Inputs: []string{fmt.Sprintf("v%d", i)}, Outputs: []string{fmt.Sprintf("v%d", i+1)},
			Attrs: []graph.Attr{{Name: "axis", Kind: graph.AttrInt, Int: -1}},
		})
	}
	return g
}
