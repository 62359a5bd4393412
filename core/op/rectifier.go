package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Activations that bend at a threshold, and their smooth relatives.

func alphaIs(v float32) graph.Attr { return graph.Float("alpha", v) }

var _ = define(
	Def{Name: "Clip", Min: 1, Max: 3, Outputs: 1, Expand: expandClip, Settings: []int{1, 2}},
	Def{Name: "LeakyRelu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(0.01)},
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			return c.below(b, x, b.Op("Mul", x, c.attrReal(b, "alpha")), x)
		})},
	Def{Name: "PRelu", Min: 2, Max: 2, Outputs: 1, Expand: wide(expandPRelu)},
	Def{Name: "ThresholdedRelu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(1)},
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			return b.Op("Where", b.Op("Greater", x, c.attrReal(b, "alpha")), x, c.real(b, 0))
		})},
	// α·(eˣ − 1) below 0
	Def{Name: "Elu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(1)},
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			return c.below(b, x, b.Op("Mul", c.expm1(b, c.negative(b, x)), c.attrReal(b, "alpha")), x)
		})},
	// γ·Elu(x)
	Def{Name: "Selu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(1.67326319217681884765625), graph.Float("gamma", 1.05070102214813232421875)},
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			bend := b.Op("Mul", c.expm1(b, c.negative(b, x)), c.attrReal(b, "alpha"))
			return b.Op("Mul", c.below(b, x, bend, x), c.attrReal(b, "gamma"))
		})},
	// α·(e^(x/α) − 1) below 0
	Def{Name: "Celu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(1)},
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			alpha := c.attrReal(b, "alpha")
			return c.below(b, x, b.Op("Mul", c.expm1(b, b.Op("Div", c.negative(b, x), alpha)), alpha), x)
		})},
	Def{Name: "HardSigmoid", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(0.2), graph.Float("beta", 0.5)},
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			line := b.Op("Add", b.Op("Mul", x, c.attrReal(b, "alpha")), c.attrReal(b, "beta"))
			return b.Op("Max", b.Op("Min", line, c.real(b, 1)), c.real(b, 0))
		})},
	Def{Name: "HardSwish", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			return b.Op("Mul", x, b.With(alphaIs(1.0/6), graph.Float("beta", 0.5)).Op("HardSigmoid", x))
		})},
	Def{Name: "Swish", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{alphaIs(1)},
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			inner := x
			if c.float("alpha") != 1 {
				inner = b.Op("Mul", x, c.attrReal(b, "alpha"))
			}
			return b.Op("Mul", x, b.Op("Sigmoid", inner))
		})},
	// log(1 + eˣ), as max(x, 0) + log(1 + e^−|x|)
	Def{Name: "Softplus", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			tail := c.log1p(b, b.Op("Exp", b.Op("Neg", b.Op("Abs", x))))
			return b.Op("Add", b.Op("Max", x, c.real(b, 0)), tail)
		}),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string { return b.Op("Sigmoid", x) })},
	Def{Name: "Softsign", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			return b.Op("Div", x, b.Op("Add", b.Op("Abs", x), c.real(b, 1)))
		}),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string {
			d := b.Op("Add", b.Op("Abs", x), c.real(b, 1))
			return b.Op("Reciprocal", b.Op("Mul", d, d))
		})},
	Def{Name: "Mish", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			return b.Op("Mul", x, b.Op("Tanh", b.Op("Softplus", x)))
		})},
	Def{Name: "Shrink", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Float("bias", 0), graph.Float("lambd", 0.5)}, Expand: wide(expandShrink)},
)

// attrReal names the value of a float attribute in the type of the first input.
func (c *Call) attrReal(b *graph.Builder, name string) string {
	return c.real(b, float64(c.float(name)))
}

// below is y where x is below 0, otherwise z.
func (c *Call) below(b *graph.Builder, x, y, z string) string {
	return b.Op("Where", b.Op("Less", x, c.number(b, 0)), y, z)
}

// negative is min(x, 0), so that what is not chosen does not overflow.
func (c *Call) negative(b *graph.Builder, x string) string { return b.Op("Min", x, c.real(b, 0)) }

// expm1 is eᵗ − 1 = tanh(t/2)·(eᵗ + 1), accurate near 0.
func (c *Call) expm1(b *graph.Builder, t string) string {
	half := b.Op("Tanh", b.Op("Mul", t, c.real(b, 0.5)))
	return b.Op("Mul", half, b.Op("Add", b.Op("Exp", t), c.real(b, 1)))
}

// expandClip writes min(max(x, least), greatest).
func expandClip(c *Call, b *graph.Builder) ([]string, error) {
	x := c.Inputs[0]
	for i, op := range []string{"", "Max", "Min"} {
		if i == 0 || !c.has(i) {
			continue
		}
		if s := c.In[i].Shape; s.Elements() != 1 {
			return nil, fmt.Errorf("input %q has shape %v, but should be one number", c.Inputs[i], s)
		}
		x = b.Op(op, x, reshaped(b, c.Inputs[i], c.In[i].Shape, tensor.Shape{}))
	}
	if x == c.Inputs[0] {
		x = b.Op("Identity", x)
	}
	return []string{x}, nil
}

func expandPRelu(c *Call, b *graph.Builder) ([]string, error) {
	if err := c.onto(1); err != nil {
		return nil, err
	}
	x := c.Inputs[0]
	return []string{c.below(b, x, b.Op("Mul", x, c.Inputs[1]), x)}, nil
}

// onto returns an error unless input i broadcasts to the shape of the first.
func (c *Call) onto(i int) error {
	if s, err := c.In[i].Shape.Broadcast(c.In[0].Shape); err != nil || !s.Equal(c.In[0].Shape) {
		return fmt.Errorf("input %q has shape %v, which does not broadcast to %v", c.Inputs[i], c.In[i].Shape, c.In[0].Shape)
	}
	return nil
}

// expandShrink writes x + bias below −λ, x − bias above λ, and 0 between. On
// integers λ and the bias are truncated, and nothing unsigned is below −λ.
func expandShrink(c *Call, b *graph.Builder) ([]string, error) {
	x, t := c.Inputs[0], c.In[0].Type
	bias, lambda := float64(c.float("bias")), float64(c.float("lambd"))
	constant := func(v float64) string { return b.Const(real(t, v)) }
	if !t.Float() {
		for _, v := range []float64{bias, lambda} {
			if !(math.Abs(v) < 1<<31) {
				return nil, fmt.Errorf("bias %v or lambd %v is out of range for %v", bias, lambda, t)
			}
		}
		constant = func(v float64) string { return c.number(b, int(v)) }
	}
	y := b.Op("Where", b.Op("Greater", x, constant(lambda)), b.Op("Sub", x, constant(bias)), c.number(b, 0))
	if !t.Unsigned() {
		y = b.Op("Where", b.Op("Less", x, constant(-lambda)), b.Op("Add", x, constant(bias)), y)
	}
	return []string{y}, nil
}
