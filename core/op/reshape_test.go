package op_test

import "github.com/tally-network/tally/core/graph"

var _ = add(
	sample{name: "Shape", op: "Shape", in: []arg{f(3, 1, 4)}, want: vector(3, 1, 4)},
	sample{name: "Shape, a part", op: "Shape", attrs: []graph.Attr{graph.Int("start", -2), graph.Int("end", 99)}, in: []arg{f(3, 1, 4)}, want: vector(1, 4)},
	sample{name: "Shape, nothing", op: "Shape", attrs: []graph.Attr{graph.Int("start", 2), graph.Int("end", -3)}, in: []arg{f(3, 1, 4)}, want: vector()},
	sample{name: "Reshape", op: "Reshape", in: []arg{f(2, 6), list(3, 4)}, want: become(3, 4)},
	sample{name: "Reshape, splitting", op: "Reshape", in: []arg{f(2, 6), list(0, 1, 3, -1, 1)}, want: become(2, 1, 3, 2, 1)},
	sample{name: "Reshape, merging", op: "Reshape", in: []arg{f(2, 3, 2), list(-1)}, want: become(12)},
	sample{name: "Reshape to a scalar", op: "Reshape", in: []arg{f(1, 1), list()}, want: become()},
	sample{name: "Reshape of nothing", op: "Reshape", attrs: []graph.Attr{graph.Int("allowzero", 1)}, in: []arg{f(2, 0), list(0, 7)}, want: become(0, 7)},
	sample{name: "Flatten", op: "Flatten", in: []arg{f(2, 3, 2)}, want: become(2, 6)},
	sample{name: "Flatten, before the last", op: "Flatten", attrs: []graph.Attr{graph.Int("axis", -1)}, in: []arg{f(2, 3, 2)}, want: become(6, 2)},
	sample{name: "Flatten, all", op: "Flatten", attrs: []graph.Attr{graph.Int("axis", 0)}, in: []arg{f(2, 3)}, want: become(1, 6)},
	sample{name: "Squeeze", op: "Squeeze", in: []arg{f(1, 3, 1, 1), list(-1, 0)}, want: become(3, 1)},
	sample{name: "Squeeze, all", op: "Squeeze", in: []arg{f(1, 3, 1, 2)}, want: become(3, 2)},
	sample{name: "Unsqueeze", op: "Unsqueeze", in: []arg{f(3, 2), list(-1, 0, 2)}, want: become(1, 3, 1, 2, 1)},
	sample{name: "Size", op: "Size", in: []arg{f(2, 3, 4)}, want: func([]array) []array { return []array{{nil, []float64{24}}} }},
)

var _ = withoutGradient("Shape", "Size")

var _ = refuse(
	refusal{"must be constant", "Reshape", nil, []arg{f(2), few(1)}, 1},
	refusal{"should be a short list of integers", "Reshape", nil, []arg{f(2), fixed(f(1))}, 1},
	refusal{"does not fit the 6 elements", "Reshape", nil, []arg{f(6), list(4)}, 1},
	refusal{"does not fit the 6 elements", "Reshape", nil, []arg{f(6), list(-1, 4)}, 1},
	refusal{"has the extent -1", "Reshape", nil, []arg{f(6), list(-1, -1)}, 1},
	refusal{"copies axis 1", "Reshape", nil, []arg{f(6), list(6, 0)}, 1},
	refusal{"is not between 0 and 2^40", "Reshape", nil, []arg{f(6), list(1<<62, 1<<62)}, 1},
	refusal{"axes, limit 8", "Unsqueeze", nil, []arg{f(1, 1, 1, 1, 1, 1, 1), list(0, 1, 2)}, 1},
	refusal{"name one twice", "Unsqueeze", nil, []arg{f(1), list(0, 0)}, 1},
	refusal{"axis 3 does not exist", "Flatten", []graph.Attr{graph.Int("axis", 3)}, []arg{f(2)}, 1},
	refusal{"is not 1", "Squeeze", nil, []arg{f(2), list(0)}, 1},
)

// become is the meaning of operators that give their first input another shape.
func become(shape ...int) func([]array) []array {
	return func(in []array) []array { return []array{{shape, in[0].v}} }
}

func expanded(shape ...int) func([]array) []array {
	return func(in []array) []array { return []array{filled(shape, in[0].at)} }
}

func vector(v ...float64) func([]array) []array {
	return func([]array) []array { return []array{{[]int{len(v)}, v}} }
}
