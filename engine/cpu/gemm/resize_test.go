package gemm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/gemm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/weights"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// shape is a product of some batches, of m rows, k terms and n columns.
type shape struct{ batch, m, k, n int }

func (s shape) primitive(t tensor.DType, columns bool) *tensor.Primitive {
	if s.batch > 0 {
		return kerneltest.Typed(kerneltest.Batched(s.batch, s.m, s.k, s.n, columns), t)
	}
	p := kerneltest.MatMul(s.m, s.k, s.n)
	if columns {
		p.Args[1].Shape, p.Args[1].Dims = tensor.Shape{s.n, s.k}, kerneltest.Dims(1, 2)
	}
	return kerneltest.Typed(p, t)
}

// A kernel that was made for other rows, terms or batches gives the bits of one that was made
// for these, block by block or at once.
func TestResizedKernelsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	type of struct {
		planned shape
		ranges  []shape
		least   int // that are served
	}
	resized := 0
	for _, c := range []of{
		{shape{0, 200, 96, 80}, []shape{{0, 1, 96, 80}, {0, 2, 96, 80}, {0, 131, 96, 80}, {0, 300, 96, 80}, {0, 200, 33, 80}, {0, 7, 4100, 80}}, 5},
		{shape{0, 1, 64, 512}, []shape{{0, 2, 64, 512}, {0, 9, 64, 512}, {0, 1, 63, 512}, {0, 1, 300, 512}}, 0},
		{shape{0, 4, 64, 512}, []shape{{0, 1, 64, 512}, {0, 40, 64, 512}, {0, 4, 70, 512}}, 0},
		{shape{4, 16, 24, 40}, []shape{{1, 16, 24, 40}, {9, 16, 24, 40}, {4, 3, 24, 40}, {2, 30, 50, 40}}, 2},
		// The first step of a sequence, and the second: extents of one are like any stride.
		{shape{4, 1, 1, 8}, []shape{{4, 1, 2, 8}, {4, 1, 5, 8}, {1, 1, 33, 8}, {4, 3, 5, 8}}, 0},
		{shape{4, 1, 8, 1}, []shape{{4, 1, 8, 2}, {4, 1, 8, 40}, {4, 3, 8, 1}, {4, 3, 8, 40}}, 0},
		{shape{4, 1, 8, 3}, []shape{{4, 1, 8, 2}, {4, 2, 8, 3}, {1, 1, 8, 40}}, 0},
		{shape{1, 1, 1, 1}, []shape{{1, 1, 8, 1}, {2, 1, 1, 5}, {2, 4, 1, 1}, {2, 4, 9, 5}}, 0},
	} {
		for _, typ := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Int8} {
			for _, columns := range []bool{false, true} {
				for _, set := range asm.Sets() {
					k, ok := gemm.New(c.planned.primitive(typ, columns), set).(kernel.Resizer)
					served := 0
					for _, s := range c.ranges {
						p := s.primitive(typ, columns)
						if !ok {
							continue
						}
						if own := k.Resize(p); own != nil {
							served++
							sameAsExact(t, set, own, p, nil, r)
						}
					}
					if ok && served < c.least {
						t.Errorf("%s, %v, %v, by columns %v: only %d ranges are served", set.Name, c.planned, typ, columns, served)
					}
					resized += served
				}
			}
		}
	}
	if resized < 50 {
		t.Errorf("only %d kernels were resized", resized)
	}
}

// Packed weights serve all rows, and no other weight.
func TestResizedKernelsShareWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for _, typ := range []tensor.DType{tensor.Float32, tensor.Int8} {
		for _, set := range asm.Sets() {
			planned := shape{0, 200, 96, 80}.primitive(typ, false)
			k, ok := gemm.New(planned, set).(interface {
				kernel.Resizer
				kernel.Prepacker
			})
			if !ok {
				continue
			}
			w := kerneltest.Normal(typ, planned.Args[1].Shape)
			for _, x := range k.Weights(func(operand int) bool { return operand == 1 }) {
				s, err := weights.New(weights.Options{Bytes: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				p, err := s.Get(t.Context(), weights.Key{Layout: x.Layout()}, x.Bytes(), func(dst []byte) error { return x.Pack(t.Context(), dst, w) })
				if err != nil {
					t.Fatal(err)
				}
				x.Use(p)
			}
			for _, rows := range []int{1, 5, 199, 200, 777} {
				p := shape{0, rows, 96, 80}.primitive(typ, false)
				own := k.Resize(p)
				if own == nil {
					t.Fatalf("%s, %v: %d rows are not served", set.Name, typ, rows)
				}
				sameAsExact(t, set, own, p, w, r)
			}
			for _, other := range []shape{{0, 200, 95, 80}, {0, 200, 96, 79}} {
				if k.Resize(other.primitive(typ, false)) != nil {
					t.Errorf("%s, %v: the weights serve %v", set.Name, typ, other)
				}
			}
		}
	}
}

// sameAsExact compares a kernel with the one that is made for p. If w is set it is operand 1,
// of which own is given no elements.
func sameAsExact(t *testing.T, set *asm.KernelSet, own kernel.Kernel, p *tensor.Primitive, w *tensor.Tensor, r *rand.Rand) {
	t.Helper()
	args := []*tensor.Tensor{kerneltest.Drawn(r, p.Args[0].Type, p.Args[0].Shape, kerneltest.NearTies...), kerneltest.Drawn(r, p.Args[1].Type, p.Args[1].Shape, kerneltest.NearTies...)}
	given := []*tensor.Tensor{args[0], args[1]}
	if w != nil {
		args[1], given[1] = w, kernel.Hollow(w)
	}
	want, got := tensor.Must(tensor.New(p.Type, p.Shape)), tensor.Must(tensor.New(p.Type, p.Shape))
	exact := gemm.New(p, set)
	if err := exact.Run(kernel.NewWorker(), want, args, 0, exact.Blocks()); err != nil {
		t.Fatal(err)
	}
	for _, together := range []int{own.Blocks(), 1} {
		clear(got.Bytes())
		x := kernel.NewWorker()
		for i := 0; i < own.Blocks(); i += together {
			if err := own.Run(x, got, given, i, i+together); err != nil {
				t.Fatal(err)
			}
		}
		if !got.Equal(want) {
			t.Fatalf("%s, %v by %v, %d blocks at a time: other bits", set.Name, p.Args[0].Shape, p.Args[1].Shape, together)
		}
	}
}
