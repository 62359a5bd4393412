package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/model/zoo"
)

// runs a step graph in ONNX Runtime: argv is the model, the directory of its
// first state, the batches, and the number of steps.
const onnxruntimeScript = `
import sys, numpy, onnxruntime
model, dir, batches, steps = sys.argv[1:5]
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": numpy.float32, "tensor(int32)": numpy.int32, "tensor(int64)": numpy.int64}
inputs = session.get_inputs()
state = {x.name: numpy.fromfile(f"{dir}/{i}", types[x.type]).reshape(x.shape) for i, x in enumerate(inputs[:-1])}
data = numpy.fromfile(batches, numpy.int32).reshape([int(steps)] + inputs[-1].shape)
for batch in data:
    out = session.run(None, {**state, inputs[-1].name: batch})
    state = dict(zip(state, out))
for i, x in enumerate(state.values()):
    x.tofile(f"{dir}/{i}")
`

// A training step is plain ONNX: a runtime that we did not make trains as we do,
// but for rounding.
func TestStepGraphInONNXRuntime(t *testing.T) {
	python := os.Getenv("TALLY_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import numpy, onnxruntime").Run(); err != nil {
		t.Skip("needs Python with numpy and onnxruntime; TALLY_PYTHON names one")
	}
	model := zoo.GPT{Vocab: 13, Context: 8, Width: 16, Layers: 2, Heads: 2, Seed: 4}
	for name, change := range map[string]func(*train.Recipe){
		"adamw":    func(*train.Recipe) {},
		"adagrad":  func(r *train.Recipe) { r.Optimizer = "adagrad" },
		"nesterov": func(r *train.Recipe) { r.Optimizer, r.Momentum, r.Nesterov = "sgd", 0.9, true },
		"cosine, clipped, accumulated": func(r *train.Recipe) {
			r.Schedule, r.Decay, r.ClipNorm, r.Accumulate = "cosine", 30, 1, 2
		},
		"recomputed": func(r *train.Recipe) { r.Recompute = 8 },
		"adapters": func(r *train.Recipe) {
			r.Adapters = train.Adapters{Rank: 4, Alpha: 8, Of: []string{"*.weight"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := train.Recipe{
				Loss: "next-token-cross-entropy", Optimizer: "adamw", Rate: train.Rate{LearningRate: 0.01, Warmup: 5},
				Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-5, WeightDecay: 0.1, Batch: 4,
			}
			change(&r)
			compareSteps(t, python, model, r)
		})
	}
}

func compareSteps(t *testing.T, python string, model zoo.GPT, r train.Recipe) {
	const steps, records = 20, 64
	g, err := model.Graph(r.Batch)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := train.New(g, r, tensor.Shape{records, model.Context + 1})
	if err != nil {
		t.Fatal(err)
	}
	data := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{records, model.Context + 1}))
	random := rand.New(rand.NewPCG(2, 3))
	for i := range tensor.Of[int32](data) {
		tensor.Of[int32](data)[i] = int32(i%7+random.IntN(3)) % int32(model.Vocab)
	}

	dir := t.TempDir()
	file, err := onnx.Write(tr.Graph)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("step.onnx", file)
	for i, x := range tr.Start.Tensors {
		write(fmt.Sprint(i), x.Bytes())
	}

	run, err := cpu.New(2).Prepare(tr.Program)
	if err != nil {
		t.Fatal(err)
	}
	s := tr.Start
	var batches bytes.Buffer
	for step := range steps {
		rows := make([]int64, r.Batch)
		for i := range rows {
			rows[i] = int64((step*r.Batch + i) % records)
			row := tensor.Of[int32](data)[int(rows[i])*(model.Context+1):][:model.Context+1]
			if err := binary.Write(&batches, binary.LittleEndian, row); err != nil {
				t.Fatal(err)
			}
		}
		if s, err = run.Run(context.Background(), graph.Inputs{States: []*graph.State{s}, Data: data, Rows: rows}, nil); err != nil {
			t.Fatal(err)
		}
	}
	write("batches", batches.Bytes())
	out, err := exec.Command(python, "-c", onnxruntimeScript, filepath.Join(dir, "step.onnx"), dir, filepath.Join(dir, "batches"), fmt.Sprint(steps)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, slot := range s.Slots {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := tensor.FromBytes(slot.Type, slot.Shape, b)
		if err != nil {
			t.Fatal(err)
		}
		if d := distance(s.Tensors[i], theirs, tr.Start.Tensors[i]); !(d < 5e-3) {
			t.Errorf("%s: %.2g of what it has moved apart from ONNX Runtime's", slot.Name, d)
		}
	}
}

// distance is how far two tensors lie apart, relative to how far the first has
// come from the start.
func distance(x, y, start *tensor.Tensor) float64 {
	var apart, moved float64
	for i := range x.Len() {
		a, b, c := float64(int64(x.At(i))), float64(int64(y.At(i))), float64(int64(start.At(i)))
		if x.Type == tensor.Float32 {
			a, b, c = float64(tensor.AsF32(x.At(i))), float64(tensor.AsF32(y.At(i))), float64(tensor.AsF32(start.At(i)))
		}
		apart, moved = apart+(a-b)*(a-b), moved+(a-c)*(a-c)
	}
	if apart == 0 {
		return 0
	}
	return math.Sqrt(apart / max(moved, 1e-12))
}
