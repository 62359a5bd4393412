package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Add", op: "Add", in: []arg{f(2, 3), f(2, 3)}, want: pointwise(sum)},
	sample{name: "Add, broadcasting", op: "Add", in: []arg{f(2, 1, 4), f(3, 1)}, want: pointwise(sum)},
	sample{name: "Add, a scalar", op: "Add", in: []arg{f(), f(3)}, want: pointwise(sum)},
	sample{name: "Add, int32 that wraps", op: "Add", in: []arg{given(tensor.Int32, []int{2}, math.MaxInt32, 5), given(tensor.Int32, []int{1}, 1)},
		want: func([]array) []array { return []array{{[]int{2}, []float64{math.MinInt32, 6}}} }},
	sample{name: "Add, nothing", op: "Add", in: []arg{f(0, 3), f(3)}, want: pointwise(sum)},
	sample{name: "Sub", op: "Sub", in: []arg{f(3, 2), f(2)}, want: pointwise(func(x []float64) float64 { return x[0] - x[1] })},
	sample{name: "Mul", op: "Mul", in: []arg{f(3, 1), f(1, 4)}, want: pointwise(func(x []float64) float64 { return x[0] * x[1] })},
	sample{name: "Div", op: "Div", in: []arg{f(3, 2), f(3, 1)}, want: pointwise(func(x []float64) float64 { return x[0] / x[1] })},
	sample{name: "Div, integers", op: "Div", in: []arg{ints(tensor.Int64, -9, 9, 8), ints(tensor.Int64, 1, 4, 8)},
		want: pointwise(func(x []float64) float64 { return math.Trunc(x[0] / x[1]) })},
	sample{name: "Max", op: "Max", in: []arg{f(4, 3), f(3)}, want: pointwise(func(x []float64) float64 { return math.Max(x[0], x[1]) })},
	sample{name: "Max of three", op: "Max", in: []arg{f(4), f(4), f(4)},
		want: pointwise(func(x []float64) float64 { return max(x[0], x[1], x[2]) })},
	sample{name: "Max of one", op: "Max", in: []arg{f(4)}, want: pointwise(func(x []float64) float64 { return x[0] })},
	sample{name: "Min", op: "Min", in: []arg{f(4, 3), f(4, 1), f(3)},
		want: pointwise(func(x []float64) float64 { return min(x[0], x[1], x[2]) })},
	sample{name: "Neg", op: "Neg", in: []arg{f(5)}, want: pointwise(func(x []float64) float64 { return -x[0] })},
	sample{name: "Neg, int64", op: "Neg", in: []arg{ints(tensor.Int64, -5, 5, 5)}, want: pointwise(func(x []float64) float64 { return -x[0] })},
	sample{name: "Abs", op: "Abs", in: []arg{f(5)}, want: pointwise(func(x []float64) float64 { return math.Abs(x[0]) })},
	sample{name: "Sqrt", op: "Sqrt", in: []arg{positive(5)}, want: power(0.5)},
	sample{name: "Reciprocal", op: "Reciprocal", in: []arg{f(5)}, want: power(-1)},
	sample{name: "Mod", op: "Mod", in: []arg{ints(tensor.Int32, -9, 9, 8), ints(tensor.Int32, 1, 5, 8)}, want: pointwise(func(x []float64) float64 { return x[0] - x[1]*math.Floor(x[0]/x[1]) })},
	sample{name: "Mod, negative divisors", op: "Mod", in: []arg{ints(tensor.Int8, -9, 9, 8), ints(tensor.Int8, -5, -1, 8)}, want: pointwise(func(x []float64) float64 { return x[0] - x[1]*math.Floor(x[0]/x[1]) })},
	sample{name: "Mod, uint64", op: "Mod", in: []arg{ints(tensor.Uint64, 0, 99, 8), ints(tensor.Uint64, 1, 9, 1)}, want: pointwise(func(x []float64) float64 { return math.Mod(x[0], x[1]) })},
	sample{name: "Mod, fmod", op: "Mod", attrs: fmod, in: []arg{within(-9, 9, 2, 8), f(8)}, want: pointwise(func(x []float64) float64 { return math.Mod(x[0], x[1]) })},
	sample{name: "Mod, fmod of int16", op: "Mod", attrs: fmod, in: []arg{ints(tensor.Int16, -99, 99, 8), ints(tensor.Int16, 1, 9, 8)}, want: pointwise(func(x []float64) float64 { return math.Mod(x[0], x[1]) })},
	sample{name: "Mod, fmod of float16", op: "Mod", attrs: fmod, in: []arg{as(tensor.Float16, f(8)), given(tensor.Float16, nil, 0.75)}, want: pointwise(func(x []float64) float64 { return math.Mod(x[0], x[1]) })},
	sample{name: "Sum", op: "Sum", in: []arg{f(2, 3), f(3), f(2, 1)}, want: pointwise(total)},
	sample{name: "Sum of one", op: "Sum", in: []arg{f(3)}, want: pointwise(total)},
	sample{name: "Sum, float16", op: "Sum", in: []arg{as(tensor.Float16, f(5)), as(tensor.Float16, f(5)), as(tensor.Float16, f(5))}, want: pointwise(total)},
	sample{name: "Mean", op: "Mean", in: []arg{f(2, 3), f(3), f(2, 1)}, want: pointwise(mean)},
	sample{name: "Sign", op: "Sign", in: []arg{given(tensor.Float32, []int{5}, -2, 0, 3, math.Inf(-1), math.NaN())}, want: pointwise(sign)},
	sample{name: "Sign, int8", op: "Sign", in: []arg{ints(tensor.Int8, -2, 2, 9)}, want: pointwise(sign)},
	sample{name: "Sign, uint32", op: "Sign", in: []arg{ints(tensor.Uint32, 0, 2, 9)}, want: pointwise(sign)},
	elementwise("Floor", within(-9, 9, 9), math.Floor),
	elementwise("Ceil", within(-9, 9, 9), math.Ceil),
	elementwise("Round", within(-9, 9, 9), math.RoundToEven),
	another("ties", elementwise("Round", as(tensor.Float64, exponents(0.5, 1.5, -2.5, 4.5)), math.RoundToEven)),
	sample{name: "Clip", op: "Clip", in: []arg{f(3, 4), below, above}, want: clamp},
	sample{name: "Clip, constant limits", op: "Clip", in: []arg{f(3, 4), fixed(below), fixed(above)}, want: clamp},
	sample{name: "Clip below", op: "Clip", in: []arg{f(3, 4), below}, want: clamp},
	sample{name: "Clip above", op: "Clip", in: []arg{f(3, 4), none, above}, want: clamp},
	sample{name: "Clip nothing", op: "Clip", in: []arg{f(3, 4)}, want: clamp},
	sample{name: "Clip, limits exchanged", op: "Clip", in: []arg{f(3, 4), above, below}, want: clamp},
	sample{name: "Clip, int8", op: "Clip", in: []arg{ints(tensor.Int8, -9, 9, 8), given(tensor.Int8, nil, -3), given(tensor.Int8, []int{1}, 4)}, want: clamp},
)

