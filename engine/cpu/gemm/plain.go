package gemm

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// plainContraction is a contraction in plain Go, one element after the other, of types
// that no tile takes. Integers wrap, so that no order shows.
type plainContraction[T mem.Ordered] struct {
	n, terms int
	a, b     reader[T]
	dot      func(acc T, x, y []T) T
}

// newPlain returns nil for types that only the definition takes.
func newPlain(p *tensor.Primitive) kernel.Kernel {
	if p.Args[0].Type.Size() == 1 {
		return &plainContraction[int32]{p.Shape.Elements(), p.Terms(), widening(p, 0), widening(p, 1), sumProducts[int32]}
	}
	switch p.Type {
	case tensor.Int16:
		return newPlainInteger[int16](p)
	case tensor.Int32:
		return newPlainInteger[int32](p)
	case tensor.Int64:
		return newPlainInteger[int64](p)
	case tensor.Uint16:
		return newPlainInteger[uint16](p)
	case tensor.Uint32:
		return newPlainInteger[uint32](p)
	case tensor.Uint64:
		return newPlainInteger[uint64](p)
	case tensor.Float64:
		if len(affine.BoundsOf(p, 0))+len(affine.BoundsOf(p, 1)) == 0 && p.Terms() <= tensor.KBlock {
			return &plainContraction[float64]{p.Shape.Elements(), p.Terms(), reading[float64](p, 0), reading[float64](p, 1), chain64}
		}
	}
	return nil
}

func newPlainInteger[T mem.Integer](p *tensor.Primitive) kernel.Kernel {
	return &plainContraction[T]{p.Shape.Elements(), p.Terms(), reading[T](p, 0), reading[T](p, 1), sumProducts[T]}
}

func sumProducts[T mem.Integer](acc T, x, y []T) T {
	for i, v := range x {
		acc += v * y[i]
	}
	return acc
}

func chain64(acc float64, x, y []float64) float64 {
	for i, v := range x {
		acc = math.FMA(v, y[i], acc)
	}
	return eltwise.Canonical(acc)
}

func (k *plainContraction[T]) Blocks() int { return k.n }

func (k *plainContraction[T]) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	dst := tensor.Of[T](out)
	for o := lo; o < hi; o++ {
		if w.Stopped() {
			return kernel.ErrStopped
		}
		acc := T(0)
		for t := 0; t < k.terms; t += kernel.Chunk {
			n := min(kernel.Chunk, k.terms-t)
			acc = k.dot(acc, k.a(w.Rows[0], args, o*k.terms+t, n), k.b(w.Rows[1], args, o*k.terms+t, n))
		}
		dst[o] = acc
	}
	return nil
}

// reader returns n elements of an operand over output axes, then folded ones,
// from one on, perhaps in buf. Absent ones are 0.
type reader[T any] func(buf []uint64, args []*tensor.Tensor, at, n int) []T

func reading[T mem.Ordered](p *tensor.Primitive, arg int) reader[T] {
	v := affine.NewView(p, arg, affine.Axes(0, len(p.Shape)+len(p.Fold)))
	return func(buf []uint64, args []*tensor.Tensor, at, n int) []T {
		return affine.Load(v, args, mem.As[T](buf, kernel.Chunk), at, n, 0)
	}
}

// widening reads integers of 8 bits as int32.
func widening(p *tensor.Primitive, arg int) reader[int32] {
	if p.Args[arg].Type.Signed() {
		return widened(reading[int8](p, arg))
	}
	return widened(reading[uint8](p, arg))
}

func widened[T int8 | uint8](read reader[T]) reader[int32] {
	return func(buf []uint64, args []*tensor.Tensor, at, n int) []int32 {
		out := mem.As[int32](buf, n)
		for i, x := range read(buf[kernel.Chunk/2:], args, at, n) {
			out[i] = int32(x)
		}
		return out
	}
}
