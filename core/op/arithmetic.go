package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Elementwise arithmetic. Every operator is one map primitive: one rounding.

var _ = define(
	lower.Operator{Name: "Add", Min: 2, Max: 2, Outputs: 1, Lower: pointwise(tensor.Add),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{unbroadcast(c, b, 0, dy[0]), unbroadcast(c, b, 1, dy[0])}, nil
		}},
	lower.Operator{Name: "Sub", Min: 2, Max: 2, Outputs: 1, Lower: pointwise(tensor.Sub),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{unbroadcast(c, b, 0, dy[0]), unbroadcast(c, b, 1, b.Op("Neg", dy[0]))}, nil
		}},
	lower.Operator{Name: "Mul", Min: 2, Max: 2, Outputs: 1, Lower: pointwise(tensor.Mul),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{
				unbroadcast(c, b, 0, b.Op("Mul", dy[0], c.Inputs[1])),
				unbroadcast(c, b, 1, b.Op("Mul", dy[0], c.Inputs[0])),
			}, nil
		}},
	lower.Operator{Name: "Div", Min: 2, Max: 2, Outputs: 1, Lower: pointwise(tensor.Div),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			dx := b.Op("Div", dy[0], c.Inputs[1])
			return []string{
				unbroadcast(c, b, 0, dx),
				unbroadcast(c, b, 1, b.Op("Neg", b.Op("Mul", dx, c.Outputs[0]))),
			}, nil
		}},
	lower.Operator{Name: "Max", Min: 1, Max: -1, Outputs: 1, Lower: extreme(tensor.Max), Grad: extremeGrad},
	lower.Operator{Name: "Min", Min: 1, Max: -1, Outputs: 1, Lower: extreme(tensor.Min), Grad: extremeGrad},
	lower.Operator{Name: "Neg", Min: 1, Max: 1, Outputs: 1, Lower: pointwise(tensor.Neg),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{b.Op("Neg", dy[0])}, nil
		}},
	lower.Operator{Name: "Abs", Min: 1, Max: 1, Outputs: 1, Lower: pointwise(tensor.Abs),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			x, zero := c.Inputs[0], b.Scalar(0)
			up := b.Op("Where", b.Op("Greater", x, zero), dy[0], zero)
			return []string{b.Op("Where", b.Op("Less", x, zero), b.Op("Neg", dy[0]), up)}, nil
		}},
	lower.Operator{Name: "Sqrt", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.SqrtF),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{b.Op("Div", b.Op("Mul", dy[0], b.Scalar(0.5)), c.Outputs[0])}, nil
		}},
	lower.Operator{Name: "Reciprocal", Min: 1, Max: 1, Outputs: 1,
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			if err := wantFloats(c); err != nil {
				return nil, err
			}
			return one(e.Map(tensor.Div, c.In[0].Type, e.Const(scalarOf(c.In[0].Type, 1)), c.In[0]))
		},
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			y := c.Outputs[0]
			return []string{b.Op("Neg", b.Op("Mul", dy[0], b.Op("Mul", y, y)))}, nil
		}},
	lower.Operator{Name: "Mod", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("fmod", 0)}, Lower: lowerMod, Grad: modGrad},
	// From left to right.
	lower.Operator{Name: "Sum", Min: 1, Max: -1, Outputs: 1, Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
		sum, err := sumOfInputs(c, b)
		return []string{sum}, err
	})},
	// The sum divided by the number of inputs.
	lower.Operator{Name: "Mean", Min: 1, Max: -1, Outputs: 1, Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
		sum, err := sumOfInputs(c, b)
		return []string{b.Op("Div", sum, scalarLike(c, b, len(c.Inputs)))}, err
	})},
	lower.Operator{Name: "Sign", Min: 1, Max: 1, Outputs: 1, Grad: constantGrad,
		Expand: func(c *lower.Call, b *graph.Builder) ([]string, error) {
			x, zero := c.Inputs[0], scalarLike(c, b, 0)
			y := b.Op("Where", b.Op("Greater", x, zero), scalarLike(c, b, 1), x) // zeros and NaN stay
			if !c.In[0].Type.Unsigned() {
				y = b.Op("Where", b.Op("Less", x, zero), scalarLike(c, b, -1), y)
			}
			return []string{y}, nil
		}},
	lower.Operator{Name: "Floor", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.Floor), Grad: constantGrad},
	lower.Operator{Name: "Ceil", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.Ceil), Grad: constantGrad},
	lower.Operator{Name: "Round", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.Round), Grad: constantGrad},
	lower.Operator{Name: "Clip", Min: 1, Max: 3, Outputs: 1, Expand: expandClip, Settings: []int{1, 2}},
)

// pointwise lowers an operator to a map primitive of its inputs' type.
func pointwise(fn tensor.Fn) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		if err := wantNumbers(c); err != nil {
			return nil, err
		}
		return one(e.Map(fn, c.In[0].Type, c.In...))
	}
}

// extreme lowers Max or Min: of one input it is that, of more it goes from left to
// right.
func extreme(fn tensor.Fn) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		if err := wantNumbers(c); err != nil {
			return nil, err
		}
		out, err := c.In[0], error(nil)
		for _, v := range c.In[1:] {
			if out, err = e.Map(fn, out.Type, out, v); err != nil {
				return nil, err
			}
		}
		return []lower.View{out}, nil
	}
}

// extremeGrad gives the gradient to the first of the inputs that equal the
// result.
func extremeGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	left, zero := dy[0], b.Scalar(0)
	out := make([]string, len(c.In))
	for i, x := range c.Inputs {
		hit := b.Op("Equal", x, c.Outputs[0])
		out[i] = unbroadcast(c, b, i, b.Op("Where", hit, left, zero))
		left = b.Op("Where", hit, zero, left)
	}
	return out, nil
}

// sumOfInputs writes the sum of all inputs, which are floats.
func sumOfInputs(c *lower.Call, b *graph.Builder) (string, error) {
	if err := wantFloats(c); err != nil {
		return "", err
	}
	sum := b.Op("Identity", c.Inputs[0])
	for _, x := range c.Inputs[1:] {
		sum = b.Op("Add", sum, x)
	}
	return sum, nil
}

// lowerMod takes the sign of the divisor, or, with fmod, that of the dividend.
func lowerMod(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	if c.Flag("fmod") {
		return pointwise(tensor.Rem)(c, e)
	}
	if !c.In[0].Type.Integer() {
		return nil, fmt.Errorf("it takes integers, or any numbers with fmod 1, but input %q is %v", c.Inputs[0], c.In[0].Type)
	}
	return pointwise(tensor.Mod)(c, e)
}

// modGrad: x − n·y, where n is the whole number of times that y goes into x.
func modGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	n := b.Op("Round", b.Op("Div", b.Op("Sub", c.Inputs[0], c.Outputs[0]), c.Inputs[1]))
	return []string{unbroadcast(c, b, 0, dy[0]), unbroadcast(c, b, 1, b.Op("Neg", b.Op("Mul", dy[0], n)))}, nil
}

// expandClip writes min(max(x, least), greatest).
func expandClip(c *lower.Call, b *graph.Builder) ([]string, error) {
	x := c.Inputs[0]
	for i, op := range []string{"", "Max", "Min"} {
		if i == 0 || !c.Has(i) {
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
