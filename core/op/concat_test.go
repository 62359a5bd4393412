package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
)

var _ = add(
	sample{name: "Concat", op: "Concat", attrs: []graph.Attr{graph.Int("axis", 1)}, in: []arg{f(2, 3), f(2, 1), f(2, 2)}, want: concatenated(1)},
	sample{name: "Concat, first axis", op: "Concat", attrs: []graph.Attr{graph.Int("axis", -2)}, in: []arg{f(2, 3), f(0, 3), f(1, 3)}, want: concatenated(0)},
	sample{name: "Concat of forty", op: "Concat", attrs: []graph.Attr{graph.Int("axis", 0)}, in: many(40, f(2)), want: concatenated(0)},
	sample{name: "Concat of one", op: "Concat", attrs: []graph.Attr{graph.Int("axis", 0)}, in: []arg{f(2)}, want: concatenated(0)},
)

var _ = refuse(
	refusal{"may differ on axis 0 alone", "Concat", axisIs(0), []arg{f(2, 3), f(2, 2)}, 1},
	refusal{"axis 2 does not exist", "Concat", axisIs(2), []arg{f(2), f(2)}, 1},
)

func concatenated(axis int) func([]array) []array {
	return func(in []array) []array {
		shape := append([]int(nil), in[0].shape...)
		for _, a := range in[1:] {
			shape[axis] += a.shape[axis]
		}
		return []array{filled(shape, func(at []int) float64 {
			x := append([]int(nil), at...)
			for _, a := range in {
				if x[axis] < a.shape[axis] {
					return a.at(x)
				}
				x[axis] -= a.shape[axis]
			}
			return math.NaN()
		})}
	}
}
