package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// numbers is an input of any type of numbers, between −4 and 4, or 0 and 8.
func numbers(t tensor.DType, shape ...int) arg {
	switch {
	case t.Float():
		return as(t, f(shape...))
	case t.Unsigned():
		return ints(t, 0, 8, shape...)
	}
	return ints(t, -4, 4, shape...)
}

// The operators of numbers, on every type.
var _ = func() bool {
	halves := []tensor.DType{tensor.Float16, tensor.BFloat16}
	floats := append(halves, tensor.Float64)
	for _, t := range tensor.DTypes {
		name := " on " + t.String()
		add(
			sample{name: "Where" + name, op: "Where", in: []arg{bools(2, 3), as(t, bools(3)), as(t, bools(2, 1))}, want: pointwise(choose)},
			sample{name: "Cast from" + name, op: "Cast", attrs: []graph.Attr{graph.Int("to", int(tensor.Float32))}, in: []arg{as(t, bools(4))},
				want: pointwise(func(x []float64) float64 { return x[0] })},
			sample{name: "Cast to" + name, op: "Cast", attrs: []graph.Attr{graph.Int("to", int(t))}, in: []arg{as(tensor.Float32, bools(4))},
				want: pointwise(func(x []float64) float64 { return x[0] })},
			sample{name: "Equal" + name, op: "Equal", in: []arg{as(t, bools(2, 3)), as(t, bools(3))}, want: truth(func(x, y float64) bool { return x == y })},
		)
		if !t.Numeric() || t == tensor.Float32 {
			continue
		}
		add(
			sample{name: "Mul" + name, op: "Mul", in: []arg{numbers(t, 2, 3), numbers(t, 3)}, want: pointwise(func(x []float64) float64 { return x[0] * x[1] })},
			sample{name: "Max" + name, op: "Max", in: []arg{numbers(t, 2, 3), numbers(t, 3)}, want: pointwise(func(x []float64) float64 { return max(x[0], x[1]) })},
			sample{name: "Less" + name, op: "Less", in: []arg{numbers(t, 9), numbers(t, 9)}, want: truth(func(x, y float64) bool { return x < y })},
			sample{name: "ReduceSum" + name, op: "ReduceSum", in: []arg{numbers(t, 2, 3), list(1)}, want: reduced(true, total, 1)},
			sample{name: "ReduceMax" + name, op: "ReduceMax", in: []arg{numbers(t, 2, 3), list(1)}, want: reduced(true, greatest, 1)},
		)
		if t.Size() > 2 || t.Float() {
			add(
				sample{name: "MatMul" + name, op: "MatMul", in: []arg{numbers(t, 2, 4), numbers(t, 4, 3)}, want: product},
				sample{name: "Gemm" + name, op: "Gemm", in: []arg{numbers(t, 2, 4), numbers(t, 4, 3), numbers(t, 3)}, want: scaledProduct(2, 3, false, false),
					attrs: []graph.Attr{graph.Float("alpha", 2), graph.Float("beta", 3)}},
			)
		}
	}
	for _, t := range floats {
		name := " on " + t.String()
		add(
			sample{name: "Reciprocal" + name, op: "Reciprocal", in: []arg{numbers(t, 4)}, want: power(-1)},
			sample{name: "Sqrt" + name, op: "Sqrt", in: []arg{as(t, positive(4))}, want: power(0.5)},
			sample{name: "Log" + name, op: "Log", in: []arg{as(t, positive(4))}, want: pointwise(func(x []float64) float64 { return math.Log(x[0]) })},
			sample{name: "Sigmoid" + name, op: "Sigmoid", in: []arg{numbers(t, 4)}, want: pointwise(func(x []float64) float64 { return 1 / (1 + math.Exp(-x[0])) })},
			sample{name: "Softmax" + name, op: "Softmax", in: []arg{numbers(t, 2, 4)}, want: softmax(1)},
			sample{name: "LogSoftmax" + name, op: "LogSoftmax", in: []arg{numbers(t, 2, 4)}, want: logSoftmax(1)},
			sample{name: "ReduceMean" + name, op: "ReduceMean", in: []arg{numbers(t, 2, 4)}, want: reduced(true, mean, 0, 1)},
		)
	}
	for _, t := range halves {
		add(sample{name: "Gelu on " + t.String(), op: "Gelu", in: []arg{numbers(t, 4)}, want: pointwise(func(x []float64) float64 { return gelu(x[0]) })})
	}
	return true
}()
