package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

var _ = define(
	lower.Operator{Name: "MaxUnpool", Min: 2, Max: 3, Outputs: 1, Attrs: []graph.Attr{graph.Ints("kernel_shape"), graph.Ints("pads"), graph.Ints("strides")}, Expand: expandMaxUnpool},
)

// expandMaxUnpool puts elements at the flat indices of what was pooled, with
// zeros elsewhere. An output_shape adds zeros at the end of each axis.
func expandMaxUnpool(c *lower.Call, b *graph.Builder) ([]string, error) {
	x := c.In[0].Shape
	if !c.In[1].Shape.Equal(x) || c.In[1].Type != tensor.Int64 {
		return nil, fmt.Errorf("input %q is %v%v, but should be int64%v", c.Inputs[1], c.In[1].Type, c.In[1].Shape, x)
	}
	if len(x) < 3 {
		return nil, fmt.Errorf("input %q has shape %v, but should have a batch, channels and at least one spatial axis", c.Inputs[0], x)
	}
	w, err := newWindow(c, x[2:], intsAttr(c, "kernel_shape"))
	if err != nil {
		return nil, err
	}
	s := x.Clone()
	for a, n := range w.in {
		if n > tensor.MaxDim/w.stride[a] {
			return nil, fmt.Errorf("a stride of %d over %d is out of range", w.stride[a], n)
		}
		s[2+a] = (n-1)*w.stride[a] + w.kernel[a] - w.before[a] - w.after[a]
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	planes, from, to := x[0]*x[1], x[2:].Elements(), s[2:].Elements()
	plane, err := intTable(c, tensor.Shape{planes, 1}, func(i int) int { return i * to })
	if err != nil {
		return nil, err
	}
	index := b.Op("Sub", reshaped(b, c.Inputs[1], x, tensor.Shape{planes, from}), b.Const(plane))
	zero := b.Op("Expand", scalarLike(c, b, 0), b.Ints(planes, to))
	y := b.With(graph.Int("axis", 1)).Op("ScatterElements", zero, index, reshaped(b, c.Inputs[0], x, tensor.Shape{planes, from}))
	y = reshaped(b, y, tensor.Shape{planes, to}, s)
	if c.Has(2) {
		want, err := intsInput(c, 2)
		if err != nil {
			return nil, err
		}
		if len(want) != len(s) {
			return nil, fmt.Errorf("output_shape %v does not fit %v", want, s)
		}
		more := make([]int, 2*len(s))
		for a, m := range want {
			more[len(s)+a] = m - s[a]
		}
		y = b.Op("Pad", y, b.Ints(more...), scalarLike(c, b, 0))
	}
	return []string{y}, nil
}
