package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Reductions over axes, flattened in increasing order.

var reduceAttrs = []graph.Attr{graph.Int("keepdims", 1), graph.Int("noop_with_empty_axes", 0)}

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
			sum := b.With(c.Attrs...).Op("ReduceSum", c.Inputs...)
			return []string{b.Op("Div", sum, c.number(b, n))}, nil
		}),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			n, err := c.terms()
			if err != nil {
				return nil, err
			}
			g, err := c.spread(b, b.Op("Div", dy[0], b.Scalar(float32(n))))
			return c.only(g), err
		}},
	Def{Name: "ReduceMax", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Lower: fold(tensor.FoldMax), Grad: reduceExtremeGrad},
	Def{Name: "ReduceMin", Min: 1, Max: 2, Outputs: 1, Attrs: reduceAttrs, Lower: fold(tensor.FoldMin), Grad: reduceExtremeGrad},
	Def{Name: "ArgMax", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("keepdims", 1), graph.Int("select_last_index", 0)},
		Lower: lowerArgMax},
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
	all := make([]int, rank)
	for a := range all {
		all[a] = a
	}
	return all, nil
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
