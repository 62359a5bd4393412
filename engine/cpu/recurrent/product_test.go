package recurrent_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/recurrent"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// Products of few rows are those of the definition, whichever operand holds the weights and
// however they lie, block by block or at once.
func TestProduct(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 4))
	for _, set := range asm.Sets() {
		for _, size := range [][3]int{{1, 64, 256}, {2, 20, 64}, {1, 7, 48}, {3, 30, 80}, {5, 9, 16}, {8, 64, 112}, {13, 17, 160}, {16, 300, 48}} {
			m, k, n := size[0], size[1], size[2]
			for form := range 3 {
				p, weights := kerneltest.MatMul(m, k, n), 1
				switch form {
				case 1: // columns of weights
					p.Args[1] = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{n, k}, Dims: kerneltest.Dims(1, 2)}
				case 2:
					p.Args[0], p.Args[1], weights = p.Args[1], p.Args[0], 0
				}
				for _, from := range [][]float64{kerneltest.NearTies, kerneltest.Wild, kerneltest.Small, kerneltest.Huge} {
					args := []*tensor.Tensor{kerneltest.Drawn(r, tensor.Float32, p.Args[0].Shape, from...), kerneltest.Drawn(r, tensor.Float32, p.Args[1].Shape, from...)}
					compare(t, fmt.Sprint(set.Name, size, form), p, weights, set, args)
				}
			}
		}
	}
}

func compare(t *testing.T, name string, p *tensor.Primitive, weights int, set *asm.KernelSet, args []*tensor.Tensor) {
	t.Helper()
	want, err := p.Eval(args)
	if err != nil {
		t.Fatal(err)
	}
	k := recurrent.NewProduct(p, weights, set)
	if k == nil {
		t.Fatalf("%s is no product of a step", name)
	}
	for _, w := range k.Weights(func(operand int) bool { return operand == weights }) {
		packed := make([]byte, w.Bytes())
		if err := w.Pack(t.Context(), packed, args[weights]); err != nil {
			t.Fatal(err)
		}
		if x, err := w.Unpack(packed); err != nil || !w.Whole() || !x.Equal(args[weights]) {
			t.Fatalf("%s: weights are others when they are unpacked: %v", name, err)
		}
	}
	for _, together := range []int{1, k.Blocks()} {
		out := tensor.Must(tensor.New(p.Type, p.Shape))
		written := 0
		count := func(_, n, rows, _ int, _ kernel.Source) error {
			written += n * rows
			return nil
		}
		for i := 0; i < k.Blocks(); i += together {
			if err := kernel.Produce(k, kernel.NewWorker(), out, args, i, i+together, count); err != nil {
				t.Fatal(err)
			}
		}
		if !out.Equal(want) || written != out.Len() {
			t.Fatalf("%s, %d blocks at a time: %d of %d elements, or others than by definition", name, together, written, out.Len())
		}
	}
}

func TestWhatIsNoProductOfAStep(t *testing.T) {
	set := asm.Sets()[0]
	for name, p := range map[string]*tensor.Primitive{
		"many rows":        kerneltest.MatMul(17, 8, 64),
		"part of a vector": kerneltest.MatMul(1, 8, 63),
		"many terms":       kerneltest.MatMul(1, tensor.KBlock+1, 64),
		"batch":            kerneltest.Batched(2, 1, 8, 64, false),
		"other types":      kerneltest.Typed(kerneltest.MatMul(1, 8, 64), tensor.BFloat16),
	} {
		if recurrent.NewProduct(p, 1, set) != nil {
			t.Errorf("%s", name)
		}
	}
}

func BenchmarkProduct(b *testing.B) {
	for _, size := range [][3]int{{1, 64, 256}, {1, 256, 1024}, {8, 256, 1024}} {
		p, set := kerneltest.MatMul(size[0], size[1], size[2]), asm.Sets()[0]
		args := []*tensor.Tensor{kerneltest.Normal(tensor.Float32, p.Args[0].Shape), kerneltest.Normal(tensor.Float32, p.Args[1].Shape)}
		k := recurrent.NewProduct(p, 1, set)
		out, w := tensor.Must(tensor.New(p.Type, p.Shape)), kernel.NewWorker()
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				if err := k.Run(w, out, args, 0, k.Blocks()); err != nil {
					b.Fatal(err)
				}
			}
			flops, _ := p.Cost()
			b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
