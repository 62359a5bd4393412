package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Rules of single operators, in alphabetical order.

// batchTest is for BatchNormalization, which said whether it trains.
func batchTest(w *rewrite) {
	if a := w.take("is_test", graph.AttrInt); a == nil || a.Int == 0 {
		w.put(graph.Int("training_mode", 1))
	}
}

// batchSpatial is for BatchNormalization, which could take statistics of every
// position.
func batchSpatial(w *rewrite) {
	if a := w.take("spatial", graph.AttrInt); a != nil && a.Int == 0 {
		w.fail(unsupported("spatial 0, statistics of every position, is not supported"))
	}
}

// batchOutputs is for BatchNormalization, which once trained by having more
// than one output, with other rules for the running statistics.
func batchOutputs(w *rewrite) {
	for i, o := range w.n.Outputs {
		if i > 0 && o != "" {
			w.fail(unsupported("outputs beyond the first had another meaning before operator set 14: export the model in inference mode or with set 14 or later"))
		}
	}
	w.n.Outputs = w.n.Outputs[:min(1, len(w.n.Outputs))]
}

// dropoutMask is for Dropout, whose mask had the type of its input.
func dropoutMask(w *rewrite) {
	if len(w.n.Outputs) > 1 && w.n.Outputs[1] != "" {
		w.swap(1, "CastLike", []string{w.input(0)})
	}
}

// dropoutRatio is for Dropout, which trained where the file, or who ran it, said
// so.
func dropoutRatio(w *rewrite) {
	test, ratio := w.take("is_test", graph.AttrInt), w.take("ratio", graph.AttrFloat)
	if w.set >= 7 || test != nil && test.Int != 0 {
		return
	}
	p := float32(0.5)
	if ratio != nil {
		p = ratio.Float
	}
	w.setInput(1, w.hold("ratio", tensor.Scalar(tensor.CanonNaN(p))))
	w.setInput(2, w.hold("training_mode", tensor.Must(tensor.Bools(tensor.Shape{}, true))))
}

// groupsToChannels is for GroupNormalization, whose scale and bias were given
// for each group.
func groupsToChannels(w *rewrite) {
	channels := w.op("Shape", []string{w.input(0)}, graph.Int("end", 2), graph.Int("start", 1))
	for i := 1; i <= 2; i++ {
		if w.input(i) == "" {
			w.fail(fmt.Errorf("input %d is missing", i))
			return
		}
		groups := w.op("Shape", []string{w.input(i)})
		each := w.op("Div", []string{channels, groups})
		shape := w.op("Concat", []string{groups, each}, graph.Int("axis", 0))
		column := w.op("Unsqueeze", []string{w.input(i), w.ints("axes", 1)})
		all := w.op("Expand", []string{column, shape})
		list := w.op("Reshape", []string{all, channels})
		if w.err != nil {
			return
		}
		w.n.Inputs[i] = list
	}
}

// oneHotNegative is for OneHot, where an index below zero was outside.
func oneHotNegative(w *rewrite) {
	if len(w.n.Inputs) != 3 {
		return
	}
	indices := w.input(0)
	zero := w.op("CastLike", []string{w.hold("zero", tensor.Scalar(int64(0))), indices})
	depth := w.op("Reshape", []string{w.input(1), w.ints("scalar")})
	outside := w.op("CastLike", []string{depth, indices})
	moved := w.op("Where", []string{w.op("Less", []string{indices, zero}), outside, indices})
	if w.err == nil {
		w.n.Inputs[0] = moved
	}
}

// slopeOfChannels is for PRelu, whose slope could be a list, one for each
// channel.
func slopeOfChannels(w *rewrite) {
	beyond := w.op("Shape", []string{w.input(0)}, graph.Int("start", 2))
	shape := w.op("Concat", []string{w.ints("all", -1), w.ones(beyond)}, graph.Int("axis", 0))
	slope := w.op("Reshape", []string{w.input(1), shape})
	if w.err == nil && len(w.n.Inputs) > 1 {
		w.n.Inputs[1] = slope
	}
}

