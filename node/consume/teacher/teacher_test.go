package teacher_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/node/consume/teacher"
)

// linear maps an input to classes.
func linear(input string, t tensor.DType, batch, in, classes int) *graph.Graph {
	b := graph.NewBuilder("linear")
	x := b.Input(input, t, tensor.Shape{batch, in})
	w := b.Init("w", tensor.Must(tensor.New(t, tensor.Shape{in, classes})))
	b.Output(b.With().As("logits").Op("MatMul", x, w), t, nil)
	return b.Graph()
}

// prepared is a student whose file reads float32 [2 6], and which reads bytes [2 3 2].
func prepared() teacher.Student {
	g := linear("x", tensor.Float32, 2, 6, 4)
	b := graph.NewBuilder("prepared")
	raw := b.Input("x", tensor.Uint8, tensor.Shape{2, 3, 2})
	x := b.Op("Reshape", b.Cast(raw, tensor.Float32), b.Ints(0, 6))
	y := b.Import("", g, map[string]string{"x": x})["logits"]
	b.Output(y, tensor.Float32, tensor.Shape{2, 4})
	return teacher.Student{Graph: b.Graph(), Own: map[string]graph.Value{"x": {Name: x, Type: tensor.Float32, Shape: tensor.Shape{2, 6}}}}
}

func given(g *graph.Graph) teacher.Read {
	return func(map[string]tensor.Shape) (*graph.Graph, error) { return g, nil }
}

// A teacher takes what the source has if it is made for that, else what the student's file takes, and has a place of its own.
func TestJoin(t *testing.T) {
	raw := func() *graph.Graph {
		b := graph.NewBuilder("raw")
		x := b.Input("x", tensor.Uint8, tensor.Shape{8, 3, 2}) // of another batch
		x = b.Op("Reshape", b.Cast(x, tensor.Float32), b.Ints(0, 6))
		b.Output(b.Op("MatMul", x, b.Init("w", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{6, 4})))), tensor.Float32, nil)
		return b.Graph()
	}
	several := linear("x", tensor.Float32, 2, 6, 4)
	several.Outputs = append([]graph.Value{{Name: "x", Type: tensor.Float32}}, several.Outputs...)
	for name, c := range map[string]struct {
		student teacher.Student
		teacher *graph.Graph
	}{
		"the same":               {teacher.Student{Graph: linear("x", tensor.Float32, 2, 6, 4)}, linear("x", tensor.Float32, 2, 6, 4)},
		"another name and batch": {teacher.Student{Graph: linear("x", tensor.Float32, 2, 6, 4)}, linear("input", tensor.Float32, 1, 6, 4)},
		"halves":                 {teacher.Student{Graph: linear("x", tensor.Float32, 2, 6, 4)}, linear("x", tensor.Float16, 2, 6, 4)},
		"values of the source":   {prepared(), raw()},
		"values of the file":     {prepared(), linear("x", tensor.Float32, 2, 6, 4)},
		"several outputs":        {teacher.Student{Graph: linear("x", tensor.Float32, 2, 6, 4)}, several},
	} {
		joined, output, err := teacher.Join(c.student, given(c.teacher))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, err := onnx.Write(joined)
		if err != nil || len(joined.Outputs) != 2 || joined.Outputs[1].Name != output || !slices.EqualFunc(joined.Inputs, c.student.Inputs, func(a, b graph.Value) bool { return a.Name == b.Name }) {
			t.Errorf("%s: %d bytes, outputs %v, inputs %v (%v)", name, len(b), joined.Outputs, joined.Inputs, err)
		}
		if joined.Const("w") == nil || joined.Const("teacher.w") == nil {
			t.Errorf("%s: initializers are not told apart", name)
		}
		cost, err := teacher.CostOf(joined, output, 4, lower.FP32)
		if err != nil || cost.FLOPs < 4*6*4*2 || cost.Bytes < 6*4*2 || !strings.Contains(cost.String(), "the teacher takes") {
			t.Errorf("%s: costs %+v (%v)", name, cost, err)
		}
	}
	if s := (teacher.Cost{}).String(); s != "" {
		t.Errorf("without a teacher: %q", s)
	}
}

