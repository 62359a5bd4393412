package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Conversion between element types.

var _ = define(
	lower.Operator{Name: "BitCast", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("to", 0)},
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			to, err := typeNamed(c, "to")
			if err != nil {
				return nil, err
			}
			if from := c.In[0].Type; to.Size() != from.Size() {
				return nil, fmt.Errorf("%v and %v have elements of different sizes", from, to)
			}
			return one(e.Map(tensor.Bits, to, c.In[0]))
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

// What these say is about floats of 8 bits alone.
var roundMode, saturate = graph.String("round_mode", "up"), graph.Int("saturate", 1)
