package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/internal/testkit/conform"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// layer is a recurrent layer of so many gates.
type layer struct {
	kind                       string
	gates                      int
	steps, batch, width, cells int
	direction                  string
	linear                     bool // a GRU resets last
}

// program draws weights from some values, for inputs of the others.
func (l layer) program(tb testing.TB, r *rand.Rand, weights, inputs []float64) (*graph.Program, graph.Inputs) {
	tb.Helper()
	dirs := 1
	if l.direction == "bidirectional" {
		dirs = 2
	}
	b := graph.NewBuilder("recurrent")
	x := b.Input("x", tensor.Float32, tensor.Shape{l.steps, l.batch, l.width})
	constant := func(s ...int) string { return b.Init("w", kerneltest.Drawn(r, tensor.Float32, s, weights...)) }
	attrs := []graph.Attr{graph.String("direction", l.direction)}
	if l.linear {
		attrs = append(attrs, graph.Int("linear_before_reset", 1))
	}
	y := b.With(attrs...).Op(l.kind, x, constant(dirs, l.gates*l.cells, l.width), constant(dirs, l.gates*l.cells, l.cells), constant(dirs, 2*l.gates*l.cells))
	b.Output(y, tensor.Float32, tensor.Shape{l.steps, dirs, l.batch, l.cells})
	typed, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := typed.Function()
	if err != nil {
		tb.Fatal(err)
	}
	state := &graph.State{Slots: p.Slots}
	for _, s := range p.Slots {
		state.Tensors = append(state.Tensors, kerneltest.Drawn(r, s.Type, s.Shape, inputs...))
	}
	return p, graph.Inputs{States: []*graph.State{state}}
}

// loops returns the steps' loops that a run has.
func loops(tb testing.TB, p *graph.Program, in graph.Inputs) (n int) {
	tb.Helper()
	r, err := cpu.New(1).Prepare(p)
	if err != nil {
		tb.Fatal(err)
	}
	_, tasks, err := r.(engine.Explainer).Explain(tb.Context(), in)
	if err != nil {
		tb.Fatal(err)
	}
	for _, k := range tasks {
		if k.Kernel == "loop" {
			n++
		}
	}
	return n
}

// Recurrent layers give the bits of their definition, whatever is looped, and of whatever
// values.
func TestRecurrences(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	var executors []engine.Executor
	for _, set := range asm.Sets() {
		executors = append(executors, kerneltest.Eager(set)(1), kerneltest.Eager(set)(2), cpu.NewWith(cpu.Options{Threads: 2, Kernels: set}))
	}
	values := [][]float64{{0.25, -0.5, 0.75, 0.1, -0.3, 1}, kerneltest.NearTies, kerneltest.Wild, kerneltest.Small}
	for i, l := range []layer{
		{"LSTM", 4, 6, 1, 3, 16, "forward", false},
		{"LSTM", 4, 6, 7, 3, 16, "reverse", false},
		{"LSTM", 4, 5, 2, 3, 20, "bidirectional", false},
		{"LSTM", 4, 5, 17, 2, 8, "forward", false}, // more rows than a step's product takes
		{"LSTM", 4, 5, 3, 2, 7, "forward", false},  // no whole vectors
		{"GRU", 3, 7, 1, 4, 24, "forward", true},
		{"GRU", 3, 7, 3, 4, 16, "bidirectional", false},
		{"RNN", 1, 8, 1, 5, 32, "reverse", false},
		{"RNN", 1, 8, 13, 5, 18, "forward", false},
	} {
		for j, v := range values {
			p, in := l.program(t, r, v, values[(i+j)%len(values)])
			if err := conform.Compare(executors, p, in); err != nil {
				t.Fatalf("%v: %v", l, err)
			}
			if n := loops(t, p, in); n == 0 || l.direction == "bidirectional" && n < 2 {
				t.Errorf("%v: %d loops", l, n)
			}
		}
	}
}

