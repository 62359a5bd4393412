package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Quantisation: small integers that stand for floats, a scale apart. Rounding
// is to nearest, ties to even, before the zero point is added; what does not
// fit the type saturates. Sums are int32 and wrap.

var quantizedAttrs = []graph.Attr{graph.Int("axis", 1), graph.Int("block_size", 0), graph.Int("output_dtype", 0)}

var _ = define(
	lower.Operator{Name: "QuantizeLinear", Min: 2, Max: 3, Outputs: 1, Expand: expandQuantize,
		Attrs: append(slices.Clone(quantizedAttrs), graph.Int("precision", 0), graph.Int("saturate", 1))},
	lower.Operator{Name: "DequantizeLinear", Min: 2, Max: 3, Outputs: 1, Expand: expandDequantize, Attrs: quantizedAttrs},
	lower.Operator{Name: "DynamicQuantizeLinear", Min: 1, Max: 1, Outputs: 3, Expand: expandDynamicQuantize},
	lower.Operator{Name: "MatMulInteger", Min: 2, Max: 4, Outputs: 1, Expand: expandMatMulInteger},
	lower.Operator{Name: "QLinearMatMul", Min: 8, Max: 8, Outputs: 1, Expand: expandQLinearMatMul},
	lower.Operator{Name: "ConvInteger", Min: 2, Max: 4, Outputs: 1, Expand: expandConvInteger, Attrs: append(windowAttrs, graph.Int("group", 1))},
	lower.Operator{Name: "QLinearConv", Min: 8, Max: 9, Outputs: 1, Expand: expandQLinearConv, Attrs: append(windowAttrs, graph.Int("group", 1))},
)

// small reports whether a type is one of those that quantisation gives.
func small(t tensor.DType) bool { return t.Integer() && t.Size() <= 2 }

// converted casts a value unless it has the type already.
func converted(b *graph.Builder, x string, from, to tensor.DType) string {
	if from == to {
		return x
	}
	return castTo(b, x, to)
}

// typeAttr returns the element type that an attribute names, or another if it
// names none.
func typeAttr(c *lower.Call, name string, otherwise tensor.DType) (tensor.DType, error) {
	v := c.Int(name)
	if v == 0 {
		return otherwise, nil
	}
	t := tensor.DType(v)
	if int(t) != v || !t.Valid() {
		return 0, fmt.Errorf("%s names element type %d, which is not supported", name, v)
	}
	return t, nil
}

// perBlock gives a scale or zero point, input i, a shape that broadcasts to
// that of the data: one for all, one for each place on the axis, or one for
// each block of places.
func perBlock(c *lower.Call, b *graph.Builder, i int) (string, error) {
	x, s, name := c.In[0].Shape, c.In[i].Shape, c.Inputs[i]
	if s.Elements() == 1 && len(s) <= 1 {
		return reshaped(b, name, s, tensor.Shape{}), nil
	}
	a, err := axisOf(c.Int("axis"), len(x))
	if len(x) == 1 {
		a, err = 0, nil
	}
	if err != nil {
		return "", err
	}
	refuse := fmt.Errorf("input %q has shape %v, which does not go with axis %d of %v in blocks of %d", name, s, a, x, c.Int("block_size"))
	size := c.Int("block_size")
	if size == 0 {
		if len(s) != 1 || s[0] != x[a] {
			return "", refuse
		}
		along := make(tensor.Shape, len(x))
		for d := range along {
			along[d] = 1
		}
		along[a] = s[0]
		return reshaped(b, name, s, along), nil
	}
	same := s.Clone()
	if len(s) == len(x) {
		same[a] = x[a]
	}
	if !same.Equal(x) || size < 1 || size > tensor.MaxDim || s[a] != (x[a]+size-1)/size {
		return "", refuse
	}
	apart := slices.Insert(s.Clone(), a+1, size)
	joined := s.Clone()
	joined[a] *= size
	name = b.Op("Expand", b.Op("Unsqueeze", name, b.Ints(a+1)), b.Ints(apart...))
	name = reshaped(b, name, apart, joined)
	return b.Op("Slice", name, b.Ints(0), b.Ints(x[a]), b.Ints(a)), nil
}

