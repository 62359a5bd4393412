package batch_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/model"
	"github.com/tally-network/tally/model/batch"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/zoo"
)

// records returns n records of an input: the first ones, from some record on, of a sequence.
func records(v graph.Value, from, n int) *tensor.Tensor {
	t := tensor.Must(tensor.New(v.Type, append(tensor.Shape{n}, v.Shape[1:]...)))
	each := v.Shape[1:].Elements()
	for i := range t.Len() {
		at := from*each + i
		if v.Type.Float() {
			t.Set(i, tensor.F32(float32(at*37%101-50)/50))
		} else {
			t.Set(i, tensor.Word(at*37%7))
		}
	}
	return t
}

// answer computes what a file says of some records.
func answer(t *testing.T, file []byte, in model.Values) *tensor.Tensor {
	t.Helper()
	m, err := model.Load(bytes.NewReader(file), int64(len(file)), onnx.Options{}, lower.FP32, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Run(t.Context(), cpu.New(1), in)
	if err != nil {
		t.Fatal(err)
	}
	return out[m.Outputs[0].Name]
}

func freed(t *testing.T, g *graph.Graph) []byte {
	t.Helper()
	free, err := batch.Free(g)
	if err != nil {
		t.Fatal(err)
	}
	file, err := onnx.WriteBatch(free, "batch")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Every architecture takes any number of records, and says of each what it says in the batch that it was made for.
func TestModelsTakeAnyBatch(t *testing.T) {
	for _, c := range []struct{ name, settings string }{
		{"gpt", "vocabulary=20,layers=2,width=16,heads=2,context=8,batch=4"}, {"mlp", "inputs=5,width=8,classes=3,batch=8"},
		{"lenet", "batch=3,size=28"}, {"lstm", "inputs=3,batch=2"}, {"vit", "batch=2,size=16,patch=8,width=16,layers=1,heads=2"},
		{"resnet", "batch=2,size=32"}, {"unet", "batch=2,size=16,width=8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := zoo.Find(c.name)
			if err != nil {
				t.Fatal(err)
			}
			set, err := zoo.Parse(strings.Split(c.settings, ",")...)
			if err != nil {
				t.Fatal(err)
			}
			m, err := a.New(set, 1)
			if err != nil {
				t.Fatal(err)
			}
			sameOfEach(t, m.Graph)
		})
	}
}

// So does what language models are trained as, in every family.
func TestLanguageModelsTakeAnyBatch(t *testing.T) {
	for _, family := range []string{"llama", "gpt2", "gemma3", "mistral", "phi3-long", "qwen3"} {
		t.Run(family, func(t *testing.T) {
			m, err := lm.Open("../lm/testdata/" + family)
			if err != nil {
				t.Fatal(err)
			}
			g, err := m.Training(4, 8)
			if err != nil {
				t.Fatal(err)
			}
			sameOfEach(t, g)
		})
	}
}

// sameOfEach compares what a freed model says of single records, and of more than it was made for, with what it says in its batch.
func sameOfEach(t *testing.T, g *graph.Graph) {
	t.Helper()
	fixed, err := onnx.Write(g)
	if err != nil {
		t.Fatal(err)
	}
	file, in := freed(t, g), g.Inputs[0]
	n := in.Shape[0]
	want := answer(t, fixed, model.Values{in.Name: records(in, 0, n)}).Bytes()
	if got := answer(t, file, model.Values{in.Name: records(in, 0, n)}); !bytes.Equal(got.Bytes(), want) {
		t.Error("at its own batch it is another model")
	}
	if got := answer(t, file, model.Values{in.Name: records(in, 0, 2*n+1)}); got.Shape[0] != 2*n+1 || !bytes.Equal(got.Bytes()[:len(want)], want) {
		t.Errorf("of %d records it says something else of the first ones: %v", 2*n+1, got.Shape)
	}
	each := len(want) / n
	for k := range n {
		if got := answer(t, file, model.Values{in.Name: records(in, k, 1)}); !bytes.Equal(got.Bytes(), want[k*each:(k+1)*each]) {
			t.Errorf("alone, record %d is told otherwise", k)
		}
	}
}

// net is a model of one input, x [4 2 6], that write makes.
func net(t *testing.T, write func(b *graph.Builder) string, out ...int) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("net")
	b.Graph().Inputs = []graph.Value{{Name: "x", Type: tensor.Float32, Shape: tensor.Shape{4, 2, 6}}}
	y := write(b)
	b.Graph().Outputs = []graph.Value{{Name: y, Type: tensor.Float32, Shape: out}}
	return b.Graph()
}