// What repeats itself but reads backwards and forwards at once has no model to be a
// replica of, and still gives the bits of its definition.
func TestNoRecurrence(t *testing.T) {
	p, state := &graph.Program{Groups: 1}, &graph.State{}
	r := rand.New(rand.NewPCG(13, 2))
	const n, steps = 8, 6
	for range 2 {
		p.Consts = append(p.Consts, kerneltest.Drawn(r, tensor.Float32, tensor.Shape{n, n}, 1, -0.5, 0.25))
		p.Slots = append(p.Slots, graph.Slot{Name: fmt.Sprint("x", len(p.Slots)), Type: tensor.Float32, Shape: tensor.Shape{steps, n}})
		state.Tensors = append(state.Tensors, kerneltest.Drawn(r, tensor.Float32, tensor.Shape{steps, n}, 1, 2, -1))
		p.Outputs = append(p.Outputs, graph.Ref{Kind: graph.RefSlot, Index: len(p.Outputs)})
	}
	row := func(t int) tensor.Access {
		return tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{steps, n}, Dims: []tensor.Dim{{Offset: t}, kerneltest.Axis(1)}}
	}
	last := graph.Ref{Kind: graph.RefConst}
	for t := range steps {
		product := kerneltest.MatMul(1, n, n)
		if t == 0 {
			product.Args[0].Shape = tensor.Shape{n, n}
		}
		sum := &tensor.Primitive{Fn: tensor.Add, Type: tensor.Float32, Shape: tensor.Shape{1, n}, Args: []tensor.Access{row(t), row(steps - 1 - t)}}
		both := &tensor.Primitive{Fn: tensor.Add, Type: tensor.Float32, Shape: tensor.Shape{1, n}, Args: []tensor.Access{
			{Type: tensor.Float32, Shape: tensor.Shape{1, n}, Dims: kerneltest.Dims(0, 1)}, {Type: tensor.Float32, Shape: tensor.Shape{1, n}, Dims: kerneltest.Dims(0, 1)},
		}}
		at := len(p.Nodes)
		p.Nodes = append(p.Nodes,
			graph.Opcode{Primitive: product, From: []graph.Ref{last, {Kind: graph.RefConst, Index: 1}}},
			graph.Opcode{Primitive: sum, From: []graph.Ref{{Kind: graph.RefSlot}, {Kind: graph.RefSlot, Index: 1}}},
			graph.Opcode{Primitive: both, From: []graph.Ref{{Kind: graph.RefNode, Index: at}, {Kind: graph.RefNode, Index: at + 1}}})
		last = graph.Ref{Kind: graph.RefNode, Index: at + 2}
	}
	p.Slots = append(p.Slots, graph.Slot{Name: "y", Type: tensor.Float32, Shape: tensor.Shape{1, n}})
	state.Tensors = append(state.Tensors, tensor.Must(tensor.New(tensor.Float32, tensor.Shape{1, n})))
	p.Outputs = append(p.Outputs, last)
	state.Slots = p.Slots
	in := graph.Inputs{States: []*graph.State{state}}
	var executors []engine.Executor
	for _, set := range asm.Sets() {
		executors = append(executors, kerneltest.Eager(set)(2))
	}
	if err := conform.Compare(executors, p, in); err != nil {
		t.Fatal(err)
	}
	if n := loops(t, p, in); n != 0 {
		t.Errorf("%d loops", n)
	}
}

func BenchmarkRecurrence(b *testing.B) {
	for name, l := range map[string]layer{
		"LSTM/64":     {"LSTM", 4, 100, 1, 32, 64, "forward", false},
		"LSTM/8x256":  {"LSTM", 4, 64, 8, 128, 256, "forward", false},
		"LSTM/512":    {"LSTM", 4, 32, 1, 256, 512, "forward", false},
		"LSTM/32x128": {"LSTM", 4, 32, 32, 64, 128, "forward", false},
		"GRU/256":     {"GRU", 3, 64, 1, 128, 256, "forward", true},
		"RNN/128":     {"RNN", 1, 64, 1, 64, 128, "forward", false},
	} {
		p, in := l.program(b, rand.New(rand.NewPCG(13, 3)), []float64{0.05, -0.02, 0.07, -0.06}, []float64{1, -0.5, 0.3})
		for threads := 1; threads <= 2; threads++ {
			b.Run(fmt.Sprintf("%s/t%d", name, threads), func(b *testing.B) {
				r, err := cpu.New(threads).Prepare(p)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := r.Run(b.Context(), in, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/float64(l.steps), "µs/step")
			})
		}
	}
}
