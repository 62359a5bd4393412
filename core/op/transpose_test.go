package op_test

import "github.com/tally-network/tally/core/graph"

var _ = add(
	sample{name: "Transpose", op: "Transpose", in: []arg{f(2, 3, 4)}, want: transposed(2, 1, 0)},
	sample{name: "Transpose, in an order", op: "Transpose", attrs: []graph.Attr{graph.Ints("perm", 1, 2, 0)}, in: []arg{f(2, 3, 4)}, want: transposed(1, 2, 0)},
)

var _ = refuse(
	refusal{"does not permute", "Transpose", []graph.Attr{graph.Ints("perm", 0, 0)}, []arg{f(2, 2)}, 1},
	refusal{"does not permute", "Transpose", []graph.Attr{graph.Ints("perm", 0, -1)}, []arg{f(2, 2)}, 1},
)

// transposed is the meaning of Transpose.
func transposed(perm ...int) func([]array) []array {
	return func(in []array) []array {
		shape := make([]int, len(perm))
		for i, p := range perm {
			shape[i] = in[0].shape[p]
		}
		return []array{filled(shape, func(at []int) float64 {
			from := make([]int, len(perm))
			for i, p := range perm {
				from[p] = at[i]
			}
			return in[0].at(from)
		})}
	}
}
