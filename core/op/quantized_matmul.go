package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Products of quantised integers: sums are int32 and wrap.

var _ = define(
	lower.Operator{Name: "MatMulInteger", Min: 2, Max: 4, Outputs: 1, Expand: expandMatMulInteger},
	lower.Operator{Name: "QLinearMatMul", Min: 8, Max: 8, Outputs: 1, Expand: expandQLinearMatMul},
	lower.Operator{Name: "ConvInteger", Min: 2, Max: 4, Outputs: 1, Expand: expandConvInteger, Attrs: append(windowAttrs, graph.Int("group", 1))},
	lower.Operator{Name: "QLinearConv", Min: 8, Max: 9, Outputs: 1, Expand: expandQLinearConv, Attrs: append(windowAttrs, graph.Int("group", 1))},
)

// lessZeroPoint returns input i of 8 bits as int32, less its zero point, input z,
// which shape gives a shape that broadcasts.
func lessZeroPoint(c *lower.Call, b *graph.Builder, i, z int, shape func(string, tensor.Shape) (string, error)) (string, error) {
	if t := c.In[i].Type; !small(t) || t.Size() != 1 {
		return "", fmt.Errorf("input %q is %v, but should be int8 or uint8", c.Inputs[i], t)
	}
	x := b.Cast(c.Inputs[i], tensor.Int32)
	if !c.Has(z) {
		return x, nil
	}
	if c.In[z].Type != c.In[i].Type {
		return "", fmt.Errorf("input %q is %v and its zero point %v", c.Inputs[i], c.In[i].Type, c.In[z].Type)
	}
	zero, err := shape(c.Inputs[z], c.In[z].Shape)
	return b.Op("Sub", x, b.Cast(zero, tensor.Int32)), err
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
	real := b.Op("Mul", b.Cast(sums, of), converted(b, scale, t, of))
	return []string{rounded(b, real, of, zero, out)}, nil
}
