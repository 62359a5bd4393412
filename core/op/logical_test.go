package op_test

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "And", op: "And", in: []arg{bools(8), bools(8)}, want: truth(func(x, y float64) bool { return x*y == 1 })},
	sample{name: "Or", op: "Or", in: []arg{bools(8), bools(8)}, want: truth(func(x, y float64) bool { return x+y > 0 })},
	sample{name: "Xor", op: "Xor", in: []arg{bools(2, 8), bools(8)}, want: truth(func(x, y float64) bool { return x != y })},
	sample{name: "Not", op: "Not", in: []arg{bools(8)}, want: truth(func(x, _ float64) bool { return x == 0 })},
	sample{name: "Where", op: "Where", in: []arg{bools(3, 4), f(4), f(3, 1)}, want: pointwise(choose)},
	sample{name: "Where, int32", op: "Where", in: []arg{bools(4), ints(tensor.Int32, -9, 9), ints(tensor.Int32, -9, 9, 2, 1)}, want: pointwise(choose)},
)

var _ = withoutGradient("And", "Not", "Or", "Xor")

func truth(f func(x, y float64) bool) func([]array) []array {
	return pointwise(func(x []float64) float64 {
		if f(x[0], x[len(x)-1]) {
			return 1
		}
		return 0
	})
}

func few(shape ...int) arg { return ints(tensor.Int64, 0, 2, shape...) }

var odd = given(tensor.Float32, []int{5}, 1, math.Inf(1), math.Inf(-1), math.NaN(), 0)

func choose(x []float64) float64 {
	if x[0] != 0 {
		return x[1]
	}
	return x[2]
}
