package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Bits of integers, and of other types seen as they are. None has a gradient.

var _ = define(
	Def{Name: "BitwiseAnd", Min: 2, Max: 2, Outputs: 1, Lower: bitwise(tensor.BitAnd)},
	Def{Name: "BitwiseOr", Min: 2, Max: 2, Outputs: 1, Lower: bitwise(tensor.BitOr)},
	Def{Name: "BitwiseXor", Min: 2, Max: 2, Outputs: 1, Lower: bitwise(tensor.BitXor)},
	Def{Name: "BitwiseNot", Min: 1, Max: 1, Outputs: 1, Lower: bitwise(tensor.BitNot)},
	Def{Name: "BitShift", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.String("direction", "")},
		Lower: func(c *Call) ([]view, error) {
			switch d := c.text("direction"); d {
			case "LEFT":
				return bitwise(tensor.ShiftLeft)(c)
			case "RIGHT":
				return bitwise(tensor.ShiftRight)(c)
			default:
				return nil, fmt.Errorf("direction %q is not LEFT or RIGHT", d)
			}
		}},
	Def{Name: "BitCast", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("to", 0)},
		Lower: func(c *Call) ([]view, error) {
			to, err := c.elementType("to")
			if err != nil {
				return nil, err
			}
			if from := c.In[0].Type; to.Size() != from.Size() {
				return nil, fmt.Errorf("%v and %v have elements of different sizes", from, to)
			}
			return one(c.l.pointwise(tensor.Bits, to, c.In[0]))
		}},
)

func bitwise(fn tensor.Fn) func(*Call) ([]view, error) {
	return func(c *Call) ([]view, error) {
		if err := c.alike(0); err != nil {
			return nil, err
		}
		if !c.In[0].Type.Integer() {
			return nil, fmt.Errorf("it does not take %v, but integers", c.In[0].Type)
		}
		return one(c.l.pointwise(fn, c.In[0].Type, c.In...))
	}
}

// elementType returns the type that an attribute names.
func (c *Call) elementType(attr string) (tensor.DType, error) {
	t := tensor.DType(c.int(attr))
	if int(t) != c.int(attr) || !t.Valid() {
		return 0, fmt.Errorf("element type %d is not supported; use a type of numbers, or bool", c.int(attr))
	}
	return t, nil
}