// scaleAndZero returns scale and zero point of an operator; the zero point is empty
// if there is none.
func scaleAndZero(c *lower.Call, b *graph.Builder) (scale, zero string, err error) {
	if scale, err = perBlock(c, b, 1); err != nil || !c.Has(2) {
		return scale, "", err
	}
	if !c.In[2].Shape.Equal(c.In[1].Shape) {
		return "", "", fmt.Errorf("scale and zero point have shapes %v and %v", c.In[1].Shape, c.In[2].Shape)
	}
	zero, err = perBlock(c, b, 2)
	return scale, zero, err
}

func expandQuantize(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, by := c.In[0].Type, c.In[1].Type
	to := tensor.Uint8
	if c.Has(2) {
		to = c.In[2].Type
	}
	out, err := typeAttr(c, "output_dtype", to)
	if err != nil {
		return nil, err
	}
	if c.Has(2) && out != to || !small(out) {
		return nil, fmt.Errorf("it quantizes to %v with a zero point of %v; both should be int8, uint8, int16 or uint16", out, to)
	}
	if !x.Float() && x != tensor.Int32 || !by.Float() && by != tensor.Int32 {
		return nil, fmt.Errorf("it does not quantize %v by %v", x, by)
	}
	of, err := typeAttr(c, "precision", by)
	if err != nil {
		return nil, err
	}
	if !of.Float() { // integers divided are floats
		of = tensor.Float64
	}
	scale, zero, err := scaleAndZero(c, b)
	if err != nil {
		return nil, err
	}
	y := b.Op("Div", converted(b, c.Inputs[0], x, of), converted(b, scale, by, of))
	return []string{rounded(b, y, of, zero, out)}, nil
}

// rounded writes x, of a float type, as the nearest integer above a zero point,
// saturated.
func rounded(b *graph.Builder, x string, of tensor.DType, zero string, to tensor.DType) string {
	x = b.Op("Round", x)
	if of.Half() {
		x, of = castTo(b, x, tensor.Float32), tensor.Float32
	}
	if zero != "" {
		x = b.Op("Add", x, castTo(b, zero, of))
	}
	return castTo(b, x, to)
}

func expandDequantize(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, by := c.In[0].Type, c.In[1].Type
	out, err := typeAttr(c, "output_dtype", by)
	if err != nil {
		return nil, err
	}
	if !small(x) && x != tensor.Int32 || !by.Float() || !out.Float() || c.Has(2) && c.In[2].Type != x {
		return nil, fmt.Errorf("it does not bring %v by %v back to %v; the zero point has the type of the data", x, by, out)
	}
	scale, zero, err := scaleAndZero(c, b)
	if err != nil {
		return nil, err
	}
	of := out // that it is computed in
	if out.Half() {
		of = tensor.Float32
	}
	y := converted(b, c.Inputs[0], x, tensor.Int32)
	if zero != "" {
		y = b.Op("Sub", y, converted(b, zero, x, tensor.Int32))
	}
	y = b.Op("Mul", castTo(b, y, of), converted(b, scale, by, of))
	return []string{converted(b, y, of, out)}, nil
}

// expandDynamicQuantize takes the range of the data, widened to hold 0, as that
// of uint8.
func expandDynamicQuantize(c *lower.Call, b *graph.Builder) ([]string, error) {
	if err := wantType(c, 0, tensor.Float32); err != nil {
		return nil, err
	}
	x, none := c.Inputs[0], b.Scalar(0)
	whole := b.With(graph.Int("keepdims", 0))
	low, high := b.Op("Min", whole.Op("ReduceMin", x), none), b.Op("Max", whole.Op("ReduceMax", x), none)
	scale := b.Op("Div", b.Op("Sub", high, low), b.Scalar(255))
	zero := b.Op("Sub", none, b.Op("Div", low, scale))
	zero = castTo(b, b.Op("Round", zero), tensor.Uint8)
	return []string{b.Op("QuantizeLinear", x, scale, zero), scale, zero}, nil
}

