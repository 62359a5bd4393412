package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Sequences of a batch, each with a length or a place of its own.

var _ = define(
	lower.Operator{Name: "ReverseSequence", Min: 2, Max: 2, Outputs: 1, Expand: expandReverseSequence,
		Attrs: []graph.Attr{graph.Int("batch_axis", 1), graph.Int("time_axis", 0)}},
	lower.Operator{Name: "TensorScatter", Min: 2, Max: 3, Outputs: 1, Expand: expandTensorScatter,
		Attrs: []graph.Attr{graph.Int("axis", -2), graph.String("mode", "linear")}},
)

// perSequence gives a list with an entry for each sequence of a batch as many
// axes as a tensor of the given rank has; its own is axis a.
func perSequence(c *lower.Call, b *graph.Builder, i, n, a, rank int) (string, error) {
	if c.In[i].Type != tensor.Int64 && c.In[i].Type != tensor.Int32 || !c.In[i].Shape.Equal(tensor.Shape{n}) {
		return "", fmt.Errorf("input %q is %v%v, but should be %d integers", c.Inputs[i], c.In[i].Type, c.In[i].Shape, n)
	}
	s := make(tensor.Shape, rank)
	for d := range s {
		s[d] = 1
	}
	s[a] = n
	list := reshaped(b, c.Inputs[i], c.In[i].Shape, s)
	if c.In[i].Type != tensor.Int64 {
		list = castTo(b, list, tensor.Int64)
	}
	return list, nil
}

// expandReverseSequence gathers, at time t of a sequence of length n, from
// n−1−t if that is not before the start, else from t.
func expandReverseSequence(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	time, batch := c.Int("time_axis"), c.Int("batch_axis")
	if len(s) < 2 || time+batch != 1 || time*batch != 0 {
		return nil, fmt.Errorf("time axis %d and batch axis %d of shape %v; they should be axes 0 and 1", time, batch, s)
	}
	length, err := perSequence(c, b, 1, s[batch], batch, len(s))
	if err != nil {
		return nil, err
	}
	at := positions(b, s, time)
	mirrored := b.Op("Sub", b.Op("Sub", length, int64Const(b, 1)), at)
	from := b.Op("Where", b.Op("Less", at, length), mirrored, at)
	return []string{b.With(graph.Int("axis", time)).Op("GatherElements", c.Inputs[0], b.Op("Expand", from, b.Ints(s...)))}, nil
}

// expandTensorScatter writes the update at the place of its sequence, in
// circular mode modulo the extent of the cache.
func expandTensorScatter(c *lower.Call, b *graph.Builder) ([]string, error) {
	if c.In[0].Type != c.In[1].Type {
		return nil, fmt.Errorf("inputs %q and %q are %v and %v; cast one of them", c.Inputs[0], c.Inputs[1], c.In[0].Type, c.In[1].Type)
	}
	s, u := c.In[0].Shape, c.In[1].Shape
	a, err := axisOf(c.Int("axis"), len(s))
	if err != nil {
		return nil, err
	}
	same := u.Clone()
	if len(u) == len(s) {
		same[a] = s[a]
	}
	if a == 0 || !same.Equal(s) || u[a] > s[a] {
		return nil, fmt.Errorf("an update of shape %v does not go into a cache of shape %v along axis %d", u, s, a)
	}
	at := positions(b, u, a)
	if c.Has(2) {
		start, err := perSequence(c, b, 2, s[0], 0, len(s))
		if err != nil {
			return nil, err
		}
		at = b.Op("Add", at, start)
	}
	switch m := c.Text("mode"); m {
	case "linear":
	case "circular":
		n := int64Const(b, s[a])
		at = b.Op("Sub", at, b.Op("Mul", b.Op("Div", at, n), n)) // a negative rest counts from the end
	default:
		return nil, fmt.Errorf("mode %q is not supported; use linear or circular", m)
	}
	return []string{b.With(graph.Int("axis", a)).Op("ScatterElements", c.Inputs[0], b.Op("Expand", at, b.Ints(u...)), c.Inputs[1])}, nil
}
