package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/tally-network/tally/bench/language"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model"
)

// inferences are the models NAME.onnx in a folder.
func inferences(dir string) (out []work, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.onnx"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no file NAME.onnx", dir)
	}
	for _, path := range files {
		out = append(out, inference("infer/"+strings.TrimSuffix(filepath.Base(path), ".onnx"), path))
	}
	return out, err
}

// languageRows are those of a language model.
func languageRows(ctx context.Context, o Options) (rows []Row, err error) {
	if o.Models == "" {
		return nil, fmt.Errorf("name a language model: --models FILE.gguf")
	}
	for _, threads := range []int{1, 2} {
		at := fmt.Sprintf("t%d", threads)
		if !strings.Contains("inference/"+at, o.Only) {
			continue
		}
		o.Tell("reads, decodes and reads memory for some seconds each, threads: %d", threads)
		f, err := language.Measure(ctx, o.Models, threads)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row("inference/prefill/"+at, "tokens/s", f.Prefill), row("inference/decode/"+at, "tokens/s", f.Decode),
			row("inference/weights/"+at, "GB/s", f.Read/1e9).beside("reading alone", f.Stream/1e9), row(fmt.Sprintf("inference/batch%d/%s", language.Sequences, at), "tokens/s", f.Batch))
	}
	if rows == nil {
		return nil, fmt.Errorf("--only %q: give one of t1, t2", o.Only)
	}
	return rows, nil
}

func inference(name, path string) work {
	return work{name: name, unit: "ms", whole: true, prepare: func(ctx context.Context, threads int) (func() error, func(float64) float64, error) {
		p, in, err := loadModel(path)
		if err != nil {
			return nil, nil, err
		}
		do, err := runner(ctx, p, in, threads)
		return do, milliseconds, err
	}}
}

// drawn returns random values for an input: normal numbers, or small whole ones, as tokens
// are.
func drawn(t tensor.DType, s tensor.Shape) *tensor.Tensor {
	if t.Float() {
		return normal(t, s)
	}
	below := 100
	if t == tensor.Bool {
		below = 2
	}
	r := rand.New(rand.NewPCG(1, 2))
	x := tensor.Must(tensor.New(t, s))
	for i := range x.Len() {
		x.Set(i, tensor.Word(r.IntN(below)))
	}
	return x
}

// loadModel makes the program of a model, for random inputs of the shapes that it
// states. External data may lie in the model's folder and below.
func loadModel(path string) (*graph.Program, graph.Inputs, error) {
	fail := func(err error) (*graph.Program, graph.Inputs, error) { return nil, graph.Inputs{}, err }
	f, size, err := bounded.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	opt := onnx.Options{Files: bounded.Beside(path)}
	g, err := onnx.Read(f, size, opt)
	if err != nil {
		return fail(err)
	}
	given := model.Values{}
	for _, v := range g.Inputs {
		given[v.Name] = drawn(v.Type, v.Shape)
	}
	m, err := model.Load(f, size, opt, lower.FP32, given)
	if err != nil {
		return fail(err)
	}
	state := &graph.State{Slots: m.Program.Slots}
	for _, slot := range m.Program.Slots {
		state.Tensors = append(state.Tensors, given[slot.Name])
	}
	return m.Program, graph.Inputs{States: []*graph.State{state}}, nil
}
