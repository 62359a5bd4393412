package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Comparisons. They give bool; NaN compares false.

var _ = define(
	lower.Operator{Name: "Equal", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Eq, false)},
	lower.Operator{Name: "Less", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Lt, false)},
	lower.Operator{Name: "LessOrEqual", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Le, false)},
	lower.Operator{Name: "Greater", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Lt, true)},
	lower.Operator{Name: "GreaterOrEqual", Min: 2, Max: 2, Outputs: 1, Lower: compare(tensor.Le, true)},
	lower.Operator{Name: "IsNaN", Min: 1, Max: 1, Outputs: 1, Expand: func(c *lower.Call, b *graph.Builder) ([]string, error) {
		return []string{b.Op("Not", b.Op("Equal", c.Inputs[0], c.Inputs[0]))}, wantFloats(c)
	}},
	lower.Operator{Name: "IsInf", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("detect_negative", 1), graph.Int("detect_positive", 1)}, Expand: expandIsInf},
)

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