// lessZeroPoint returns input i of 8 bits as int32, less its zero point, input z,
// which shape gives a shape that broadcasts.
func lessZeroPoint(c *lower.Call, b *graph.Builder, i, z int, shape func(string, tensor.Shape) (string, error)) (string, error) {
	if t := c.In[i].Type; !small(t) || t.Size() != 1 {
		return "", fmt.Errorf("input %q is %v, but should be int8 or uint8", c.Inputs[i], t)
	}
	x := castTo(b, c.Inputs[i], tensor.Int32)
	if !c.Has(z) {
		return x, nil
	}
	if c.In[z].Type != c.In[i].Type {
		return "", fmt.Errorf("input %q is %v and its zero point %v", c.Inputs[i], c.In[i].Type, c.In[z].Type)
	}
	zero, err := shape(c.Inputs[z], c.In[z].Shape)
	return b.Op("Sub", x, castTo(b, zero, tensor.Int32)), err
}

// byRow and byColumn give a value for each row or column of matrix i the shape
// in which it broadcasts to the matrices.
func byRow(c *lower.Call, b *graph.Builder, i int) func(string, tensor.Shape) (string, error) {
	return byLine(c, b, i, 2, 1)
}

func byColumn(c *lower.Call, b *graph.Builder, i int) func(string, tensor.Shape) (string, error) {
	return byLine(c, b, i, 1, 2)
}

func byLine(c *lower.Call, b *graph.Builder, i, line, across int) func(string, tensor.Shape) (string, error) {
	return func(x string, s tensor.Shape) (string, error) {
		m := c.In[i].Shape
		n := len(m)
		switch {
		case s.Elements() == 1 && len(s) <= 1:
			return reshaped(b, x, s, tensor.Shape{}), nil
		case n >= 2 && len(s) == 1 && s[0] == m[n-line]:
			if line == 2 {
				return b.Op("Unsqueeze", x, b.Ints(1)), nil
			}
			return x, nil
		case n >= 2 && len(s) == n && s[n-across] == 1:
			if t, err := s.Broadcast(m); err == nil && t.Equal(m) {
				return x, nil
			}
		}
		return "", fmt.Errorf("a scale or zero point of shape %v does not go with matrices of shape %v", s, m)
	}
}

func expandMatMulInteger(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, err := lessZeroPoint(c, b, 0, 2, byRow(c, b, 0))
	if err != nil {
		return nil, err
	}
	y, err := lessZeroPoint(c, b, 1, 3, byColumn(c, b, 1))
	if err != nil {
		return nil, err
	}
	return []string{b.Op("MatMul", x, y)}, nil
}

func expandQLinearMatMul(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, err := lessZeroPoint(c, b, 0, 2, byRow(c, b, 0))
	if err != nil {
		return nil, err
	}
	y, err := lessZeroPoint(c, b, 3, 5, byColumn(c, b, 3))
	if err != nil {
		return nil, err
	}
	xs, err := byRow(c, b, 0)(c.Inputs[1], c.In[1].Shape)
	if err != nil {
		return nil, err
	}
	ys, err := byColumn(c, b, 3)(c.Inputs[4], c.In[4].Shape)
	if err != nil {
		return nil, err
	}
	return requantized(c, b, b.Op("MatMul", x, y), factor{xs, 1}, factor{ys, 4}, 6)
}

// factor is what was multiplied: its scale in the shape in which it broadcasts, and
// the input that this is.
type factor struct {
	scale string
	input int
}

