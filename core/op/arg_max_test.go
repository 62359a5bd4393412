package op_test

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "ArgMax", op: "ArgMax", attrs: axisIs(-1), in: []arg{ints(tensor.Int64, 0, 3, 4, 6)},
		want: reduced(true, func(x []float64) float64 { return float64(slices.Index(x, greatest(x))) }, 1)},
	sample{name: "ArgMax, last of equals", op: "ArgMax", attrs: append(keepdims(0), graph.Int("select_last_index", 1)), in: []arg{ints(tensor.Int32, 0, 3, 6, 4)},
		want: reduced(false, func(x []float64) float64 {
			slices.Reverse(x)
			return float64(len(x) - 1 - slices.Index(x, greatest(x)))
		}, 0)},
	sample{name: "ArgMin", op: "ArgMin", attrs: axisIs(-1), in: []arg{f(4, 6)}, want: reduced(true, func(x []float64) float64 { return float64(slices.Index(x, least(x))) }, 1)},
	sample{name: "ArgMin, uint8, last of equals", op: "ArgMin", attrs: append(keepdims(0), graph.Int("select_last_index", 1)), in: []arg{ints(tensor.Uint8, 0, 3, 6, 4)},
		want: reduced(false, func(x []float64) float64 {
			slices.Reverse(x)
			return float64(len(x) - 1 - slices.Index(x, least(x)))
		}, 0)},
)

var _ = withoutGradient("ArgMax", "ArgMin")

var _ = refuse(
	refusal{"axis 0 does not exist", "ArgMax", nil, []arg{f()}, 1},
)
