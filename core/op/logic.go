package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Comparison, logic, selection and conversion.

// What these say is about floats of 8 bits alone.
var roundMode, saturate = graph.String("round_mode", "up"), graph.Int("saturate", 1)

var _ = define(
	lower.Operator{Name: "Equal", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Eq, false)},
	lower.Operator{Name: "Less", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Lt, false)},
	lower.Operator{Name: "LessOrEqual", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Le, false)},
	lower.Operator{Name: "Greater", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Lt, true)},
	lower.Operator{Name: "GreaterOrEqual", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Le, true)},
	lower.Operator{Name: "And", Min: 2, Max: 2, Outputs: 1, Lower: logic(tensor.And)},
	lower.Operator{Name: "Or", Min: 2, Max: 2, Outputs: 1, Lower: logic(tensor.Or)},
	lower.Operator{Name: "Xor", Min: 2, Max: 2, Outputs: 1, Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		for i := range c.In {
			if err := wantType(c, i, tensor.Bool); err != nil {
				return nil, err
			}
		}
		same, err := e.Map(tensor.Eq, tensor.Bool, c.In...)
		if err != nil {
			return nil, err
		}
		return one(e.Map(tensor.Not, tensor.Bool, same))
	}},
	lower.Operator{Name: "IsNaN", Min: 1, Max: 1, Outputs: 1, Expand: func(c *lower.Call, b *graph.Builder) ([]string, error) {
		return []string{b.Op("Not", b.Op("Equal", c.Inputs[0], c.Inputs[0]))}, wantFloats(c)
	}},
	lower.Operator{Name: "IsInf", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("detect_negative", 1), graph.Int("detect_positive", 1)}, Expand: expandIsInf},
	lower.Operator{Name: "Not", Min: 1, Max: 1, Outputs: 1, Lower: logic(tensor.Not)},
	lower.Operator{Name: "Where", Min: 3, Max: 3, Outputs: 1,
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			if err := wantType(c, 0, tensor.Bool); err != nil {
				return nil, err
			}
			if err := wantOneType(c, 1); err != nil {
				return nil, err
			}
			return one(e.Map(tensor.Where, c.In[1].Type, c.In...))
		},
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			zero := b.Scalar(0)
			return []string{
				"",
				unbroadcast(c, b, 1, b.Op("Where", c.Inputs[0], dy[0], zero)),
				unbroadcast(c, b, 2, b.Op("Where", c.Inputs[0], zero, dy[0])),
			}, nil
		}},
	lower.Operator{Name: "Cast", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("to", 0), roundMode, saturate},
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			to, err := typeNamed(c, "to")
			if err != nil {
				return nil, err
			}
			return one(e.Cast(c.In[0], to))
		},
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return dy, nil
		}},
	lower.Operator{Name: "CastLike", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{roundMode, saturate},
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) { return one(e.Cast(c.In[0], c.In[1].Type)) },
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return firstGrad(c, dy[0]), nil
		}},
)

// castTo converts a value to another type.
func castTo(b *graph.Builder, value string, t tensor.DType) string {
	return b.With(graph.Int("to", int(t))).Op("Cast", value)
}

// compare lowers a comparison, with its operands exchanged if swap is set.
func compare(fn tensor.Fn, swap bool) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		if err := wantOneType(c, 0); err != nil {
			return nil, err
		}
		x, y := c.In[0], c.In[1]
		if fn != tensor.Eq && !x.Type.Numeric() {
			return nil, fmt.Errorf("it does not take %v", x.Type)
		}
		if swap {
			x, y = y, x
		}
		return one(e.Map(fn, tensor.Bool, x, y))
	}
}

func logic(fn tensor.Fn) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		for i := range c.In {
			if err := wantType(c, i, tensor.Bool); err != nil {
				return nil, err
			}
		}
		return one(e.Map(fn, tensor.Bool, c.In...))
	}
}

func expandIsInf(c *lower.Call, b *graph.Builder) ([]string, error) {
	if err := wantFloats(c); err != nil {
		return nil, err
	}
	x, inf := c.Inputs[0], math.Inf(1)
	switch up, down := c.Flag("detect_positive"), c.Flag("detect_negative"); {
	case up && down:
		return []string{b.Op("Equal", b.Op("Abs", x), floatLike(c, b, inf))}, nil
	case up:
		return []string{b.Op("Equal", x, floatLike(c, b, inf))}, nil
	case down:
		return []string{b.Op("Equal", x, floatLike(c, b, -inf))}, nil
	}
	return []string{b.Op("Expand", b.Const(scalarOf(tensor.Bool, 0)), b.Ints(c.In[0].Shape...))}, nil
}
