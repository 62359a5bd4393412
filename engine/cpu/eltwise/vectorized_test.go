package eltwise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// edges are bits of float32 at which functions change their course.
var edges = func() (out []uint32) {
	for _, x := range []float32{
		0, 1, 0.5, 2, 0x1p-126, 0x1p-127, 0x1p-149, math.MaxFloat32, 88.72284, 88.722846, -103.97209, -103.9721, 0.625, 9.02, 0.9, 3.95,
		math.Sqrt2, 1 << 22, 1 << 23, 1 << 24, 1 << 31, -1 << 31, 0x1p50, 0x1p-55, 0x1.01p50, 0x1.ffp-56, 0.5 - 0x1p-25, 1.5, 2.5,
	} {
		u := math.Float32bits(x)
		for d := range uint32(9) {
			out = append(out, (u+d-4)&(1<<31-1), u+d-4|1<<31)
		}
	}
	return append(out, 0x7f800000, 0xff800000, 0x7fc00000)
}()

// Every kernel of one operand gives what its definition gives: at the edges and
// on a sample, or, with TALLY_EXHAUSTIVE set, on all floats.
func TestVectorsOfOneOperand(t *testing.T) {
	for _, set := range asm.Sets()[:len(asm.Sets())-1] {
		for fn, f := range set.Maps {
			p := &tensor.Primitive{Fn: fn, Type: tensor.Float32, Shape: tensor.Shape{1}, Args: []tensor.Access{{Type: tensor.Float32, Shape: tensor.Shape{1}, Flat: true}}}
			if fn == tensor.Narrow {
				p.Type = tensor.BFloat16
			}
			if p.Check() == nil {
				t.Run(fmt.Sprint(set.Name, "/", fn), func(t *testing.T) { sweep(t, set, f, p.Type, plainFunc(fn, tensor.Float32)) })
			}
		}
		for c, f := range set.Casts {
			if c.From == tensor.Float32 {
				t.Run(fmt.Sprint(set.Name, "/", c), func(t *testing.T) { sweep(t, set, f, c.To, plainCast(c.From, c.To)) })
			}
		}
	}
}

// Every kernel of 64 bits gives what the loop in plain Go gives.
func TestVectorsOfWholes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, set := range asm.Sets() {
		for fn, f := range set.Int64Maps {
			const n = 64
			x, y := make([]int64, n), make([]int64, n)
			for i := range x {
				x[i] = r.Int64() - r.Int64()
				y[i] = []int64{x[i], x[i] ^ 1<<r.IntN(64), r.Int64(), math.MinInt64}[r.IntN(4)]
			}
			got, want := make([]int64, n), make([]int64, n)
			f((*byte)(mem.First(got)), (*byte)(mem.First(x)), (*byte)(mem.First(y)), nil, n)
			plainFunc(fn, tensor.Int64)(mem.First(want), mem.First(x), mem.First(y), nil, 1, n)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s, %v: word %d is %#x, want %#x", set.Name, fn, i, got[i], want[i])
				}
			}
		}
	}
}

// sweep compares a kernel with the plain loop, which is the definition.
func sweep(t *testing.T, set *asm.KernelSet, f asm.MapKernel, out tensor.DType, plain Func) {
	const n = 1 << 12
	check := func(input func(i int) uint32) bool {
		x := make([]float32, n)
		for i := range x {
			x[i] = Canonical(math.Float32frombits(input(i)))
		}
		got, want := make([]byte, n*out.Size()), make([]byte, n*out.Size())
		f(&got[0], (*byte)(unsafe.Pointer(&x[0])), nil, nil, n)
		plain(unsafe.Pointer(&want[0]), unsafe.Pointer(&x[0]), nil, nil, 1, n)
		for i := range got {
			if got[i] != want[i] {
				at := i / out.Size()
				t.Errorf("of %v (%#x): %x, want %x", x[at], math.Float32bits(x[at]), got[at*out.Size():][:out.Size()], want[at*out.Size():][:out.Size()])
				return false
			}
		}
		return true
	}
	check(func(i int) uint32 { return edges[i%len(edges)] })
	if os.Getenv("TALLY_EXHAUSTIVE") == "" {
		r := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			check(func(int) uint32 { return r.Uint32() })
		}
		return
	}
	var failed atomic.Bool
	_ = engine.Split(2, 1<<20, 1<<10, func(_, lo, hi int) error {
		for block := lo; block < hi && !failed.Load(); block++ {
			if !check(func(i int) uint32 { return uint32(block*n + i) }) {
				failed.Store(true)
			}
		}
		return nil
	})
}
