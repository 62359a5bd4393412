package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Choice by value. The values decide how many elements there are, so they must be
// constant.

var _ = define(
	lower.Operator{Name: "Compress", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 0)}, Expand: expandCompress},
	lower.Operator{Name: "NonZero", Min: 1, Max: 1, Outputs: 1, Lower: lowerNonZero},
)

// expandCompress gathers what a constant condition selects.
func expandCompress(c *lower.Call, b *graph.Builder) ([]string, error) {
	condition, err := c.Constant(1)
	if err != nil {
		return nil, err
	}
	x, s, a := c.Inputs[0], c.In[0].Shape, 0
	if c.Node.Attr("axis") == nil {
		flat := tensor.Shape{s.Elements()}
		x, s = reshaped(b, x, s, flat), flat
	} else if a, err = axisOf(c.Int("axis"), len(s)); err != nil {
		return nil, err
	}
	if condition.Type != tensor.Bool || len(condition.Shape) != 1 {
		return nil, fmt.Errorf("input %q is %v%v, but should be a list of bool", c.Inputs[1], condition.Type, condition.Shape)
	}
	list, err := nonZeroPlaces(c.Account, condition)
	if err != nil {
		return nil, err
	}
	if n := len(list); n > 0 && list[n-1] >= s[a] {
		return nil, fmt.Errorf("the condition selects element %d of the %d of axis %d", list[n-1], s[a], a)
	}
	selected, err := intTable(c, tensor.Shape{len(list)}, func(i int) int { return list[i] })
	if err != nil {
		return nil, err
	}
	return []string{b.With(graph.Int("axis", a)).Op("Gather", x, b.Const(selected))}, nil
}

// nonZeroPlaces returns the flat indices of the elements of a constant that are not 0.
func nonZeroPlaces(a *lower.Account, x *tensor.Tensor) ([]int, error) {
	if err := a.Charge(x.Len()); err != nil {
		return nil, err
	}
	some := func(i int) bool {
		w := x.At(i)
		return w != 0 && !(x.Type.Float() && tensor.FloatOf(x.Type, w) == 0)
	}
	n := 0
	for i := range x.Len() {
		if some(i) {
			n++
		}
	}
	if err := a.Afford(8 * n); err != nil {
		return nil, err
	}
	list := make([]int, 0, n)
	for i := range x.Len() {
		if some(i) {
			list = append(list, i)
		}
	}
	return list, nil
}

// lowerNonZero lists the coordinates of the constant elements that are not 0,
// one axis a row.
func lowerNonZero(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	x, err := c.Constant(0)
	if err != nil {
		return nil, err
	}
	list, err := nonZeroPlaces(c.Account, x)
	if err != nil {
		return nil, err
	}
	out, err := c.Account.NewConst(tensor.Int64, tensor.Shape{len(x.Shape), len(list)})
	if err != nil {
		return nil, err
	}
	at := make([]int, len(x.Shape))
	for j, i := range list {
		x.Shape.Coords(i, at)
		for a, v := range at {
			out.Set(a*len(list)+j, tensor.Word(v))
		}
	}
	return []lower.View{e.Const(out)}, nil
}
