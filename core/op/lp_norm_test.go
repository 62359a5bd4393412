package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "LpNormalization", op: "LpNormalization", in: []arg{f(3, 4)}, want: alongAxis(1, divided(2))},
	sample{name: "LpNormalization, by absolute values", op: "LpNormalization", attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("p", 1)}, in: []arg{f(3, 4)}, want: alongAxis(0, divided(1))},
	sample{name: "LpNormalization of zeros", op: "LpNormalization", in: []arg{fixed(given(tensor.Float64, []int{2, 2}, 0, 0, 3, 4))}, want: alongAxis(1, divided(2))},
)

var _ = refuse(
	refusal{"p is 3, but should be 1 or 2", "LpNormalization", []graph.Attr{graph.Int("p", 3)}, []arg{f(2)}, 1},
)

// alongAxis groups by all coordinates but one.
func alongAxis(axis int, f func(v float64, all []float64) float64) func([]array) []array {
	return func(in []array) []array {
		strides := tensor.Shape(in[0].shape).Strides()
		strides[axis] = 0
		return []array{grouped(in[0], func(at []int) (i int) {
			for d, s := range strides {
				i += at[d] * s
			}
			return i
		}, f)}
	}
}

func divided(p int) func(v float64, all []float64) float64 {
	return func(v float64, all []float64) float64 {
		if n := normOf(p)(all); n != 0 {
			return v / n
		}
		return 0
	}
}
