package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Selection by index. A negative index counts from the end. An index outside
// its axis selects zero.

var _ = define(
	lower.Operator{Name: "Gather", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 0)}, Lower: lowerGather, Grad: gatherGrad},
	lower.Operator{Name: "GatherElements", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 0)}, Lower: lowerGatherElements,
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			scatter := b.With(graph.Int("axis", c.Int("axis")), graph.String("reduction", "add"))
			return []string{scatter.Op("ScatterElements", zeros(b, c.In[0].Shape), c.Inputs[1], dy[0]), ""}, nil
		}},
	lower.Operator{Name: "GatherND", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("batch_dims", 0)}, Lower: lowerGatherND,
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			scatter := b.With(graph.String("reduction", "add"))
			return []string{scatter.Op("ScatterND", zeros(b, c.In[0].Shape), batchIndices(c, b), dy[0]), ""}, nil
		}},
)

// indexInput returns the index input as it is read at any coordinates.
func indexInput(c *lower.Call, e *lower.Emitter) (lower.View, error) {
	if !c.In[1].Type.Integer() {
		return lower.View{}, fmt.Errorf("input %q is %v, but indices are int32 or int64", c.Inputs[1], c.In[1].Type)
	}
	return e.Affine(c.In[1])
}

func lowerGather(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	x := c.In[0].Shape
	a, err := axisOf(c.Int("axis"), len(x))
	if err != nil {
		return nil, err
	}
	index, err := indexInput(c, e)
	if err != nil {
		return nil, err
	}
	n := len(index.Shape)
	s := slices.Concat(x[:a], index.Shape, x[a+1:])
	coords := slices.Concat(lower.Axes(0, a), []tensor.Dim{{Via: 1}}, lower.Axes(a+n, len(x)-a-1))
	return one(gather(e, c.In[0], s, coords, index.Access(lower.Axes(a, n))))
}

// gatherGrad adds each gradient to the place that it was gathered from.
func gatherGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	x, n := c.In[0].Shape, len(c.In[1].Shape)
	a, err := axisOf(c.Int("axis"), len(x))
	if err != nil {
		return nil, err
	}
	// ScatterND takes its indices from the first axis, so that axis a goes there.
	front, updates := []int{a}, []int{}
	for i := range x {
		if i != a {
			front = append(front, i)
		}
	}
	for i := range n {
		updates = append(updates, a+i)
	}
	for i := range c.Out[0].Shape {
		if i < a || i >= a+n {
			updates = append(updates, i)
		}
	}
	moved, back := make(tensor.Shape, len(x)), make([]int, len(x))
	for i, p := range front {
		moved[i], back[p] = x[p], i
	}
	index := b.Op("Unsqueeze", c.Inputs[1], b.Ints(n))
	if c.In[1].Type != tensor.Int64 {
		index = b.Cast(index, tensor.Int64)
	}
	g := dy[0]
	if a != 0 {
		g = b.With(graph.Ints("perm", updates...)).Op("Transpose", g)
	}
	g = b.With(graph.String("reduction", "add")).Op("ScatterND", zeros(b, moved), index, g)
	if a != 0 {
		g = b.With(graph.Ints("perm", back...)).Op("Transpose", g)
	}
	return []string{g, ""}, nil
}

// sameRank returns the axis of an operator whose indices have a place for each
// axis of its data.
func sameRank(c *lower.Call, e *lower.Emitter) (a int, index lower.View, err error) {
	x := c.In[0].Shape
	if a, err = axisOf(c.Int("axis"), len(x)); err != nil {
		return 0, lower.View{}, err
	}
	if index, err = indexInput(c, e); err != nil {
		return 0, lower.View{}, err
	}
	if len(index.Shape) != len(x) {
		return 0, lower.View{}, fmt.Errorf("indices of shape %v do not go with data of shape %v", index.Shape, x)
	}
	for i, n := range index.Shape {
		if i != a && n > x[i] {
			return 0, lower.View{}, fmt.Errorf("indices of shape %v reach outside data of shape %v", index.Shape, x)
		}
	}
	return a, index, nil
}

func lowerGatherElements(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	a, index, err := sameRank(c, e)
	if err != nil {
		return nil, err
	}
	coords := lower.Axes(0, len(index.Shape))
	coords[a] = tensor.Dim{Via: 1}
	return one(gather(e, c.In[0], index.Shape, coords, index.Access(lower.Axes(0, len(index.Shape)))))
}

// indexTuples returns the indices of GatherND and ScatterND, and how many axes each
// of them selects, after those of a batch.
func indexTuples(c *lower.Call, e *lower.Emitter, batch int) (index lower.View, k int, err error) {
	if index, err = indexInput(c, e); err != nil {
		return lower.View{}, 0, err
	}
	x, n := c.In[0].Shape, len(index.Shape)-1
	if n >= 0 {
		k = index.Shape[n]
	}
	if n < 0 || k < 1 || batch < 0 || batch > n || batch+k > len(x) || !x[:batch].Equal(index.Shape[:batch]) {
		return lower.View{}, 0, fmt.Errorf("indices of shape %v do not select from data of shape %v with %d axes of batches", index.Shape, x, batch)
	}
	return index, k, nil
}

// tuple reads entry j of the index tuples, whose other coordinates are the n
// axes from the first on.
func tuple(index lower.View, first, j int) lower.Operand {
	n := len(index.Shape) - 1
	return index.Access(append(lower.Axes(first, n), tensor.Dim{Offset: j}))
}

func lowerGatherND(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	batch := c.Int("batch_dims")
	index, k, err := indexTuples(c, e, batch)
	if err != nil {
		return nil, err
	}
	x, n := c.In[0].Shape, len(index.Shape)-1
	s := slices.Concat(index.Shape[:n], x[batch+k:])
	coords := slices.Concat(lower.Axes(0, batch), make([]tensor.Dim, k), lower.Axes(n, len(x)-batch-k))
	ops := make([]lower.Operand, k)
	for j := range ops {
		coords[batch+j] = tensor.Dim{Via: 1 + j}
		ops[j] = tuple(index, 0, j)
	}
	return one(gather(e, c.In[0], s, coords, ops...))
}

// batchIndices writes the indices of a GatherND as they are without a batch:
// the coordinates of the batch come first in each tuple.
func batchIndices(c *lower.Call, b *graph.Builder) string {
	index, s := c.Inputs[1], c.In[1].Shape
	if c.Int("batch_dims") == 0 {
		return index
	}
	if c.In[1].Type != tensor.Int64 {
		index = b.Cast(index, tensor.Int64)
	}
	s = s.Clone()
	s[len(s)-1] = 1
	var parts []string
	for a := range c.Int("batch_dims") {
		along := make(tensor.Shape, len(s))
		for i := range along {
			along[i] = 1
		}
		along[a] = s[a]
		parts = append(parts, b.Op("Expand", b.Op("Reshape", rangeNode(b, s[a]), b.Ints(along...)), b.Ints(s...)))
	}
	return b.With(graph.Int("axis", -1)).Op("Concat", append(parts, index)...)
}
