package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Reductions over axes, flattened in increasing order.

var _ = define(
	lower.Operator{Name: "ReduceSum", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Lower: fold(tensor.FoldSum),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			g, err := spreadGrad(c, b, dy[0])
			return firstGrad(c, g), err
		}},
	// The sum divided by the number of terms.
	lower.Operator{Name: "ReduceMean", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs,
		Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
			n, err := reduceTerms(c)
			if err != nil {
				return nil, err
			}
			if t := c.In[0].Type; t.Integer() && !fits(t, n) {
				return nil, fmt.Errorf("the number of terms, %d, is no %v; cast input %q", n, t, c.Inputs[0])
			}
			return []string{b.Op("Div", reduceLike(c, b, "ReduceSum", c.Inputs[0]), scalarLike(c, b, n))}, nil
		}),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			n, err := reduceTerms(c)
			if err != nil {
				return nil, err
			}
			g, err := spreadGrad(c, b, b.Op("Div", dy[0], b.Scalar(float32(n))))
			return firstGrad(c, g), err
		}},
	lower.Operator{Name: "ReduceMax", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Lower: foldExtreme(tensor.FoldMax), Grad: reduceExtremeGrad},
	lower.Operator{Name: "ReduceMin", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Lower: foldExtreme(tensor.FoldMin), Grad: reduceExtremeGrad},
	lower.Operator{Name: "ReduceProd", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Lower: fold(tensor.FoldProd), Grad: reduceProdGrad},
	lower.Operator{Name: "ReduceL1", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs,
		Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
			return []string{reduceLike(c, b, "ReduceSum", b.Op("Abs", c.Inputs[0]))}, nil
		})},
	lower.Operator{Name: "ReduceSumSquare", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs,
		Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
			return []string{reduceLike(c, b, "ReduceSum", b.Op("Mul", c.Inputs[0], c.Inputs[0]))}, nil
		})},
	lower.Operator{Name: "ReduceL2", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Grad: reduceL2Grad,
		Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
			return []string{throughFloat(c, b, "Sqrt", reduceLike(c, b, "ReduceSumSquare", c.Inputs[0]))}, nil
		})},
	lower.Operator{Name: "ReduceLogSum", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs,
		Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
			return []string{throughFloat(c, b, "Log", reduceLike(c, b, "ReduceSum", c.Inputs[0]))}, nil
		})},
	lower.Operator{Name: "ReduceLogSumExp", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Expand: inFloat32(expandLogSumExp), Grad: logSumExpGrad},
)

var reduceAttrs = []graph.Attr{graph.Int("keepdims", 1), graph.Int("noop_with_empty_axes", 0)}

// reduceAxes returns the axes that a reduction folds: all of them if it names none.
func reduceAxes(c *lower.Call) ([]int, error) {
	rank := len(c.In[0].Shape)
	if c.Has(1) {
		list, err := intsInput(c, 1)
		if err != nil || len(list) > 0 {
			if err == nil {
				list, err = axesOf(list, rank)
			}
			return list, err
		}
	}
	if c.Flag("noop_with_empty_axes") {
		return nil, nil
	}
	return upTo(rank), nil
}

// reduceTerms returns the number of elements that are folded into one.
func reduceTerms(c *lower.Call) (int, error) {
	over, err := reduceAxes(c)
	n := 1
	for _, a := range over {
		n *= c.In[0].Shape[a]
	}
	return n, err
}

// fold lowers a reduction.
func fold(fn tensor.Fn) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		if !c.In[0].Type.Numeric() {
			return nil, fmt.Errorf("it does not take %v", c.In[0].Type)
		}
		over, err := reduceAxes(c)
		if err != nil {
			return nil, err
		}
		if len(over) == 0 {
			return c.In[:1], nil
		}
		v, err := e.Fold(fn, c.In[0].Type, c.In[0], over)
		if err != nil || c.Flag("keepdims") {
			return []lower.View{v}, err
		}
		return one(dropAxes(e, v, over))
	}
}

// foldExtreme lowers a reduction to the greatest or the least, of which false is
// below true.
func foldExtreme(fn tensor.Fn) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		if c.In[0].Type != tensor.Bool {
			return fold(fn)(c, e)
		}
		var err error
		if c.In[0], err = e.Cast(c.In[0], tensor.Uint8); err != nil {
			return nil, err
		}
		out, err := fold(fn)(c, e)
		if err != nil {
			return nil, err
		}
		return one(e.Cast(out[0], tensor.Bool))
	}
}

// reduceLike applies a reduction over the same axes in the same way to x.
func reduceLike(c *lower.Call, b *graph.Builder, op, x string) string {
	return b.With(c.Attrs...).Op(op, append([]string{x}, c.Inputs[1:]...)...)
}

