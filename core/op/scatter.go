package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Updates of places by index. An index outside its axis scatters nothing. Several
// updates of one place are taken in row-major order of the indices.

var _ = define(
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
	lower.Operator{Name: "TensorScatter", Min: 2, Max: 3, Outputs: 1, Expand: expandTensorScatter,
		Attrs: []graph.Attr{graph.Int("axis", -2), graph.String("mode", "linear")}},
)

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
	hits := scatter.Op(op, none, index, b.Cast(hit, tensor.Float32))
	share := b.Op("Div", dy, b.Op("Add", b.Cast(kept, tensor.Float32), hits))
	return []string{b.Op("Where", kept, share, zero), "", b.Op("Where", hit, at(share), zero)}, nil
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
