package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Activations: Relu and its smooth relatives.

var _ = define(
	lower.Operator{Name: "Tanh", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.TanhF),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			y := c.Outputs[0]
			return []string{b.Op("Mul", dy[0], b.Op("Sub", b.Scalar(1), b.Op("Mul", y, y)))}, nil
		}},
	lower.Operator{Name: "Relu", Min: 1, Max: 1, Outputs: 1,
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			zero := e.Const(scalarOf(c.In[0].Type, 0))
			return one(e.Map(tensor.Max, c.In[0].Type, c.In[0], zero))
		},
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			zero := b.Scalar(0)
			return []string{b.Op("Where", b.Op("Greater", c.Inputs[0], zero), dy[0], zero)}, nil
		}},
	// 1 / (1 + e⁻ˣ)
	lower.Operator{Name: "Sigmoid", Min: 1, Max: 1, Outputs: 1,
		Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
			e := b.Op("Exp", b.Op("Neg", c.Inputs[0]))
			return []string{b.Op("Reciprocal", b.Op("Add", e, floatLike(c, b, 1)))}, nil
		}),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			y := c.Outputs[0]
			slope := b.Op("Mul", y, b.Op("Sub", b.Scalar(1), y))
			return []string{b.Op("Mul", dy[0], slope)}, nil
		}},
	lower.Operator{Name: "Gelu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.String("approximate", "none")}, Expand: inFloat32(expandGelu)},
	lower.Operator{Name: "LeakyRelu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(0.01)},
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			return whereNegative(c, b, x, b.Op("Mul", x, attrLike(c, b, "alpha")), x)
		})},
	lower.Operator{Name: "PRelu", Min: 2, Max: 2, Outputs: 1, Expand: inFloat32(expandPRelu)},
	lower.Operator{Name: "ThresholdedRelu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(1)},
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			return b.Op("Where", b.Op("Greater", x, attrLike(c, b, "alpha")), x, floatLike(c, b, 0))
		})},
	// α·(eˣ − 1) below 0
	lower.Operator{Name: "Elu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(1)},
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			return whereNegative(c, b, x, b.Op("Mul", expm1(c, b, negativePart(c, b, x)), attrLike(c, b, "alpha")), x)
		})},
	// γ·Elu(x)
	lower.Operator{Name: "Selu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(1.67326319217681884765625), graph.Float("gamma", 1.05070102214813232421875)},
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			bend := b.Op("Mul", expm1(c, b, negativePart(c, b, x)), attrLike(c, b, "alpha"))
			return b.Op("Mul", whereNegative(c, b, x, bend, x), attrLike(c, b, "gamma"))
		})},
	// α·(e^(x/α) − 1) below 0
	lower.Operator{Name: "Celu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(1)},
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			alpha := attrLike(c, b, "alpha")
			return whereNegative(c, b, x, b.Op("Mul", expm1(c, b, b.Op("Div", negativePart(c, b, x), alpha)), alpha), x)
		})},
	lower.Operator{Name: "HardSigmoid", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(0.2), graph.Float("beta", 0.5)},
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			line := b.Op("Add", b.Op("Mul", x, attrLike(c, b, "alpha")), attrLike(c, b, "beta"))
			return b.Op("Max", b.Op("Min", line, floatLike(c, b, 1)), floatLike(c, b, 0))
		})},
	lower.Operator{Name: "HardSwish", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			return b.Op("Mul", x, b.With(alphaIs(1.0/6), graph.Float("beta", 0.5)).Op("HardSigmoid", x))
		})},
	lower.Operator{Name: "Swish", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(1)},
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			inner := x
			if c.Float("alpha") != 1 {
				inner = b.Op("Mul", x, attrLike(c, b, "alpha"))
			}
			return b.Op("Mul", x, b.Op("Sigmoid", inner))
		})},
	// log(1 + eˣ), as max(x, 0) + log(1 + e^−|x|)
	lower.Operator{Name: "Softplus", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			tail := log1p(c, b, b.Op("Exp", b.Op("Neg", b.Op("Abs", x))))
			return b.Op("Add", b.Op("Max", x, floatLike(c, b, 0)), tail)
		}),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string { return b.Op("Sigmoid", x) })},
	lower.Operator{Name: "Softsign", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			return b.Op("Div", x, b.Op("Add", b.Op("Abs", x), floatLike(c, b, 1)))
		}),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string {
			d := b.Op("Add", b.Op("Abs", x), floatLike(c, b, 1))
			return b.Op("Reciprocal", b.Op("Mul", d, d))
		})},
	lower.Operator{Name: "Mish", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			return b.Op("Mul", x, b.Op("Tanh", b.Op("Softplus", x)))
		})},
	lower.Operator{Name: "Shrink", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Float("bias", 0), graph.Float("lambd", 0.5)}, Expand: inFloat32(expandShrink)},
)

