package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Reductions over axes, flattened in increasing order.

var reduceAttrs = []graph.Attr{graph.Int("keepdims", 1), graph.Int("noop_with_empty_axes", 0)}

var argAttrs = []graph.Attr{graph.Int("axis", 0), graph.Int("keepdims", 1), graph.Int("select_last_index", 0)}

var _ = define(
	Def{Name: "ReduceSum", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Lower: fold(tensor.FoldSum),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			g, err := c.spread(b, dy[0])
			return c.only(g), err
		}},
	// The sum divided by the number of terms.
	Def{Name: "ReduceMean", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs,
		Expand: wide(func(c *Call, b *graph.Builder) ([]string, error) {
			n, err := c.terms()
			if err != nil {
				return nil, err
			}
			if t := c.In[0].Type; t.Integer() && !fits(t, n) {
				return nil, fmt.Errorf("the number of terms, %d, is no %v; cast input %q", n, t, c.Inputs[0])
			}
			return []string{b.Op("Div", c.reduced(b, "ReduceSum", c.Inputs[0]), c.number(b, n))}, nil
		}),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			n, err := c.terms()
			if err != nil {
				return nil, err
			}
			g, err := c.spread(b, b.Op("Div", dy[0], b.Scalar(float32(n))))
			return c.only(g), err
		}},
	Def{Name: "ReduceMax", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Lower: foldExtreme(tensor.FoldMax), Grad: reduceExtremeGrad},
	Def{Name: "ReduceMin", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Lower: foldExtreme(tensor.FoldMin), Grad: reduceExtremeGrad},
	Def{Name: "ReduceProd", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Lower: fold(tensor.FoldProd), Grad: reduceProdGrad},
	Def{Name: "ReduceL1", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs,
		Expand: wide(func(c *Call, b *graph.Builder) ([]string, error) {
			return []string{c.reduced(b, "ReduceSum", b.Op("Abs", c.Inputs[0]))}, nil
		})},
	Def{Name: "ReduceSumSquare", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs,
		Expand: wide(func(c *Call, b *graph.Builder) ([]string, error) {
			return []string{c.reduced(b, "ReduceSum", b.Op("Mul", c.Inputs[0], c.Inputs[0]))}, nil
		})},
	Def{Name: "ReduceL2", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Grad: reduceL2Grad,
		Expand: wide(func(c *Call, b *graph.Builder) ([]string, error) {
			return []string{c.rooted(b, "Sqrt", c.reduced(b, "ReduceSumSquare", c.Inputs[0]))}, nil
		})},
	Def{Name: "ReduceLogSum", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs,
		Expand: wide(func(c *Call, b *graph.Builder) ([]string, error) {
			return []string{c.rooted(b, "Log", c.reduced(b, "ReduceSum", c.Inputs[0]))}, nil
		})},
	Def{Name: "ReduceLogSumExp", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Expand: wide(expandLogSumExp), Grad: logSumExpGrad},
	Def{Name: "ArgMax", Min: 1, Max: 1, Outputs: 1, Attrs: argAttrs, Lower: lowerArgMax},
	Def{Name: "ArgMin", Min: 1, Max: 1, Outputs: 1, Attrs: argAttrs,
		// The greatest of what is turned around: −x, or all bits of an integer.
		Expand: func(c *Call, b *graph.Builder) ([]string, error) {
			turn := "BitwiseNot"
			if c.In[0].Type.Float() {
				turn = "Neg"
			}
			return []string{b.With(c.Attrs...).Op("ArgMax", b.Op(turn, c.Inputs[0]))}, nil
		}},
)

// over returns the axes that a reduction folds: all of them if it names none.
func (c *Call) over() ([]int, error) {
	rank := len(c.In[0].Shape)
	if c.has(1) {
		list, err := c.vector(1)
		if err != nil || len(list) > 0 {
			if err == nil {
				list, err = axesOf(list, rank)
			}
			return list, err
		}
	}
	if c.flag("noop_with_empty_axes") {
		return nil, nil
	}
	return count(rank), nil
}

