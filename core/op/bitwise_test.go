package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "BitwiseAnd", op: "BitwiseAnd", in: []arg{ints(tensor.Int32, -9, 9, 3, 4), ints(tensor.Int32, -9, 9, 4)}, want: bitwise(func(x, y int64) int64 { return x & y })},
	sample{name: "BitwiseOr", op: "BitwiseOr", in: []arg{ints(tensor.Uint8, 0, 255, 3, 4), ints(tensor.Uint8, 0, 255, 3, 1)}, want: bitwise(func(x, y int64) int64 { return x | y })},
	sample{name: "BitwiseXor", op: "BitwiseXor", in: []arg{ints(tensor.Int16, -99, 99, 6), ints(tensor.Int16, -99, 99, 6)}, want: bitwise(func(x, y int64) int64 { return x ^ y })},
	sample{name: "BitwiseNot", op: "BitwiseNot", in: []arg{ints(tensor.Int64, -99, 99, 6)}, want: bitwise(func(x, _ int64) int64 { return ^x })},
	sample{name: "BitwiseNot, uint16", op: "BitwiseNot", in: []arg{ints(tensor.Uint16, 0, 99, 6)}, want: bitwise(func(x, _ int64) int64 { return 65535 - x })},
	sample{name: "BitShift left", op: "BitShift", attrs: direction("LEFT"), in: []arg{ints(tensor.Uint16, 0, 999, 6), ints(tensor.Uint16, 0, 20, 6)},
		want: bitwise(func(x, y int64) int64 { return x << y & 65535 })},
	sample{name: "BitShift right", op: "BitShift", attrs: direction("RIGHT"), in: []arg{ints(tensor.Uint32, 0, 999, 6), ints(tensor.Uint32, 0, 40, 1)},
		want: bitwise(func(x, y int64) int64 { return x >> y })},
)

var _ = withoutGradient("BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor")

var _ = refuse(
	refusal{"is not LEFT or RIGHT", "BitShift", nil, []arg{few(2), few(2)}, 1},
	refusal{"does not take float32, but integers", "BitwiseAnd", nil, []arg{f(2), f(2)}, 1},
)

func bitwise(f func(x, y int64) int64) func([]array) []array {
	return pointwise(func(x []float64) float64 { return float64(f(int64(x[0]), int64(x[len(x)-1]))) })
}

func direction(d string) []graph.Attr { return []graph.Attr{graph.String("direction", d)} }

func to(t tensor.DType) []graph.Attr { return []graph.Attr{graph.Int("to", int(t))} }
