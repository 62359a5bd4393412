package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

var _ = define(
	lower.Operator{Name: "OneHot", Min: 3, Max: 3, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", -1)}, Expand: expandOneHot},
)

// expandOneHot compares the indices, of which negative ones count from the
// end, with the places along the new axis.
func expandOneHot(c *lower.Call, b *graph.Builder) ([]string, error) {
	index, values := c.In[0], c.In[2]
	depth, err := scalarInput(c, 1)
	if err != nil {
		return nil, err
	}
	if depth < 0 || depth > tensor.MaxDim {
		return nil, fmt.Errorf("the depth is %d", depth)
	}
	a, err := axisOf(c.Int("axis"), len(index.Shape)+1)
	if err != nil {
		return nil, err
	}
	if !index.Type.Numeric() || !values.Shape.Equal(tensor.Shape{2}) {
		return nil, fmt.Errorf("indices are %v and the values %v%v, but should be numbers and two values", index.Type, values.Type, values.Shape)
	}
	s := slices.Insert(index.Shape.Clone(), a, depth)
	if err := s.Check(); err != nil {
		return nil, err
	}
	at := c.Inputs[0]
	if index.Type == tensor.Uint64 { // that int64 does not hold is out of reach
		top := tensor.Must(tensor.New(tensor.Uint64, tensor.Shape{}))
		top.Set(0, tensor.Word(depth))
		at = b.Op("Min", at, b.Const(top))
	}
	at = b.Cast(at, tensor.Int64)
	at = b.Op("Where", b.Op("Less", at, int64Const(b, 0)), b.Op("Add", at, int64Const(b, depth)), at)
	hot := b.Op("Equal", b.Op("Unsqueeze", at, b.Ints(a)), positions(b, s, a))
	value := func(i int) string { return b.With(graph.Int("axis", 0)).Op("Gather", c.Inputs[2], int64Const(b, i)) }
	return []string{b.Op("Where", hot, value(1), value(0))}, nil
}
