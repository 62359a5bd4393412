package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Elementwise arithmetic. Every operator is one map primitive: one rounding.

var _ = define(
	Def{Name: "Add", Min: 2, Max: 2, Outputs: 1, Lower: pointwise(tensor.Add),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{c.unbroadcast(b, 0, dy[0]), c.unbroadcast(b, 1, dy[0])}, nil
		}},
	Def{Name: "Sub", Min: 2, Max: 2, Outputs: 1, Lower: pointwise(tensor.Sub),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{c.unbroadcast(b, 0, dy[0]), c.unbroadcast(b, 1, b.Op("Neg", dy[0]))}, nil
		}},
	Def{Name: "Mul", Min: 2, Max: 2, Outputs: 1, Lower: pointwise(tensor.Mul),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{
				c.unbroadcast(b, 0, b.Op("Mul", dy[0], c.Inputs[1])),
				c.unbroadcast(b, 1, b.Op("Mul", dy[0], c.Inputs[0])),
			}, nil
		}},
	Def{Name: "Div", Min: 2, Max: 2, Outputs: 1, Lower: pointwise(tensor.Div),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			dx := b.Op("Div", dy[0], c.Inputs[1])
			return []string{
				c.unbroadcast(b, 0, dx),
				c.unbroadcast(b, 1, b.Op("Neg", b.Op("Mul", dx, c.Outputs[0]))),
			}, nil
		}},
	Def{Name: "Max", Min: 1, Max: -1, Outputs: 1, Lower: pointwise(tensor.Max), Grad: extremeGrad},
	Def{Name: "Min", Min: 1, Max: -1, Outputs: 1, Lower: pointwise(tensor.Min), Grad: extremeGrad},
	Def{Name: "Neg", Min: 1, Max: 1, Outputs: 1, Lower: pointwise(tensor.Neg),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{b.Op("Neg", dy[0])}, nil
		}},
	Def{Name: "Abs", Min: 1, Max: 1, Outputs: 1, Lower: pointwise(tensor.Abs),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			x, zero := c.Inputs[0], b.Scalar(0)
			up := b.Op("Where", b.Op("Greater", x, zero), dy[0], zero)
			return []string{b.Op("Where", b.Op("Less", x, zero), b.Op("Neg", dy[0]), up)}, nil
		}},
	Def{Name: "Sqrt", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.SqrtF),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{b.Op("Div", b.Op("Mul", dy[0], b.Scalar(0.5)), c.Outputs[0])}, nil
		}},
	Def{Name: "Reciprocal", Min: 1, Max: 1, Outputs: 1,
		Lower: func(c *Call) ([]view, error) {
			if err := c.floats(); err != nil {
				return nil, err
			}
			return one(c.l.pointwise(tensor.Div, c.In[0].Type, c.l.hold(number(c.In[0].Type, 1)), c.In[0]))
		},
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			y := c.Outputs[0]
			return []string{b.Op("Neg", b.Op("Mul", dy[0], b.Op("Mul", y, y)))}, nil
		}},
	Def{Name: "Mod", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("fmod", 0)}, Lower: lowerMod, Grad: modGrad},
	// From left to right.
	Def{Name: "Sum", Min: 1, Max: -1, Outputs: 1, Expand: wide(func(c *Call, b *graph.Builder) ([]string, error) {
		sum, err := c.sum(b)
		return []string{sum}, err
	})},
	// The sum divided by the number of inputs.
	Def{Name: "Mean", Min: 1, Max: -1, Outputs: 1, Expand: wide(func(c *Call, b *graph.Builder) ([]string, error) {
		sum, err := c.sum(b)
		return []string{b.Op("Div", sum, c.number(b, len(c.Inputs)))}, err
	})},
	Def{Name: "Sign", Min: 1, Max: 1, Outputs: 1, Grad: constantGrad,
		Expand: func(c *Call, b *graph.Builder) ([]string, error) {
			x, zero := c.Inputs[0], c.number(b, 0)
			y := b.Op("Where", b.Op("Greater", x, zero), c.number(b, 1), x) // zeros and NaN stay
			if !c.In[0].Type.Unsigned() {
				y = b.Op("Where", b.Op("Less", x, zero), c.number(b, -1), y)
			}
			return []string{y}, nil
		}},
	Def{Name: "Floor", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.Floor), Grad: constantGrad},
	Def{Name: "Ceil", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.Ceil), Grad: constantGrad},
	Def{Name: "Round", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.Round), Grad: constantGrad},
)

