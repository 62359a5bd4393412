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

var _ = define(
	lower.Operator{Name: "QuantizeLinear", Min: 2, Max: 3, Outputs: 1, Expand: expandQuantize,
		Attrs: append(slices.Clone(quantizedAttrs), graph.Int("precision", 0), graph.Int("saturate", 1))},
	lower.Operator{Name: "DequantizeLinear", Min: 2, Max: 3, Outputs: 1, Expand: expandDequantize, Attrs: quantizedAttrs},
	lower.Operator{Name: "DynamicQuantizeLinear", Min: 1, Max: 1, Outputs: 3, Expand: expandDynamicQuantize},
)

var quantizedAttrs = []graph.Attr{graph.Int("axis", 1), graph.Int("block_size", 0), graph.Int("output_dtype", 0)}

// small reports whether a type is one of those that quantisation gives.
func small(t tensor.DType) bool { return t.Integer() && t.Size() <= 2 }

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
		x, of = b.Cast(x, tensor.Float32), tensor.Float32
	}
	if zero != "" {
		x = b.Op("Add", x, b.Cast(zero, of))
	}
	return b.Cast(x, to)
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
	y = b.Op("Mul", b.Cast(y, of), converted(b, scale, by, of))
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
	zero = b.Cast(b.Op("Round", zero), tensor.Uint8)
	return []string{b.Op("QuantizeLinear", x, scale, zero), scale, zero}, nil
}
