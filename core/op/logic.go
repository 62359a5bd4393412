package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Comparison, logic, selection and conversion.

// What these say is about floats of 8 bits alone.
var roundMode, saturate = graph.String("round_mode", "up"), graph.Int("saturate", 1)

var _ = define(
	Def{Name: "Equal", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Eq, false)},
	Def{Name: "Less", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Lt, false)},
	Def{Name: "LessOrEqual", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Le, false)},
	Def{Name: "Greater", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Lt, true)},
	Def{Name: "GreaterOrEqual", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Le, true)},
	Def{Name: "And", Min: 2, Max: 2, Outputs: 1, Lower: logic(tensor.And)},
	Def{Name: "Or", Min: 2, Max: 2, Outputs: 1, Lower: logic(tensor.Or)},
	Def{Name: "Xor", Min: 2, Max: 2, Outputs: 1, Lower: func(c *Call) ([]view, error) {
		for i := range c.In {
			if err := c.want(i, tensor.Bool); err != nil {
				return nil, err
			}
		}
		same, err := c.l.pointwise(tensor.Eq, tensor.Bool, c.In...)
		if err != nil {
			return nil, err
		}
		return one(c.l.pointwise(tensor.Not, tensor.Bool, same))
	}},
	Def{Name: "IsNaN", Min: 1, Max: 1, Outputs: 1, Expand: func(c *Call, b *graph.Builder) ([]string, error) {
		return []string{b.Op("Not", b.Op("Equal", c.Inputs[0], c.Inputs[0]))}, c.floats()
	}},
	Def{Name: "IsInf", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("detect_negative", 1), graph.Int("detect_positive", 1)}, Expand: expandIsInf},
	Def{Name: "Not", Min: 1, Max: 1, Outputs: 1, Lower: logic(tensor.Not)},
	Def{Name: "Where", Min: 3, Max: 3, Outputs: 1,
		Lower: func(c *Call) ([]view, error) {
			if err := c.want(0, tensor.Bool); err != nil {
				return nil, err
			}
			if err := c.alike(1); err != nil {
				return nil, err
			}
			return one(c.l.pointwise(tensor.Where, c.In[1].Type, c.In...))
		},
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			zero := b.Scalar(0)
			return []string{
				"",
				c.unbroadcast(b, 1, b.Op("Where", c.Inputs[0], dy[0], zero)),
				c.unbroadcast(b, 2, b.Op("Where", c.Inputs[0], zero, dy[0])),
			}, nil
		}},
	Def{Name: "Cast", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("to", 0), roundMode, saturate},
		Lower: func(c *Call) ([]view, error) {
			to, err := c.elementType("to")
			if err != nil {
				return nil, err
			}
			return one(c.l.cast(c.In[0], to))
		},
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return dy, nil
		}},
	Def{Name: "CastLike", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{roundMode, saturate},
		Lower: func(c *Call) ([]view, error) { return one(c.l.cast(c.In[0], c.In[1].Type)) },
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return c.only(dy[0]), nil
		}},
)

// castTo converts a value to another type.
func castTo(b *graph.Builder, value string, t tensor.DType) string {
	return b.With(graph.Int("to", int(t))).Op("Cast", value)
}

// compare lowers a comparison, with its operands exchanged if swap is set.
func compare(fn tensor.Fn, swap bool) func(*Call) ([]view, error) {
	return func(c *Call) ([]view, error) {
		if err := c.alike(0); err != nil {
			return nil, err
		}
		x, y := c.In[0], c.In[1]
		if fn != tensor.Eq && !x.Type.Numeric() {
			return nil, fmt.Errorf("it does not take %v", x.Type)
		}
		if swap {
			x, y = y, x
		}
		return one(c.l.pointwise(fn, tensor.Bool, x, y))
	}
}

func logic(fn tensor.Fn) func(*Call) ([]view, error) {
	return func(c *Call) ([]view, error) {
		for i := range c.In {
			if err := c.want(i, tensor.Bool); err != nil {
				return nil, err
			}
		}
		return one(c.l.pointwise(fn, tensor.Bool, c.In...))
	}
}

func expandIsInf(c *Call, b *graph.Builder) ([]string, error) {
	if err := c.floats(); err != nil {
		return nil, err
	}
	x, inf := c.Inputs[0], math.Inf(1)
	switch up, down := c.flag("detect_positive"), c.flag("detect_negative"); {
	case up && down:
		return []string{b.Op("Equal", b.Op("Abs", x), c.real(b, inf))}, nil
	case up:
		return []string{b.Op("Equal", x, c.real(b, inf))}, nil
	case down:
		return []string{b.Op("Equal", x, c.real(b, -inf))}, nil
	}
	return []string{b.Op("Expand", b.Const(number(tensor.Bool, 0)), b.Ints(c.In[0].Shape...))}, nil
}
