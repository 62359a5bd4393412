package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "QuantizeLinear, ties and bounds", op: "QuantizeLinear", in: []arg{given(tensor.Float32, []int{8}, 0.25, 0.75, -0.25, 1.25, 1e9, -1e9, math.NaN(), 63.9), given(tensor.Float32, nil, 0.5), one8(tensor.Int8, 1)}, want: quantized(0, 0, -128, 127)},
	sample{name: "QuantizeLinear, bytes", op: "QuantizeLinear", in: []arg{f(2, 3), scales(0.0625)}, want: quantized(0, 0, 0, 255)},
	sample{name: "QuantizeLinear, along an axis", op: "QuantizeLinear", attrs: axisIs(-2), in: []arg{f(2, 3, 2), scales(0.25, 1, 0.125), given(tensor.Uint16, []int{3}, 5, 0, 60000)}, want: quantized(1, 0, 0, 65535)},
	sample{name: "QuantizeLinear, in blocks", op: "QuantizeLinear", attrs: []graph.Attr{graph.Int("axis", 1), graph.Int("block_size", 2), graph.Int("output_dtype", int(tensor.Int16))},
		in: []arg{f(2, 5), given(tensor.Float32, []int{2, 3}, 0.25, 0.5, 1, 2, 0.125, 0.0625)}, want: quantized(1, 2, -32768, 32767)},
	sample{name: "QuantizeLinear, of integers", op: "QuantizeLinear", in: []arg{ints(tensor.Int32, -999, 999, 6), given(tensor.Int32, nil, 7), one8(tensor.Int8, 3)}, want: quantized(0, 0, -128, 127)},
	sample{name: "QuantizeLinear, of halves", op: "QuantizeLinear", attrs: []graph.Attr{graph.Int("precision", int(tensor.Float32))}, in: []arg{as(tensor.Float16, f(5)), given(tensor.Float16, nil, 0.03125), one8(tensor.Int8, -3)}, want: quantized(0, 0, -128, 127)},
	sample{name: "DequantizeLinear", op: "DequantizeLinear", in: []arg{bytes(2, 3), f(), one8(tensor.Uint8, 200)}, want: dequantized(0, 0)},
	sample{name: "DequantizeLinear, along an axis", op: "DequantizeLinear", in: []arg{ints(tensor.Int16, -999, 999, 2, 3), f(3), ints(tensor.Int16, -9, 9, 3)}, want: dequantized(1, 0)},
	sample{name: "DequantizeLinear, in blocks", op: "DequantizeLinear", attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("block_size", 3)}, in: []arg{signed(5, 2), f(2, 2), signed(2, 2)}, want: dequantized(0, 3)},
	sample{name: "DequantizeLinear, to halves", op: "DequantizeLinear", attrs: []graph.Attr{graph.Int("output_dtype", int(tensor.Float16))}, in: []arg{ints(tensor.Int32, -999, 999, 4), f()}, want: dequantized(0, 0)},
	sample{name: "DynamicQuantizeLinear", op: "DynamicQuantizeLinear", outs: 3, in: []arg{given(tensor.Float32, []int{2, 3}, 0, 2, -3, -2.4, 1.34, 0.6)},
		want: func(in []array) []array {
			lo, hi := 0.0, 0.0
			for _, v := range in[0].v {
				lo, hi = min(lo, v), max(hi, v)
			}
			scale := (hi - lo) / 255
			zero := math.RoundToEven(-lo / scale)
			y := filled(in[0].shape, func(at []int) float64 { return clamped(math.RoundToEven(in[0].at(at)/scale)+zero, 0, 255) })
			return []array{y, {nil, []float64{scale}}, {nil, []float64{zero}}}
		}},
)

var _ = withoutGradient("QuantizeLinear")

var _ = refuse(
	refusal{"both should be int8, uint8, int16 or uint16", "QuantizeLinear", []graph.Attr{graph.Int("output_dtype", 7)}, []arg{f(2), f()}, 1},
	refusal{"which is not supported", "QuantizeLinear", []graph.Attr{graph.Int("output_dtype", 21)}, []arg{f(2), f()}, 1},
	refusal{"does not go with axis 1 of [2 3] in blocks of 0", "QuantizeLinear", nil, []arg{f(2, 3), f(2)}, 1},
	refusal{"in blocks of 4", "DequantizeLinear", []graph.Attr{graph.Int("block_size", 4)}, []arg{bytes(2, 3), f(2, 3)}, 1},
	refusal{"scale and zero point have shapes", "DequantizeLinear", nil, []arg{bytes(2, 3), f(), bytes(3)}, 1},
	refusal{"does not bring int64", "DequantizeLinear", nil, []arg{few(2), f()}, 1},
)

// ofBlock reads a scale or zero point: one, one for each place on an axis, or
// one for each block of places.
func ofBlock(s array, at []int, axis, size int) float64 {
	switch {
	case s.shape == nil && s.v == nil:
		return 0
	case len(s.v) == 1:
		return s.v[0]
	case len(s.shape) == 1 && size == 0:
		return s.v[at[axis]]
	}
	at = slices.Clone(at)
	at[axis] /= size
	return s.at(at)
}

func clamped(x, lo, hi float64) float64 {
	if x != x {
		return 0
	}
	return min(max(x, lo), hi)
}

func quantized(axis, size int, lo, hi float64) func([]array) []array {
	return func(in []array) []array {
		in = append(slices.Clone(in), array{})
		return []array{filled(in[0].shape, func(at []int) float64 {
			return clamped(math.RoundToEven(in[0].at(at)/ofBlock(in[1], at, axis, size))+ofBlock(in[2], at, axis, size), lo, hi)
		})}
	}
}

func dequantized(axis, size int) func([]array) []array {
	return func(in []array) []array {
		in = append(slices.Clone(in), array{})
		return []array{filled(in[0].shape, func(at []int) float64 {
			return (in[0].at(at) - ofBlock(in[2], at, axis, size)) * ofBlock(in[1], at, axis, size)
		})}
	}
}

func bytes(shape ...int) arg { return ints(tensor.Uint8, 0, 255, shape...) }

func signed(shape ...int) arg { return ints(tensor.Int8, -128, 127, shape...) }

// scales are powers of two, by which floats are scaled exactly.
func scales(v ...float64) arg { return given(tensor.Float32, []int{len(v)}, v...) }

func one8(t tensor.DType, v float64) arg { return given(t, nil, v) }
