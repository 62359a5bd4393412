package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Comparison, logic, selection and conversion. Only Where has a gradient.

var _ = define(
	Def{Name: "Equal", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Eq, false)},
	Def{Name: "Less", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Lt, false)},
	Def{Name: "LessOrEqual", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Le, false)},
	Def{Name: "Greater", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Lt, true)},
	Def{Name: "GreaterOrEqual", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Le, true)},
	Def{Name: "And", Min: 2, Max: 2, Outputs: 1, Lower: logic(tensor.And)},
	Def{Name: "Or", Min: 2, Max: 2, Outputs: 1, Lower: logic(tensor.Or)},
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
	Def{Name: "Cast", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("to", 0), graph.Int("saturate", 1)},
		Lower: func(c *Call) ([]view, error) {
			to := tensor.DType(c.int("to"))
			switch {
			case int(to) != c.int("to") || !to.Valid():
				return nil, fmt.Errorf("element type %d is not supported; cast to a type of numbers, or bool", c.int("to"))
			case to == c.In[0].Type:
				return c.In, nil
			}
			return one(c.l.pointwise(tensor.Cast, to, c.In[0]))
		},
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return dy, nil
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
