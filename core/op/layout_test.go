package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// become is the meaning of operators that give their first input another shape.
func become(shape ...int) func([]array) []array {
	return func(in []array) []array { return []array{{shape, in[0].v}} }
}

// transposed is the meaning of Transpose.
func transposed(perm ...int) func([]array) []array {
	return func(in []array) []array {
		shape := make([]int, len(perm))
		for i, p := range perm {
			shape[i] = in[0].shape[p]
		}
		return []array{filled(shape, func(at []int) float64 {
			from := make([]int, len(perm))
			for i, p := range perm {
				from[p] = at[i]
			}
			return in[0].at(from)
		})}
	}
}

func expanded(shape ...int) func([]array) []array {
	return func(in []array) []array { return []array{filled(shape, in[0].at)} }
}

func vector(v ...float64) func([]array) []array {
	return func([]array) []array { return []array{{[]int{len(v)}, v}} }
}

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
	sample{name: "Transpose", op: "Transpose", in: []arg{f(2, 3, 4)}, want: transposed(2, 1, 0)},
	sample{name: "Transpose, in an order", op: "Transpose", attrs: []graph.Attr{graph.Ints("perm", 1, 2, 0)}, in: []arg{f(2, 3, 4)}, want: transposed(1, 2, 0)},
	sample{name: "Expand", op: "Expand", in: []arg{f(3, 1), list(2, 1, 4)}, want: expanded(2, 3, 4)},
	sample{name: "Expand, bool", op: "Expand", in: []arg{bools(2), list(3, 1)}, want: expanded(3, 2)},

	sample{name: "Constant", op: "Constant", attrs: []graph.Attr{graph.Tensor("value", tensor.Must(tensor.From(tensor.Shape{2}, []float32{1, 2})))}, want: vector(1, 2)},
	sample{name: "Constant, integers", op: "Constant", attrs: []graph.Attr{graph.Ints("value_ints", 3, -4)}, want: vector(3, -4)},
	sample{name: "Constant, an integer", op: "Constant", attrs: []graph.Attr{graph.Int("value_int", 3)}, want: func([]array) []array { return []array{{nil, []float64{3}}} }},
	sample{name: "Constant, a float", op: "Constant", attrs: []graph.Attr{graph.Float("value_float", 0.5)}, want: func([]array) []array { return []array{{nil, []float64{0.5}}} }},
	sample{name: "Constant, floats", op: "Constant", attrs: []graph.Attr{{Name: "value_floats", Kind: graph.AttrFloats, Floats: []float32{0.5, 2}}}, want: vector(0.5, 2)},
	sample{name: "ConstantOfShape", op: "ConstantOfShape", attrs: []graph.Attr{graph.Tensor("value", tensor.Must(tensor.From(tensor.Shape{1}, []int64{7})))}, in: []arg{list(2)}, want: vector(7, 7)},
	sample{name: "ConstantOfShape, zeros", op: "ConstantOfShape", in: []arg{list(2)}, want: vector(0, 0)},
	sample{name: "Identity", op: "Identity", in: []arg{f(2, 3)}, want: become(2, 3)},
)
