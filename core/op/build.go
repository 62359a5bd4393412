package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// What expansions and gradients write: nodes that several families share. A value
// is its name in the graph.

// scalarOf returns a tensor without axes that holds v.
func scalarOf(t tensor.DType, v int) *tensor.Tensor {
	if t.Float() {
		return floatOf(t, float64(v))
	}
	x := tensor.Must(tensor.New(t, tensor.Shape{}))
	x.Set(0, tensor.Word(v))
	return x
}

// floatOf returns a tensor without axes of a float type that holds v, rounded.
func floatOf(t tensor.DType, v float64) *tensor.Tensor {
	x := tensor.Must(tensor.New(t, tensor.Shape{}))
	x.Set(0, tensor.FloatWord(t, v))
	return x
}

// fits reports whether an integer type has v.
func fits(t tensor.DType, v int) bool {
	return int(int64(scalarOf(t, v).At(0))) == v && (v >= 0 || t.Signed())
}

// floatLike names a constant of the type of the first input, which is a float.
func floatLike(c *lower.Call, b *graph.Builder, v float64) string {
	return b.Const(floatOf(c.In[0].Type, v))
}

// scalarLike names a constant of the type of the first input.
func scalarLike(c *lower.Call, b *graph.Builder, v int) string {
	return b.Const(scalarOf(c.In[0].Type, v))
}

// attrLike names the value of a float attribute in the type of the first input.
func attrLike(c *lower.Call, b *graph.Builder, name string) string {
	return floatLike(c, b, float64(c.Float(name)))
}

// int64Const is the name of a constant integer without axes.
func int64Const(b *graph.Builder, v int) string { return b.Const(tensor.Scalar(int64(v))) }

// floatTable returns a constant of float type t and shape s, charged to the account: its
// element i, in row-major order, is f(i).
func floatTable(c *lower.Call, t tensor.DType, s tensor.Shape, f func(i int) float64) (*tensor.Tensor, error) {
	x, err := c.Account.NewConst(t, s)
	if err != nil {
		return nil, err
	}
	for i := range x.Len() {
		x.Set(i, tensor.FloatWord(t, f(i)))
	}
	return x, nil
}

// intTable is floatTable for int64.
func intTable(c *lower.Call, s tensor.Shape, f func(i int) int) (*tensor.Tensor, error) {
	x, err := c.Account.NewConst(tensor.Int64, s)
	if err != nil {
		return nil, err
	}
	for i := range x.Len() {
		x.Set(i, tensor.Word(f(i)))
	}
	return x, nil
}

// upTo returns 0, 1, … n−1.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// converted casts a value unless it has the type already.
func converted(b *graph.Builder, x string, from, to tensor.DType) string {
	if from == to {
		return x
	}
	return b.Cast(x, to)
}

// inFloat32 is the expansion of an operator that takes floats: on halves it is the
// same operator on float32, rounded once to the type of the first input.
func inFloat32(expand expandFunc) expandFunc {
	return func(c *lower.Call, b *graph.Builder) ([]string, error) {
		t := c.In[0].Type
		if !t.Half() {
			return expand(c, b)
		}
		in := make([]string, len(c.Inputs))
		for i, name := range c.Inputs {
			if in[i] = name; c.Has(i) && c.In[i].Type.Half() {
				in[i] = b.Cast(name, tensor.Float32)
			}
		}
		out := b.With(c.Attrs...).Ops(c.Op, len(c.Outputs), in...)
		for i, y := range out {
			out[i] = b.Cast(y, t)
		}
		return out, nil
	}
}

// formula is the expansion of an operator on floats that gives one result.
func formula(f func(c *lower.Call, b *graph.Builder, x string) string) expandFunc {
	return inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
		if err := wantFloats(c); err != nil {
			return nil, err
		}
		return []string{f(c, b, c.Inputs[0])}, nil
	})
}

// slope is the gradient of a function whose derivative is given.
func slope(f func(c *lower.Call, b *graph.Builder, x string) string) gradFunc {
	return func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
		return firstGrad(c, b.Op("Mul", dy[0], f(c, b, c.Inputs[0]))), nil
	}
}

