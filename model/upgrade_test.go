package model

import (
	"bytes"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/onnx"
)

// f32 is a tensor of floats.
func f32(shape tensor.Shape, v ...float32) *tensor.Tensor { return tensor.Must(tensor.From(shape, v)) }

func i64(shape tensor.Shape, v ...int64) *tensor.Tensor { return tensor.Must(tensor.From(shape, v)) }

// counting is 1, 2, 3 … with every third negative.
func counting(shape ...int) *tensor.Tensor {
	t := tensor.Must(tensor.New(tensor.Float32, shape))
	for i := range t.Len() {
		x := float32(i + 1)
		if i%3 == 2 {
			x = -x
		}
		t.Set(i, tensor.F32(x))
	}
	return t
}

// half is t in float16.
func half(t *tensor.Tensor) *tensor.Tensor {
	h := tensor.Must(tensor.New(tensor.Float16, t.Shape))
	for i := range t.Len() {
		h.Set(i, tensor.FloatWord(tensor.Float16, tensor.FloatOf(t.Type, t.At(i))))
	}
	return h
}

func floats(name string, v ...float32) graph.Attr {
	return graph.Attr{Name: name, Kind: graph.AttrFloats, Floats: v}
}

// once applies a node of an old operator set to the inputs x, y and z.
func once(t *testing.T, set int, n graph.Node, in []*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	b := graph.NewBuilder("old")
	values := Values{}
	for i, x := range in {
		name := b.Input(string(rune('x'+i)), x.Type, x.Shape)
		values[name] = x
		n.Inputs = append(n.Inputs, name)
	}
	if len(n.Outputs) == 0 {
		n.Outputs = []string{"out"}
	}
	g := b.Graph()
	g.Nodes = append(g.Nodes, n)
	for _, o := range n.Outputs {
		b.Output(o, tensor.Float32, tensor.Shape{})
	}
	file, err := onnx.Write(b.Graph())
	if err != nil {
		t.Fatal(err)
	}
	file[len(file)-1] = byte(set) // the operator set is the last field
	m, err := Load(bytes.NewReader(file), int64(len(file)), onnx.Options{}, lower.FP32, values)
	if err != nil {
		t.Errorf("%s of set %d: %v", n.Op, set, err)
		return nil
	}
	got, err := m.Run(t.Context(), engine.Reference{}, values)
	if err != nil {
		t.Fatal(err)
	}
	var out []*tensor.Tensor
	for _, o := range n.Outputs {
		out = append(out, got[o])
	}
	return out
}