// A name that the student has already is no clash.
func TestJoinTellsNamesApart(t *testing.T) {
	g := linear("x", tensor.Float32, 2, 6, 4)
	b := graph.Extend(g)
	b.Init("teacher.w", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{1})))
	b.Init("teacher", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{1})))
	joined, output, err := teacher.Join(teacher.Student{Graph: b.Graph()}, given(g))
	if err != nil || output == "teacher" || len(joined.Const("teacher.w").Shape) != 1 {
		t.Errorf("output %q (%v)", output, err)
	}
	if _, err := joined.Canonical(); err != nil {
		t.Error(err)
	}
}

// Sizes that a teacher leaves open follow from the student's inputs.
func TestOpenDimensions(t *testing.T) {
	var asked []map[string]tensor.Shape
	read := func(shapes map[string]tensor.Shape) (*graph.Graph, error) {
		asked = append(asked, shapes)
		if shapes == nil || len(shapes["x"]) != 2 {
			return nil, &onnx.SymbolError{Symbols: []string{"batch"}}
		}
		return linear("x", tensor.Float32, shapes["x"][0], 6, 4), nil
	}
	if _, _, err := teacher.Join(prepared(), read); err != nil || len(asked) != 3 || len(asked[1]["x"]) != 3 {
		t.Errorf("asked for %v (%v)", asked, err)
	}
	_, _, err := teacher.Join(prepared(), func(map[string]tensor.Shape) (*graph.Graph, error) {
		return nil, &onnx.SymbolError{Symbols: []string{"places"}}
	})
	if err == nil || !strings.Contains(err.Error(), `"places"`) || !strings.Contains(err.Error(), "export it with fixed shapes") {
		t.Error(err)
	}
}

func TestUnfitTeachers(t *testing.T) {
	s := teacher.Student{Graph: linear("x", tensor.Float32, 2, 6, 4)}
	two := func() *graph.Graph {
		b := graph.Extend(linear("x", tensor.Float32, 2, 6, 4))
		b.Input("attention_mask", tensor.Int64, tensor.Shape{2, 6})
		return b.Graph()
	}()
	masked := teacher.Student{Graph: two}
	trained := graph.NewBuilder("trained")
	{
		x := trained.Input("x", tensor.Float32, tensor.Shape{2, 4})
		k := trained.Init("k", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{4})))
		out := trained.With(graph.Int("training_mode", 1)).Ops("BatchNormalization", 3, x, k, k, k, k)
		trained.Output(out[0], tensor.Float32, nil)
	}
	fixed := graph.NewBuilder("fixed")
	x := fixed.Input("x", tensor.Float32, tensor.Shape{8, 6})
	fixed.Output(fixed.Op("Reshape", x, fixed.Ints(8, 6)), tensor.Float32, nil)
	several := linear("x", tensor.Float32, 2, 6, 4)
	several.Outputs = []graph.Value{{Name: "x", Type: tensor.Float32}, {Name: "w", Type: tensor.Float32}}
	long := linear("x", tensor.Float32, 2, 6, 4)
	long.Consts[0].Name = strings.Repeat("w", graph.MaxName)
	for want, c := range map[string]struct {
		student teacher.Student
		teacher *graph.Graph
	}{
		"export both with the same":                            {masked, s.Graph},
		`"attention_mask" int64[2 6], but the`:                 {s, two},
		"is not like the model's":                              {s, linear("x", tensor.Float32, 2, 7, 4)},
		"nor like the input of the model's file":               {prepared(), linear("x", tensor.Float32, 2, 7, 4)},
		"must tell the same classes apart":                     {s, linear("x", tensor.Float32, 2, 6, 5)},
		"in training mode":                                     {s, trained.Graph()},
		"inputs \"x\" float32[2 6]: export it with a symbolic": {s, fixed.Graph()},
		"export it with one":                                   {s, several},
		"with shorter ones":                                    {s, long},
		"name in loss.output":                                  {teacher.Student{Graph: several}, s.Graph},
	} {
		if _, _, err := teacher.Join(c.student, given(c.teacher)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}