var _ = withoutGradient("Ceil", "Floor", "Round", "Sign")

var _ = refuse(
	refusal{"it has 1 inputs, but takes 2", "Add", nil, []arg{f(1)}, 1},
	refusal{"input 0 is missing", "Sub", nil, []arg{none, f(1)}, 1},
	refusal{"are float32 and int64; cast one", "Mul", nil, []arg{f(2), few(2)}, 1},
	refusal{"it does not take bool", "Add", nil, []arg{bools(2), bools(2)}, 1},
	refusal{"do not broadcast", "Add", nil, []arg{f(2), f(3)}, 1},
	refusal{"takes integers, or any numbers with fmod 1", "Mod", nil, []arg{f(2), f(2)}, 1},
	refusal{"should be one number", "Clip", nil, []arg{f(2), f(2)}, 1},
)

// pointwise is the meaning of an operator on elements, with broadcasting.
func pointwise(f func(x []float64) float64) func([]array) []array {
	return func(in []array) []array {
		return []array{filled(broadcast(in...), func(at []int) float64 {
			x := make([]float64, len(in))
			for i, a := range in {
				x[i] = a.at(at)
			}
			return f(x)
		})}
	}
}

func sum(x []float64) float64 { return x[0] + x[1] }

func power(e float64) func([]array) []array {
	return pointwise(func(x []float64) float64 { return math.Pow(x[0], e) })
}

var fmod = []graph.Attr{graph.Int("fmod", 1)}

func sign(x []float64) float64 {
	switch {
	case x[0] > 0:
		return 1
	case x[0] < 0:
		return -1
	}
	return x[0]
}

// clamp is the meaning of Clip.
func clamp(in []array) []array {
	limit := func(i int, none float64) float64 {
		if i < len(in) && len(in[i].v) > 0 {
			return in[i].v[0]
		}
		return none
	}
	lo, hi := limit(1, math.Inf(-1)), limit(2, math.Inf(1))
	return pointwise(func(x []float64) float64 { return min(max(x[0], lo), hi) })(in[:1])
}
