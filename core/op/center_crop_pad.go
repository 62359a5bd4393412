package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

var _ = define(
	lower.Operator{Name: "CenterCropPad", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Ints("axes")}, Expand: expandCenterCropPad},
)

// expandCenterCropPad cuts the middle out of each axis, or puts zeros around
// it. Of an odd number, the smaller half is in front.
func expandCenterCropPad(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	want, err := intsInput(c, 1)
	if err != nil {
		return nil, err
	}
	named := intsAttr(c, "axes")
	if c.Node.Attr("axes") == nil {
		for a := range s {
			named = append(named, a)
		}
	}
	if _, err := axesOf(named, len(s)); err != nil {
		return nil, err
	}
	if len(want) != len(named) {
		return nil, fmt.Errorf("%d extents are given for %d axes", len(want), len(named))
	}
	y, pads := c.Inputs[0], make([]int, 2*len(s))
	padded := false
	for i, n := range want {
		a, _ := axisOf(named[i], len(s))
		if n < 0 || n > tensor.MaxDim {
			return nil, fmt.Errorf("extent %d is out of range", n)
		}
		if more := n - s[a]; more > 0 {
			padded = true
			pads[a], pads[len(s)+a] = more/2, more-more/2
		} else if more < 0 {
			first := -more / 2
			y = b.Op("Slice", y, b.Ints(first), b.Ints(first+n), b.Ints(a))
		}
	}
	if padded {
		y = b.Op("Pad", y, b.Ints(pads...))
	}
	return []string{b.Op("Identity", y)}, nil
}
