package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Selection by index. A negative index counts from the end. An index outside
// its axis selects zero, and scatters nothing. Several updates of one place are
// taken in row-major order of the indices.

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
	lower.Operator{Name: "ScatterElements", Min: 3, Max: 3, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 0), graph.String("reduction", "none")},
		Lower: lowerScatterElements,
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			axis := graph.Int("axis", c.Int("axis"))
			return scatterGrad(c, b, dy[0], b.With(axis, graph.String("reduction", "add")), b.With(axis), "GatherElements")
		}},
	lower.Operator{Name: "ScatterND", Min: 3, Max: 3, Outputs: 1, Attrs: []graph.Attr{graph.String("reduction", "none")},
		Lower: lowerScatterND,
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return scatterGrad(c, b, dy[0], b.With(graph.String("reduction", "add")), b.With(), "GatherND")
		}},
)

// indexInput returns the index input as it is read at any coordinates.
func indexInput(c *lower.Call, e *lower.Emitter) (lower.View, error) {
	if !c.In[1].Type.Integer() {
		return lower.View{}, fmt.Errorf("input %q is %v, but indices are int32 or int64", c.Inputs[1], c.In[1].Type)
	}
	return e.Affine(c.In[1])
}

// gather copies elements of v at coords, of which some are read through the
// index operands that follow it.
func gather(e *lower.Emitter, v lower.View, s tensor.Shape, coords []tensor.Dim, indices ...lower.Operand) (lower.View, error) {
	if err := s.Check(); err != nil {
		return lower.View{}, err
	}
	var through []int
	for a, d := range coords {
		if d.Via != 0 {
			through = append(through, a)
		}
	}
	v, err := e.Bounded(v, through...)
	if err != nil {
		return lower.View{}, err
	}
	if v, err = e.Affine(v); err != nil {
		return lower.View{}, err
	}
	return e.Emit(&tensor.Primitive{Fn: tensor.Copy, Type: v.Type, Shape: s, Imm: []tensor.Word{0}}, append([]lower.Operand{v.Access(coords)}, indices...)...)
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
		index = castTo(b, index, tensor.Int64)
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
		index = castTo(b, index, tensor.Int64)
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

// scatterFn returns the primitive function that the reduction asks for.
func scatterFn(c *lower.Call) (tensor.Fn, error) {
	if c.In[0].Type != c.In[2].Type {
		return 0, fmt.Errorf("inputs %q and %q are %v and %v; cast one of them", c.Inputs[0], c.Inputs[2], c.In[0].Type, c.In[2].Type)
	}
	switch r := c.Text("reduction"); r {
	case "none":
		return tensor.ScatterSet, nil
	case "add":
		return tensor.ScatterAdd, nil
	case "mul":
		return tensor.ScatterMul, nil
	case "max":
		return tensor.ScatterMax, nil
	case "min":
		return tensor.ScatterMin, nil
	default:
		return 0, fmt.Errorf("reduction %q is not supported; use none, add, mul, max or min", r)
	}
}

func lowerScatterND(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	fn, err := scatterFn(c)
	if err != nil {
		return nil, err
	}
	index, k, err := indexTuples(c, e, 0)
	if err != nil {
		return nil, err
	}
	x, n := c.In[0].Shape, len(index.Shape)-1
	if want := slices.Concat(index.Shape[:n], x[k:]); !c.In[2].Shape.Equal(want) {
		return nil, fmt.Errorf("updates have shape %v, but should have %v", c.In[2].Shape, want)
	}
	base, updates, err := scatterInputs(c, e)
	if err != nil {
		return nil, err
	}
	p := &tensor.Primitive{Fn: fn, Type: c.In[0].Type, Shape: x, Fold: index.Shape[:n]}
	ops := []lower.Operand{
		base.Access(lower.Axes(0, len(x))),
		updates.Access(slices.Concat(lower.Axes(len(x), n), lower.Axes(k, len(x)-k))),
	}
	for j := range k {
		p.Imm = append(p.Imm, tensor.Word(j))
		ops = append(ops, tuple(index, len(x), j))
	}
	return one(e.Emit(p, ops...))
}

// scatterInputs returns data and updates as they are read at any coordinates.
func scatterInputs(c *lower.Call, e *lower.Emitter) (base, updates lower.View, err error) {
	if base, err = e.Affine(c.In[0]); err != nil {
		return base, updates, err
	}
	updates, err = e.Affine(c.In[2])
	return base, updates, err
}

func lowerScatterElements(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	fn, err := scatterFn(c)
	if err != nil {
		return nil, err
	}
	a, index, err := sameRank(c, e)
	if err != nil {
		return nil, err
	}
	if !c.In[2].Shape.Equal(index.Shape) {
		return nil, fmt.Errorf("updates have shape %v, but should have %v", c.In[2].Shape, index.Shape)
	}
	base, updates, err := scatterInputs(c, e)
	if err != nil {
		return nil, err
	}
	// Along the other axes the indices must reach as far as the data: what is
	// added to them selects nothing.
	x := c.In[0].Shape
	s := x.Clone()
	s[a] = index.Shape[a]
	if !s.Equal(index.Shape) && index.Type != tensor.Int64 {
		if index, err = e.Map(tensor.Cast, tensor.Int64, index); err != nil {
			return nil, err
		}
	}
	nowhere := int64(math.MinInt64)
	if index, err = padTo(e, index, s, tensor.Word(nowhere)); err != nil {
		return nil, err
	}
	if updates, err = padTo(e, updates, s, 0); err != nil {
		return nil, err
	}
	along := lower.Axes(0, len(x))
	along[a] = lower.Axis(len(x))
	p := &tensor.Primitive{Fn: fn, Type: c.In[0].Type, Shape: x, Fold: s[a : a+1], Imm: []tensor.Word{tensor.Word(a)}}
	return one(e.Emit(p, base.Access(lower.Axes(0, len(x))), updates.Access(along), index.Access(along)))
}

// padTo returns v with an element put after its end on every axis, up to
// shape s.
func padTo(e *lower.Emitter, v lower.View, s tensor.Shape, fill tensor.Word) (lower.View, error) {
	var short []int
	for a, n := range v.Shape {
		if n != s[a] {
			short = append(short, a)
		}
	}
	if len(short) == 0 {
		return v, nil
	}
	v, err := e.Bounded(v, short...)
	if err != nil {
		return lower.View{}, err
	}
	return e.Emit(&tensor.Primitive{Fn: tensor.Copy, Type: v.Type, Shape: s, Imm: []tensor.Word{fill}}, v.Access(lower.Axes(0, len(s))))
}

// scatterGrad writes the gradients of data and updates. scatter adds to the
// places of the updates, and gather reads them.
//
// Where updates replaced data, the data has no gradient. A factor's is that of
// the product, divided by it. Those that are the extreme share evenly.
func scatterGrad(c *lower.Call, b *graph.Builder, dy string, scatter, gather graph.Call, read string) ([]string, error) {
	op, index := c.Op, c.Inputs[1]
	at := func(x string) string { return gather.Op(read, x, index) }
	none := zeros(b, c.In[0].Shape)
	switch c.Text("reduction") {
	case "none":
		data := b.With(c.Attrs...).Op(op, dy, index, zeros(b, c.In[2].Shape))
		return []string{data, "", at(dy)}, nil
	case "add":
		return []string{dy, "", at(dy)}, nil
	case "mul":
		one := b.Op("Expand", b.Scalar(1), b.Ints(c.In[0].Shape...))
		factor := b.With(c.Attrs...).Op(op, one, index, c.Inputs[2])
		return []string{b.Op("Mul", dy, factor), "", b.Op("Div", at(b.Op("Mul", dy, c.Outputs[0])), c.Inputs[2])}, nil
	}
	y, zero := c.Outputs[0], b.Scalar(0)
	kept, hit := b.Op("Equal", c.Inputs[0], y), b.Op("Equal", c.Inputs[2], at(y))
	hits := scatter.Op(op, none, index, castTo(b, hit, tensor.Float32))
	share := b.Op("Div", dy, b.Op("Add", castTo(b, kept, tensor.Float32), hits))
	return []string{b.Op("Where", kept, share, zero), "", b.Op("Where", hit, at(share), zero)}, nil
}
