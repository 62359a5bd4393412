package onnx

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

func TestUpgrade(t *testing.T) {
	x, y := []string{"x"}, []string{"y"}
	ints := func(v ...int64) *tensor.Tensor { return tensor.Must(tensor.From(tensor.Shape{len(v)}, v)) }
	for name, c := range map[string]struct {
		set   int64
		node  []byte
		want  graph.Node
		added *tensor.Tensor // the initializer that the last input names
	}{
		"axes become an input": {13, nodeOf("ReduceMean", x, y, intsAttr("axes", -1, 0), intAttr("keepdims", 0)),
			graph.Node{Op: "ReduceMean", Inputs: []string{"x", "y.axes"}, Outputs: y, Attrs: []graph.Attr{{Name: "keepdims", Kind: 2}}}, ints(-1, 0)},
		"no axes": {17, nodeOf("ReduceMax", x, y), graph.Node{Op: "ReduceMax", Inputs: x, Outputs: y}, nil},
		"axes are an input": {18, nodeOf("ReduceMean", []string{"x", "a"}, y),
			graph.Node{Op: "ReduceMean", Inputs: []string{"x", "a"}, Outputs: y}, nil},
		"axis has a default": {17, nodeOf("DFT", x, y),
			graph.Node{Op: "DFT", Inputs: []string{"x", "", "y.axis"}, Outputs: y}, tensor.Scalar(int64(1))},
		"split in equal parts": {13, nodeOf("Split", x, []string{"y", "z"}, intAttr("axis", 1)),
			graph.Node{Op: "Split", Inputs: x, Outputs: []string{"y", "z"}, Attrs: []graph.Attr{{Name: "axis", Kind: 2, Int: 1}, {Name: "num_outputs", Kind: 2, Int: 2}}}, nil},
		"split by sizes": {13, nodeOf("Split", []string{"x", "a"}, []string{"y", "z"}),
			graph.Node{Op: "Split", Inputs: []string{"x", "a"}, Outputs: []string{"y", "z"}}, nil},
		"value renamed": {16, nodeOf("GridSample", []string{"x", "a"}, y, textAttr("mode", "bicubic")),
			graph.Node{Op: "GridSample", Inputs: []string{"x", "a"}, Outputs: y, Attrs: []graph.Attr{{Name: "mode", Kind: 3, String: "cubic"}}}, nil},
		"old default": {13, nodeOf("RoiAlign", x, y),
			graph.Node{Op: "RoiAlign", Inputs: x, Outputs: y, Attrs: []graph.Attr{{Name: "coordinate_transformation_mode", Kind: 3, String: "output_half_pixel"}}}, nil},
		"old default stated": {13, nodeOf("BatchNormalization", x, y), graph.Node{Op: "BatchNormalization", Inputs: x, Outputs: y}, nil},
		"newer set, old node": {23, nodeOf("DequantizeLinear", x, y, intAttr("axis", 0)),
			graph.Node{Op: "DequantizeLinear", Inputs: x, Outputs: y, Attrs: []graph.Attr{{Name: "axis", Kind: 2}}}, nil},
		"unknown operator": {13, nodeOf("Foo", x, y), graph.Node{Op: "Foo", Inputs: x, Outputs: y}, nil},
	} {
		g, err := read(model(c.set, c.node, input("x", 2, 2), input("a", 2), output("y", 2)), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := &graph.Graph{Name: g.Name, Inputs: g.Inputs, Outputs: g.Outputs, Nodes: []graph.Node{c.want}}
		if c.added != nil {
			want.Consts = []graph.Const{{Name: c.want.Inputs[len(c.want.Inputs)-1], Tensor: c.added}}
		}
		if !same(g, want) {
			t.Errorf("%s: got %+v, initializers %v", name, g.Nodes, g.Consts)
		}
	}
}

// scanned are the attributes of a Scan, from the last to the first, that sums what
// it reads and adds a value from around it.
var scanned = [][]byte{
	bodyAttr("body", msg(graphInput, str(valueName, "s")), msg(graphInput, str(valueName, "v")),
		nodeOf("Add", []string{"s", "v"}, []string{"next"}), nodeOf("Add", []string{"next", "w"}, []string{"out"}),
		msg(graphOutput, str(valueName, "next")), msg(graphOutput, str(valueName, "out"))),
	intsAttr("directions", 1), intAttr("num_scan_inputs", 1),
}

// A Scan of operator set 8 has a batch on the first axis of everything.
func TestScanOfBatch(t *testing.T) {
	g, err := read(model(8, nodeOf("Scan", []string{"", "s", "x"}, []string{"y", "z"}, scanned...),
		input("s", 2, 1), input("x", 2, 3, 1), input("w", 1), output("y", 2, 1), output("z", 2, 3, 1)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	typed, err := op.Infer(g, lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	p, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]float32{"s": {0, 10}, "x": {1, 2, 3, 4, 5, 6}, "w": {100}, "y": {6, 25}, "z": {103, 105, 106, 116, 121, 125}}
	start := &graph.State{Slots: p.Slots}
	for _, s := range p.Slots {
		start.Tensors = append(start.Tensors, tensor.Must(tensor.From(s.Shape, values[s.Name])))
	}
	end, err := p.Run(graph.Inputs{States: []*graph.State{start}}, graph.Reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range end.Slots {
		if got := tensor.Of[float32](end.Tensors[i]); !slices.Equal(got, values[s.Name]) {
			t.Errorf("%s is %v, want %v", s.Name, got, values[s.Name])
		}
	}
}

func TestUpgradeRefuses(t *testing.T) {
	x, y := []string{"x"}, []string{"y"}
	for name, c := range map[string]struct {
		set         int64
		node        []byte
		want        string
		unsupported bool
	}{
		"newer than its set":   {13, nodeOf("Gelu", x, y), `node 0 "" (Gelu): the operator is new in operator set 20 and the model imports set 13`, false},
		"Scan to lengths":      {8, nodeOf("Scan", []string{"x", "x"}, y, scanned...), "sequence_lens is not supported", true},
		"Softmax of nothing":   {12, nodeOf("Softmax", nil, y), "its input is missing", false},
		"Scan of nothing":      {8, nodeOf("Scan", []string{""}, y), "its body is missing", false},
		"input missing":        {18, nodeOf("GroupNormalization", x, y), "input 1 is missing", false},
		"spatial":              {7, nodeOf("BatchNormalization", x, y, intAttr("spatial", 0)), "spatial 0", true},
		"Upsample without":     {7, nodeOf("Upsample", x, y), `attribute "scales" is missing`, false},
		"Resize with three":    {10, nodeOf("Resize", []string{"x", "x", "x"}, y), "3 inputs where operator set 10 takes 2", false},
		"training outputs":     {13, nodeOf("BatchNormalization", x, []string{"y", "m"}), "inference mode", true},
		"axes given twice":     {13, nodeOf("ReduceMean", []string{"x", "x"}, y, intsAttr("axes", 0)), "input 1 where operator set 13 takes 1", false},
		"axes of another kind": {13, nodeOf("ReduceMean", x, y, textAttr("axes", "0")), `attribute "axes" is a string, but should be a list of integers`, false},
		"attribute too early":  {13, nodeOf("Split", x, y, intAttr("num_outputs", 1)), `attribute "num_outputs" is not of operator set 13`, false},
		"name too long":        {13, nodeOf("ReduceMean", x, []string{strings.Repeat("y", graph.MaxName)}, intsAttr("axes", 0)), "too long", false},
	} {
		_, err := read(model(c.set, c.node, input("x", 2, 2), output("y", 2)), Options{})
		switch {
		case err == nil:
			t.Errorf("%s: read", name)
		case !strings.Contains(err.Error(), c.want) || errors.Is(err, errors.ErrUnsupported) != c.unsupported:
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUpgradeAvoidsNamesInUse(t *testing.T) {
	g, err := read(model(13,
		nodeOf("ReduceMean", []string{"x"}, []string{"y"}, intsAttr("axes", 0)),
		nodeOf("Add", []string{"y", "y.axes"}, []string{"z"}),
		input("x", 2, 2), input("y.axes", 2), output("z", 2)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Nodes[0].Inputs[1]; got != "y.axes.2" || g.Const(got) == nil {
		t.Fatalf("the axes are called %q", got)
	}
}

func TestEditionsAreInOrder(t *testing.T) {
	for op, list := range editions {
		if !slices.IsSortedFunc(list, func(a, b edition) int { return a.since - b.since }) || list[0].since <= OldestSet || list[len(list)-1].since > NewestSet {
			t.Errorf("%s: %v", op, list)
		}
	}
}
