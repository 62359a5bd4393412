package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Functions of one tensor of floats, element by element.

var _ = define(
	lower.Operator{Name: "Exp", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.ExpF),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{b.Op("Mul", dy[0], c.Outputs[0])}, nil
		}},
	lower.Operator{Name: "Log", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.LogF),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{b.Op("Div", dy[0], c.Inputs[0])}, nil
		}},
	lower.Operator{Name: "Tanh", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.TanhF),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			y := c.Outputs[0]
			return []string{b.Op("Mul", dy[0], b.Op("Sub", b.Scalar(1), b.Op("Mul", y, y)))}, nil
		}},
	lower.Operator{Name: "Erf", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.ErfF),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			x := c.Inputs[0]
			bell := b.Op("Exp", b.Op("Neg", b.Op("Mul", x, x)))
			return []string{b.Op("Mul", dy[0], b.Op("Mul", bell, b.Scalar(2/math.SqrtPi)))}, nil
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
)

// floatMap lowers an operator to a map primitive on floats.
func floatMap(fn tensor.Fn) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		if err := wantFloats(c); err != nil {
			return nil, err
		}
		v, err := e.Map(fn, c.In[0].Type, c.In[0])
		if err != nil && c.In[0].Type == tensor.Float64 {
			err = fmt.Errorf("it is not defined on float64; cast input %q to float32: %w", c.Inputs[0], err)
		}
		return one(v, err)
	}
}

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
