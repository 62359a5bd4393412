package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
)

func elementwise(name string, in arg, f func(float64) float64, attrs ...graph.Attr) sample {
	return sample{name: name, op: name, attrs: attrs, in: []arg{in}, want: pointwise(func(x []float64) float64 { return f(x[0]) })}
}

func gelu(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }

func geluTanh(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

var _ = add(
	elementwise("Exp", f(2, 5), math.Exp),
	elementwise("Log", positive(2, 5), math.Log),
	elementwise("Tanh", f(2, 5), math.Tanh),
	elementwise("Erf", f(2, 5), math.Erf),
	elementwise("Relu", f(2, 5), func(x float64) float64 { return max(x, 0) }),
	elementwise("Sigmoid", f(2, 5), func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
	elementwise("Gelu", f(2, 5), gelu),
	sample{name: "Gelu by tanh", op: "Gelu", attrs: []graph.Attr{graph.String("approximate", "tanh")}, in: []arg{f(9)},
		want: pointwise(func(x []float64) float64 { return geluTanh(x[0]) })},
)
