package op_test

import "github.com/tally-network/tally/core/graph"

var _ = add(
	sample{name: "CausalConvWithState", op: "CausalConvWithState", outs: 2, in: []arg{f(2, 3, 4), f(3, 1, 3), f(3), f(2, 3, 2)}, want: remembering(func(x float64) float64 { return x })},
	sample{name: "CausalConvWithState, short", op: "CausalConvWithState", attrs: []graph.Attr{graph.String("activation", "silu")}, outs: 2, in: []arg{f(1, 2, 1), f(2, 1, 4)},
		want: remembering(func(x float64) float64 { return x * sigmoid(x) })},
)

var _ = refuse(
	refusal{"past_state has shape", "CausalConvWithState", nil, []arg{f(1, 2, 3), f(2, 1, 3), none, f(1, 2, 3)}, 1},
	refusal{`activation "relu" is not supported`, "CausalConvWithState", []graph.Attr{graph.String("activation", "relu")}, []arg{f(1, 2, 3), f(2, 1, 3)}, 1},
)