// pointwise lowers an operator to a map primitive of its inputs' type; one with
// more than two inputs goes from left to right.
func pointwise(fn tensor.Fn) func(*Call) ([]view, error) {
	return func(c *Call) ([]view, error) {
		if err := c.alike(0); err != nil {
			return nil, err
		}
		if !c.In[0].Type.Numeric() {
			return nil, fmt.Errorf("it does not take %v", c.In[0].Type)
		}
		out := c.In[0]
		if len(c.In) == 1 && c.def.Max != 1 { // the greatest of one
			return []view{out}, nil
		}
		first := c.In[:min(2, len(c.In))]
		out, err := c.l.pointwise(fn, out.Type, first...)
		for _, v := range c.In[len(first):] {
			if err == nil {
				out, err = c.l.pointwise(fn, out.Type, out, v)
			}
		}
		return one(out, err)
	}
}

// unbroadcast sums the gradient dy of a result over the axes along which input
// i was repeated.
func (c *Call) unbroadcast(b *graph.Builder, i int, dy string) string {
	return sumTo(b, dy, c.Out[0].Shape, c.In[i].Shape)
}

// sumTo sums a value of shape from to shape to, which broadcasts to it.
func sumTo(b *graph.Builder, value string, from, to tensor.Shape) string {
	if from.Equal(to) {
		return value
	}
	lead := len(from) - len(to)
	kept := from.Clone()
	var over []int
	for a, n := range from {
		if a < lead || to[a-lead] != n {
			over = append(over, a)
			kept[a] = 1
		}
	}
	if len(over) > 0 {
		value = along(b, "ReduceSum", value, over...)
	}
	return reshaped(b, value, kept, to)
}

// extremeGrad gives the gradient to the first of the inputs that equal the
// result.
func extremeGrad(c *Call, b *graph.Builder, dy []string) ([]string, error) {
	left, zero := dy[0], b.Scalar(0)
	out := make([]string, len(c.In))
	for i, x := range c.Inputs {
		hit := b.Op("Equal", x, c.Outputs[0])
		out[i] = c.unbroadcast(b, i, b.Op("Where", hit, left, zero))
		left = b.Op("Where", hit, zero, left)
	}
	return out, nil
}

// constantGrad is that of functions that are constant almost everywhere.
func constantGrad(c *Call, _ *graph.Builder, _ []string) ([]string, error) {
	return make([]string, len(c.In)), nil
}

// sum writes the sum of all inputs, which are floats.
func (c *Call) sum(b *graph.Builder) (string, error) {
	if err := c.floats(); err != nil {
		return "", err
	}
	sum := b.Op("Identity", c.Inputs[0])
	for _, x := range c.Inputs[1:] {
		sum = b.Op("Add", sum, x)
	}
	return sum, nil
}

// lowerMod takes the sign of the divisor, or, with fmod, that of the dividend.
func lowerMod(c *Call) ([]view, error) {
	if c.flag("fmod") {
		return pointwise(tensor.Rem)(c)
	}
	if !c.In[0].Type.Integer() {
		return nil, fmt.Errorf("it takes integers, or any numbers with fmod 1, but input %q is %v", c.Inputs[0], c.In[0].Type)
	}
	return pointwise(tensor.Mod)(c)
}

// modGrad: x − n·y, where n is the whole number of times that y goes into x.
func modGrad(c *Call, b *graph.Builder, dy []string) ([]string, error) {
	n := b.Op("Round", b.Op("Div", b.Op("Sub", c.Inputs[0], c.Outputs[0]), c.Inputs[1]))
	return []string{c.unbroadcast(b, 0, dy[0]), c.unbroadcast(b, 1, b.Op("Neg", b.Op("Mul", dy[0], n)))}, nil
}