// zeros is a value of zeros.
func zeros(b *graph.Builder, s tensor.Shape) string {
	return b.Op("Expand", b.Scalar(0), b.Ints(s...))
}

// rangeNode writes 0, 1, … n−1.
func rangeNode(b *graph.Builder, n int) string {
	return b.Op("Range", int64Const(b, 0), int64Const(b, n), int64Const(b, 1))
}

// positions writes the coordinate on axis a of each element of shape s, with
// extent 1 on the other axes.
func positions(b *graph.Builder, s tensor.Shape, a int) string {
	along := make([]int, len(s))
	for i := range along {
		along[i] = 1
	}
	along[a] = s[a]
	return reshaped(b, rangeNode(b, s[a]), tensor.Shape{s[a]}, along)
}

// reshaped gives a value another shape.
func reshaped(b *graph.Builder, value string, from, to tensor.Shape) string {
	if from.Equal(to) {
		return value
	}
	var attrs []graph.Attr
	if to.Elements() == 0 { // an extent of 0 would copy that of the input
		attrs = append(attrs, graph.Int("allowzero", 1))
	}
	return b.With(attrs...).Op("Reshape", value, b.Ints(to...))
}

// swapLast exchanges the last two axes.
func swapLast(b *graph.Builder, value string, rank int) string {
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = i
	}
	perm[rank-2], perm[rank-1] = rank-1, rank-2
	return b.With(graph.Ints("perm", perm...)).Op("Transpose", value)
}

// apart cuts an axis into its places.
func apart(b *graph.Builder, x string, n, a int) []string {
	return b.With(graph.Int("axis", a), graph.Int("num_outputs", n)).Ops("Split", n, x)
}

// perSequence gives a list with an entry for each sequence of a batch as many
// axes as a tensor of the given rank has; its own is axis a.
func perSequence(c *lower.Call, b *graph.Builder, i, n, a, rank int) (string, error) {
	if c.In[i].Type != tensor.Int64 && c.In[i].Type != tensor.Int32 || !c.In[i].Shape.Equal(tensor.Shape{n}) {
		return "", fmt.Errorf("input %q is %v%v, but should be %d integers", c.Inputs[i], c.In[i].Type, c.In[i].Shape, n)
	}
	s := make(tensor.Shape, rank)
	for d := range s {
		s[d] = 1
	}
	s[a] = n
	list := reshaped(b, c.Inputs[i], c.In[i].Shape, s)
	if c.In[i].Type != tensor.Int64 {
		list = b.Cast(list, tensor.Int64)
	}
	return list, nil
}

// reduceAlong applies a reduction over the given axes, which keep extent 1.
func reduceAlong(b *graph.Builder, op, value string, over ...int) string {
	return b.With(graph.Int("keepdims", 1)).Op(op, value, b.Ints(over...))
}

// sumTo sums a value of shape from to shape to, which broadcasts to it.
func sumTo(b *graph.Builder, value string, from, to tensor.Shape) string {
	if from.Equal(to) {
		return value
	}
	lead := len(from) - len(to)
	kept := from.Clone()
	var over []int
	for a, n := range from {
		if a < lead || to[a-lead] != n {
			over = append(over, a)
			kept[a] = 1
		}
	}
	if len(over) > 0 {
		value = reduceAlong(b, "ReduceSum", value, over...)
	}
	return reshaped(b, value, kept, to)
}

// unbroadcast sums the gradient dy of a result over the axes along which input
// i was repeated.
func unbroadcast(c *lower.Call, b *graph.Builder, i int, dy string) string {
	return sumTo(b, dy, c.Out[0].Shape, c.In[i].Shape)
}

// constantGrad is that of functions that are constant almost everywhere.
func constantGrad(c *lower.Call, _ *graph.Builder, _ []string) ([]string, error) {
	return make([]string, len(c.In)), nil
}

// firstGrad returns the gradients of an operator that has one for its first input
// alone.
func firstGrad(c *lower.Call, dx string) []string {
	out := make([]string, len(c.In))
	out[0] = dx
	return out
}
