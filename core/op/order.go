package op

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Order and choice by value. Where the values decide how many elements there
// are, they must be constant.

var _ = define(
	Def{Name: "TopK", Min: 2, Max: 2, Outputs: 2, Lower: lowerTopK,
		Attrs: []graph.Attr{graph.Int("axis", -1), graph.Int("largest", 1), graph.Int("sorted", 1)},
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			if dy[0] == "" {
				return []string{"", ""}, nil
			}
			scatter := b.With(graph.Int("axis", c.int("axis")), graph.String("reduction", "add"))
			return c.only(scatter.Op("ScatterElements", zeros(b, c.In[0].Shape), c.chosen(b), dy[0])), nil
		}},
	Def{Name: "Compress", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 0)}, Expand: expandCompress},
	Def{Name: "NonZero", Min: 1, Max: 1, Outputs: 1, Lower: lowerNonZero},
	Def{Name: "Unique", Min: 1, Max: 1, Outputs: 4, Attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("sorted", 1)}, Lower: lowerUnique},
)

// lowerTopK counts for every element how many come before it along the axis:
// that is its rank. The element of rank r goes to place r.
func lowerTopK(c *Call) ([]view, error) {
	k, err := c.scalar(1)
	if err != nil {
		return nil, err
	}
	x, err := c.l.affine(c.In[0])
	if err != nil {
		return nil, err
	}
	a, err := axisOf(c.int("axis"), len(x.Shape))
	if err != nil {
		return nil, err
	}
	n := x.Shape[a]
	if k < 0 || k > n || !x.Type.Numeric() {
		return nil, fmt.Errorf("there are no %d first of the %d %v elements of axis %d", k, n, x.Type, a)
	}
	ascending := tensor.Word(1)
	if c.flag("largest") {
		ascending = 0
	}
	rank := len(x.Shape)
	terms := axes(0, rank)
	terms[a] = axis(rank)
	ranks, err := c.l.emit(&tensor.Primitive{
		Fn: tensor.Before, Type: tensor.Int64, Shape: x.Shape, Fold: []int{n}, Imm: []tensor.Word{tensor.Word(a), ascending},
	}, x.access(terms), x.access(axes(0, rank)))
	if err != nil {
		return nil, err
	}
	place, err := c.l.count(n)
	if err != nil {
		return nil, err
	}
	s := x.Shape.Clone()
	s[a] = k
	zero := c.l.hold(number(tensor.Int64, 0)).broadcast(s)
	index, err := c.l.emit(&tensor.Primitive{
		Fn: tensor.ScatterSet, Type: tensor.Int64, Shape: s, Fold: []int{n}, Imm: []tensor.Word{tensor.Word(a)},
	}, zero.access(axes(0, rank)), place.access([]tensor.Dim{axis(rank)}), ranks.access(terms))
	if err != nil {
		return nil, err
	}
	coords := axes(0, rank)
	coords[a] = tensor.Dim{Via: 1}
	values, err := c.l.gather(x, s, coords, index.access(axes(0, rank)))
	return []view{values, index}, err
}

// chosen returns the indices that TopK gives, if need be by doing it again.
func (c *Call) chosen(b *graph.Builder) string {
	if len(c.Outputs) > 1 && c.Outputs[1] != "" {
		return c.Outputs[1]
	}
	return b.With(c.Attrs...).Ops("TopK", 2, c.Inputs...)[1]
}

// expandCompress gathers what a constant condition selects.
func expandCompress(c *Call, b *graph.Builder) ([]string, error) {
	condition, err := c.constant(1)
	if err != nil {
		return nil, err
	}
	x, s, a := c.Inputs[0], c.In[0].Shape, 0
	if c.Node.Attr("axis") == nil {
		flat := tensor.Shape{s.Elements()}
		x, s = reshaped(b, x, s, flat), flat
	} else if a, err = axisOf(c.int("axis"), len(s)); err != nil {
		return nil, err
	}
	if condition.Type != tensor.Bool || len(condition.Shape) != 1 {
		return nil, fmt.Errorf("input %q is %v%v, but should be a list of bool", c.Inputs[1], condition.Type, condition.Shape)
	}
	list, err := c.l.places(condition)
	if err != nil {
		return nil, err
	}
	if n := len(list); n > 0 && list[n-1] >= s[a] {
		return nil, fmt.Errorf("the condition selects element %d of the %d of axis %d", list[n-1], s[a], a)
	}
	selected, err := c.integers(tensor.Shape{len(list)}, func(i int) int { return list[i] })
	if err != nil {
		return nil, err
	}
	return []string{b.With(graph.Int("axis", a)).Op("Gather", x, b.Const(selected))}, nil
}

// places returns the flat indices of the elements of a constant that are not 0.
func (l *lowering) places(x *tensor.Tensor) ([]int, error) {
	if err := l.charge(x.Len()); err != nil {
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
	if err := l.afford(8 * n); err != nil {
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
func lowerNonZero(c *Call) ([]view, error) {
	x, err := c.constant(0)
	if err != nil {
		return nil, err
	}
	list, err := c.l.places(x)
	if err != nil {
		return nil, err
	}
	out, err := c.l.room(tensor.Int64, tensor.Shape{len(x.Shape), len(list)})
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
	return []view{c.l.hold(out)}, nil
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
func lowerUnique(c *Call) ([]view, error) {
	x, err := c.constant(0)
	if err != nil {
		return nil, err
	}
	if err := c.l.charge(x.Len() * bits.Len(uint(x.Len()))); err != nil {
		return nil, err
	}
	s, a := x.Shape, 0
	if c.Node.Attr("axis") == nil {
		s = tensor.Shape{x.Len()}
	} else if a, err = axisOf(c.int("axis"), len(s)); err != nil {
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
	if !c.flag("sorted") {
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
	out := []view{c.l.hold(y)}
	for _, list := range [][]int{firsts, kind, counts} {
		t, err := int64s(list)
		if err != nil {
			return nil, err
		}
		out = append(out, c.l.hold(t))
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
