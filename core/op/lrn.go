package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

var _ = define(
	lower.Operator{Name: "LRN", Min: 1, Max: 1, Outputs: 1, Expand: inFloat32(expandLRN), Attrs: []graph.Attr{
		graph.Float("alpha", 1e-4), graph.Float("beta", 0.75), graph.Float("bias", 1), graph.Int("size", 0),
	}},
)

// maxRegion bounds the channels that LRN sums over.
const maxRegion = 1 << 10

// expandLRN divides by (bias + α/size·s)^β, where s is the sum of the squares in
// the channels around, the lowest first.
func expandLRN(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, size := c.In[0].Shape, c.Int("size")
	if len(x) < 2 || size < 1 || size > maxRegion {
		return nil, fmt.Errorf("it sums over %d channels of shape %v, but takes 1 to %d of [N C …]", size, x, maxRegion)
	}
	if err := wantFloats(c); err != nil {
		return nil, err
	}
	before := (size - 1) / 2
	square := b.Op("Mul", c.Inputs[0], c.Inputs[0])
	if size > 1 {
		square = b.Op("Pad", square, b.Ints(before, size-1-before), "", b.Ints(1))
	}
	sum := ""
	for i := range size {
		part := b.Op("Slice", square, b.Ints(i), b.Ints(i+x[1]), b.Ints(1))
		if sum != "" {
			part = b.Op("Add", sum, part)
		}
		sum = part
	}
	rate := floatLike(c, b, float64(c.Float("alpha"))/float64(size))
	base := b.Op("Add", b.Op("Mul", sum, rate), attrLike(c, b, "bias"))
	return []string{b.Op("Div", c.Inputs[0], b.Op("Pow", base, attrLike(c, b, "beta")))}, nil
}
