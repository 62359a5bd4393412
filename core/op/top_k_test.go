package op_test

import (
	"cmp"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "TopK", op: "TopK", outs: 2, in: []arg{f(3, 7), list(4)}, want: best(1, 4, falling)},
	sample{name: "TopK, least, first axis", op: "TopK", attrs: append(axisIs(0), graph.Int("largest", 0)), outs: 2, in: []arg{f(6, 2), list(2)}, want: best(0, 2, rising)},
	sample{name: "TopK, values alone", op: "TopK", attrs: []graph.Attr{graph.Int("sorted", 0)}, in: []arg{f(2, 5), list(5)}, want: leading(1, best(1, 5, falling))},
	sample{name: "TopK, equals", op: "TopK", outs: 2, in: []arg{ints(tensor.Uint8, 0, 2, 2, 9), list(6)}, want: best(1, 6, falling)},
	sample{name: "TopK, none", op: "TopK", outs: 2, in: []arg{ints(tensor.Int64, 0, 2, 2, 3), list(0)}, want: best(1, 0, falling)},
)

var _ = refuse(
	refusal{"no 5 first of the 4", "TopK", nil, []arg{f(2, 4), list(5)}, 1},
	refusal{"must be constant", "TopK", nil, []arg{f(2, 4), few(1)}, 1},
)

// best is the k first along an axis by an order, and where they were.
func best(axis, k int, order func(x, y float64) int) func([]array) []array {
	return func(in []array) []array {
		shape := slices.Clone(in[0].shape)
		shape[axis] = k
		where := func(at []int) int {
			along := func(i int) float64 {
				x := slices.Clone(at)
				x[axis] = i
				return in[0].at(x)
			}
			list := make([]int, in[0].shape[axis])
			for i := range list {
				list[i] = i
			}
			slices.SortStableFunc(list, func(i, j int) int { return order(along(i), along(j)) })
			return list[at[axis]]
		}
		return []array{
			filled(shape, func(at []int) float64 {
				x := slices.Clone(at)
				x[axis] = where(at)
				return in[0].at(x)
			}),
			filled(shape, func(at []int) float64 { return float64(where(at)) }),
		}
	}
}

// leading is the first n of several outputs.
func leading(n int, of func([]array) []array) func([]array) []array {
	return func(in []array) []array { return of(in)[:n] }
}

func rising(x, y float64) int { return cmp.Compare(x, y) }

func falling(x, y float64) int { return cmp.Compare(y, x) }

func results(a ...array) func([]array) []array { return func([]array) []array { return a } }
