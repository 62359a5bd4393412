package op_test

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Range", op: "Range", in: limits(tensor.Int64, 3, 12, 2), want: counts(3, 2, 5)},
	sample{name: "Range, down", op: "Range", in: limits(tensor.Int32, 3, -4, -3), want: counts(3, -3, 3)},
	sample{name: "Range, nothing", op: "Range", in: limits(tensor.Int16, 3, 3, 1), want: counts(3, 1, 0)},
	sample{name: "Range, of floats", op: "Range", in: limits(tensor.Float32, 1, 2, 0.25), want: counts(1, 0.25, 4)},
	sample{name: "Range, long", op: "Range", in: limits(tensor.Int64, -5000, 5000, 1), want: counts(-5000, 1, 10000)},
)

var _ = withoutGradient("Range")

var _ = refuse(
	refusal{"has no end", "Range", nil, limits(tensor.Int64, 0, 1, 0), 1},
	refusal{"has no end", "Range", nil, limits(tensor.Float32, 0, math.NaN(), 1), 1},
	refusal{"more than 2^40", "Range", nil, limits(tensor.Int64, 0, 1<<41, 1), 1},
	refusal{"must be constant", "Range", nil, []arg{few(), few(), few()}, 1},
)

// counts is n numbers from a start, a step apart.
func counts(start, step float64, n int) func([]array) []array {
	return func([]array) []array {
		return []array{filled([]int{n}, func(at []int) float64 { return start + step*float64(at[0]) })}
	}
}

func limits(t tensor.DType, v ...float64) (out []arg) {
	for _, x := range v {
		out = append(out, fixed(given(t, nil, x)))
	}
	return out
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
