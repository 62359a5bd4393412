package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// What lowerings of several families emit.

// one is the list of a single output.
func one(v lower.View, err error) ([]lower.View, error) { return []lower.View{v}, err }

// floatMap lowers an operator to a map primitive on floats.
func floatMap(fn tensor.Fn) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		if err := wantFloats(c); err != nil {
			return nil, err
		}
		v, err := e.Map(fn, c.In[0].Type, c.In[0])
		if err != nil && c.In[0].Type == tensor.Float64 {
			err = fmt.Errorf("it is not defined on float64; cast input %q to float32: %w", c.Inputs[0], err)
		}
		return one(v, err)
	}
}

// productType is the type in which products of a type are summed.
func productType(t tensor.DType) tensor.DType {
	switch {
	case t.Half():
		return tensor.Float32
	case t.Size() == 1:
		return tensor.Int32
	}
	return t
}

// dropAxes returns v without the given axes, which have extent 1.
func dropAxes(e *lower.Emitter, v lower.View, over []int) (lower.View, error) {
	s := tensor.Shape{}
	for a, n := range v.Shape {
		if len(over) > 0 && over[0] == a {
			over = over[1:]
			continue
		}
		s = append(s, n)
	}
	return e.Reshape(v, s)
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

// concatViews puts any number of tensors one after another along axis a.
func concatViews(e *lower.Emitter, in []lower.View, a int) (lower.View, error) {
	for len(in) > tensor.MaxArgs {
		var parts []lower.View
		for chunk := range slices.Chunk(in, tensor.MaxArgs) {
			part, err := joinViews(e, chunk, a)
			if err != nil {
				return lower.View{}, err
			}
			parts = append(parts, part)
		}
		in = parts
	}
	return joinViews(e, in, a)
}

// joinViews puts tensors of one type one after another along axis a.
func joinViews(e *lower.Emitter, in []lower.View, a int) (lower.View, error) {
	if len(in) == 1 {
		return in[0], nil
	}
	s := in[0].Shape.Clone()
	s[a] = 0
	ops := make([]lower.Operand, len(in))
	for i, v := range in {
		v, err := e.Bounded(v, a)
		if err != nil {
			return lower.View{}, err
		}
		coords := lower.Axes(0, len(s))
		coords[a].Offset = -s[a]
		ops[i] = v.Access(coords)
		s[a] += v.Shape[a]
	}
	return e.Emit(&tensor.Primitive{Fn: tensor.Join, Type: in[0].Type, Shape: s, Imm: []tensor.Word{0}}, ops...)
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
