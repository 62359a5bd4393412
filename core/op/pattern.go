package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Patterns: counting, repeating, and what follows from the place of an element.

var _ = define(
	lower.Operator{Name: "Range", Min: 3, Max: 3, Outputs: 1, Attrs: []graph.Attr{graph.Int("stash_type", int(tensor.Float32))}, Lower: lowerRange},
	lower.Operator{Name: "Size", Min: 1, Max: 1, Outputs: 1,
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			return []lower.View{e.Const(tensor.Scalar(int64(c.In[0].Shape.Elements())))}, nil
		}},
	lower.Operator{Name: "Tile", Min: 2, Max: 2, Outputs: 1, Expand: expandTile},
	lower.Operator{Name: "OneHot", Min: 3, Max: 3, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", -1)}, Expand: expandOneHot},
	lower.Operator{Name: "Trilu", Min: 1, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("upper", 1)}, Expand: expandTrilu},
	lower.Operator{Name: "EyeLike", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("dtype", 0), graph.Int("k", 0)}, Expand: expandEyeLike},
)

// int64Const is the name of a constant integer without axes.
func int64Const(b *graph.Builder, v int) string { return b.Const(tensor.Scalar(int64(v))) }

// rangeNode writes 0, 1, … n−1.
func rangeNode(b *graph.Builder, n int) string {
	return b.Op("Range", int64Const(b, 0), int64Const(b, n), int64Const(b, 1))
}

// positions writes the coordinate on axis a of each element of shape s, with
// extent 1 on the other axes.
func positions(b *graph.Builder, s tensor.Shape, a int) string {
	along := make([]int, len(s))
	for i := range along {
		along[i] = 1
	}
	along[a] = s[a]
	return reshaped(b, rangeNode(b, s[a]), tensor.Shape{s[a]}, along)
}

// countSide is the length of the constants that longer counts are made of.
const countSide = 1 << 12

// rangeView returns 0, 1, … n−1. It holds constants of little more than the root
// of n, so that a hostile n takes no memory.
func rangeView(e *lower.Emitter, n int) (lower.View, error) {
	if n <= countSide {
		t, err := tensor.New(tensor.Int64, tensor.Shape{n})
		if err != nil {
			return lower.View{}, err
		}
		for i := range n {
			t.Set(i, tensor.Word(i))
		}
		return e.Const(t), nil
	}
	rows := (n + countSide - 1) / countSide
	high, err := rangeView(e, rows)
	if err != nil {
		return lower.View{}, err
	}
	low, err := rangeView(e, countSide)
	if err != nil {
		return lower.View{}, err
	}
	if high, err = e.Reshape(high, tensor.Shape{rows, 1}); err != nil {
		return lower.View{}, err
	}
	if high, err = e.Map(tensor.Mul, tensor.Int64, high, e.Const(scalarOf(tensor.Int64, countSide))); err != nil {
		return lower.View{}, err
	}
	v, err := e.Map(tensor.Add, tensor.Int64, high, low)
	if err != nil {
		return lower.View{}, err
	}
	if v, err = e.Reshape(v, tensor.Shape{rows * countSide}); err != nil {
		return lower.View{}, err
	}
	if v, err = e.Affine(v); err != nil {
		return lower.View{}, err
	}
	return v.Sliced(0, 0, 1, n), nil
}

// lowerRange gives start + i·delta; with halves that is computed in float32.
func lowerRange(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	if err := wantOneType(c, 0); err != nil {
		return nil, err
	}
	t := c.In[0].Type
	var in [3]tensor.Word
	for i := range in {
		x, err := c.Constant(i)
		if err != nil {
			return nil, err
		}
		if x.Len() != 1 || !t.Numeric() {
			return nil, fmt.Errorf("input %q is %v%v, but should be one number", c.Inputs[i], t, x.Shape)
		}
		in[i] = x.At(0)
	}
	n, err := steps(t, in[0], in[1], in[2])
	if err != nil {
		return nil, err
	}
	v, err := rangeView(e, n)
	if err != nil {
		return nil, err
	}
	of := t // that it is computed in
	if t.Half() {
		switch c.Int("stash_type") {
		case int(tensor.Float32):
			of = tensor.Float32
		case int(t):
		default:
			return nil, fmt.Errorf("stash_type %d is not supported; use 1 (float32)", c.Int("stash_type"))
		}
	}
	cast := func(v lower.View, to tensor.DType) lower.View {
		if err == nil && v.Type != to {
			v, err = e.Map(tensor.Cast, to, v)
		}
		return v
	}
	term := func(i int) lower.View {
		x := tensor.Must(tensor.New(t, tensor.Shape{}))
		x.Set(0, in[i])
		return cast(e.Const(x), of)
	}
	delta, start := term(2), term(0)
	if v = cast(v, of); err == nil {
		v, err = e.Map(tensor.Mul, of, v, delta)
	}
	if err == nil {
		v, err = e.Map(tensor.Add, of, v, start)
	}
	return one(cast(v, t), err)
}

