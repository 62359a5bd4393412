package op_test

import "github.com/tally-network/tally/core/graph"

var _ = add(
	sample{name: "Split, evenly", op: "Split", attrs: []graph.Attr{graph.Int("num_outputs", 2)}, outs: 2, in: []arg{f(4, 3)}, want: parts(0, 2, 2)},
	sample{name: "Split, last smaller", op: "Split", attrs: []graph.Attr{graph.Int("axis", 1), graph.Int("num_outputs", 3)}, outs: 3, in: []arg{f(2, 7)}, want: parts(1, 3, 3, 1)},
	sample{name: "Split, by sizes", op: "Split", attrs: []graph.Attr{graph.Int("axis", -1)}, outs: 3, in: []arg{f(2, 5), list(1, 0, 4)}, want: parts(1, 1, 0, 4)},
)

var _ = refuse(
	refusal{"do not make up axis 0", "Split", nil, []arg{f(4), list(1, 2)}, 2},
	refusal{"do not make up axis 0", "Split", nil, []arg{f(4), list(5, -1)}, 2},
	refusal{"names 2 outputs, but gives 3", "Split", []graph.Attr{graph.Int("num_outputs", 3)}, []arg{f(4)}, 2},
)
