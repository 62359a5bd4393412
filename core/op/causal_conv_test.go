package op_test

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
)

var _ = add(
	sample{name: "CausalConvWithState", op: "CausalConvWithState", outs: 2, in: []arg{f(2, 3, 4), f(3, 1, 3), f(3), f(2, 3, 2)}, want: remembering(func(x float64) float64 { return x })},
	sample{name: "CausalConvWithState, short", op: "CausalConvWithState", attrs: []graph.Attr{graph.String("activation", "silu")}, outs: 2, in: []arg{f(1, 2, 1), f(2, 1, 4)},
		want: remembering(func(x float64) float64 { return x * sigmoid(x) })},
)

var _ = refuse(
	refusal{"past_state has shape", "CausalConvWithState", nil, []arg{f(1, 2, 3), f(2, 1, 3), none, f(1, 2, 3)}, 1},
	refusal{`activation "relu" is not supported`, "CausalConvWithState", []graph.Attr{graph.String("activation", "relu")}, []arg{f(1, 2, 3), f(2, 1, 3)}, 1},
)

// remembering is CausalConvWithState.
func remembering(act func(float64) float64) func([]array) []array {
	return func(in []array) []array {
		in = append(slices.Clone(in), make([]array, 4-len(in))...)
		back := in[1].shape[2] - 1
		x := filled([]int{in[0].shape[0], in[0].shape[1], in[0].shape[2] + back}, func(at []int) float64 {
			switch {
			case at[2] >= back:
				return in[0].at([]int{at[0], at[1], at[2] - back})
			case in[3].shape != nil:
				return in[3].at(at)
			}
			return 0
		})
		state := picked([]int{x.shape[0], x.shape[1], back}, 0, func(at []int) ([]int, bool) { at[2] += in[0].shape[2]; return at, true })([]array{x})
		return []array{filled(in[0].shape, func(at []int) float64 {
			sum := 0.0
			for j := range back + 1 {
				sum += x.at([]int{at[0], at[1], at[2] + j}) * in[1].at([]int{at[1], 0, j})
			}
			if in[2].shape != nil {
				sum += in[2].v[at[1]]
			}
			return act(sum)
		}), state[0]}
	}
}
