package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Constant", op: "Constant", attrs: []graph.Attr{graph.Tensor("value", tensor.Must(tensor.From(tensor.Shape{2}, []float32{1, 2})))}, want: vector(1, 2)},
	sample{name: "Constant, integers", op: "Constant", attrs: []graph.Attr{graph.Ints("value_ints", 3, -4)}, want: vector(3, -4)},
	sample{name: "Constant, an integer", op: "Constant", attrs: []graph.Attr{graph.Int("value_int", 3)}, want: func([]array) []array { return []array{{nil, []float64{3}}} }},
	sample{name: "Constant, a float", op: "Constant", attrs: []graph.Attr{graph.Float("value_float", 0.5)}, want: func([]array) []array { return []array{{nil, []float64{0.5}}} }},
	sample{name: "Constant, floats", op: "Constant", attrs: []graph.Attr{{Name: "value_floats", Kind: graph.AttrFloats, Floats: []float32{0.5, 2}}}, want: vector(0.5, 2)},
	sample{name: "ConstantOfShape", op: "ConstantOfShape", attrs: []graph.Attr{graph.Tensor("value", tensor.Must(tensor.From(tensor.Shape{1}, []int64{7})))}, in: []arg{list(2)}, want: vector(7, 7)},
	sample{name: "ConstantOfShape, zeros", op: "ConstantOfShape", in: []arg{list(2)}, want: vector(0, 0)},
	sample{name: "Identity", op: "Identity", in: []arg{f(2, 3)}, want: become(2, 3)},
)

var _ = withoutGradient("Constant", "ConstantOfShape")

var _ = refuse(
	refusal{"is not between 0 and 2^40", "ConstantOfShape", nil, []arg{list(-1)}, 1},
	refusal{"exactly one value", "Constant", nil, nil, 1},
	refusal{"its value is missing", "Constant", []graph.Attr{graph.Tensor("value", nil)}, nil, 1},
	refusal{"should have one", "ConstantOfShape", []graph.Attr{graph.Tensor("value", tensor.Must(tensor.New(tensor.Int32, tensor.Shape{0})))}, []arg{list(1)}, 1},
)
