package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Bits of integers, and of other types seen as they are. None has a gradient.

var _ = define(
	lower.Operator{Name: "BitwiseAnd", Min: 2, Max: 2, Outputs: 1, Lower: bitwise(tensor.BitAnd)},
	lower.Operator{Name: "BitwiseOr", Min: 2, Max: 2, Outputs: 1, Lower: bitwise(tensor.BitOr)},
	lower.Operator{Name: "BitwiseXor", Min: 2, Max: 2, Outputs: 1, Lower: bitwise(tensor.BitXor)},
	lower.Operator{Name: "BitwiseNot", Min: 1, Max: 1, Outputs: 1, Lower: bitwise(tensor.BitNot)},
	lower.Operator{Name: "BitShift", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.String("direction", "")},
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			switch d := c.Text("direction"); d {
			case "LEFT":
				return bitwise(tensor.ShiftLeft)(c, e)
			case "RIGHT":
				return bitwise(tensor.ShiftRight)(c, e)
			default:
				return nil, fmt.Errorf("direction %q is not LEFT or RIGHT", d)
			}
		}},
)

func bitwise(fn tensor.Fn) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		if err := wantOneType(c, 0); err != nil {
			return nil, err
		}
		if !c.In[0].Type.Integer() {
			return nil, fmt.Errorf("it does not take %v, but integers", c.In[0].Type)
		}
		return one(e.Map(fn, c.In[0].Type, c.In...))
	}
}
