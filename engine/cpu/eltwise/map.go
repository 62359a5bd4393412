package eltwise

import (
	"math"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Func is an elementwise micro-kernel: it computes rows × width elements from as many
// of each operand, or, for a fold, one element of each row. All of them are contiguous,
// dst may be one of the operands, and operands that a function does not take are nil.
type Func func(dst, x, y, z unsafe.Pointer, rows, width int)

// unary and binary make a Func of a loop over slices of one length.
func unary[D, S any](f func(dst []D, x []S)) Func {
	return func(dst, x, _, _ unsafe.Pointer, rows, width int) {
		n := rows * width
		f(mem.Slice[D](dst, n), mem.Slice[S](x, n))
	}
}

func binary[D, S any](f func(dst []D, x, y []S)) Func {
	return func(dst, x, y, _ unsafe.Pointer, rows, width int) {
		n := rows * width
		f(mem.Slice[D](dst, n), mem.Slice[S](x, n), mem.Slice[S](y, n))
	}
}

// each and pairs make a Func of a function of elements.
func each[D, S any](f func(S) D) Func {
	return unary(func(dst []D, x []S) {
		x = x[:len(dst)]
		for i := range dst {
			dst[i] = f(x[i])
		}
	})
}

func pairs[D, S any](f func(x, y S) D) Func {
	return binary(func(dst []D, x, y []S) {
		x, y = x[:len(dst)], y[:len(dst)]
		for i := range dst {
			dst[i] = f(x[i], y[i])
		}
	})
}

// where is Where, on the bits of elements.
func where[T any](dst, c, x, y unsafe.Pointer, rows, width int) {
	n := rows * width
	to, from, other, when := mem.Slice[T](dst, n), mem.Slice[T](x, n), mem.Slice[T](y, n), mem.Slice[uint8](c, n)
	from, other, when = from[:len(to)], other[:len(to)], when[:len(to)]
	for i := range to {
		if when[i] != 0 {
			to[i] = from[i]
		} else {
			to[i] = other[i]
		}
	}
}

// broadcast repeats each element of x over a row.
func broadcast[T any](dst, x, _, _ unsafe.Pointer, rows, width int) {
	to := mem.Slice[T](dst, rows*width)
	for i, v := range mem.Slice[T](x, rows) {
		mem.Fill(to[i*width:][:width], v)
	}
}

// move copies.
func move[T any](dst, x, _, _ unsafe.Pointer, rows, width int) {
	copy(mem.Slice[T](dst, rows*width), mem.Slice[T](x, rows*width))
}

// bySize returns the Func for elements of a type that are only moved.
func bySize(t tensor.DType, loops [4]Func) Func {
	switch t.Size() {
	case 1:
		return loops[0]
	case 2:
		return loops[1]
	case 4:
		return loops[2]
	}
	return loops[3]
}

var (
	wheres     = [4]Func{where[uint8], where[uint16], where[uint32], where[uint64]}
	broadcasts = [4]Func{broadcast[uint8], broadcast[uint16], broadcast[uint32], broadcast[uint64]}
	moves      = [4]Func{move[uint8], move[uint16], move[uint32], move[uint64]}
)

// Map returns the Func of a map function whose last operand is of type t and whose
// result is of type out, nil if there is none. Of a half type there are none but those
// that move bits: halves are computed in float32 (see [ComputeType], [Widens]).
func Map(set *asm.KernelSet, fn tensor.Fn, t, out tensor.DType) Func {
	switch fn {
	case tensor.Cast:
		return Cast(set, t, out)
	case tensor.Bits:
		return bitsFunc(out)
	case tensor.Where:
		if out.Size() == 4 {
			return vectorized(set, set.Maps[fn], where[uint32], 4, 1, 4, 4)
		}
		return bySize(out, wheres)
	}
	plain := plainFunc(fn, t)
	switch {
	case plain == nil:
		return nil
	case t == tensor.Float32:
		return vectorized(set, set.Maps[fn], plain, out.Size(), 4, 4)
	case t == tensor.Int64, t == tensor.Uint64:
		return vectorized(set, set.Int64Maps[fn], plain, out.Size(), 8, 8)
	}
	return plain
}

// plainFunc is a map function in plain Go: package tensor's definition of one element,
// said again over slices.
func plainFunc(fn tensor.Fn, t tensor.DType) Func {
	if fn == tensor.Narrow {
		return narrowFunc(t)
	}
	switch t {
	case tensor.Float32:
		return float32Func(fn)
	case tensor.Float64:
		return float64Func(fn)
	case tensor.Bool:
		return boolFunc(fn)
	case tensor.Int8:
		return integerFunc[int8](fn)
	case tensor.Int16:
		return integerFunc[int16](fn)
	case tensor.Int32:
		return integerFunc[int32](fn)
	case tensor.Int64:
		return integerFunc[int64](fn)
	case tensor.Uint8:
		return integerFunc[uint8](fn)
	case tensor.Uint16:
		return integerFunc[uint16](fn)
	case tensor.Uint32:
		return integerFunc[uint32](fn)
	case tensor.Uint64:
		return integerFunc[uint64](fn)
	}
	return nil
}

// floatFunc holds what float32 and float64 share. The commonest functions are written
// out as loops, for a call an element would cost more than its sum.
func floatFunc[T mem.Float](fn tensor.Fn) Func {
	switch fn {
	case tensor.Add:
		return binary(addFloats[T])
	case tensor.Sub:
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = Canonical(x[i] - y[i])
			}
		})
	case tensor.Mul:
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = Canonical(T(x[i] * y[i]))
			}
		})
	case tensor.Div:
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = Canonical(x[i] / y[i])
			}
		})
	case tensor.Max: // Go's own: a NaN wins, and zeros are ordered by their signs
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = Canonical(max(x[i], y[i]))
			}
		})
	case tensor.Min:
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = Canonical(min(x[i], y[i]))
			}
		})
	case tensor.Neg:
		return unary(func(dst, x []T) {
			x = x[:len(dst)]
			for i := range dst {
				dst[i] = Canonical(-x[i])
			}
		})
	}
	return compareFunc[T](fn)
}

