package bench

import (
	"math/rand/v2"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/model/zoo"
)

// The language model that training is compared with others by.
const (
	gptBatch   = 16
	gptContext = 128
)

func gptStep() (*graph.Program, graph.Inputs, error) {
	return languageStep(zoo.GPT{Vocab: 96, Context: gptContext, Width: 256, Layers: 4, Heads: 4, Seed: 1}, gptBatch)
}

// demoStep is a step of the demo.
func demoStep() (*graph.Program, graph.Inputs, error) { return languageStep(zoo.NewGPT(67, 1), 8) }

// languageStep returns a model's step program, and inputs for it.
func languageStep(model zoo.GPT, batch int) (*graph.Program, graph.Inputs, error) {
	const records = 64
	g, err := model.Graph(batch)
	if err != nil {
		return nil, graph.Inputs{}, err
	}
	t, err := train.New(g, train.Recipe{
		Loss: "next-token-cross-entropy", Optimizer: "adamw", Rate: train.Rate{LearningRate: 3e-3, Warmup: 10},
		Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, WeightDecay: 0.1, Batch: batch,
	}, tensor.Shape{records, model.Context + 1})
	if err != nil {
		return nil, graph.Inputs{}, err
	}
	in := graph.Inputs{States: []*graph.State{t.Start}, Rows: make([]int64, batch)}
	in.Data = tensor.Must(tensor.New(tensor.Int32, tensor.Shape{records, model.Context + 1}))
	r := rand.New(rand.NewPCG(1, 1))
	for i := range tensor.Of[int32](in.Data) {
		tensor.Of[int32](in.Data)[i] = int32(r.IntN(model.Vocab))
	}
	for i := range in.Rows {
		in.Rows[i] = int64(r.IntN(records))
	}
	return t.Program, in, nil
}
