package cpu

import (
	"math"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// A loop computes rows × width elements from as many of each operand; a fold
// computes one element a row. All of them lie side by side in memory, and dst may
// be one of the operands.
//
// The loops say again, over slices, what package tensor says of one element.
type loop func(dst, x, y, z unsafe.Pointer, rows, width int)

// unary, binary and ternary make a loop of one over slices of one length.
func unary[D, S any](f func(dst []D, x []S)) loop {
	return func(dst, x, _, _ unsafe.Pointer, rows, width int) {
		n := rows * width
		f(mem.Slice[D](dst, n), mem.Slice[S](x, n))
	}
}

func binary[D, S any](f func(dst []D, x, y []S)) loop {
	return func(dst, x, y, _ unsafe.Pointer, rows, width int) {
		n := rows * width
		f(mem.Slice[D](dst, n), mem.Slice[S](x, n), mem.Slice[S](y, n))
	}
}

// each and pairs make a loop of a function of elements.
func each[D, S any](f func(S) D) loop {
	return unary(func(dst []D, x []S) {
		x = x[:len(dst)]
		for i := range dst {
			dst[i] = f(x[i])
		}
	})
}

func pairs[D, S any](f func(x, y S) D) loop {
	return binary(func(dst []D, x, y []S) {
		x, y = x[:len(dst)], y[:len(dst)]
		for i := range dst {
			dst[i] = f(x[i], y[i])
		}
	})
}

// choose is Where, on the bits of elements.
func choose[T any](dst, c, x, y unsafe.Pointer, rows, width int) {
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

// spread repeats each element of x over a row.
func spread[T any](dst, x, _, _ unsafe.Pointer, rows, width int) {
	to := mem.Slice[T](dst, rows*width)
	for i, v := range mem.Slice[T](x, rows) {
		mem.Fill(to[i*width:][:width], v)
	}
}

// move copies.
func move[T any](dst, x, _, _ unsafe.Pointer, rows, width int) {
	copy(mem.Slice[T](dst, rows*width), mem.Slice[T](x, rows*width))
}

// bySize returns the loop for elements of a type that are only moved.
func bySize(t tensor.DType, loops [4]loop) loop {
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
	chooses = [4]loop{choose[uint8], choose[uint16], choose[uint32], choose[uint64]}
	spreads = [4]loop{spread[uint8], spread[uint16], spread[uint32], spread[uint64]}
	moves   = [4]loop{move[uint8], move[uint16], move[uint32], move[uint64]}
)

// mapLoop returns the loop of a map function whose last operand is of type t, nil
// if there is none. Of a half type there are none but those that move bits: what
// is computed with halves is computed in float32.
func mapLoop(set *asm.Set, fn tensor.Fn, t, out tensor.DType) loop {
	switch fn {
	case tensor.Cast:
		return castLoop(set, t, out)
	case tensor.Bits:
		return bitsLoop(out)
	case tensor.Where:
		if out.Size() == 4 {
			return vector(set, set.Maps[fn], choose[uint32], 4, 1, 4, 4)
		}
		return bySize(out, chooses)
	}
	plain := plainLoop(fn, t)
	switch {
	case plain == nil:
		return nil
	case t == tensor.Float32:
		return vector(set, set.Maps[fn], plain, out.Size(), 4, 4)
	case t == tensor.Int64, t == tensor.Uint64:
		return vector(set, set.Wholes[fn], plain, out.Size(), 8, 8)
	}
	return plain
}

// plainLoop is a map function in plain Go.
func plainLoop(fn tensor.Fn, t tensor.DType) loop {
	if fn == tensor.Narrow {
		return narrowLoop(t)
	}
	switch t {
	case tensor.Float32:
		return singleLoop(fn)
	case tensor.Float64:
		return doubleLoop(fn)
	case tensor.Bool:
		return boolLoop(fn)
	case tensor.Int8:
		return integerLoop[int8](fn)
	case tensor.Int16:
		return integerLoop[int16](fn)
	case tensor.Int32:
		return integerLoop[int32](fn)
	case tensor.Int64:
		return integerLoop[int64](fn)
	case tensor.Uint8:
		return integerLoop[uint8](fn)
	case tensor.Uint16:
		return integerLoop[uint16](fn)
	case tensor.Uint32:
		return integerLoop[uint32](fn)
	case tensor.Uint64:
		return integerLoop[uint64](fn)
	}
	return nil
}

// canonical returns x, or the one NaN.
func canonical[T mem.Float](x T) T {
	if x != x {
		return nan[T]()
	}
	return x
}

// nan is the one NaN of a type.
func nan[T mem.Float]() T {
	if unsafe.Sizeof(T(0)) == 4 {
		return T(math.Float32frombits(0x7fc00000))
	}
	return T(math.Float64frombits(0x7ff8000000000000))
}

// floatLoop holds what float32 and float64 share. The commonest loops are
// written out, for a call an element would cost more than its sum.
func floatLoop[T mem.Float](fn tensor.Fn) loop {
	switch fn {
	case tensor.Add:
		return binary(addFloats[T])
	case tensor.Sub:
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = canonical(x[i] - y[i])
			}
		})
	case tensor.Mul:
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = canonical(T(x[i] * y[i]))
			}
		})
	case tensor.Div:
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = canonical(x[i] / y[i])
			}
		})
	case tensor.Max: // Go's own: a NaN wins, and zeros are ordered by their signs
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = canonical(max(x[i], y[i]))
			}
		})
	case tensor.Min:
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = canonical(min(x[i], y[i]))
			}
		})
	case tensor.Neg:
		return unary(func(dst, x []T) {
			x = x[:len(dst)]
			for i := range dst {
				dst[i] = canonical(-x[i])
			}
		})
	}
	return compareLoop[T](fn)
}

func addFloats[T mem.Float](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = canonical(x[i] + y[i])
	}
}

func singleLoop(fn tensor.Fn) loop {
	switch fn {
	case tensor.Abs:
		return each(func(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) })
	case tensor.SqrtF:
		return each(func(x float32) float32 { return canonical(tensor.Sqrt(x)) })
	case tensor.ExpF:
		return each(func(x float32) float32 { return canonical(tensor.Exp(x)) })
	case tensor.TanhF:
		return each(func(x float32) float32 { return canonical(tensor.Tanh(x)) })
	}
	if f := floatLoop[float32](fn); f != nil {
		return f
	}
	return pairsOrEach(fn, fn.Float)
}

func doubleLoop(fn tensor.Fn) loop {
	if f := floatLoop[float64](fn); f != nil {
		return f
	}
	return pairsOrEach(fn, fn.Double)
}

// pairsOrEach makes a loop of the definition itself.
func pairsOrEach[T mem.Float](fn tensor.Fn, f func(x, y T) T) loop {
	if fn == tensor.Rem {
		return pairs(func(x, y T) T { return canonical(f(x, y)) })
	}
	return each(func(x T) T { return canonical(f(x, 0)) })
}

func boolLoop(fn tensor.Fn) loop {
	switch fn {
	case tensor.And:
		return pairs(func(x, y uint8) uint8 { return x & y })
	case tensor.Or:
		return pairs(func(x, y uint8) uint8 { return x | y })
	case tensor.Not:
		return each(func(x uint8) uint8 { return x ^ 1 })
	}
	return compareLoop[uint8](fn)
}

func integerLoop[T mem.Integer](fn tensor.Fn) loop {
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
	return compareLoop[T](fn)
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
