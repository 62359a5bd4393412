package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/onnx"
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

// loadModel makes the program of a model, for normal inputs of the shapes that it
// states.
func loadModel(path string) (*graph.Program, graph.Inputs, error) {
	fail := func(err error) (*graph.Program, graph.Inputs, error) { return nil, graph.Inputs{}, err }
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	g, err := onnx.Read(f, info.Size(), onnx.Options{})
	if err != nil {
		return fail(err)
	}
	given := model.Values{}
	for _, v := range g.Inputs {
		given[v.Name] = normal(v.Type, v.Shape)
	}
	m, err := model.Load(f, info.Size(), onnx.Options{}, lower.FP32, given)
	if err != nil {
		return fail(err)
	}
	state := &graph.State{Slots: m.Program.Slots}
	for _, slot := range m.Program.Slots {
		t := given[strings.TrimPrefix(slot.Name, "in/")]
		if t == nil {
			t = tensor.Must(tensor.New(slot.Type, slot.Shape))
		}
		state.Tensors = append(state.Tensors, t)
	}
	return m.Program, graph.Inputs{States: []*graph.State{state}}, nil
}
