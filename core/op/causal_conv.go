package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Convolution with the past alone.

var _ = define(
	lower.Operator{Name: "CausalConvWithState", Min: 2, Max: 4, Outputs: 2, Expand: expandCausalConv, Attrs: []graph.Attr{graph.String("activation", "none")}},
)

// expandCausalConv convolves every channel with its own kernel, after as many
// elements of the past, or zeros, as the kernel reaches back.
func expandCausalConv(c *lower.Call, b *graph.Builder) ([]string, error) {
	s, k := c.In[0].Shape, c.In[1].Shape
	if len(s) != 3 || !c.In[0].Type.Float() || len(k) != 3 || k[0] != s[1] || k[1] != 1 || k[2] < 1 {
		return nil, fmt.Errorf("data of %v%v and kernels of shape %v should be floats [batch channels length] and [channels 1 size]", c.In[0].Type, s, k)
	}
	back := k[2] - 1
	x := c.Inputs[0]
	switch {
	case c.Has(3) && !c.In[3].Shape.Equal(tensor.Shape{s[0], s[1], back}):
		return nil, fmt.Errorf("past_state has shape %v, but should have [%d %d %d]", c.In[3].Shape, s[0], s[1], back)
	case c.Has(3):
		x = b.With(graph.Int("axis", 2)).Op("Concat", c.Inputs[3], x)
	case back > 0:
		x = b.Op("Pad", x, b.Ints(back, 0), "", b.Ints(2))
	}
	in := []string{x, c.Inputs[1]}
	if c.Has(2) {
		in = append(in, c.Inputs[2])
	}
	y := b.With(graph.Int("group", s[1])).Op("Conv", in...)
	switch a := c.Text("activation"); a {
	case "none":
	case "silu", "swish":
		t := c.In[0].Type
		if t.Half() {
			y = b.Cast(y, tensor.Float32)
		}
		y = b.Op("Mul", y, b.Op("Sigmoid", y))
		if t.Half() {
			y = b.Cast(y, t)
		}
	default:
		return nil, fmt.Errorf("activation %q is not supported; use none, silu or swish", a)
	}
	return []string{y, b.Op("Slice", x, b.Ints(s[2]), b.Ints(s[2]+back), b.Ints(2))}, nil
}
