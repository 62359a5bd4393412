package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "OneHot", op: "OneHot", in: []arg{ints(tensor.Int64, -7, 7, 2, 3), fixed(given(tensor.Int64, nil, 5)), f(2)}, want: hot(2, 5)},
	sample{name: "OneHot, first axis, of floats", op: "OneHot", attrs: axisIs(0), in: []arg{given(tensor.Float32, []int{4}, -1.5, 2.75, 9, 0.5), fixed(given(tensor.Float32, []int{1}, 3.5)), ints(tensor.Int32, 0, 9, 2)}, want: hot(0, 3)},
	sample{name: "OneHot, unsigned", op: "OneHot", attrs: axisIs(-1), in: []arg{given(tensor.Uint64, []int{3}, 1, 4, math.MaxInt64), list(4), bools(2)}, want: hot(1, 4)},
)

var _ = refuse(
	refusal{"the depth is -1", "OneHot", nil, []arg{few(2), list(-1), f(2)}, 1},
	refusal{"should be numbers and two values", "OneHot", nil, []arg{few(2), list(3), f(3)}, 1},
)

// hot is one-hot vectors along an axis.
func hot(axis, depth int) func([]array) []array {
	return func(in []array) []array {
		return []array{filled(slices.Insert(slices.Clone(in[0].shape), axis, depth), func(at []int) float64 {
			i := math.Trunc(in[0].at(slices.Delete(slices.Clone(at), axis, axis+1)))
			if i < 0 {
				i += float64(depth)
			}
			if int(i) == at[axis] && i >= 0 {
				return in[len(in)-1].v[1]
			}
			return in[len(in)-1].v[0]
		})}
	}
}
