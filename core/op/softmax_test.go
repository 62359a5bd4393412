package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Softmax", op: "Softmax", in: []arg{f(3, 5)}, want: softmax(1)},
	sample{name: "Softmax, first axis", op: "Softmax", attrs: axisIs(0), in: []arg{f(3, 5)}, want: softmax(0)},
	sample{name: "LogSoftmax", op: "LogSoftmax", in: []arg{f(3, 5)}, want: logSoftmax(1)},
	sample{name: "LogSoftmax, middle axis", op: "LogSoftmax", attrs: axisIs(1), in: []arg{f(2, 5, 3)}, want: logSoftmax(1)},
	sample{name: "Hardmax", op: "Hardmax", in: []arg{as(tensor.Float32, few(3, 5))}, want: hardmax(1)},
	sample{name: "Hardmax, first axis", op: "Hardmax", attrs: axisIs(0), in: []arg{as(tensor.Float16, few(5, 3))}, want: hardmax(0)},
)

var _ = withoutGradient("Hardmax")

var _ = refuse(
	refusal{`attribute "axis" is a float, but should be an integer`, "Softmax", []graph.Attr{graph.Float("axis", 1)}, []arg{f(1)}, 1},
	refusal{"axis -1 does not exist", "Softmax", nil, []arg{f()}, 1},
)

// logSoftmax is the meaning of LogSoftmax over an axis.
func logSoftmax(axis int) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		return []array{filled(x.shape, func(at []int) float64 {
			sum := 0.0
			other := slices.Clone(at)
			for other[axis] = range x.shape[axis] {
				sum += math.Exp(x.at(other))
			}
			return x.at(at) - math.Log(sum)
		})}
	}
}

func softmax(axis int) func([]array) []array {
	return func(in []array) []array {
		y := logSoftmax(axis)(in)
		for i, v := range y[0].v {
			y[0].v[i] = math.Exp(v)
		}
		return y
	}
}

func hardmax(axis int) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		return []array{filled(x.shape, func(at []int) float64 {
			other := slices.Clone(at)
			for other[axis] = range x.shape[axis] {
				if v := x.at(other); v > x.at(at) || v == x.at(at) && other[axis] < at[axis] {
					return 0
				}
			}
			return 1
		})}
	}
}
