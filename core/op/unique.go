package op

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Different elements. The values decide how many there are, so they must be constant.

var _ = define(
	lower.Operator{Name: "Unique", Min: 1, Max: 1, Outputs: 4, Attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("sorted", 1)}, Lower: lowerUnique},
)

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
