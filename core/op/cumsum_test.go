package op_test

import (
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "CumSum", op: "CumSum", in: []arg{f(3, 5), list(1)}, want: cumulated(1, false, false, total)},
	sample{name: "CumSum, exclusive", op: "CumSum", attrs: exclusive, in: []arg{f(5, 2), list(-2)}, want: cumulated(0, true, false, total)},
	sample{name: "CumSum, reverse", op: "CumSum", attrs: reverse, in: []arg{f(3, 5), list(1)}, want: cumulated(1, false, true, total)},
	sample{name: "CumSum, exclusive and reverse", op: "CumSum", attrs: append(exclusive, reverse...), in: []arg{f(40), list(0)}, want: cumulated(0, true, true, total)},
	sample{name: "CumSum, int32", op: "CumSum", in: []arg{ints(tensor.Int32, -9, 9, 6), fixed(given(tensor.Int32, nil, 0))}, want: cumulated(0, false, false, total)},
	sample{name: "CumSum, float16", op: "CumSum", in: []arg{as(tensor.Float16, f(6)), list(0)}, want: cumulated(0, false, false, total)},
	sample{name: "CumProd", op: "CumProd", in: []arg{f(2, 5), list(1)}, want: cumulated(1, false, false, multiplied)},
	sample{name: "CumProd, exclusive", op: "CumProd", attrs: exclusive, in: []arg{f(4, 2), list(0)}, want: cumulated(0, true, false, multiplied)},
	sample{name: "CumProd, reverse", op: "CumProd", attrs: reverse, in: []arg{f(2, 5), list(1)}, want: cumulated(1, false, true, multiplied)},
	sample{name: "CumProd, exclusive and reverse", op: "CumProd", attrs: append(exclusive, reverse...), in: []arg{f(2, 3, 2), list(1)}, want: cumulated(1, true, true, multiplied)},
	sample{name: "CumProd with zeros", op: "CumProd", in: []arg{given(tensor.Float32, []int{5}, 2, 0, 3, 0, 4), list(0)}, want: cumulated(0, false, false, multiplied)},
	sample{name: "CumProd, int64", op: "CumProd", in: []arg{ints(tensor.Int64, -3, 3, 6), list(0)}, want: cumulated(0, false, false, multiplied)},
)

var _ = refuse(
	refusal{"input \"x1\" must be constant", "CumSum", nil, []arg{f(2), few()}, 1},
	refusal{"should be one axis", "CumSum", nil, []arg{f(2), list(0, 1)}, 1},
	refusal{"axis 1 does not exist", "CumProd", nil, []arg{f(2), list(1)}, 1},
)

// cumulated is the meaning of a running fold along an axis.
func cumulated(axis int, exclusive, reverse bool, f func([]float64) float64) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		return []array{filled(x.shape, func(at []int) float64 {
			var terms []float64
			other := slices.Clone(at)
			for i := range x.shape[axis] {
				if reverse && i > at[axis] || !reverse && i < at[axis] || i == at[axis] && !exclusive {
					other[axis] = i
					terms = append(terms, x.at(other))
				}
			}
			return f(terms)
		})}
	}
}
