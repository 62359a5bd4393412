package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	elementwise("Tanh", f(2, 5), math.Tanh),
	elementwise("Relu", f(2, 5), func(x float64) float64 { return max(x, 0) }),
	elementwise("Sigmoid", f(2, 5), func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
	elementwise("Gelu", f(2, 5), gelu),
	sample{name: "Gelu by tanh", op: "Gelu", attrs: []graph.Attr{graph.String("approximate", "tanh")}, in: []arg{f(9)},
		want: pointwise(func(x []float64) float64 { return geluTanh(x[0]) })},
	elementwise("LeakyRelu", f(9), bent(func(x float64) float64 { return 0.01 * x })),
	another("steeper", elementwise("LeakyRelu", f(9), bent(func(x float64) float64 { return 0.25 * x }), alpha(0.25))),
	another("float16", elementwise("LeakyRelu", float16s, bent(func(x float64) float64 { return 0.01 * x }))),
	sample{name: "PRelu", op: "PRelu", in: []arg{f(2, 3, 4), f(3, 1)}, want: pointwise(slanted)},
	sample{name: "PRelu, int32", op: "PRelu", in: []arg{ints(tensor.Int32, -9, 9, 6), ints(tensor.Int32, -3, 3, 6)}, want: pointwise(slanted)},
	sample{name: "PRelu, bfloat16", op: "PRelu", in: []arg{as(tensor.BFloat16, f(6)), as(tensor.BFloat16, f(1))}, want: pointwise(slanted)},
	elementwise("ThresholdedRelu", f(9), func(x float64) float64 {
		if x > float64(float32(0.7505)) {
			return x
		}
		return 0
	}, alpha(0.7505)),
	elementwise("Elu", f(9), bent(math.Expm1)),
	another("steeper", elementwise("Elu", f(9), bent(func(x float64) float64 { return 2 * math.Expm1(x) }), alpha(2))),
	another("float64", elementwise("Elu", as(tensor.Float64, f(9)), bent(math.Expm1))),
	elementwise("Selu", f(9), func(x float64) float64 {
		return 1.05070102214813232421875 * bent(func(x float64) float64 { return 1.67326319217681884765625 * math.Expm1(x) })(x)
	}),
	another("other constants", elementwise("Selu", f(9), func(x float64) float64 {
		return 3 * bent(func(x float64) float64 { return 2 * math.Expm1(x) })(x)
	}, alpha(2), graph.Float("gamma", 3))),
	elementwise("Celu", f(9), bent(func(x float64) float64 { return 2 * math.Expm1(x/2) }), alpha(2)),
	elementwise("HardSigmoid", f(9), hardSigmoid(float64(float32(0.2)), 0.5)),
	another("steeper", elementwise("HardSigmoid", f(9), hardSigmoid(0.5, float64(float32(0.6001))), alpha(0.5), graph.Float("beta", 0.6001))),
	elementwise("HardSwish", within(-5, 5, 9), func(x float64) float64 { return x * hardSigmoid(1.0/6, 0.5)(x) }),
	elementwise("Swish", f(9), func(x float64) float64 { return x * sigmoid(x) }),
	another("steeper", elementwise("Swish", f(9), func(x float64) float64 { return x * sigmoid(1.5*x) }, alpha(1.5))),
	elementwise("Softplus", f(9), softplus),
	elementwise("Softsign", f(9), func(x float64) float64 { return x / (1 + math.Abs(x)) }),
	elementwise("Mish", f(9), func(x float64) float64 { return x * math.Tanh(softplus(x)) }),
	another("float16", elementwise("Mish", float16s, func(x float64) float64 { return x * math.Tanh(softplus(x)) })),
	sample{name: "Shrink", op: "Shrink", attrs: []graph.Attr{graph.Float("lambd", 0.7505), graph.Float("bias", 0.25)}, in: []arg{f(9)}, want: shrink(float64(float32(0.7505)), 0.25)},
	sample{name: "Shrink, default", op: "Shrink", in: []arg{f(9)}, want: shrink(0.5, 0)},
	sample{name: "Shrink, int8", op: "Shrink", attrs: []graph.Attr{graph.Float("lambd", 1.5), graph.Float("bias", 1)}, in: []arg{ints(tensor.Int8, -4, 4, 9)}, want: shrink(1.5, 1)},
	sample{name: "Shrink, uint8", op: "Shrink", attrs: []graph.Attr{graph.Float("lambd", 1.5), graph.Float("bias", 1)}, in: []arg{ints(tensor.Uint8, 0, 4, 9)}, want: shrink(1.5, 1)},
)

var _ = refuse(
	refusal{`attribute "alpha" is not supported`, "Relu", []graph.Attr{graph.Float("alpha", 1)}, []arg{f(1)}, 1},
	refusal{"does not broadcast to [2]", "PRelu", nil, []arg{f(2), f(3, 2)}, 1},
	refusal{"out of range for int8", "Shrink", []graph.Attr{graph.Float("bias", 1e20)}, []arg{as(tensor.Int8, few(2))}, 1},
	refusal{`approximation "fast" is not supported`, "Gelu", []graph.Attr{graph.String("approximate", "fast")}, []arg{f(2)}, 1},
)

func elementwise(name string, in arg, f func(float64) float64, attrs ...graph.Attr) sample {
	return sample{name: name, op: name, attrs: attrs, in: []arg{in}, want: pointwise(func(x []float64) float64 { return f(x[0]) })}
}

func gelu(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }

func geluTanh(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

func alpha(v float32) graph.Attr { return graph.Float("alpha", v) }

// bent is f below 0, x above.
func bent(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		if x < 0 {
			return f(x)
		}
		return x
	}
}

func hardSigmoid(a, b float64) func(float64) float64 {
	return func(x float64) float64 { return max(0, min(1, a*x+b)) }
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softplus(x float64) float64 { return math.Log1p(math.Exp(x)) }

func shrink(lambda, bias float64) func([]array) []array {
	return pointwise(func(x []float64) float64 {
		switch {
		case x[0] < -lambda:
			return x[0] + bias
		case x[0] > lambda:
			return x[0] - bias
		}
		return 0
	})
}

func slanted(x []float64) float64 {
	if x[0] < 0 {
		return x[0] * x[1]
	}
	return x[0]
}

// another is a second sample of an operator of one input.
func another(what string, s sample) sample {
	s.name += ", " + what
	return s
}

var (
	float16s = as(tensor.Float16, f(6))
	below    = given(tensor.Float32, nil, -0.7505)
	above    = given(tensor.Float32, nil, 0.5005)
)
