package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

var _ = define(
	lower.Operator{Name: "LpNormalization", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", -1), graph.Int("p", 2)}, Expand: inFloat32(expandLpNorm)},
)

// expandLpNorm divides by the norm along the axis, and leaves what has none.
func expandLpNorm(c *lower.Call, b *graph.Builder) ([]string, error) {
	a, err := axisOf(c.Int("axis"), len(c.In[0].Shape))
	if err != nil {
		return nil, err
	}
	p := c.Int("p")
	if p != 1 && p != 2 {
		return nil, fmt.Errorf("p is %d, but should be 1 or 2", p)
	}
	norm := reduceAlong(b, fmt.Sprintf("ReduceL%d", p), c.Inputs[0], a)
	norm = b.Op("Where", b.Op("Equal", norm, floatLike(c, b, 0)), floatLike(c, b, 1), norm)
	return []string{b.Op("Div", c.Inputs[0], norm)}, wantFloats(c)
}