// terms returns the number of elements that are folded into one.
func (c *Call) terms() (int, error) {
	over, err := c.over()
	n := 1
	for _, a := range over {
		n *= c.In[0].Shape[a]
	}
	return n, err
}

// fold lowers a reduction.
func fold(fn tensor.Fn) func(*Call) ([]view, error) {
	return func(c *Call) ([]view, error) {
		if !c.In[0].Type.Numeric() {
			return nil, fmt.Errorf("it does not take %v", c.In[0].Type)
		}
		over, err := c.over()
		if err != nil {
			return nil, err
		}
		if len(over) == 0 {
			return c.In[:1], nil
		}
		v, err := c.l.reduce(fn, c.In[0].Type, c.In[0], over)
		if err != nil || c.flag("keepdims") {
			return []view{v}, err
		}
		return one(c.l.dropped(v, over))
	}
}

// foldExtreme lowers a reduction to the greatest or the least, of which false is
// below true.
func foldExtreme(fn tensor.Fn) func(*Call) ([]view, error) {
	return func(c *Call) ([]view, error) {
		if c.In[0].Type != tensor.Bool {
			return fold(fn)(c)
		}
		var err error
		if c.In[0], err = c.l.cast(c.In[0], tensor.Uint8); err != nil {
			return nil, err
		}
		out, err := fold(fn)(c)
		if err != nil {
			return nil, err
		}
		return one(c.l.cast(out[0], tensor.Bool))
	}
}

// reduced applies a reduction over the same axes in the same way to x.
func (c *Call) reduced(b *graph.Builder, op, x string) string {
	return b.With(c.Attrs...).Op(op, append([]string{x}, c.Inputs[1:]...)...)
}

// rooted applies a function of floats to x; to an integer in float64, truncated.
func (c *Call) rooted(b *graph.Builder, op, x string) string {
	t := c.In[0].Type
	if t.Float() {
		return b.Op(op, x)
	}
	return castTo(b, b.Op(op, castTo(b, x, tensor.Float64)), t)
}

// expandLogSumExp writes m + log Σ eˣ⁻ᵐ, where m is the maximum if that is
// finite, otherwise 0.
func expandLogSumExp(c *Call, b *graph.Builder) ([]string, error) {
	x, t := c.Inputs[0], c.In[0].Type
	if !t.Float() {
		y := c.reduced(b, "ReduceLogSumExp", castTo(b, x, tensor.Float64))
		return []string{castTo(b, y, t)}, nil
	}
	over, err := c.over()
	if err != nil {
		return nil, err
	}
	if len(over) == 0 {
		return []string{b.Op("Identity", x)}, nil
	}
	m := along(b, "ReduceMax", x, over...)
	m = b.Op("Where", b.Op("IsInf", m), c.real(b, 0), m)
	sum := along(b, "ReduceSum", b.Op("Exp", b.Op("Sub", x, m)), over...)
	y := b.Op("Add", b.Op("Log", sum), m)
	if !c.flag("keepdims") {
		y = b.Op("Squeeze", y, b.Ints(over...))
	}
	return []string{y}, nil
}

// logSumExpGrad: dX = dY·e^(X−Y).
func logSumExpGrad(c *Call, b *graph.Builder, dy []string) ([]string, error) {
	y, err := c.kept(b, c.Outputs[0])
	if err != nil {
		return nil, err
	}
	g, err := c.kept(b, dy[0])
	return c.only(b.Op("Mul", g, b.Op("Exp", b.Op("Sub", c.Inputs[0], y)))), err
}

