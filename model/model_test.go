package model

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/onnx"
)

// resized is a model that gives x+x in the shape n·[1] and takes n as an input.
func resized(t *testing.T) []byte {
	t.Helper()
	b := graph.NewBuilder("resized")
	x := b.Input("x", tensor.Float32, tensor.Shape{2, 3})
	n := b.Input("n", tensor.Int64, tensor.Shape{1})
	twice := b.Op("Add", x, x)
	b.Output(b.Op("Reshape", twice, b.Op("Concat", n, b.Ints(-1))), tensor.Float32, tensor.Shape{6, 1})
	file, err := onnx.Write(b.Graph())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func values(n int64) Values {
	return Values{
		"x": tensor.Must(tensor.From(tensor.Shape{2, 3}, []float32{1, 2, 3, 4, 5, 6})),
		"n": tensor.Must(tensor.From(tensor.Shape{1}, []int64{n})),
	}
}

func TestOnlyWhatShapesFollowFromIsFixed(t *testing.T) {
	file := resized(t)
	in := values(3)
	m, err := Load(bytes.NewReader(file), int64(len(file)), onnx.Options{}, lower.FP32, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Fixed) != 1 || m.Fixed[0].Name != "n" || len(m.Inputs) != 1 || m.Inputs[0].Name != "x" {
		t.Fatalf("fixed %v, reads %v", m.Fixed, m.Inputs)
	}
	in["x"] = tensor.Must(tensor.From(tensor.Shape{2, 3}, []float32{0, 0, 0, 0, 0, 7}))
	out, err := m.Run(t.Context(), engine.Reference{}, in)
	if err != nil {
		t.Fatal(err)
	}
	want := tensor.Must(tensor.From(tensor.Shape{3, 2}, []float32{0, 0, 0, 0, 0, 14}))
	if got := out["reshape"]; !got.Equal(want) {
		t.Fatalf("%v%v %v", got.Type, got.Shape, tensor.Of[float32](got))
	}
	if _, err := m.Run(t.Context(), engine.Reference{}, values(2)); err == nil || !strings.Contains(err.Error(), `input "n" fixes shapes`) {
		t.Error(err)
	}
}

func TestLoadRefuses(t *testing.T) {
	file := resized(t)
	for want, change := range map[string]func(Values){
		`input "n", int64[1], is not given`:                     func(v Values) { delete(v, "n") },
		`has no input "m"`:                                      func(v Values) { v["m"] = v["n"] },
		`input "x" is float32[2 3], and int64[2 3] is given`:    func(v Values) { v["x"] = tensor.Must(tensor.New(tensor.Int64, tensor.Shape{2, 3})) },
		"shape [3 2] is given, where axis 0 of the model has 2": func(v Values) { v["x"] = tensor.Must(tensor.New(tensor.Float32, tensor.Shape{3, 2})) },
		"shape [] is given, where the model has 1 axes":         func(v Values) { v["n"] = tensor.Scalar(int64(3)) },
		"does not fit": func(v Values) { v["n"] = values(4)["n"] },
	} {
		in := values(3)
		change(in)
		if _, err := Load(bytes.NewReader(file), int64(len(file)), onnx.Options{}, lower.FP32, in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwanted %s", err, want)
		}
	}
}
