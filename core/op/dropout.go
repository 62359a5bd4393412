package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

var _ = define(
	lower.Operator{Name: "Dropout", Min: 1, Max: 3, Outputs: 2, Expand: expandDropout, Attrs: []graph.Attr{graph.Int("seed", 0)}},
)

// expandDropout leaves its input as it is, or, in training, drops elements
// where u is below the ratio and scales the others by 1/(1 − ratio).
func expandDropout(c *lower.Call, b *graph.Builder) ([]string, error) {
	x := c.Inputs[0]
	if idle, err := dropsNothing(c); err != nil || idle {
		all := b.Op("Expand", b.Const(scalarOf(tensor.Bool, 1)), b.Ints(c.In[0].Shape...))
		return []string{b.Op("Identity", x), all}, err
	}
	d, err := newChance(c, b)
	if err != nil {
		return nil, err
	}
	ratio, t := b.Scalar(0.5), tensor.Float32
	if c.Has(1) {
		ratio, t = reshaped(b, c.Inputs[1], c.In[1].Shape, tensor.Shape{}), c.In[1].Type
	}
	dropped, err := d.below(ratio, t, c.In[0].Shape)
	if err != nil {
		return nil, err
	}
	scale := b.Op("Reciprocal", b.Op("Sub", floatLike(c, b, 1), converted(b, ratio, t, c.In[0].Type)))
	training := reshaped(b, c.Inputs[2], c.In[2].Shape, tensor.Shape{})
	dropped = b.Op("And", dropped, training)
	scale = b.Op("Where", training, scale, floatLike(c, b, 1))
	return []string{b.Op("Where", dropped, floatLike(c, b, 0), b.Op("Mul", x, scale)), b.Op("Not", dropped)}, nil
}

// dropsNothing reports whether Dropout is known to drop nothing.
func dropsNothing(c *lower.Call) (bool, error) {
	if !c.Has(2) {
		return true, nil
	}
	for i := 1; i < 3; i++ {
		if c.Has(i) && c.In[i].Shape.Elements() != 1 {
			return false, fmt.Errorf("input %q has shape %v, but should be one value", c.Inputs[i], c.In[i].Shape)
		}
	}
	if err := wantType(c, 2, tensor.Bool); err != nil || !c.In[0].Type.Float() {
		return false, err
	}
	for i := 1; i < 3; i++ {
		if !c.Has(i) {
			continue
		}
		t, err := c.Known(c.In[i])
		if err != nil || t != nil && t.At(0) == 0 {
			return true, err
		}
	}
	return false, nil
}