// requantized multiplies int32 sums of products of x and y by their scales, over
// that of the result, input k, which its zero point follows.
func requantized(c *lower.Call, b *graph.Builder, sums string, x, y factor, k int) ([]string, error) {
	t, out := c.In[x.input].Type, c.In[k+1].Type
	if !t.Float() || c.In[y.input].Type != t || c.In[k].Type != t || !small(out) || out.Size() != 1 {
		return nil, fmt.Errorf("the scales are %v, %v and %v and the zero point of the result %v; they should be floats of one type, and int8 or uint8", t, c.In[y.input].Type, c.In[k].Type, out)
	}
	if c.In[k].Shape.Elements() != 1 || c.In[k+1].Shape.Elements() != 1 {
		return nil, fmt.Errorf("scale and zero point of the result have shapes %v and %v, but should each be one number", c.In[k].Shape, c.In[k+1].Shape)
	}
	scale, zero := reshaped(b, c.Inputs[k], c.In[k].Shape, tensor.Shape{}), reshaped(b, c.Inputs[k+1], c.In[k+1].Shape, tensor.Shape{})
	scale = b.Op("Div", b.Op("Mul", x.scale, y.scale), scale)
	of := t
	if t.Half() {
		of = tensor.Float32
	}
	real := b.Op("Mul", castTo(b, sums, of), converted(b, scale, t, of))
	return []string{rounded(b, real, of, zero, out)}, nil
}

// byKernel gives a value for each kernel, input i, as many axes as that has.
func byKernel(c *lower.Call, b *graph.Builder, i, first int) func(string, tensor.Shape) (string, error) {
	return func(x string, s tensor.Shape) (string, error) {
		k := c.In[i].Shape
		if s.Elements() == 1 && len(s) <= 1 {
			return reshaped(b, x, s, tensor.Shape{}), nil
		}
		if len(s) != 1 || len(k) < 1 || s[0] != k[0] {
			return "", fmt.Errorf("a scale or zero point of shape %v does not go with kernels of shape %v", s, k)
		}
		along := make(tensor.Shape, len(k)-first)
		for d := range along {
			along[d] = 1
		}
		along[0] = s[0]
		return reshaped(b, x, s, along), nil
	}
}

// forAll takes one value.
func forAll(b *graph.Builder) func(string, tensor.Shape) (string, error) {
	return func(x string, s tensor.Shape) (string, error) {
		if s.Elements() != 1 {
			return "", fmt.Errorf("a scale or zero point of shape %v should be one number", s)
		}
		return reshaped(b, x, s, tensor.Shape{}), nil
	}
}

func expandConvInteger(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, err := lessZeroPoint(c, b, 0, 2, forAll(b))
	if err != nil {
		return nil, err
	}
	k, err := lessZeroPoint(c, b, 1, 3, byKernel(c, b, 1, 0))
	if err != nil {
		return nil, err
	}
	return []string{b.With(c.Attrs...).Op("Conv", x, k)}, nil
}

func expandQLinearConv(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, err := lessZeroPoint(c, b, 0, 2, forAll(b))
	if err != nil {
		return nil, err
	}
	k, err := lessZeroPoint(c, b, 3, 5, byKernel(c, b, 3, 0))
	if err != nil {
		return nil, err
	}
	xs, err := forAll(b)(c.Inputs[1], c.In[1].Shape)
	if err != nil {
		return nil, err
	}
	ks, err := byKernel(c, b, 3, 1)(c.Inputs[4], c.In[4].Shape)
	if err != nil {
		return nil, err
	}
	in := []string{x, k}
	if c.Has(8) {
		if err := wantType(c, 8, tensor.Int32); err != nil {
			return nil, err
		}
		in = append(in, c.Inputs[8])
	}
	return requantized(c, b, b.With(c.Attrs...).Op("Conv", in...), factor{xs, 1}, factor{ks, 4}, 6)
}