func addFloats[T mem.Float](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = Canonical(x[i] + y[i])
	}
}

func float32Func(fn tensor.Fn) Func {
	switch fn {
	case tensor.Abs:
		return each(func(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) })
	case tensor.SqrtF:
		return each(func(x float32) float32 { return Canonical(tensor.Sqrt(x)) })
	case tensor.ExpF:
		return each(func(x float32) float32 { return Canonical(tensor.Exp(x)) })
	case tensor.TanhF:
		return each(func(x float32) float32 { return Canonical(tensor.Tanh(x)) })
	}
	if f := floatFunc[float32](fn); f != nil {
		return f
	}
	return pairsOrEach(fn, fn.Float)
}

func float64Func(fn tensor.Fn) Func {
	if f := floatFunc[float64](fn); f != nil {
		return f
	}
	return pairsOrEach(fn, fn.Double)
}

// pairsOrEach makes a Func of the definition itself.
func pairsOrEach[T mem.Float](fn tensor.Fn, f func(x, y T) T) Func {
	if fn == tensor.Rem {
		return pairs(func(x, y T) T { return Canonical(f(x, y)) })
	}
	return each(func(x T) T { return Canonical(f(x, 0)) })
}

func boolFunc(fn tensor.Fn) Func {
	switch fn {
	case tensor.And:
		return pairs(func(x, y uint8) uint8 { return x & y })
	case tensor.Or:
		return pairs(func(x, y uint8) uint8 { return x | y })
	case tensor.Not:
		return each(func(x uint8) uint8 { return x ^ 1 })
	}
	return compareFunc[uint8](fn)
}

func integerFunc[T mem.Integer](fn tensor.Fn) Func {
	switch fn {
	case tensor.Add:
		return binary(addIntegers[T])
	case tensor.Sub:
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = x[i] - y[i]
			}
		})
	case tensor.Mul:
		return pairs(func(x, y T) T { return x * y })
	case tensor.Div:
		return pairs(quotient[T])
	case tensor.Rem:
		return pairs(remainder[T])
	case tensor.Mod:
		return pairs(func(x, y T) T {
			r := remainder(x, y)
			if r != 0 && (r < 0) != (y < 0) {
				return r + y
			}
			return r
		})
	case tensor.Max:
		return pairs(func(x, y T) T { return max(x, y) })
	case tensor.Min:
		return pairs(func(x, y T) T { return min(x, y) })
	case tensor.Neg:
		return each(func(x T) T { return -x })
	case tensor.Abs:
		return each(func(x T) T {
			if x < 0 {
				return -x
			}
			return x
		})
	case tensor.BitAnd:
		return pairs(func(x, y T) T { return x & y })
	case tensor.BitOr:
		return pairs(func(x, y T) T { return x | y })
	case tensor.BitXor:
		return pairs(func(x, y T) T { return x ^ y })
	case tensor.BitNot:
		return each(func(x T) T { return ^x })
	case tensor.ShiftLeft:
		return pairs(func(x, y T) T {
			if shiftable[T](y) {
				return x << y
			}
			return 0
		})
	case tensor.ShiftRight:
		return pairs(func(x, y T) T {
			if shiftable[T](y) {
				return x >> y
			}
			return 0
		})
	}
	return compareFunc[T](fn)
}

func addIntegers[T mem.Integer](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

// shiftable reports whether a shift leaves bits of T.
func shiftable[T mem.Integer](by T) bool { return by >= 0 && uint64(by) < 8*uint64(unsafe.Sizeof(by)) }

// quotient is x/y towards zero; x/0 is 0.
func quotient[T mem.Integer](x, y T) T {
	switch {
	case y == 0:
		return 0
	case y+1 == 0 && y < 0: // the least integer by −1 wraps; hardware traps
		return -x
	}
	return x / y
}

func remainder[T mem.Integer](x, y T) T {
	if y == 0 {
		return 0
	}
	return x - quotient(x, y)*y
}
