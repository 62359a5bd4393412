package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/demo"
)

// training returns the demo's step program at a batch of 8, and inputs for it.
func training(tb testing.TB, model demo.GPT) (*graph.Program, graph.Inputs) {
	tb.Helper()
	const batch, records = 8, 64
	g, err := model.Graph(batch)
	if err != nil {
		tb.Fatal(err)
	}
	t, err := train.New(g, train.Recipe{
		Loss: "next-token-cross-entropy", Optimizer: "adamw", Rate: train.Rate{LearningRate: 3e-3, Warmup: 10},
		Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, WeightDecay: 0.1, Batch: batch,
	}, tensor.Shape{records, model.Context + 1})
	if err != nil {
		tb.Fatal(err)
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
	return t.Program, in
}

// BenchmarkStep runs the demo's training step.
func BenchmarkStep(b *testing.B) {
	model := demo.NewGPT(67, 1)
	p, in := training(b, model)
	flops, _ := p.Cost()
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("t%d", threads), func(b *testing.B) {
			run, err := cpu.New(threads).Prepare(p)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s, err := run.Run(context.Background(), in, nil)
				if err != nil {
					b.Fatal(err)
				}
				in.States[0] = s
			}
			b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			b.ReportMetric(float64(len(p.Nodes)), "nodes")
		})
	}
}

// A few steps of a small model end in the same state as by the definition.
func TestStepEqualsTheDefinition(t *testing.T) {
	model := demo.GPT{Vocab: 11, Context: 8, Width: 8, Layers: 1, Heads: 2, Seed: 1}
	p, in := training(t, model)
	same := in
	same.States = []*graph.State{in.States[0]}
	run, err := cpu.New(2).Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	for step := range 3 {
		want, err := engine.Run(context.Background(), engine.Reference{}, p, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := run.Run(context.Background(), same, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, slot := range want.Slots {
			if !got.Tensors[i].Equal(want.Tensors[i]) {
				t.Fatalf("step %d: %s differs", step, slot.Name)
			}
		}
		in.States[0], same.States[0] = want, got
	}
}