// expandGelu writes ½x·(1 + g), where g is erf(x/√2), or, approximated,
// tanh(√(2/π)·(x + 0.044715·x³)).
func expandGelu(c *lower.Call, b *graph.Builder) ([]string, error) {
	if err := wantFloats(c); err != nil {
		return nil, err
	}
	x := c.Inputs[0]
	var g string
	switch a := c.Text("approximate"); a {
	case "none":
		g = b.Op("Erf", b.Op("Mul", x, floatLike(c, b, 1/math.Sqrt2)))
	case "tanh":
		cube := b.Op("Mul", b.Op("Mul", x, x), x)
		inner := b.Op("Add", x, b.Op("Mul", cube, floatLike(c, b, 0.044715)))
		g = b.Op("Tanh", b.Op("Mul", inner, floatLike(c, b, math.Sqrt2/math.SqrtPi)))
	default:
		return nil, fmt.Errorf("approximation %q is not supported; use none or tanh", a)
	}
	half := b.Op("Mul", x, floatLike(c, b, 0.5))
	return []string{b.Op("Mul", half, b.Op("Add", g, floatLike(c, b, 1)))}, nil
}

func alphaIs(v float32) graph.Attr { return graph.Float("alpha", v) }

// whereNegative is y where x is below 0, otherwise z.
func whereNegative(c *lower.Call, b *graph.Builder, x, y, z string) string {
	return b.Op("Where", b.Op("Less", x, scalarLike(c, b, 0)), y, z)
}

// negativePart is min(x, 0), so that what is not chosen does not overflow.
func negativePart(c *lower.Call, b *graph.Builder, x string) string {
	return b.Op("Min", x, floatLike(c, b, 0))
}

// expm1 is eᵗ − 1 = tanh(t/2)·(eᵗ + 1), accurate near 0.
func expm1(c *lower.Call, b *graph.Builder, t string) string {
	half := b.Op("Tanh", b.Op("Mul", t, floatLike(c, b, 0.5)))
	return b.Op("Mul", half, b.Op("Add", b.Op("Exp", t), floatLike(c, b, 1)))
}

func expandPRelu(c *lower.Call, b *graph.Builder) ([]string, error) {
	if err := wantOnto(c, 1); err != nil {
		return nil, err
	}
	x := c.Inputs[0]
	return []string{whereNegative(c, b, x, b.Op("Mul", x, c.Inputs[1]), x)}, nil
}

// expandShrink writes x + bias below −λ, x − bias above λ, and 0 between. On
// integers λ and the bias are truncated, and nothing unsigned is below −λ.
func expandShrink(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, t := c.Inputs[0], c.In[0].Type
	bias, lambda := float64(c.Float("bias")), float64(c.Float("lambd"))
	constant := func(v float64) string { return b.Const(floatOf(t, v)) }
	if !t.Float() {
		for _, v := range []float64{bias, lambda} {
			if !(math.Abs(v) < 1<<31) {
				return nil, fmt.Errorf("bias %v or lambd %v is out of range for %v", bias, lambda, t)
			}
		}
		constant = func(v float64) string { return scalarLike(c, b, int(v)) }
	}
	y := b.Op("Where", b.Op("Greater", x, constant(lambda)), b.Op("Sub", x, constant(bias)), scalarLike(c, b, 0))
	if !t.Unsigned() {
		y = b.Op("Where", b.Op("Less", x, constant(-lambda)), b.Op("Add", x, constant(bias)), y)
	}
	return []string{y}, nil
}
