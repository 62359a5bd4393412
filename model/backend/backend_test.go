package backend

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/model"
)

// TestSuite runs the tests below the directory that TALLY_ONNX_BACKEND names,
// those that match TALLY_ONNX_ONLY if that is set.
func TestSuite(t *testing.T) {
	s := Suite{Dir: os.Getenv("TALLY_ONNX_BACKEND"), Executor: os.Getenv("TALLY_ONNX_EXECUTOR")}
	if s.Dir == "" {
		t.Skip("TALLY_ONNX_BACKEND names no directory with ONNX's backend tests")
	}
	if only := os.Getenv("TALLY_ONNX_ONLY"); only != "" {
		s.Only = regexp.MustCompile(only)
	}
	r := run(t, s)
	for _, f := range r.Failures {
		t.Errorf("%s: %s", f.Test, f.Error)
	}
	for _, f := range r.Refusals {
		t.Logf("unsupported: %s: %s", f.Test, f.Error)
	}
	counts, err := json.Marshal(r.ByOp)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d passed, %d failed, %d unsupported, %d bit mismatches: %s", r.Passed, r.Failed, r.Unsupported, r.BitMismatches, counts)
}

func run(t *testing.T, s Suite) *Report {
	t.Helper()
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReport(t *testing.T) {
	for _, executor := range model.Executors {
		var told []string
		r := run(t, Suite{Dir: "testdata", Executor: executor, Tell: func(r Result) { told = append(told, r.Test) }})
		if r.Passed != 4 || r.Failed != 0 || r.Unsupported != 2 || r.BitMismatches != 0 || r.Uncompared != 0 {
			t.Errorf("%s: %+v", executor, r)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(r.ByOp)), " "); got != "Add Identity MatMul Reshape Softmax Where ai.onnx.preview.training.Gradient" {
			t.Errorf("%s: operators %s", executor, got)
		}
		if c := r.ByOp["Identity"]; *c != (Count{Unsupported: 1}) {
			t.Errorf("%s: Identity of a sequence: %+v", executor, c)
		}
		for i, want := range []string{"is a sequence: only tensors", `operator `} {
			if !strings.Contains(r.Refusals[i].Error, want) {
				t.Errorf("%s: %v", executor, r.Refusals[i])
			}
		}
		if !slices.IsSorted(told) || len(told) != 6 {
			t.Errorf("%s: told of %v", executor, told)
		}
	}
	one := run(t, Suite{Dir: "testdata", Only: regexp.MustCompile("_2d$")})
	if one.Passed != 1 || len(one.ByOp) != 1 {
		t.Errorf("%+v", one)
	}
}

// A test whose files do not hold what they should is none that passes.
func TestFailures(t *testing.T) {
	const name = "node/test_matmul_2d"
	for what, c := range map[string]struct {
		file   string
		change func([]byte) []byte
		want   string
	}{
		"a value":     {"test_data_set_0/output_0.pb", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, `output "c": element 8 is`},
		"a shape":     {"test_data_set_0/output_0.pb", func(b []byte) []byte { b[1], b[3] = 9, 1; return b }, "wanted float32[9 1]"},
		"no output":   {"test_data_set_0/output_0.pb", func([]byte) []byte { return []byte{0xff} }, "broken integer"},
		"no outputs":  {"test_data_set_0/output_0.pb", nil, "says nothing of the outputs"},
		"no input":    {"test_data_set_0/input_1.pb", func([]byte) []byte { return nil }, "no element type"},
		"input shape": {"test_data_set_0/input_0.pb", func(b []byte) []byte { b[1], b[3] = 4, 3; return b }, "shape [4 3] is given"},
		"no model":    {"model.onnx", func([]byte) []byte { return []byte{0xff} }, "broken integer"},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, filepath.FromSlash(c.file))
		b, err := os.ReadFile(file)
		if err == nil && c.change == nil {
			err = os.Remove(file)
		} else if err == nil {
			err = os.WriteFile(file, c.change(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, Suite{Dir: dir})
		if all := slices.Concat(r.Failures, r.Refusals); r.Passed != 0 || len(all) != 1 || !strings.Contains(all[0].Error, c.want) {
			t.Errorf("%s: %+v", what, r)
		}
	}
	for dir, want := range map[string]string{t.TempDir(): "no tests in", filepath.Join(t.TempDir(), "none"): "none: no such file"} {
		if _, err := (Suite{Dir: dir}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, wanted %s", err, want)
		}
	}
	if _, err := (Suite{Dir: "testdata", Executor: "gpu"}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "cpu and reference") {
		t.Error(err)
	}
}

// What another generator drew is not expected of ours; its shape is.
func TestDrawsAreNotExpected(t *testing.T) {
	for columns, want := range map[int]Report{3: {Unsupported: 1}, 2: {Failed: 1}} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "node/test_matmul_2d"))); err != nil {
			t.Fatal(err)
		}
		b := graph.NewBuilder("draw")
		b.Input("a", tensor.Float32, tensor.Shape{3, 4})
		b.Input("b", tensor.Float32, tensor.Shape{4, 3})
		b.Output(b.With(graph.Float("seed", 1), graph.Ints("shape", 3, columns)).As("c").Op("RandomUniform"), tensor.Float32, tensor.Shape{3, columns})
		file, err := onnx.Write(b.Graph())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "model.onnx"), file, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if r := run(t, Suite{Dir: dir}); r.Unsupported != want.Unsupported || r.Failed != want.Failed || r.Passed != 0 {
			t.Errorf("%d columns: %+v", columns, r)
		}
	}
}

func TestNear(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		got, want float64
		near      bool
	}{
		{1, 1, true}, {1.0009, 1, true}, {1.0011, 1, false}, {-1.0009, -1, true}, {-1, 1, false},
		{9e-8, 0, true}, {2e-7, 0, false}, {0, math.Copysign(0, -1), true},
		{inf, inf, true}, {-inf, inf, false}, {1e300, inf, false}, {inf, 1e300, false},
		{nan, nan, true}, {nan, 1, false}, {1, nan, false}, {nan, inf, false},
	} {
		if near(c.got, c.want) != c.near {
			t.Errorf("%v near %v: %v", c.got, c.want, !c.near)
		}
	}
}

func TestCompareIsExactForIntegers(t *testing.T) {
	of := func(v ...int64) *tensor.Tensor { return tensor.Must(tensor.From(tensor.Shape{len(v)}, v)) }
	if err := compare(of(1<<40), of(1<<40+1)); err == nil || !strings.Contains(err.Error(), "element 0 is 1099511627776, wanted 1099511627777") {
		t.Error(err)
	}
	if err := compare(of(1, 2), tensor.Must(tensor.From(tensor.Shape{2}, []int32{1, 2}))); err == nil || !strings.Contains(err.Error(), "it is int64[2], wanted int32[2]") {
		t.Error(err)
	}
}
