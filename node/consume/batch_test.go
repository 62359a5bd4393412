package consume

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/node/consume/outputs"
)

// folder writes files for a batch, and returns where.
func folder(t *testing.T, files map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	for name, x := range files {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		switch x := x.(type) {
		case *graph.Graph:
			var b []byte
			if b, err = onnx.Write(x); err == nil {
				_, err = f.Write(b)
			}
		case *tensor.Tensor:
			err = npy.Write(f, x)
		case string:
			_, err = f.WriteString(x)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// twice doubles its input of a shape.
func twice(s ...int) *graph.Graph {
	b := graph.NewBuilder("twice")
	x := b.Input("x", tensor.Float32, s)
	b.Output(b.Op("Add", x, x), tensor.Float32, s)
	return b.Graph()
}

func counted(s ...int) *tensor.Tensor {
	t := tensor.Must(tensor.New(tensor.Float32, s))
	for i := range t.Len() {
		t.Set(i, tensor.F32(float32(i)))
	}
	return t
}

func drafted(t *testing.T, dir string) (*Draft, error) {
	t.Helper()
	s, err := ReadBatchSpec(filepath.Join(dir, "order.yaml"))
	if err != nil {
		return nil, err
	}
	return NewBatchDraft(t.Context(), s, cpu.New(1))
}

const order = "kind: BatchOrder\nproblem:\n  model: m.onnx\n"

// The batch follows from the model: as many as it takes, with or without an axis for them.
func TestBatchOfTheModel(t *testing.T) {
	for name, c := range map[string]struct {
		model               *graph.Graph
		records             *tensor.Tensor
		more                string
		batch, steps, units int
	}{
		"fixed":         {twice(4, 3), counted(10, 3), "  batch: 4\n", 4, 1, 3},
		"one":           {twice(1, 3), counted(10, 3), "", 1, 2, 5},
		"one, no axis":  {twice(3), counted(10, 3), "", 1, 2, 5},
		"few records":   {twice(10, 3), counted(10, 3), "", 10, 1, 1},
		"steps":         {twice(1, 3), counted(10, 3), "  steps: 4\n", 1, 4, 3},
		"a scalar":      {twice(), counted(9), "", 1, 2, 5},
		"a full window": {twice(32, 2), counted(100, 2), "", 32, 1, 4},
	} {
		d, err := drafted(t, folder(t, map[string]any{"m.onnx": c.model, "x.npy": c.records, "order.yaml": order + c.more + "  records: {x: x.npy}\n"}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := &d.Problem; p.Batch != c.batch || p.Steps != c.steps || p.Units() != c.units || p.Records != c.records.Shape[0] || p.Kind != job.Batch {
			t.Errorf("%s: %d records a run, %d runs a unit, %d units of %d records", name, p.Batch, p.Steps, p.Units(), p.Records)
		}
	}
}

// Records that hold what is hardly meant, and runs that take far more of them, are counted for a warning.
func TestWarningsOfABatch(t *testing.T) {
	x := counted(5, 3)
	for i, v := range map[int]float64{2: math.NaN(), 6: math.Inf(1), 7: math.Inf(-1)} {
		x.Set(i, tensor.F32(float32(v)))
	}
	d, err := drafted(t, folder(t, map[string]any{"m.onnx": twice(16, 3), "x.npy": x, "order.yaml": order + "  batch: 16\n  records: {x: x.npy}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if d.NotFinite != 2 || d.Unused() != 11 {
		t.Errorf("%d records are not finite and %d could be taken besides, want 2 and 11", d.NotFinite, d.Unused())
	}
}

// Every combination of a grid is a record, the last input's values fastest.
func TestGridOrder(t *testing.T) {
	d, err := drafted(t, folder(t, map[string]any{"m.onnx": sum(), "order.yaml": order + "  grid: {b: [1, 2, 3], a: [10, 20.5]}\n  within: {b: [1, 3]}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	var got []float32
	for unit := range d.Problem.Units() {
		if _, err := d.Job.UnitOf(&d.Problem, unit).Play(t.Context(), d.Job.Start, 0, d.Problem.Steps, func(_ int, s *graph.State) error {
			got = append(got, tensor.Of[float32](s.Tensors[0])[0])
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []float32{11, 12, 13, 21.5, 22.5, 23.5}; !slices.Equal(got, want) {
		t.Errorf("the grid gives %v, want %v", got, want)
	}
}

func TestBatchOrdersAreRefused(t *testing.T) {
	thousand := strings.Repeat("1, ", 1023) + "1"
	for want, files := range map[string]map[string]any{
		"by tally train":                            {"order.yaml": "kind: TrainingOrder\n"},
		"write kind: BatchOrder":                    {"order.yaml": "kind: Batch\n"},
		"problem.model":                             {"order.yaml": "kind: BatchOrder\nproblem:\n  records: {x: x.npy}\n"},
		"one of them alone":                         {"order.yaml": order + "  records: {x: x.npy}\n  grid: {x: [1]}\n"},
		"name a file":                               {"order.yaml": order},
		"are positive":                              {"order.yaml": order + "  records: {x: x.npy}\n  batch: -1\n"},
		"gone.npy: no such file":                    {"order.yaml": order + "  records: {x: gone.npy}\n"},
		"read .npy":                                 {"order.yaml": order + "  records: {x: x.npy}\n", "x.npy": "no tensor"},
		"first axis counts":                         {"order.yaml": order + "  records: {x: x.npy}\n", "x.npy": counted(), "m.onnx": twice(3)},
		"has no input \"z\"":                        {"order.yaml": order + "  records: {x: x.npy, z: x.npy}\n", "x.npy": counted(4, 3), "m.onnx": twice(4, 3)},
		"has no input \"lrate\"; it takes [\"x\"]":  {"order.yaml": order + "  grid: {lrate: [1, 2]}\n", "m.onnx": twice()},
		"or the grid, have nothing for input \"b\"": {"order.yaml": order + "  grid: {a: [1, 2]}\n", "m.onnx": sum()},
		"b is 8 in record 1, and problem.within says 0 to 7": {"order.yaml": order + "  grid: {a: [1, 2], b: [7, 8]}\n  within: {a: [0, 5], b: [0, 7]}\n", "m.onnx": sum()},
		"problem.within names \"c\"":                         {"order.yaml": order + "  grid: {a: [1, 2], b: [7, 8]}\n  within: {c: [0, 5]}\n", "m.onnx": sum()},
		"the least and the greatest value, as":               {"order.yaml": order + "  grid: {x: [1]}\n  within: {x: [2, 1]}\n", "m.onnx": twice()},
		"axis 1 of the model":                                {"order.yaml": order + "  records: {x: x.npy}\n", "x.npy": counted(4, 5), "m.onnx": twice(4, 3)},
		"axis 0 of the model":                                {"order.yaml": order + "  records: {x: x.npy}\n  batch: 3\n", "x.npy": counted(4, 3), "m.onnx": twice(4, 3)},
		"is no":                                              {"order.yaml": order + "  grid: {x: [1.5]}\n", "m.onnx": integers()},
		"all combinations":                                   {"order.yaml": order + "  grid: {x: []}\n", "m.onnx": twice()},
		"more than 8 GiB":                                    {"order.yaml": order + "  records: {x: x.npy}\n  batch: 1\n", "x.npy": counted(3000, 1), "m.onnx": wide(1 << 20)},
		"values together":                                    {"order.yaml": order + "  grid: {x: [" + thousand + "], b: [" + thousand + "], c: [1]}\n", "m.onnx": twice()},
		"1e+39 is no":                                        {"order.yaml": order + "  grid: {x: [1e39]}\n", "m.onnx": twice()},
		"1.6777217e+07 is no":                                {"order.yaml": order + "  grid: {x: [16777217]}\n", "m.onnx": twice()},
		"at most 256 steps":                                  {"order.yaml": order + "  records: {x: x.npy}\n  steps: 300\n", "x.npy": counted(300, 3), "m.onnx": twice(1, 3)},
		"record 1 asks for entry 5 of table":                 {"order.yaml": order + "  records: {x: x.npy}\n", "x.npy": tensor.Must(tensor.From(tensor.Shape{4, 3}, []int32{4, 0, -5, 1, 5, 2, 0, 0, 0, 0, 0, 0})), "m.onnx": lookup(5)},
		"would see it":                                       {"order.yaml": order + "  records: {x: .x.npy}\n", ".x.npy": counted(3, 3), "m.onnx": twice(1, 3)},
	} {
		if _, err := drafted(t, folder(t, files)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
}

// sum adds a number and a whole number.
func sum() *graph.Graph {
	b := graph.NewBuilder("sum")
	b.Output(b.Op("Add", b.Input("a", tensor.Float32, nil), b.With(graph.Int("to", 1)).Op("Cast", b.Input("b", tensor.Int64, nil))), tensor.Float32, nil)
	return b.Graph()
}

// wide gives each number n times.
func wide(n int) *graph.Graph {
	b := graph.NewBuilder("wide")
	b.Output(b.Op("Expand", b.Input("x", tensor.Float32, tensor.Shape{1, 1}), b.Ints(1, n)), tensor.Float32, tensor.Shape{1, n})
	return b.Graph()
}

// lookup takes rows of a table of n, whose numbers it casts and reshapes first.
func lookup(n int) *graph.Graph {
	b := graph.NewBuilder("lookup")
	x := b.With(graph.Int("to", 7)).Op("Cast", b.Op("Reshape", b.Input("x", tensor.Int32, tensor.Shape{4, 3}), b.Ints(4, 3, 1)))
	table := b.Init("table", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{n, 2})))
	b.Output(b.Op("Gather", table, x), tensor.Float32, tensor.Shape{4, 3, 1, 2})
	return b.Graph()
}

// integers takes whole numbers.
func integers() *graph.Graph {
	b := graph.NewBuilder("integers")
	b.Output(b.Op("Neg", b.Input("x", tensor.Int64, nil)), tensor.Int64, nil)
	return b.Graph()
}

// What a run gives for all its records together has an axis of runs, and no lines.
func TestResultsOfRuns(t *testing.T) {
	b := graph.NewBuilder("mean")
	x := b.Input("x", tensor.Float32, tensor.Shape{4, 3})
	b.Output(b.Op("Neg", x), tensor.Float32, tensor.Shape{4, 3})
	b.Output(b.With(graph.Int("keepdims", 0)).Op("ReduceSum", x, b.Ints(0, 1)), tensor.Float32, nil)
	g := b.Graph()
	d, err := drafted(t, folder(t, map[string]any{"m.onnx": g, "x.npy": counted(10, 3), "order.yaml": order + "  batch: 4\n  records: {x: x.npy}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	all, err := newGathering(d.Job, &d.Problem)
	if err != nil {
		t.Fatal(err)
	}
	for unit := range d.Problem.Units() {
		s, err := d.Job.UnitOf(&d.Problem, unit).Play(t.Context(), d.Job.Start, 0, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		all.add(s)
	}
	each, together := all.out[g.Outputs[0].Name], all.out[g.Outputs[1].Name]
	if !each.Shape.Equal(tensor.Shape{10, 3}) || tensor.Of[float32](each)[29] != -29 {
		t.Errorf("results by record are %v: %v", each.Shape, tensor.Of[float32](each))
	}
	if want := []float32{66, 210, 24 + 25 + 26 + 3*(27+28+29)}; !together.Shape.Equal(tensor.Shape{3}) || !slices.Equal(tensor.Of[float32](together), want) {
		t.Errorf("results by run are %v: %v", together.Shape, tensor.Of[float32](together))
	}
	if _, err := outputs.Write(t.TempDir(), "jsonl", all.out, 10); err == nil || !strings.Contains(err.Error(), "no axis of records") {
		t.Errorf("a result of runs was written by lines: %v", err)
	}
	if _, err := outputs.Write(t.TempDir(), "csv", all.out, 10); err == nil {
		t.Error("an unknown format was written")
	}
	files, err := outputs.Write(t.TempDir(), "npy", all.out, 10)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
}

// Results are written beside nobody's files unless that is asked for.
func TestCanDeliverResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := CanDeliverResults(dir, false); err != nil {
		t.Error(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "y.npy"), []byte("labels"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CanDeliverResults(dir, false); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a directory with files: %v", err)
	}
	if err := CanDeliverResults(dir, true); err != nil {
		t.Error(err)
	}
}
