package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/conform"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// blockProduct multiplies rows by the elements of quantised weights; change may change the graph.
func blockProduct(t testing.TB, of quant.Type, rows int, w *tensor.Tensor, change func(b *graph.Builder, floats string) string) (*graph.Program, graph.Inputs) {
	t.Helper()
	elements, size := of.Block()
	b := graph.NewBuilder("product")
	terms := w.Shape[1] / size * elements
	x := b.Input("x", tensor.Float32, tensor.Shape{rows, terms})
	floats := change(b, b.With(graph.Int("type", int(of))).Op("Dequantize", b.Init("w", w)))
	b.Output(b.Op("MatMul", x, b.With(graph.Ints("perm", 1, 0)).Op("Transpose", floats)), 0, nil)
	typed, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	p, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	in := conform.Tensor(rand.New(rand.NewPCG(1, 1)), tensor.Float32, tensor.Shape{rows, terms})
	return p, graph.Inputs{States: []*graph.State{{Slots: p.Slots, Tensors: []*tensor.Tensor{in}}}}
}

func drawnBlocks(of quant.Type, rows, blocks int) *tensor.Tensor {
	_, size := of.Block()
	r := rand.New(rand.NewPCG(uint64(of), 2))
	w := tensor.Must(tensor.New(tensor.Uint8, tensor.Shape{rows, blocks * size}))
	for i := range w.Bytes() {
		w.Bytes()[i] = byte(r.Uint32())
	}
	return w
}

func unchanged(_ *graph.Builder, floats string) string { return floats }

// fromBlocks counts the tasks that read blocks.
func fromBlocks(t *testing.T, r engine.Explainer, in graph.Inputs) (n int) {
	t.Helper()
	_, tasks, err := r.Explain(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tasks {
		if strings.Contains(x.Packing, "unpacked from blocks of ") {
			n++
		}
	}
	return n
}

// A product reads blocks if its operand is just what Dequantize makes of them, and not if it is more.
func TestProductsReadBlocks(t *testing.T) {
	for _, of := range quant.Types[1:] {
		w := drawnBlocks(of, 20, 3)
		for _, rows := range []int{1, 40} {
			p, in := blockProduct(t, of, rows, w, unchanged)
			if n := fromBlocks(t, prepared(t, cpu.Options{Threads: 1}, p), in); n != 1 {
				t.Errorf("%v, %d rows: %d products read blocks", of, rows, n)
			}
		}
		p, in := blockProduct(t, of, 2, w, func(b *graph.Builder, floats string) string { return b.Op("Neg", floats) })
		if n := fromBlocks(t, prepared(t, cpu.Options{Threads: 1}, p), in); n != 0 {
			t.Errorf("%v: a product of other elements reads blocks", of)
		}
	}
}

// A plan serves other rows, but not blocks of another type.
func TestResizedBlocks(t *testing.T) {
	w := drawnBlocks(quant.Q4_0, 50, 4)
	first, _ := blockProduct(t, quant.Q4_0, 24, w, unchanged)
	r, err := cpu.New(2).Prepare(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []quant.Type{quant.Q4_0, quant.IQ4_NL} {
		for _, rows := range []int{1, 7, 24, 90} {
			p, in := blockProduct(t, of, rows, w, unchanged)
			resized, err := r.(engine.Resizer).Resize(p)
			if err != nil {
				if of == quant.Q4_0 {
					t.Fatal(err)
				}
				continue // it takes other primitives
			}
			got, err := resized.Run(t.Context(), in, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, err := engine.Run(t.Context(), engine.Reference{}, p, in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Tensors[0].Equal(want.Tensors[0]) {
				t.Errorf("%v, %d rows: other bits", of, rows)
			}
		}
	}
}

// Weights in blocks are not there as float32 as well.
func TestBlocksStayPacked(t *testing.T) {
	w := drawnBlocks(quant.Q4_1, 8192, 64) // 64 MB as float32
	p, in := blockProduct(t, quant.Q4_1, 3, w, unchanged)
	const most = 16 << 20
	peak := memory.Peak(func() {
		for _, threads := range []int{1, 2} {
			if _, err := engine.Run(t.Context(), cpu.New(threads), p, in, nil); err != nil {
				t.Fatal(err)
			}
		}
	}, func(peak int64) bool { return peak <= most })
	if peak > most {
		t.Errorf("a product takes %d MB beside its blocks", peak>>20)
	}
}

func BenchmarkBlocks(b *testing.B) {
	for _, of := range []quant.Type{quant.Q4_0, quant.Q4_1, quant.Q8_0, quant.Q4_K, quant.Q6_K} {
		elements, _ := of.Block()
		w := drawnBlocks(of, 1536, 1536/elements)
		for _, rows := range []int{1, 128} {
			b.Run(fmt.Sprintf("%v/%d", of, rows), func(b *testing.B) {
				p, in := blockProduct(b, of, rows, w, unchanged)
				r := prepared(b, cpu.Options{Threads: 1}, p)
				for b.Loop() {
					if _, err := r.Run(b.Context(), in, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(2*rows*1536*1536*b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}
