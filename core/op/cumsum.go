package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Running sums and products along an axis. Element i is a fold over the whole
// axis of the elements i, i−1, …, of which those before the beginning do not
// count; in reverse, of i, i+1, ….

var _ = define(
	lower.Operator{Name: "CumSum", Min: 2, Max: 2, Outputs: 1, Attrs: cumulateAttrs, Lower: cumulate(tensor.FoldSum),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			back := b.With(graph.Int("exclusive", c.Int("exclusive")), graph.Int("reverse", 1-min(1, c.Int("reverse"))))
			return firstGrad(c, back.Op("CumSum", dy[0], c.Inputs[1])), nil
		}},
	lower.Operator{Name: "CumProd", Min: 2, Max: 2, Outputs: 1, Attrs: cumulateAttrs, Lower: cumulate(tensor.FoldProd), Grad: cumProdGrad},
)

var cumulateAttrs = []graph.Attr{graph.Int("exclusive", 0), graph.Int("reverse", 0)}

func cumulate(fn tensor.Fn) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		if !c.In[0].Type.Numeric() {
			return nil, fmt.Errorf("it does not take %v", c.In[0].Type)
		}
		a, err := axisInput(c)
		if err != nil {
			return nil, err
		}
		step := -1
		if c.Flag("reverse") {
			step = 1
		}
		return one(e.Summed(c.In[0], func(v lower.View) (lower.View, error) {
			v, err := e.Bounded(v, a)
			if err != nil {
				return lower.View{}, err
			}
			if v, err = e.Affine(v); err != nil {
				return lower.View{}, err
			}
			s := v.Shape
			coords := lower.Axes(0, len(s))
			coords[a].Terms = append(coords[a].Terms, tensor.Term{Axis: len(s), Step: step})
			if c.Flag("exclusive") {
				coords[a].Offset = step
			}
			return e.Emit(&tensor.Primitive{Fn: fn, Type: v.Type, Shape: s, Fold: s[a : a+1]}, v.Access(coords))
		}))
	}
}

// cumProdGrad writes the products of all elements but one, row by row for each
// result, so that the gradient holds for elements that are 0.
func cumProdGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	a, err := axisInput(c)
	if err != nil {
		return nil, err
	}
	x := c.In[0].Shape
	if len(x) == tensor.MaxRank {
		return nil, fmt.Errorf("its gradient takes one axis more than the %d of %v", len(x), x)
	}
	// Row i, column j: element j, if result i depends on it.
	n, last := x[a], len(x)
	column := rangeNode(b, n)
	row := b.Op("Unsqueeze", column, b.Ints(1))
	first, second := column, row
	if c.Flag("reverse") {
		first, second = row, column
	}
	compare := "LessOrEqual"
	if c.Flag("exclusive") {
		compare = "Less"
	}
	depends := b.Op(compare, first, second)
	terms := b.Op("Where", depends, b.Op("Unsqueeze", atEnd(b, c.Inputs[0], a, last), b.Ints(last-1)), b.Scalar(1))
	rates := b.Op("Mul", productsOfOthers(b, terms, last), b.Op("Unsqueeze", atEnd(b, dy[0], a, last), b.Ints(last)))
	dx := b.With(graph.Int("keepdims", 0)).Op("ReduceSum", b.Op("Where", depends, rates, b.Scalar(0)), b.Ints(last-1))
	return firstGrad(c, fromEnd(b, dx, a, last)), nil
}

// productsOfOthers is, for each element along an axis, the product of all but it.
func productsOfOthers(b *graph.Builder, x string, a int) string {
	part := func(reverse int) string {
		return b.With(graph.Int("exclusive", 1), graph.Int("reverse", reverse)).Op("CumProd", x, int64Const(b, a))
	}
	return b.Op("Mul", part(0), part(1))
}

// atEnd moves axis a to the end, and fromEnd moves it back.
func atEnd(b *graph.Builder, x string, a, rank int) string {
	perm := slices.Delete(upTo(rank), a, a+1)
	return b.With(graph.Ints("perm", append(perm, a)...)).Op("Transpose", x)
}

func fromEnd(b *graph.Builder, x string, a, rank int) string {
	perm := slices.Insert(upTo(rank-1), a, rank-1)
	return b.With(graph.Ints("perm", perm...)).Op("Transpose", x)
}

// axisInput returns the axis that the second input names.
func axisInput(c *lower.Call) (int, error) {
	list, err := intsInput(c, 1)
	if err != nil {
		return 0, err
	}
	if len(list) != 1 {
		return 0, fmt.Errorf("input %q has %d elements, but should be one axis", c.Inputs[1], len(list))
	}
	return axisOf(list[0], len(c.In[0].Shape))
}