// resizeByScales is for Resize, which took scales alone. Of the nearest elements
// it took the next where it made an axis smaller, the one before elsewhere; so
// what makes axes larger and what makes others smaller are two steps.
func resizeByScales(w *rewrite) {
	x, scales := w.input(0), w.input(1)
	if x == "" || scales == "" || len(w.n.Inputs) != 2 {
		w.fail(fmt.Errorf("%d inputs where operator set %d takes 2", len(w.n.Inputs), w.set))
		return
	}
	asymmetric := graph.String("coordinate_transformation_mode", "asymmetric")
	if m := w.n.Attr("mode"); m == nil || m.String == "nearest" {
		one := w.hold("one", tensor.Scalar(float32(1)))
		x = w.op("Resize", []string{x, "", w.op("Max", []string{scales, one})},
			asymmetric, graph.String("mode", "nearest"), graph.String("nearest_mode", "floor"))
		scales = w.op("Min", []string{scales, one})
		w.put(graph.String("nearest_mode", "ceil"))
	}
	w.put(asymmetric)
	w.n.Inputs = []string{x, "", scales}
}

// equalParts states how many outputs Split has where no sizes are given.
func equalParts(w *rewrite) {
	if w.input(1) == "" {
		w.put(graph.Int("num_outputs", len(w.n.Outputs)))
	}
}

// upsampleSides is for Upsample, which took the scales of height and width.
func upsampleSides(w *rewrite) {
	scales := graph.Attr{Name: "scales", Kind: graph.AttrFloats, Floats: []float32{1, 1, 1, 1}}
	for i, name := range []string{"height_scale", "width_scale"} {
		if a := w.take(name, graph.AttrFloat); a != nil {
			scales.Floats[2+i] = a.Float
		}
	}
	w.put(scales)
}

// upsampleScales is for Upsample, whose scales were an attribute.
func upsampleScales(w *rewrite) {
	a := w.take("scales", graph.AttrFloats)
	if a == nil {
		w.fail(fmt.Errorf("attribute %q is missing", "scales"))
		return
	}
	t, err := tensor.From(tensor.Shape{len(a.Floats)}, a.Floats)
	if err != nil {
		w.fail(err)
		return
	}
	w.setInput(1, w.hold("scales", t))
}

// upsampleResized makes Upsample the Resize that took its place.
func upsampleResized(w *rewrite) {
	w.n.Op = "Resize"
	w.put(graph.String("coordinate_transformation_mode", "asymmetric"))
	if m := w.n.Attr("mode"); m == nil || m.String == "nearest" {
		w.put(graph.String("nearest_mode", "floor"))
	}
	if len(w.n.Inputs) == 2 {
		w.n.Inputs = slices.Insert(slices.Clone(w.n.Inputs), 1, "")
	}
}

// scanOfBatch is for Scan, which took the batch on the first axis of every value
// and what it scans on the second: it is a scan of the batch, of scans.
func scanOfBatch(w *rewrite) {
	if w.input(0) != "" {
		w.fail(unsupported("sequence_lens is not supported: export the model with operator set 9 or later"))
	}
	directions := w.take("directions", graph.AttrInts)
	body, scanned := w.n.Attr("body"), w.n.Attr("num_scan_inputs")
	if body == nil || body.Graph == nil || scanned == nil || len(w.n.Inputs) != 1+len(body.Graph.Inputs) {
		w.fail(errors.New("its body is missing, or takes other inputs than the node"))
		return
	}
	if err := w.charge(int64(len(body.Graph.Inputs)+len(body.Graph.Outputs)+2), 2*nodeCost); err != nil {
		w.fail(err)
		return
	}
	one := graph.Node{Name: "scan", Op: "Scan", Attrs: []graph.Attr{*body, *scanned}}
	if directions != nil {
		one.Attrs = append(one.Attrs, graph.Attr{Name: "scan_input_directions", Kind: graph.AttrInts, Ints: directions.Ints})
	}
	batch := &graph.Graph{Name: unnamed, Inputs: slices.Clone(body.Graph.Inputs)}
	longest := "" // name of an input: outputs have longer ones
	for _, v := range batch.Inputs {
		one.Inputs = append(one.Inputs, v.Name)
		if len(v.Name) > len(longest) {
			longest = v.Name
		}
	}
	for i := range body.Graph.Outputs {
		one.Outputs = append(one.Outputs, fmt.Sprint(longest, ".", i))
		batch.Outputs = append(batch.Outputs, graph.Value{Name: one.Outputs[i]})
	}
	batch.Nodes = []graph.Node{one}
	around := body.Int
	w.n.Inputs = w.n.Inputs[1:]
	w.n.Attrs = []graph.Attr{
		{Name: "body", Kind: graph.AttrGraph, Graph: batch, Int: around},
		graph.Int("num_scan_inputs", len(batch.Inputs)-int(around)),
	}
}
