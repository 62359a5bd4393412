package backend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime/debug"

	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model"
)

// Result is how one test came out. It passed if Err is nil.
type Result struct {
	Test        string
	Operators   []string // in its model
	Err         error
	Unsupported bool // refused before anything ran, or drawn by another generator
	BitMismatch bool // the executors differ
	Uncompared  bool // one executor ran alone
}

// maxFile bounds a model, and a tensor, of the suite in bytes.
const maxFile = 1 << 30

// test is one folder.
type test struct {
	name, dir     string
	judged, other engine.Executor
}

// run runs the test on each of its data sets, until one does not pass.
func (t test) run(ctx context.Context) (r Result) {
	r.Test = t.name
	defer func() {
		if p := recover(); p != nil {
			r.Err, r.Unsupported = fmt.Errorf("panic: %v\n%s", p, debug.Stack()), false
		}
	}()
	file, err := bounded.ReadFile(filepath.Join(t.dir, "model.onnx"), maxFile)
	if err != nil {
		r.Err = err
		return r
	}
	summary, err := onnx.Inspect(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		r.Err = err
		return r
	}
	r.Operators = summary.Operators
	sets, err := filepath.Glob(filepath.Join(quote(t.dir), "test_data_set_*"))
	if err != nil {
		r.Err = err
		return r
	}
	for _, set := range sets {
		if r.Err = t.dataSet(ctx, &r, file, summary, set); r.Err != nil {
			return r
		}
	}
	return r
}

// dataSet runs the model on one set of inputs.
func (t test) dataSet(ctx context.Context, r *Result, file []byte, s *onnx.Summary, dir string) error {
	// What the model itself says is told first: it names what is not supported.
	in, inErr := tensors(dir, "input", s.Inputs)
	m, err := model.Load(bytes.NewReader(file), int64(len(file)), onnx.Options{}, lower.FP32, in)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case inErr != nil:
		err = inErr
	}
	if err != nil {
		r.Unsupported = true
		return err
	}
	want, err := tensors(dir, "output", s.Outputs)
	if err != nil {
		return err
	}
	if len(want) == 0 {
		return fmt.Errorf("%s says nothing of the outputs", filepath.Base(dir))
	}
	got, err := m.Run(ctx, t.judged, in)
	var long *engine.LongError
	if errors.As(err, &long) {
		r.Unsupported = true
	}
	if err != nil {
		return err
	}
	for _, name := range s.Outputs {
		if w := want[name]; w != nil {
			if err := compare(got[name], w); err != nil {
				r.Unsupported = m.Draws && got[name].Type == w.Type && got[name].Shape.Equal(w.Shape)
				return fmt.Errorf("output %q: %w", name, err)
			}
		}
	}
	again, err := m.Run(ctx, t.other, in)
	if errors.As(err, &long) {
		r.Uncompared = true
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range s.Outputs {
		if a, b := got[name], again[name]; !a.Equal(b) {
			r.BitMismatch = true
			return fmt.Errorf("output %q: executors %s and %s give other bits", name, t.judged.Name(), t.other.Name())
		}
	}
	return nil
}

// tensors reads the files kind_0.pb, kind_1.pb and so on of a data set, which
// hold the values of the given names. Some may be missing.
func tensors(dir, kind string, names []string) (model.Values, error) {
	out := model.Values{}
	for i, name := range names {
		file := fmt.Sprintf("%s_%d.pb", kind, i)
		b, err := bounded.ReadFile(filepath.Join(dir, file), maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, err
		}
		_, t, err := onnx.ReadTensor(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return out, fmt.Errorf("%s: %w", file, err)
		}
		out[name] = t
	}
	return out, nil
}

// The tolerance of ONNX's runner: |got − want| ≤ absolute + relative·|want|.
const (
	relative = 1e-3
	absolute = 1e-7
)

// compare returns an error unless got is want: floats within the tolerance,
// where one NaN is as good as another; all else exactly.
func compare(got, want *tensor.Tensor) error {
	if got.Type != want.Type || !got.Shape.Equal(want.Shape) {
		return fmt.Errorf("it is %v%v, wanted %v%v", got.Type, got.Shape, want.Type, want.Shape)
	}
	for i := range want.Len() {
		g, w := got.At(i), want.At(i)
		if g == w {
			continue
		}
		if !want.Type.Float() {
			return fmt.Errorf("element %d is %d, wanted %d", i, int64(g), int64(w))
		}
		if x, y := tensor.FloatOf(got.Type, g), tensor.FloatOf(want.Type, w); !near(x, y) {
			return fmt.Errorf("element %d is %v, wanted %v", i, x, y)
		}
	}
	return nil
}

func near(got, want float64) bool {
	if got == want || got != got && want != want {
		return true
	}
	return !math.IsInf(want, 0) && math.Abs(got-want) <= absolute+relative*math.Abs(want)
}