func ints(b *graph.Builder, v ...int64) string {
	return b.Init("extents", tensor.Must(tensor.From(tensor.Shape{len(v)}, v)))
}

// Steps may come first inside, extents may be open already, and constants that have as many rows as a batch stay.
func TestBatchesThatAreNotFirstInside(t *testing.T) {
	for name, g := range map[string]*graph.Graph{
		"steps first": net(t, func(b *graph.Builder) string {
			x := b.With(graph.Ints("perm", 1, 0, 2)).Op("Transpose", "x") // [2 4 6]
			x = b.Op("Tanh", b.Op("Reshape", x, ints(b, 2, 24)))
			return b.With(graph.Ints("perm", 1, 0, 2)).Op("Transpose", b.Op("Reshape", x, ints(b, 2, -1, 6)))
		}, 4, 2, 6),
		"open elsewhere": net(t, func(b *graph.Builder) string { return b.Op("Reshape", "x", ints(b, 4, -1)) }, 4, 12),
		"a constant of as many rows": net(t, func(b *graph.Builder) string {
			c := b.Op("Reshape", b.Init("c", tensor.Must(tensor.From(tensor.Shape{24}, make([]float32, 24)))), ints(b, 4, 6))
			return b.Op("MatMul", b.Op("Reshape", "x", ints(b, 4, 12)), b.Op("Reshape", c, ints(b, 12, 2)))
		}, 4, 2),
	} {
		t.Run(name, func(t *testing.T) { sameOfEach(t, g) })
	}
}

func TestWhatTakesNoOtherBatch(t *testing.T) {
	for want, g := range map[string]*graph.Graph{
		"no first axis counts records": net(t, func(b *graph.Builder) string {
			return b.With(graph.Int("keepdims", 0)).Op("ReduceSum", "x")
		}),
		"does not grow with the batch": net(t, func(b *graph.Builder) string {
			return b.Init("c", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{4})))
		}, 4),
		"whose records do not stay apart": net(t, func(b *graph.Builder) string { // four of something, which is no batch
			all := b.Op("Expand", b.Init("c", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{1, 6}))), ints(b, 4, 6))
			return b.Op("Add", "x", b.With(graph.Int("keepdims", 0)).Op("ReduceSum", all, ints(b, 0)))
		}, 4, 2, 6),
		"reads no records": func() *graph.Graph {
			b := graph.NewBuilder("constant")
			b.Output(b.Op("Expand", b.Init("c", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{1, 3}))), ints(b, 8, 3)), tensor.Float32, tensor.Shape{8, 3})
			return b.Graph()
		}(),
		"more than one batch": net(t, func(b *graph.Builder) string {
			x := b.With(graph.Int("axis", 0)).Op("Concat", "x", "x") // [8 2 6]: two batches
			return b.With(graph.Ints("perm", 1, 0, 2, 3)).Op("Transpose", b.Op("Reshape", x, ints(b, 2, 4, 2, 6)))
		}, 4, 2, 2, 6),
		"mixes records": net(t, func(b *graph.Builder) string {
			x := b.With(graph.Ints("perm", 1, 0, 2)).Op("Transpose", "x") // [2 4 6]
			return b.Op("Reshape", b.Op("Reshape", x, ints(b, 8, 6)), ints(b, 4, 12))
		}, 4, 12),
		"with 12 records in place of 4": net(t, func(b *graph.Builder) string {
			return b.Op("Add", "x", b.Init("c", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{4, 1, 1}))))
		}, 4, 2, 6),
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := batch.Free(g); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}