// What a node of an old operator set gave it gives still.
func TestOldOperators(t *testing.T) {
	x := counting(2, 3)
	for name, c := range map[string]struct {
		set  int
		node graph.Node
		in   []*tensor.Tensor
		want *tensor.Tensor
	}{
		"Add along the first axis": {6, graph.Node{Op: "Add", Attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("broadcast", 1)}},
			[]*tensor.Tensor{x, f32(tensor.Shape{2}, 10, 20)}, f32(tensor.Shape{2, 3}, 11, 12, 7, 24, 25, 14)},
		"Mul along the middle": {6, graph.Node{Op: "Mul", Attrs: []graph.Attr{graph.Int("axis", 1), graph.Int("broadcast", 1)}},
			[]*tensor.Tensor{counting(1, 2, 2), f32(tensor.Shape{2}, 10, 100)}, f32(tensor.Shape{1, 2, 2}, 10, 20, -300, 400)},
		"Sub with a scalar": {6, graph.Node{Op: "Sub", Attrs: []graph.Attr{graph.Int("broadcast", 1)}},
			[]*tensor.Tensor{x, f32(tensor.Shape{}, 1)}, f32(tensor.Shape{2, 3}, 0, 1, -4, 3, 4, -7)},
		"Clip": {6, graph.Node{Op: "Clip", Attrs: []graph.Attr{graph.Float("max", 4), graph.Float("min", -1)}},
			[]*tensor.Tensor{x}, f32(tensor.Shape{2, 3}, 1, 2, -1, 4, 4, -1)},
		"Clip above alone, of halves": {6, graph.Node{Op: "Clip", Attrs: []graph.Attr{graph.Float("max", 4)}},
			[]*tensor.Tensor{half(x)}, half(f32(tensor.Shape{2, 3}, 1, 2, -3, 4, 4, -6))},
		"Softmax of all that follows": {11, graph.Node{Op: "Softmax", Attrs: []graph.Attr{graph.Int("axis", 0)}},
			[]*tensor.Tensor{f32(tensor.Shape{2, 2}, 0, 0, 0, 0)}, f32(tensor.Shape{2, 2}, .25, .25, .25, .25)},
		"Softmax by default": {6, graph.Node{Op: "Softmax"},
			[]*tensor.Tensor{f32(tensor.Shape{1, 2, 2}, 0, 0, 0, 0)}, f32(tensor.Shape{1, 2, 2}, .25, .25, .25, .25)},
		"Hardmax": {12, graph.Node{Op: "Hardmax", Attrs: []graph.Attr{graph.Int("axis", 1)}},
			[]*tensor.Tensor{counting(1, 2, 2)}, f32(tensor.Shape{1, 2, 2}, 0, 0, 0, 1)},
		"Softmax of the last axis": {11, graph.Node{Op: "Softmax", Attrs: []graph.Attr{graph.Int("axis", -1)}},
			[]*tensor.Tensor{f32(tensor.Shape{1, 2, 2}, 0, 0, 0, 0)}, f32(tensor.Shape{1, 2, 2}, .5, .5, .5, .5)},
		"Squeeze": {6, graph.Node{Op: "Squeeze", Attrs: []graph.Attr{graph.Ints("axes", 1)}},
			[]*tensor.Tensor{counting(1, 1, 2)}, counting(1, 2)},
		"Unsqueeze": {11, graph.Node{Op: "Unsqueeze", Attrs: []graph.Attr{graph.Ints("axes", 0, 3)}},
			[]*tensor.Tensor{counting(2, 1)}, counting(1, 2, 1, 1)},
		"ReduceSum": {12, graph.Node{Op: "ReduceSum", Attrs: []graph.Attr{graph.Ints("axes", 1), graph.Int("keepdims", 0)}},
			[]*tensor.Tensor{x}, f32(tensor.Shape{2}, 0, 3)},
		"Slice": {9, graph.Node{Op: "Slice", Attrs: []graph.Attr{graph.Ints("axes", 1), graph.Ints("ends", 3), graph.Ints("starts", 1)}},
			[]*tensor.Tensor{x}, f32(tensor.Shape{2, 2}, 2, -3, 5, -6)},
		"Pad": {10, graph.Node{Op: "Pad", Attrs: []graph.Attr{graph.Ints("pads", 0, 1, 0, 0), graph.Float("value", 9)}},
			[]*tensor.Tensor{counting(1, 2)}, f32(tensor.Shape{1, 3}, 9, 1, 2)},
		"TopK": {9, graph.Node{Op: "TopK", Outputs: []string{"out"}, Attrs: []graph.Attr{graph.Int("k", 2)}},
			[]*tensor.Tensor{x}, f32(tensor.Shape{2, 2}, 2, 1, 5, 4)},
		"Dropout":              {7, graph.Node{Op: "Dropout", Attrs: []graph.Attr{graph.Float("ratio", 0.9)}}, []*tensor.Tensor{x}, x},
		"Dropout when testing": {6, graph.Node{Op: "Dropout", Attrs: []graph.Attr{graph.Int("is_test", 1)}}, []*tensor.Tensor{x}, x},
		"PRelu of channels": {6, graph.Node{Op: "PRelu"},
			[]*tensor.Tensor{f32(tensor.Shape{1, 2, 2}, 1, -1, -1, 1), f32(tensor.Shape{2}, 10, 20)}, f32(tensor.Shape{1, 2, 2}, 1, -10, -20, 1)},
		"PRelu of all": {6, graph.Node{Op: "PRelu"},
			[]*tensor.Tensor{f32(tensor.Shape{1, 2, 1}, 1, -1), f32(tensor.Shape{1}, 10)}, f32(tensor.Shape{1, 2, 1}, 1, -10)},
		"OneHot of what is below zero": {9, graph.Node{Op: "OneHot"},
			[]*tensor.Tensor{i64(tensor.Shape{3}, -1, 1, 2), i64(tensor.Shape{1}, 2), f32(tensor.Shape{2}, 0, 7)}, f32(tensor.Shape{3, 2}, 0, 0, 0, 7, 0, 0)},
		"Scatter": {9, graph.Node{Op: "Scatter"},
			[]*tensor.Tensor{x, i64(tensor.Shape{1, 2}, 1, 0), f32(tensor.Shape{1, 2}, 8, 9)}, f32(tensor.Shape{2, 3}, 1, 9, -3, 8, 5, -6)},
		"Split": {2 + 9, graph.Node{Op: "Split", Outputs: []string{"out", "more"}, Attrs: []graph.Attr{graph.Int("axis", 1), graph.Ints("split", 1, 2)}},
			[]*tensor.Tensor{x}, f32(tensor.Shape{2, 1}, 1, 4)},
		"Upsample by sides": {6, graph.Node{Op: "Upsample", Attrs: []graph.Attr{graph.Float("height_scale", 1), graph.Float("width_scale", 3)}},
			[]*tensor.Tensor{counting(1, 1, 1, 2)}, f32(tensor.Shape{1, 1, 1, 6}, 1, 1, 1, 2, 2, 2)},
		"Upsample by scales": {7, graph.Node{Op: "Upsample", Attrs: []graph.Attr{floats("scales", 1, 1, 1, 3)}},
			[]*tensor.Tensor{counting(1, 1, 1, 2)}, f32(tensor.Shape{1, 1, 1, 6}, 1, 1, 1, 2, 2, 2)},
		"Upsample between": {9, graph.Node{Op: "Upsample", Attrs: []graph.Attr{graph.String("mode", "linear")}},
			[]*tensor.Tensor{counting(1, 1, 1, 2), f32(tensor.Shape{4}, 1, 1, 1, 2)}, f32(tensor.Shape{1, 1, 1, 4}, 1, 1.5, 2, 2)},
		"Resize down": {10, graph.Node{Op: "Resize"},
			[]*tensor.Tensor{counting(1, 1, 2, 4), f32(tensor.Shape{4}, 1, 1, 0.6, 0.6)}, f32(tensor.Shape{1, 1, 1, 2}, 1, -3)},
		"Resize down and up": {10, graph.Node{Op: "Resize"},
			[]*tensor.Tensor{counting(1, 1, 2, 2), f32(tensor.Shape{4}, 1, 1, 0.5, 3)}, f32(tensor.Shape{1, 1, 1, 6}, 1, 1, 1, 2, 2, 2)},
		"GroupNormalization": {18, graph.Node{Op: "GroupNormalization", Attrs: []graph.Attr{graph.Float("epsilon", 0), graph.Int("num_groups", 2)}},
			[]*tensor.Tensor{f32(tensor.Shape{1, 4, 1}, -1, 1, 2, 4), f32(tensor.Shape{2}, 10, 100), f32(tensor.Shape{2}, 0, 1)}, f32(tensor.Shape{1, 4, 1}, -10, 10, -99, 101)},
	} {
		t.Run(name, func(t *testing.T) {
			got := once(t, c.set, c.node, c.in)
			if got != nil && !got[0].Equal(c.want) {
				t.Errorf("got %v%v %v, wanted %v%v %v", got[0].Type, got[0].Shape, words(got[0]), c.want.Type, c.want.Shape, words(c.want))
			}
		})
	}
}

// words are the elements of a float tensor.
func words(t *tensor.Tensor) (out []float64) {
	for i := range t.Len() {
		out = append(out, tensor.FloatOf(t.Type, t.At(i)))
	}
	return out
}
