package op_test

var _ = add(
	sample{name: "Optional", op: "Optional", in: []arg{f(2, 3)}, want: func(in []array) []array { return in }},
	sample{name: "Optional, bool", op: "Optional", in: []arg{bools(4)}, want: func(in []array) []array { return in }},
	sample{name: "OptionalGetElement", op: "OptionalGetElement", in: []arg{f(2, 3)}, want: func(in []array) []array { return in }},
	sample{name: "OptionalHasElement", op: "OptionalHasElement", in: []arg{f(2)}, want: results(array{nil, []float64{1}})},
	sample{name: "OptionalHasElement, nothing", op: "OptionalHasElement", in: []arg{none}, want: results(array{nil, []float64{0}})},
)

var _ = withoutGradient("OptionalHasElement")

var _ = refuse(
	refusal{"it has 0 inputs, but takes 1", "Optional", nil, nil, 1},
)
