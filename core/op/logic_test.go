package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

func truth(f func(x, y float64) bool) func([]array) []array {
	return pointwise(func(x []float64) float64 {
		if f(x[0], x[len(x)-1]) {
			return 1
		}
		return 0
	})
}

func few(shape ...int) arg { return ints(tensor.Int64, 0, 2, shape...) }

var _ = withoutGradient("IsInf", "IsNaN", "Xor")

var _ = add(
	sample{name: "Equal", op: "Equal", in: []arg{few(3, 4), few(4)}, want: truth(func(x, y float64) bool { return x == y })},
	sample{name: "Equal, bool", op: "Equal", in: []arg{bools(6), bools(6)}, want: truth(func(x, y float64) bool { return x == y })},
	sample{name: "Less", op: "Less", in: []arg{few(9), few(9)}, want: truth(func(x, y float64) bool { return x < y })},
	sample{name: "Less, NaN", op: "Less", in: []arg{given(tensor.Float32, []int{2}, math.NaN(), 1), given(tensor.Float32, nil, 2)}, want: truth(func(x, y float64) bool { return x < y })},
	sample{name: "LessOrEqual", op: "LessOrEqual", in: []arg{few(9), few(9)}, want: truth(func(x, y float64) bool { return x <= y })},
	sample{name: "Greater", op: "Greater", in: []arg{few(3, 4), few(4)}, want: truth(func(x, y float64) bool { return x > y })},
	sample{name: "GreaterOrEqual", op: "GreaterOrEqual", in: []arg{few(9), few(9)}, want: truth(func(x, y float64) bool { return x >= y })},
	sample{name: "And", op: "And", in: []arg{bools(8), bools(8)}, want: truth(func(x, y float64) bool { return x*y == 1 })},
	sample{name: "Or", op: "Or", in: []arg{bools(8), bools(8)}, want: truth(func(x, y float64) bool { return x+y > 0 })},
	sample{name: "Xor", op: "Xor", in: []arg{bools(2, 8), bools(8)}, want: truth(func(x, y float64) bool { return x != y })},
	sample{name: "IsNaN", op: "IsNaN", in: []arg{odd}, want: truth(func(x, _ float64) bool { return math.IsNaN(x) })},
	sample{name: "IsInf", op: "IsInf", in: []arg{odd}, want: truth(func(x, _ float64) bool { return math.IsInf(x, 0) })},
	sample{name: "IsInf, above", op: "IsInf", attrs: []graph.Attr{graph.Int("detect_negative", 0)}, in: []arg{odd}, want: truth(func(x, _ float64) bool { return math.IsInf(x, 1) })},
	sample{name: "IsInf, below", op: "IsInf", attrs: []graph.Attr{graph.Int("detect_positive", 0)}, in: []arg{as(tensor.Float16, odd)}, want: truth(func(x, _ float64) bool { return math.IsInf(x, -1) })},
	sample{name: "IsInf, neither", op: "IsInf", attrs: []graph.Attr{graph.Int("detect_negative", 0), graph.Int("detect_positive", 0)}, in: []arg{odd}, want: truth(func(float64, float64) bool { return false })},
	sample{name: "CastLike", op: "CastLike", in: []arg{f(6), few(2)}, want: func(in []array) []array {
		return pointwise(func(x []float64) float64 { return math.Trunc(x[0]) })(in[:1])
	}},
	sample{name: "CastLike, float32", op: "CastLike", in: []arg{f(6), f(2)}, want: func(in []array) []array { return in[:1] }},
	sample{name: "Cast, attributes of small floats", op: "Cast", attrs: []graph.Attr{graph.String("round_mode", "down"), graph.Int("saturate", 0), graph.Int("to", int(tensor.Uint8))},
		in: []arg{within(0, 9, 6)}, want: pointwise(func(x []float64) float64 { return math.Trunc(x[0]) })},
	sample{name: "Not", op: "Not", in: []arg{bools(8)}, want: truth(func(x, _ float64) bool { return x == 0 })},
	sample{name: "Where", op: "Where", in: []arg{bools(3, 4), f(4), f(3, 1)}, want: pointwise(choose)},
	sample{name: "Where, int32", op: "Where", in: []arg{bools(4), ints(tensor.Int32, -9, 9), ints(tensor.Int32, -9, 9, 2, 1)}, want: pointwise(choose)},
	sample{name: "Cast to int32", op: "Cast", attrs: []graph.Attr{graph.Int("to", int(tensor.Int32))}, in: []arg{f(6)},
		want: pointwise(func(x []float64) float64 { return math.Trunc(x[0]) })},
	sample{name: "Cast to float32", op: "Cast", attrs: []graph.Attr{graph.Int("to", int(tensor.Float32))}, in: []arg{few(6)},
		want: pointwise(func(x []float64) float64 { return x[0] })},
	sample{name: "Cast to bool", op: "Cast", attrs: []graph.Attr{graph.Int("to", int(tensor.Bool))}, in: []arg{few(6)}, want: truth(func(x, _ float64) bool { return x != 0 })},
	sample{name: "Cast to the same", op: "Cast", attrs: []graph.Attr{graph.Int("to", int(tensor.Float32))}, in: []arg{f(6)},
		want: pointwise(func(x []float64) float64 { return x[0] })},
)

var odd = given(tensor.Float32, []int{5}, 1, math.Inf(1), math.Inf(-1), math.NaN(), 0)

func choose(x []float64) float64 {
	if x[0] != 0 {
		return x[1]
	}
	return x[2]
}
