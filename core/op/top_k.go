package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// The greatest or least elements along an axis, in order.

var _ = define(
	lower.Operator{Name: "TopK", Min: 2, Max: 2, Outputs: 2, Lower: lowerTopK,
		Attrs: []graph.Attr{graph.Int("axis", -1), graph.Int("largest", 1), graph.Int("sorted", 1)},
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			if dy[0] == "" {
				return []string{"", ""}, nil
			}
			scatter := b.With(graph.Int("axis", c.Int("axis")), graph.String("reduction", "add"))
			return firstGrad(c, scatter.Op("ScatterElements", zeros(b, c.In[0].Shape), topKIndices(c, b), dy[0])), nil
		}},
)

// lowerTopK counts for every element how many come before it along the axis:
// that is its rank. The element of rank r goes to place r.
func lowerTopK(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	k, err := scalarInput(c, 1)
	if err != nil {
		return nil, err
	}
	x, err := e.Affine(c.In[0])
	if err != nil {
		return nil, err
	}
	a, err := axisOf(c.Int("axis"), len(x.Shape))
	if err != nil {
		return nil, err
	}
	n := x.Shape[a]
	if k < 0 || k > n || !x.Type.Numeric() {
		return nil, fmt.Errorf("there are no %d first of the %d %v elements of axis %d", k, n, x.Type, a)
	}
	ascending := tensor.Word(1)
	if c.Flag("largest") {
		ascending = 0
	}
	rank := len(x.Shape)
	terms := lower.Axes(0, rank)
	terms[a] = lower.Axis(rank)
	ranks, err := e.Emit(&tensor.Primitive{
		Fn: tensor.Before, Type: tensor.Int64, Shape: x.Shape, Fold: []int{n}, Imm: []tensor.Word{tensor.Word(a), ascending},
	}, x.Access(terms), x.Access(lower.Axes(0, rank)))
	if err != nil {
		return nil, err
	}
	place, err := rangeView(e, n)
	if err != nil {
		return nil, err
	}
	s := x.Shape.Clone()
	s[a] = k
	zero := e.Const(scalarOf(tensor.Int64, 0)).Broadcast(s)
	index, err := e.Emit(&tensor.Primitive{
		Fn: tensor.ScatterSet, Type: tensor.Int64, Shape: s, Fold: []int{n}, Imm: []tensor.Word{tensor.Word(a)},
	}, zero.Access(lower.Axes(0, rank)), place.Access([]tensor.Dim{lower.Axis(rank)}), ranks.Access(terms))
	if err != nil {
		return nil, err
	}
	coords := lower.Axes(0, rank)
	coords[a] = tensor.Dim{Via: 1}
	values, err := gather(e, x, s, coords, index.Access(lower.Axes(0, rank)))
	return []lower.View{values, index}, err
}

// topKIndices returns the indices that TopK gives, if need be by doing it again.
func topKIndices(c *lower.Call, b *graph.Builder) string {
	if len(c.Outputs) > 1 && c.Outputs[1] != "" {
		return c.Outputs[1]
	}
	return b.With(c.Attrs...).Ops("TopK", 2, c.Inputs...)[1]
}