// steps returns how many steps of delta lead from start to below limit.
func steps(t tensor.DType, start, limit, delta tensor.Word) (int, error) {
	refuse := fmt.Errorf("the range has no end; its limits must be numbers and its step not 0")
	n := 0.0
	switch {
	case t.Float():
		n = math.Ceil((tensor.FloatOf(t, limit) - tensor.FloatOf(t, start)) / tensor.FloatOf(t, delta))
	case t.Unsigned():
		if delta == 0 {
			return 0, refuse
		}
		if limit > start {
			n = float64((limit-start-1)/delta + 1)
		}
	default:
		from, to, by := int64(start), int64(limit), int64(delta)
		switch {
		case by == 0:
			return 0, refuse
		case by > 0 && to > from:
			n = float64((uint64(to)-uint64(from)-1)/uint64(by) + 1)
		case by < 0 && to < from:
			n = float64((uint64(from)-uint64(to)-1)/-uint64(by) + 1)
		}
	}
	switch {
	case n != n || math.IsInf(n, 0):
		return 0, refuse
	case n > tensor.MaxDim:
		return 0, fmt.Errorf("the range has more than 2^40 elements")
	}
	return int(max(n, 0)), nil
}

// expandTile repeats one axis after the other, the last one first.
func expandTile(c *lower.Call, b *graph.Builder) ([]string, error) {
	repeats, err := intsInput(c, 1)
	if err != nil {
		return nil, err
	}
	s := c.In[0].Shape.Clone()
	if len(repeats) != len(s) {
		return nil, fmt.Errorf("%d repeats are given for %d axes", len(repeats), len(s))
	}
	x := c.Inputs[0]
	for a, n := range slices.Backward(repeats) {
		if n < 0 || n > tensor.MaxDim {
			return nil, fmt.Errorf("axis %d is to be repeated %d times", a, n)
		}
		if n == 1 {
			continue
		}
		apart := tensor.Shape{s[:a].Elements(), 1, s[a:].Elements()}
		times := tensor.Shape{apart[0], n, apart[2]}
		x = reshaped(b, x, s, apart)
		x = b.Op("Expand", x, b.Ints(times...))
		s[a] *= n
		if err := s.Check(); err != nil {
			return nil, err
		}
		x = reshaped(b, x, times, s)
	}
	if x == c.Inputs[0] {
		x = b.Op("Identity", x)
	}
	return []string{x}, nil
}

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
	at = castTo(b, at, tensor.Int64)
	at = b.Op("Where", b.Op("Less", at, int64Const(b, 0)), b.Op("Add", at, int64Const(b, depth)), at)
	hot := b.Op("Equal", b.Op("Unsqueeze", at, b.Ints(a)), positions(b, s, a))
	value := func(i int) string { return b.With(graph.Int("axis", 0)).Op("Gather", c.Inputs[2], int64Const(b, i)) }
	return []string{b.Op("Where", hot, value(1), value(0))}, nil
}

// scalarInput returns the one constant number of input i, truncated.
func scalarInput(c *lower.Call, i int) (int, error) {
	t, err := c.Constant(i)
	if err != nil {
		return 0, err
	}
	if t.Len() != 1 || !t.Type.Numeric() {
		return 0, fmt.Errorf("input %q is %v%v, but should be one number", c.Inputs[i], t.Type, t.Shape)
	}
	if t.Type.Float() {
		v := tensor.FloatOf(t.Type, t.At(0))
		if !(v > -tensor.MaxDim && v < tensor.MaxDim) {
			return 0, fmt.Errorf("input %q is %v, which is out of range", c.Inputs[i], v)
		}
		return int(v), nil
	}
	return int(t.At(0)), nil
}

// diagonals writes column − row of each element of the matrices of shape s.
func diagonals(b *graph.Builder, s tensor.Shape) string {
	m := s[len(s)-2:]
	return b.Op("Sub", positions(b, m, 1), positions(b, m, 0))
}

func expandTrilu(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	if len(s) < 2 {
		return nil, fmt.Errorf("input %q has shape %v, but should be matrices", c.Inputs[0], s)
	}
	k := int64Const(b, 0)
	if c.Has(1) {
		if c.In[1].Type != tensor.Int64 || c.In[1].Shape.Elements() != 1 {
			return nil, fmt.Errorf("input %q is %v%v, but should be one int64", c.Inputs[1], c.In[1].Type, c.In[1].Shape)
		}
		k = reshaped(b, c.Inputs[1], c.In[1].Shape, tensor.Shape{})
	}
	keep := "LessOrEqual"
	if c.Flag("upper") {
		keep = "GreaterOrEqual"
	}
	inside := b.Op(keep, diagonals(b, s), k)
	return []string{b.Op("Where", inside, c.Inputs[0], b.Const(scalarOf(c.In[0].Type, 0)))}, nil
}

func expandEyeLike(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	if len(s) != 2 {
		return nil, fmt.Errorf("input %q has shape %v, but should be a matrix", c.Inputs[0], s)
	}
	to := int(c.In[0].Type)
	if c.Node.Attr("dtype") != nil {
		to = c.Int("dtype")
	}
	return []string{b.With(graph.Int("to", to)).Op("Cast", b.Op("Equal", diagonals(b, s), int64Const(b, c.Int("k"))))}, nil
}
