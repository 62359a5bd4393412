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
	Def{Name: "Pow", Min: 2, Max: 2, Outputs: 1, Expand: expandPow},
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

// maxPower bounds the exponents of Pow.
const maxPower = 64

// expandPow writes x to a constant power n or n+½ as products, from the
// exponent's highest bit to its lowest, times a square root, and takes the
// reciprocal if it is negative.
func expandPow(c *Call, b *graph.Builder) ([]string, error) {
	e, err := c.constant(1)
	if err != nil {
		return nil, err
	}
	twice, err := halves(e)
	if err != nil {
		return nil, err
	}
	n, x := max(twice, -twice), c.Inputs[0]
	if t := c.In[0].Type; t != tensor.Float32 && (!t.Integer() || twice < 0 || twice%2 != 0) {
		return nil, fmt.Errorf("%v does not have the power %g/2; cast it to float32", t, float64(twice))
	}
	power := ""
	for bit := 1 << 30; bit > 0; bit >>= 1 {
		if power != "" {
			power = b.Op("Mul", power, power)
		}
		if n/2&bit != 0 {
			power = product(b, power, x)
		}
	}
	if n%2 != 0 {
		power = product(b, power, b.Op("Sqrt", x))
	}
	s, err := c.In[0].Shape.Broadcast(e.Shape)
	if err != nil {
		return nil, err
	}
	have := c.In[0].Shape
	if power == "" {
		power, have = b.Const(number(c.In[0].Type, 1)), nil
	}
	if !have.Equal(s) {
		power = b.Op("Expand", power, b.Ints(s...))
	}
	if twice < 0 {
		power = b.Op("Reciprocal", power)
	}
	return []string{power}, nil
}

func product(b *graph.Builder, x, y string) string {
	if x == "" {
		return y
	}
	return b.Op("Mul", x, y)
}

// halves returns twice the one value that all elements of an exponent have.
func halves(e *tensor.Tensor) (int, error) {
	refuse := fmt.Errorf("the exponent must be one constant n or n+½ between −%d and %d; write other powers with Exp and Log", maxPower, maxPower)
	if e.Len() == 0 {
		return 0, refuse
	}
	for i := range e.Len() {
		if e.At(i) != e.At(0) {
			return 0, refuse
		}
	}
	v := float64(int64(e.At(0)))
	if e.Type == tensor.Float32 {
		v = float64(tensor.AsF32(e.At(0)))
	}
	twice := v + v
	if !(v >= -maxPower && v <= maxPower) || twice != float64(int(twice)) {
		return 0, refuse
	}
	return int(twice), nil
}
