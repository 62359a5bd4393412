package eltwise

import (
	"math"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// FoldRows returns the Func that folds each row of elements of type t to one, nil if
// there is none.
func FoldRows(set *asm.KernelSet, fn tensor.Fn, t tensor.DType) Func {
	if f := set.Folds[fn]; f != nil && t == tensor.Float32 {
		return foldFunc(f)
	}
	switch t {
	case tensor.Float32:
		return reduction(fn, float32(math.Inf(-1)), float32(math.Inf(1)), Canonical[float32])
	case tensor.Float64:
		return reduction(fn, math.Inf(-1), math.Inf(1), Canonical[float64])
	case tensor.Int8:
		return reduction[int8](fn, math.MinInt8, math.MaxInt8, Same)
	case tensor.Int16:
		return reduction[int16](fn, math.MinInt16, math.MaxInt16, Same)
	case tensor.Int32:
		return reduction[int32](fn, math.MinInt32, math.MaxInt32, Same)
	case tensor.Int64:
		return reduction[int64](fn, math.MinInt64, math.MaxInt64, Same)
	case tensor.Uint8:
		return reduction[uint8](fn, 0, math.MaxUint8, Same)
	case tensor.Uint16:
		return reduction[uint16](fn, 0, math.MaxUint16, Same)
	case tensor.Uint32:
		return reduction[uint32](fn, 0, math.MaxUint32, Same)
	case tensor.Uint64:
		return reduction[uint64](fn, 0, math.MaxUint64, Same)
	}
	return nil
}

// Same returns x: what finishes a sum of integers, as [Canonical] does one of floats.
func Same[T any](x T) T { return x }

func reduction[T mem.Ordered](fn tensor.Fn, least, greatest T, finish func(T) T) Func {
	switch fn {
	case tensor.FoldSum:
		return folds(func(x []T) T {
			var lanes [tensor.Lanes]T
			sumLanes(&lanes, x)
			return finish(JoinLanes(&lanes))
		})
	case tensor.FoldProd:
		return folds(func(x []T) T { return ProductOf(1, x, finish) })
	case tensor.FoldMax:
		return folds(func(x []T) T { return finish(MaxOf(least, x)) })
	case tensor.FoldMin:
		return folds(func(x []T) T { return finish(MinOf(greatest, x)) })
	}
	return nil
}

// folds makes a Func of a function of a row.
func folds[T any](f func(row []T) T) Func {
	return func(dst, x, _, _ unsafe.Pointer, rows, width int) {
		to, from := mem.Slice[T](dst, rows), mem.Slice[T](x, rows*width)
		for i := range to {
			to[i] = f(from[i*width:][:width])
		}
	}
}

// sumLanes adds x to the lanes, from lane 0 on: eight lanes at a time, whose
// sums stay in registers.
func sumLanes[T mem.Ordered](lanes *[tensor.Lanes]T, x []T) {
	for g := 0; g < tensor.Lanes && g+8 <= len(x); g += 8 {
		l := (*[8]T)(lanes[g:])
		a0, a1, a2, a3, a4, a5, a6, a7 := l[0], l[1], l[2], l[3], l[4], l[5], l[6], l[7]
		for i := g; i+8 <= len(x); i += tensor.Lanes {
			v := (*[8]T)(x[i:])
			a0, a1, a2, a3 = a0+v[0], a1+v[1], a2+v[2], a3+v[3]
			a4, a5, a6, a7 = a4+v[4], a5+v[5], a6+v[6], a7+v[7]
		}
		*l = [8]T{a0, a1, a2, a3, a4, a5, a6, a7}
	}
	for i := len(x) &^ 7; i < len(x); i++ {
		lanes[i%tensor.Lanes] += x[i]
	}
}

// JoinLanes adds the lanes of a sum by their tree, as its definition does. A lane without terms holds +0, and no
// lane ever holds −0, so that adding it changes nothing.
func JoinLanes[T mem.Ordered](lanes *[tensor.Lanes]T) T {
	for half := tensor.Lanes / 2; half > 0; half /= 2 {
		for l := range half {
			lanes[l] += lanes[l+half]
		}
	}
	return lanes[0]
}

// MaxOf returns the greatest of acc and x, with four accumulators, which hide the
// latency of one.
func MaxOf[T mem.Ordered](acc T, x []T) T {
	a, b, c, d := acc, acc, acc, acc
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = max(a, x[0]), max(b, x[1]), max(c, x[2]), max(d, x[3])
	}
	for _, v := range x {
		a = max(a, v)
	}
	return max(a, b, c, d)
}

// MinOf returns the least of acc and x.
func MinOf[T mem.Ordered](acc T, x []T) T {
	a, b, c, d := acc, acc, acc, acc
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = min(a, x[0]), min(b, x[1]), min(c, x[2]), min(d, x[3])
	}
	for _, v := range x {
		a = min(a, v)
	}
	return min(a, b, c, d)
}

// ProductOf multiplies acc by each of x in turn and finishes every product.
func ProductOf[T mem.Ordered](acc T, x []T, finish func(T) T) T {
	for _, v := range x {
		acc = finish(T(acc * v))
	}
	return acc
}
