package op_test

import "github.com/tally-network/tally/core/tensor"

var _ = add(
	sample{name: "Compress", op: "Compress", attrs: axisIs(1), in: []arg{f(2, 4), fixed(given(tensor.Bool, []int{3}, 1, 0, 1))},
		want: picked([]int{2, 2}, 0, func(at []int) ([]int, bool) { return []int{at[0], 2 * at[1]}, true })},
	sample{name: "Compress, all axes", op: "Compress", in: []arg{f(2, 3), fixed(given(tensor.Bool, []int{5}, 0, 1, 0, 0, 1))},
		want: picked([]int{2}, 0, func(at []int) ([]int, bool) { return []int{at[0], 1}, true })},
	sample{name: "NonZero", op: "NonZero", in: []arg{fixed(given(tensor.Float32, []int{2, 3}, 0, 5, 0, -1, 0, 2))}, want: results(array{[]int{2, 3}, []float64{0, 1, 1, 1, 0, 2}})},
	sample{name: "NonZero, a scalar", op: "NonZero", in: []arg{fixed(given(tensor.Bool, nil, 1))}, want: results(array{[]int{0, 1}, nil})},
)

var _ = withoutGradient("NonZero")

var _ = refuse(
	refusal{"must be constant", "NonZero", nil, []arg{f(2)}, 1},
	refusal{"must be constant", "Compress", nil, []arg{f(2), bools(2)}, 1},
	refusal{"selects element 2 of the 2", "Compress", axisIs(0), []arg{f(2, 3), fixed(given(tensor.Bool, []int{3}, 0, 0, 1))}, 1},
)

func listed(v ...float64) array { return array{[]int{len(v)}, v} }