// reduceL2Grad: dX = dY·X/Y, and 0 where Y is.
func reduceL2Grad(c *Call, b *graph.Builder, dy []string) ([]string, error) {
	y, err := c.kept(b, c.Outputs[0])
	if err != nil {
		return nil, err
	}
	g, err := c.kept(b, dy[0])
	rate := b.Op("Where", b.Op("Equal", y, b.Scalar(0)), b.Scalar(0), b.Op("Div", g, y))
	return c.only(b.Op("Mul", c.Inputs[0], rate)), err
}

// reduceProdGrad: dY times the product of all elements but one.
func reduceProdGrad(c *Call, b *graph.Builder, dy []string) ([]string, error) {
	over, err := c.over()
	if err != nil {
		return nil, err
	}
	g, err := c.spread(b, dy[0])
	if err != nil {
		return nil, err
	}
	if len(over) == 0 {
		return c.only(g), nil
	}
	// The folded axes go to the end, as one.
	x := c.In[0].Shape
	perm := slices.DeleteFunc(count(len(x)), func(a int) bool { return slices.Contains(over, a) })
	perm = append(perm, over...)
	moved, back := make(tensor.Shape, len(x)), make([]int, len(x))
	for i, p := range perm {
		moved[i], back[p] = x[p], i
	}
	kept := len(x) - len(over)
	flat := append(moved[:kept:kept], moved[kept:].Elements())
	y := reshaped(b, b.With(graph.Ints("perm", perm...)).Op("Transpose", c.Inputs[0]), moved, flat)
	y = reshaped(b, others(b, y, kept), flat, moved)
	return c.only(b.Op("Mul", g, b.With(graph.Ints("perm", back...)).Op("Transpose", y))), nil
}

// dropped returns v without the given axes, which have extent 1.
func (l *lowering) dropped(v view, over []int) (view, error) {
	s := tensor.Shape{}
	for a, n := range v.Shape {
		if len(over) > 0 && over[0] == a {
			over = over[1:]
			continue
		}
		s = append(s, n)
	}
	return l.reshape(v, s)
}

func lowerArgMax(c *Call) ([]view, error) {
	if !c.In[0].Type.Numeric() {
		return nil, fmt.Errorf("it does not take %v", c.In[0].Type)
	}
	a, err := axisOf(c.int("axis"), len(c.In[0].Shape))
	if err != nil {
		return nil, err
	}
	last := tensor.Word(0)
	if c.flag("select_last_index") {
		last = 1
	}
	v, err := c.l.reduce(tensor.FoldArgMax, tensor.Int64, c.In[0], []int{a}, last)
	if err != nil || c.flag("keepdims") {
		return []view{v}, err
	}
	return one(c.l.dropped(v, []int{a}))
}

// kept returns a value of the shape of the output, with the axes that were
// folded put back at extent 1.
func (c *Call) kept(b *graph.Builder, value string) (string, error) {
	over, err := c.over()
	s := c.In[0].Shape.Clone()
	for _, a := range over {
		s[a] = 1
	}
	return reshaped(b, value, c.Out[0].Shape, s), err
}

// spread repeats the gradient of the output over what was folded.
func (c *Call) spread(b *graph.Builder, dy string) (string, error) {
	g, err := c.kept(b, dy)
	return b.Op("Expand", g, b.Ints(c.In[0].Shape...)), err
}

// reduceExtremeGrad divides the gradient evenly among the elements that equal
// the result.
func reduceExtremeGrad(c *Call, b *graph.Builder, dy []string) ([]string, error) {
	over, err := c.over()
	if err != nil {
		return nil, err
	}
	if len(over) == 0 {
		return c.only(dy[0]), nil
	}
	y, err := c.kept(b, c.Outputs[0])
	if err != nil {
		return nil, err
	}
	g, err := c.kept(b, dy[0])
	if err != nil {
		return nil, err
	}
	hit := b.Op("Equal", c.Inputs[0], y)
	count := along(b, "ReduceSum", castTo(b, hit, tensor.Float32), over...)
	return c.only(b.Op("Where", hit, b.Op("Div", g, count), b.Scalar(0))), nil
}
