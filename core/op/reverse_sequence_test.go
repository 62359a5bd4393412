package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "ReverseSequence", op: "ReverseSequence", in: []arg{f(4, 3, 2), given(tensor.Int64, []int{3}, 4, 0, 3)}, want: reversed(0, 1)},
	sample{name: "ReverseSequence, batch first", op: "ReverseSequence", attrs: []graph.Attr{graph.Int("batch_axis", 0), graph.Int("time_axis", 1)},
		in: []arg{f(3, 5), given(tensor.Int64, []int{3}, 5, 2, 1)}, want: reversed(1, 0)},
)

var _ = refuse(
	refusal{"should be axes 0 and 1", "ReverseSequence", []graph.Attr{graph.Int("time_axis", 2)}, []arg{f(2, 2, 2), few(2)}, 1},
	refusal{"should be 3 integers", "ReverseSequence", nil, []arg{f(2, 3), few(2)}, 1},
)

func reversed(time, batch int) func([]array) []array {
	return func(in []array) []array {
		return picked(in[0].shape, 0, func(at []int) ([]int, bool) {
			if n := int(in[1].v[at[batch]]); at[time] < n {
				at[time] = n - 1 - at[time]
			}
			return at, true
		})(in)
	}
}
