package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Unique", op: "Unique", outs: 4, in: []arg{fixed(given(tensor.Float32, []int{2, 3}, 2, 1, 1, 3, 4, 3))},
		want: results(listed(1, 2, 3, 4), listed(1, 0, 3, 4), listed(1, 0, 0, 2, 3, 2), listed(2, 1, 2, 1))},
	sample{name: "Unique, as they come", op: "Unique", attrs: []graph.Attr{graph.Int("sorted", 0)}, outs: 4, in: []arg{fixed(given(tensor.Int8, []int{6}, 2, 1, 1, 3, 4, 3))},
		want: results(listed(2, 1, 3, 4), listed(0, 1, 3, 4), listed(0, 1, 1, 2, 3, 2), listed(1, 2, 2, 1))},
	sample{name: "Unique, parts", op: "Unique", attrs: axisIs(1), outs: 4, in: []arg{fixed(given(tensor.Int64, []int{2, 4, 2}, 1, 1, 0, 1, 2, 1, 0, 1, 1, 1, 0, 1, 2, 1, 0, 1))},
		want: results(array{[]int{2, 3, 2}, []float64{0, 1, 1, 1, 2, 1, 0, 1, 1, 1, 2, 1}}, listed(1, 0, 2), listed(1, 0, 2, 0), listed(2, 1, 1))},
)

var _ = withoutGradient("Unique")

var _ = refuse(
	refusal{"must be constant", "Unique", nil, []arg{f(2)}, 1},
)
