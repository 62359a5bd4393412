package cpu

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// One loop for each function and type. They say again, over slices, what
// package tensor says of one element. The operands are as long as the result;
// telling the compiler so spares a check an element.

// canonical returns x, or the one NaN.
func canonical(x float32) float32 {
	if x != x {
		return math.Float32frombits(0x7fc00000)
	}
	return x
}

func floatLoop(fn tensor.Fn) mapFunc {
	switch fn {
	case tensor.Add:
		return binary(addFloats)
	case tensor.Sub:
		return binary(func(dst, x, y []float32) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = canonical(x[i] - y[i])
			}
		})
	case tensor.Mul:
		return binary(func(dst, x, y []float32) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = canonical(float32(x[i] * y[i]))
			}
		})
	case tensor.Div:
		return binary(func(dst, x, y []float32) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = canonical(x[i] / y[i])
			}
		})
	case tensor.Max:
		return binary(maxFloats)
	case tensor.Min:
		return binary(minFloats)
	case tensor.Neg:
		return unary(func(dst, x []float32) {
			x = x[:len(dst)]
			for i := range dst {
				dst[i] = canonical(-x[i])
			}
		})
	case tensor.Abs:
		return unary(func(dst, x []float32) {
			x = x[:len(dst)]
			for i := range dst {
				dst[i] = math.Float32frombits(math.Float32bits(x[i]) &^ (1 << 31))
			}
		})
	case tensor.SqrtF:
		return each(tensor.Sqrt)
	case tensor.ExpF:
		return each(tensor.Exp)
	case tensor.LogF:
		return each(tensor.Log)
	case tensor.TanhF:
		return each(tensor.Tanh)
	case tensor.ErfF:
		return each(tensor.Erf)
	case tensor.Floor, tensor.Ceil, tensor.Round:
		return each(func(x float32) float32 { return fn.Float(x, 0) })
	}
	return nil
}

// each makes a kernel of a function that costs much more than its call.
func each(f func(float32) float32) mapFunc {
	return unary(func(dst, x []float32) {
		x = x[:len(dst)]
		for i := range dst {
			dst[i] = canonical(f(x[i]))
		}
	})
}

func addFloats(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = canonical(x[i] + y[i])
	}
}

func maxFloats(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = maxFloat(x[i], y[i])
	}
}

func minFloats(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = minFloat(x[i], y[i])
	}
}

// maxFloat and minFloat rest on Go's own max and min, in which a NaN wins and
// zeros are ordered by their signs.
func maxFloat(x, y float32) float32 { return canonical(max(x, y)) }

func minFloat(x, y float32) float32 { return canonical(min(x, y)) }

func compareLoop[T tensor.Element](fn tensor.Fn) mapFunc {
	switch fn {
	case tensor.Eq:
		return binary(func(dst []uint8, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = truth(x[i] == y[i])
			}
		})
	case tensor.Lt:
		return binary(func(dst []uint8, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = truth(x[i] < y[i])
			}
		})
	case tensor.Le:
		return binary(func(dst []uint8, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = truth(x[i] <= y[i])
			}
		})
	}
	return nil
}

func truth(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

type integer interface{ int32 | int64 }

func integerLoop[T integer](fn tensor.Fn) mapFunc {
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
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = x[i] * y[i]
			}
		})
	case tensor.Div:
		return binary(func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = divide(x[i], y[i])
			}
		})
	case tensor.Max:
		return binary(maxIntegers[T])
	case tensor.Min:
		return binary(minIntegers[T])
	case tensor.Neg:
		return unary(func(dst, x []T) {
			x = x[:len(dst)]
			for i := range dst {
				dst[i] = -x[i]
			}
		})
	case tensor.Abs:
		return unary(func(dst, x []T) {
			x = x[:len(dst)]
			for i := range dst {
				dst[i] = max(x[i], -x[i])
			}
		})
	}
	return nil
}

func addIntegers[T integer](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

func maxIntegers[T integer](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = max(x[i], y[i])
	}
}

func minIntegers[T integer](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = min(x[i], y[i])
	}
}

func divide[T integer](x, y T) T {
	switch y {
	case 0:
		return 0
	case -1:
		return -x
	}
	return x / y
}

func castLoop(from, to tensor.DType) mapFunc {
	switch from {
	case tensor.Float32:
		switch to {
		case tensor.Float32:
			return unary(func(dst, x []float32) { copy(dst, x) })
		case tensor.Int32:
			return unary(saturate[int32](math.MinInt32, math.MaxInt32))
		case tensor.Int64:
			return unary(saturate[int64](math.MinInt64, math.MaxInt64))
		case tensor.Bool:
			return unary(nonZero[float32])
		}
	case tensor.Int32:
		return castInteger[int32](to)
	case tensor.Int64:
		return castInteger[int64](to)
	case tensor.Bool:
		return castInteger[uint8](to)
	}
	return nil
}

func castInteger[S integer | uint8](to tensor.DType) mapFunc {
	switch to {
	case tensor.Float32:
		return unary(convert[float32, S])
	case tensor.Int32:
		return unary(convert[int32, S])
	case tensor.Int64:
		return unary(convert[int64, S])
	case tensor.Bool:
		return unary(nonZero[S])
	}
	return nil
}

func convert[D float32 | integer, S integer | uint8](dst []D, x []S) {
	for i := range dst {
		dst[i] = D(x[i])
	}
}

func nonZero[S tensor.Element](dst []uint8, x []S) {
	for i := range dst {
		dst[i] = truth(x[i] != 0)
	}
}

// saturate truncates towards zero into [lo, hi]; NaN gives 0.
func saturate[D integer](lo, hi D) func(dst []D, x []float32) {
	return func(dst []D, x []float32) {
		for i := range dst {
			switch v := x[i]; {
			case v != v:
				dst[i] = 0
			case float64(v) >= float64(hi):
				dst[i] = hi
			case float64(v) <= float64(lo):
				dst[i] = lo
			default:
				dst[i] = D(v)
			}
		}
	}
}
