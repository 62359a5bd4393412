package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "NonMaxSuppression", op: "NonMaxSuppression", in: []arg{four, scored(1, 0.5, 0.75, 0.75, 0.25), list(3), reals(0.5), reals(0.25)},
		want: results(array{[]int{2, 3}, []float64{0, 0, 1, 0, 0, 2}})},
	sample{name: "NonMaxSuppression, classes", op: "NonMaxSuppression", in: []arg{four, scored(2, 4, 3, 2, 1, 1, 2, 3, 4), list(2), reals(0.9)},
		want: results(array{[]int{4, 3}, []float64{0, 0, 0, 0, 0, 1, 0, 1, 3, 0, 1, 2}})},
	sample{name: "NonMaxSuppression, none", op: "NonMaxSuppression", in: []arg{four, scored(1, 1, 2, 3, 4)}, want: results(array{[]int{0, 3}, nil})},
	sample{name: "NonMaxSuppression, centres", op: "NonMaxSuppression", attrs: []graph.Attr{graph.Int("center_point_box", 1)},
		in:   []arg{boxed(0.5, 0.5, 1, 1, 0.5, 0.6, 1, 1, 0.5, 9, 1, 1), scored(1, 3, 2, 1), list(9), reals(0.5)},
		want: results(array{[]int{2, 3}, []float64{0, 0, 0, 0, 0, 2}})},
)

var _ = withoutGradient("NonMaxSuppression")

var _ = refuse(
	refusal{"must be constant", "NonMaxSuppression", nil, []arg{f(1, 4, 4), f(1, 1, 4)}, 1},
	refusal{"should be float32 [batch count 4]", "NonMaxSuppression", nil, []arg{four, scored(1, 1, 2, 3)}, 1},
)

// boxed are boxes of a batch, four numbers each.
func boxed(v ...float64) arg {
	return fixed(given(tensor.Float32, []int{1, len(v) / 4, 4}, v...))
}

func scored(classes int, v ...float64) arg {
	return fixed(given(tensor.Float32, []int{1, classes, len(v) / classes}, v...))
}

// The second box overlaps the first by 9/11, the third by nothing, the fourth
// has no area.
var four = boxed(0, 0, 1, 1, 1, 1.1, 0, 0.1, 0, 10, 1, 11, 5, 5, 5, 5)
