package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Functions of one float32 tensor, element by element.

var _ = define(
	Def{Name: "Exp", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.ExpF),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{b.Op("Mul", dy[0], c.Outputs[0])}, nil
		}},
	Def{Name: "Log", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.LogF),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{b.Op("Div", dy[0], c.Inputs[0])}, nil
		}},
	Def{Name: "Tanh", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.TanhF),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			y := c.Outputs[0]
			return []string{b.Op("Mul", dy[0], b.Op("Sub", b.Scalar(1), b.Op("Mul", y, y)))}, nil
		}},
	Def{Name: "Erf", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.ErfF),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			x := c.Inputs[0]
			bell := b.Op("Exp", b.Op("Neg", b.Op("Mul", x, x)))
			return []string{b.Op("Mul", dy[0], b.Op("Mul", bell, b.Scalar(2/math.SqrtPi)))}, nil
		}},
	Def{Name: "Relu", Min: 1, Max: 1, Outputs: 1,
		Lower: func(c *Call) ([]view, error) {
			zero := c.l.hold(number(c.In[0].Type, 0))
			return one(c.l.pointwise(tensor.Max, c.In[0].Type, c.In[0], zero))
		},
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			zero := b.Scalar(0)
			return []string{b.Op("Where", b.Op("Greater", c.Inputs[0], zero), dy[0], zero)}, nil
		}},
	// 1 / (1 + e⁻ˣ)
	Def{Name: "Sigmoid", Min: 1, Max: 1, Outputs: 1,
		Expand: func(c *Call, b *graph.Builder) ([]string, error) {
			e := b.Op("Exp", b.Op("Neg", c.Inputs[0]))
			return []string{b.Op("Reciprocal", b.Op("Add", e, b.Scalar(1)))}, nil
		},
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			y := c.Outputs[0]
			slope := b.Op("Mul", y, b.Op("Sub", b.Scalar(1), y))
			return []string{b.Op("Mul", dy[0], slope)}, nil
		}},
	Def{Name: "Gelu", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.String("approximate", "none")}, Expand: expandGelu},
)

// function lowers an operator to a map primitive on float32.
func function(fn tensor.Fn) func(*Call) ([]view, error) {
	return func(c *Call) ([]view, error) {
		if err := c.want(0, tensor.Float32); err != nil {
			return nil, err
		}
		return one(c.l.pointwise(fn, tensor.Float32, c.In[0]))
	}
}

// expandGelu writes ½x·(1 + g), where g is erf(x/√2), or, approximated,
// tanh(√(2/π)·(x + 0.044715·x³)).
func expandGelu(c *Call, b *graph.Builder) ([]string, error) {
	x := c.Inputs[0]
	var g string
	switch a := c.text("approximate"); a {
	case "none":
		g = b.Op("Erf", b.Op("Mul", x, b.Scalar(1/math.Sqrt2)))
	case "tanh":
		cube := b.Op("Mul", b.Op("Mul", x, x), x)
		inner := b.Op("Add", x, b.Op("Mul", cube, b.Scalar(0.044715)))
		g = b.Op("Tanh", b.Op("Mul", inner, b.Scalar(math.Sqrt2/math.SqrtPi)))
	default:
		return nil, fmt.Errorf("approximation %q is not supported; use none or tanh", a)
	}
	half := b.Op("Mul", x, b.Scalar(0.5))
	return []string{b.Op("Mul", half, b.Op("Add", g, b.Scalar(1)))}, nil
}
