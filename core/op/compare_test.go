package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Equal", op: "Equal", in: []arg{few(3, 4), few(4)}, want: truth(func(x, y float64) bool { return x == y })},
	sample{name: "Equal, bool", op: "Equal", in: []arg{bools(6), bools(6)}, want: truth(func(x, y float64) bool { return x == y })},
	sample{name: "Less", op: "Less", in: []arg{few(9), few(9)}, want: truth(func(x, y float64) bool { return x < y })},
	sample{name: "Less, NaN", op: "Less", in: []arg{given(tensor.Float32, []int{2}, math.NaN(), 1), given(tensor.Float32, nil, 2)}, want: truth(func(x, y float64) bool { return x < y })},
	sample{name: "LessOrEqual", op: "LessOrEqual", in: []arg{few(9), few(9)}, want: truth(func(x, y float64) bool { return x <= y })},
	sample{name: "Greater", op: "Greater", in: []arg{few(3, 4), few(4)}, want: truth(func(x, y float64) bool { return x > y })},
	sample{name: "GreaterOrEqual", op: "GreaterOrEqual", in: []arg{few(9), few(9)}, want: truth(func(x, y float64) bool { return x >= y })},
	sample{name: "IsNaN", op: "IsNaN", in: []arg{odd}, want: truth(func(x, _ float64) bool { return math.IsNaN(x) })},
	sample{name: "IsInf", op: "IsInf", in: []arg{odd}, want: truth(func(x, _ float64) bool { return math.IsInf(x, 0) })},
	sample{name: "IsInf, above", op: "IsInf", attrs: []graph.Attr{graph.Int("detect_negative", 0)}, in: []arg{odd}, want: truth(func(x, _ float64) bool { return math.IsInf(x, 1) })},
	sample{name: "IsInf, below", op: "IsInf", attrs: []graph.Attr{graph.Int("detect_positive", 0)}, in: []arg{as(tensor.Float16, odd)}, want: truth(func(x, _ float64) bool { return math.IsInf(x, -1) })},
	sample{name: "IsInf, neither", op: "IsInf", attrs: []graph.Attr{graph.Int("detect_negative", 0), graph.Int("detect_positive", 0)}, in: []arg{odd}, want: truth(func(float64, float64) bool { return false })},
)

var _ = withoutGradient("Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual")
