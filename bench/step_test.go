package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/model/zoo"
)

// BenchmarkStep runs the demo's training step.
func BenchmarkStep(b *testing.B) {
	p, in, err := demoStep()
	if err != nil {
		b.Fatal(err)
	}
	flops := p.Cost().FLOPs
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
	model := zoo.GPT{Vocab: 11, Context: 8, Width: 8, Layers: 1, Heads: 2, Seed: 1}
	p, in, err := languageStep(model, 8)
	if err != nil {
		t.Fatal(err)
	}
	same := in
	same.States = []*graph.State{{Slots: in.States[0].Slots, Tensors: slices.Clone(in.States[0].Tensors)}}
	for i, x := range same.States[0].Tensors {
		same.States[0].Tensors[i] = tensor.Must(tensor.FromBytes(x.Type, x.Shape, x.Bytes()))
	}
	run, err := cpu.New(2).Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	for step := range 5 {
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
		in.States[0] = want
		same.Spare, same.States[0] = same.States[0], got
	}
}

func benchmarkProgram(b *testing.B, step func() (*graph.Program, graph.Inputs, error)) {
	p, in, err := step()
	if err != nil {
		b.Fatal(err)
	}
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("t%d", threads), func(b *testing.B) {
			do, err := trainer(context.Background(), p, in, threads)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGPT(b *testing.B)    { benchmarkProgram(b, gptStep) }
func BenchmarkLeNet(b *testing.B)  { benchmarkProgram(b, leNetStep) }
func BenchmarkResNet(b *testing.B) { benchmarkProgram(b, resNetStep) }
