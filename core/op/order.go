package op

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Order and choice by value. Where the values decide how many elements there
// are, they must be constant.

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
	lower.Operator{Name: "Compress", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 0)}, Expand: expandCompress},
	lower.Operator{Name: "NonZero", Min: 1, Max: 1, Outputs: 1, Lower: lowerNonZero},
	lower.Operator{Name: "Unique", Min: 1, Max: 1, Outputs: 4, Attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("sorted", 1)}, Lower: lowerUnique},
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

// order compares two elements; all NaNs are one, above all numbers.
func order(t tensor.DType, x, y tensor.Word) int {
	switch {
	case t.Float():
		return -cmp.Compare(-tensor.FloatOf(t, x), -tensor.FloatOf(t, y))
	case t.Signed():
		return cmp.Compare(int64(x), int64(y))
	}
	return cmp.Compare(x, y)
}

// lowerUnique finds the different parts of a constant along an axis, or its
// different elements: those parts, where each comes first, which of them each
// part is, and how often each comes.
func lowerUnique(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	x, err := c.Constant(0)
	if err != nil {
		return nil, err
	}
	if err := c.Account.Charge(x.Len() * bits.Len(uint(x.Len()))); err != nil {
		return nil, err
	}
	s, a := x.Shape, 0
	if c.Node.Attr("axis") == nil {
		s = tensor.Shape{x.Len()}
	} else if a, err = axisOf(c.Int("axis"), len(s)); err != nil {
		return nil, err
	}
	n, inner := s[a], s[a+1:].Elements()
	size := s[:a].Elements() * inner // of a part
	at := func(part, j int) int { return (j/max(inner, 1)*n+part)*inner + j%max(inner, 1) }
	compare := func(p, q int) int {
		for j := range size {
			if o := order(x.Type, x.At(at(p, j)), x.At(at(q, j))); o != 0 {
				return o
			}
		}
		return 0
	}
	first, kind := kinds(n, compare)
	number := make([]int, len(first)) // of each kind among the results
	for i := range number {
		number[i] = i
	}
	if !c.Flag("sorted") {
		slices.SortFunc(number, func(i, j int) int { return cmp.Compare(first[i], first[j]) })
	}
	place := make([]int, len(first))
	counts := make([]int, len(first))
	for i, k := range number {
		place[k] = i
	}
	shape := s.Clone()
	shape[a] = len(first)
	y, err := tensor.New(x.Type, shape)
	if err != nil {
		return nil, err
	}
	for i, k := range number {
		for j := range size {
			y.Set((j/inner*len(first)+i)*inner+j%inner, x.At(at(first[k], j)))
		}
	}
	for p, k := range kind {
		kind[p] = place[k]
		counts[place[k]]++
	}
	slices.Sort(first)
	firsts := make([]int, len(first))
	for p, k := range slices.Backward(kind) {
		firsts[k] = p
	}
	out := []lower.View{e.Const(y)}
	for _, list := range [][]int{firsts, kind, counts} {
		t, err := int64s(list)
		if err != nil {
			return nil, err
		}
		out = append(out, e.Const(t))
	}
	return out, nil
}

// kinds sorts n parts, and returns the first part of each kind, in their order, and the
// kind of each part.
func kinds(n int, compare func(p, q int) int) (first, kind []int) {
	sorted := make([]int, n)
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortStableFunc(sorted, compare)
	kind = make([]int, n)
	for i, p := range sorted {
		if i == 0 || compare(sorted[i-1], p) != 0 {
			first = append(first, p)
		}
		kind[p] = len(first) - 1
	}
	return first, kind
}

// int64s returns a list as a tensor of one axis.
func int64s(list []int) (*tensor.Tensor, error) {
	t, err := tensor.New(tensor.Int64, tensor.Shape{len(list)})
	if err != nil {
		return nil, err
	}
	for i, v := range list {
		t.Set(i, tensor.Word(v))
	}
	return t, nil
}