// throughFloat applies a function of floats to x; to an integer in float64, truncated.
func throughFloat(c *lower.Call, b *graph.Builder, op, x string) string {
	t := c.In[0].Type
	if t.Float() {
		return b.Op(op, x)
	}
	return b.Cast(b.Op(op, b.Cast(x, tensor.Float64)), t)
}

// expandLogSumExp writes m + log Σ eˣ⁻ᵐ, where m is the maximum if that is
// finite, otherwise 0.
func expandLogSumExp(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, t := c.Inputs[0], c.In[0].Type
	if !t.Float() {
		y := reduceLike(c, b, "ReduceLogSumExp", b.Cast(x, tensor.Float64))
		return []string{b.Cast(y, t)}, nil
	}
	over, err := reduceAxes(c)
	if err != nil {
		return nil, err
	}
	if len(over) == 0 {
		return []string{b.Op("Identity", x)}, nil
	}
	m := reduceAlong(b, "ReduceMax", x, over...)
	m = b.Op("Where", b.Op("IsInf", m), floatLike(c, b, 0), m)
	sum := reduceAlong(b, "ReduceSum", b.Op("Exp", b.Op("Sub", x, m)), over...)
	y := b.Op("Add", b.Op("Log", sum), m)
	if !c.Flag("keepdims") {
		y = b.Op("Squeeze", y, b.Ints(over...))
	}
	return []string{y}, nil
}

// logSumExpGrad: dX = dY·e^(X−Y).
func logSumExpGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	y, err := keepAxes(c, b, c.Outputs[0])
	if err != nil {
		return nil, err
	}
	g, err := keepAxes(c, b, dy[0])
	return firstGrad(c, b.Op("Mul", g, b.Op("Exp", b.Op("Sub", c.Inputs[0], y)))), err
}

// reduceL2Grad: dX = dY·X/Y, and 0 where Y is.
func reduceL2Grad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	y, err := keepAxes(c, b, c.Outputs[0])
	if err != nil {
		return nil, err
	}
	g, err := keepAxes(c, b, dy[0])
	rate := b.Op("Where", b.Op("Equal", y, b.Scalar(0)), b.Scalar(0), b.Op("Div", g, y))
	return firstGrad(c, b.Op("Mul", c.Inputs[0], rate)), err
}

// reduceProdGrad: dY times the product of all elements but one.
func reduceProdGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	over, err := reduceAxes(c)
	if err != nil {
		return nil, err
	}
	g, err := spreadGrad(c, b, dy[0])
	if err != nil {
		return nil, err
	}
	if len(over) == 0 {
		return firstGrad(c, g), nil
	}
	// The folded axes go to the end, as one.
	x := c.In[0].Shape
	perm := slices.DeleteFunc(upTo(len(x)), func(a int) bool { return slices.Contains(over, a) })
	perm = append(perm, over...)
	moved, back := make(tensor.Shape, len(x)), make([]int, len(x))
	for i, p := range perm {
		moved[i], back[p] = x[p], i
	}
	kept := len(x) - len(over)
	flat := append(moved[:kept:kept], moved[kept:].Elements())
	y := reshaped(b, b.With(graph.Ints("perm", perm...)).Op("Transpose", c.Inputs[0]), moved, flat)
	y = reshaped(b, productsOfOthers(b, y, kept), flat, moved)
	return firstGrad(c, b.Op("Mul", g, b.With(graph.Ints("perm", back...)).Op("Transpose", y))), nil
}

// keepAxes returns a value of the shape of the output, with the axes that were
// folded put back at extent 1.
func keepAxes(c *lower.Call, b *graph.Builder, value string) (string, error) {
	over, err := reduceAxes(c)
	s := c.In[0].Shape.Clone()
	for _, a := range over {
		s[a] = 1
	}
	return reshaped(b, value, c.Out[0].Shape, s), err
}

// spreadGrad repeats the gradient of the output over what was folded.
func spreadGrad(c *lower.Call, b *graph.Builder, dy string) (string, error) {
	g, err := keepAxes(c, b, dy)
	return b.Op("Expand", g, b.Ints(c.In[0].Shape...)), err
}

// reduceExtremeGrad divides the gradient evenly among the elements that equal
// the result.
func reduceExtremeGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	over, err := reduceAxes(c)
	if err != nil {
		return nil, err
	}
	if len(over) == 0 {
		return firstGrad(c, dy[0]), nil
	}
	y, err := keepAxes(c, b, c.Outputs[0])
	if err != nil {
		return nil, err
	}
	g, err := keepAxes(c, b, dy[0])
	if err != nil {
		return nil, err
	}
	hit := b.Op("Equal", c.Inputs[0], y)
	count := reduceAlong(b, "ReduceSum", b.Cast(hit, tensor.Float32), over...)
	return firstGrad(c, b.Op("Where", hit, b.Op("Div", g, count), b.Scalar(0))), nil
}
