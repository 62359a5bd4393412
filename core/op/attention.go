package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Attention of queries to keys. The steps and their types are those of ONNX's
// own expansion, but for keys that a query does not see by its place: −∞ takes the place of their products, where
// ONNX adds it, and their values are no terms (band.go). So what they hold changes nothing, and a query has the same result
// whatever comes after it.

var _ = define(
	lower.Operator{Name: "Attention", Min: 3, Max: 7, Outputs: 4, Expand: expandAttention, Attrs: []graph.Attr{
		graph.Int("is_causal", 0), graph.Int("kv_num_heads", 0), graph.Int("left_window_size", -1), graph.Int("q_num_heads", 0),
		graph.Int("qk_matmul_output_mode", 0), graph.Int("right_window_size", -1), graph.Float("scale", 0), graph.Float("softcap", 0),
		graph.Int("softmax_precision", 0),
	}},
	// No operator of ONNX: queries of the last places of a cache of keys and values.
	lower.Operator{Name: "CachedAttention", Min: 3, Max: 3, Outputs: 1, Expand: expandCachedAttention, Attrs: []graph.Attr{
		graph.Int("is_causal", 1), graph.Int("left_window_size", -1), graph.Int("right_window_size", -1),
		graph.Float("scale", 0), graph.Float("softcap", 0), graph.Int("softmax_precision", 0),
	}},
)

// attention is one application of Attention.
type attention struct {
	*lower.Call
	b                          *graph.Builder
	batch, heads, rows, size   int  // of the queries
	shared, past, total, width int  // heads, places and values of the keys
	seen                       band // by a query's place
	mode                       int  // qk_matmul_output_mode
}

func expandAttention(c *lower.Call, b *graph.Builder) ([]string, error) {
	for i, v := range c.In[:3] {
		if !v.Type.Float() || i == 1 && v.Type != c.In[0].Type || len(v.Shape) != len(c.In[0].Shape) {
			return nil, fmt.Errorf("input %q is %v%v, which does not go with queries of %v%v", c.Inputs[i], v.Type, v.Shape, c.In[0].Type, c.In[0].Shape)
		}
	}
	if c.Has(4) != c.Has(5) || c.Has(6) && c.Has(4) {
		return nil, fmt.Errorf("past_key and past_value go together, and without nonpad_kv_seqlen")
	}
	a := &attention{Call: c, b: b, mode: c.Int("qk_matmul_output_mode")}
	if a.mode < 0 || a.mode > 3 {
		return nil, fmt.Errorf("qk_matmul_output_mode %d is not supported; use 0 to 3", a.mode)
	}
	var x [3]string
	var s [3]tensor.Shape
	for i, heads := range []string{"q_num_heads", "kv_num_heads", "kv_num_heads"} {
		var err error
		if x[i], s[i], err = unpackHeads(b, c.Inputs[i], c.In[i].Shape, c.Int(heads)); err != nil {
			return nil, err
		}
	}
	past := -s[1][2] // places before those of the queries
	for i := 1; i < 3; i++ {
		var err error
		if x[i], s[i], err = withPast(c, b, i+3, x[i], s[i], c.In[i].Type); err != nil {
			return nil, err
		}
	}
	y, seen, err := a.attend(x, s, past+s[1][2])
	if err != nil {
		return nil, err
	}
	if len(c.In[0].Shape) == 3 {
		y = packed(b, y, tensor.Shape{a.batch, a.heads, a.rows, a.width})
	}
	return []string{y, x[1], x[2], seen}, nil
}

// expandCachedAttention: queries [batch, heads, rows, size] have the last rows of the places of keys and values.
func expandCachedAttention(c *lower.Call, b *graph.Builder) ([]string, error) {
	var x [3]string
	var s [3]tensor.Shape
	for i, v := range c.In {
		if x[i], s[i] = c.Inputs[i], v.Shape; len(s[i]) != 4 || v.Type != c.In[0].Type || !v.Type.Float() {
			return nil, fmt.Errorf("input %q is %v%v, which does not go with queries of %v%v", x[i], v.Type, s[i], c.In[0].Type, s[0])
		}
	}
	if s[1][2] < s[0][2] {
		return nil, fmt.Errorf("%d queries have no places among %d keys", s[0][2], s[1][2])
	}
	y, _, err := (&attention{Call: c, b: b}).attend(x, s, s[1][2]-s[0][2])
	return []string{y}, err
}

// attend writes the attention of queries, of shape s[0], to keys and values, after as many places of the past; and what
// qk_matmul_output_mode asks to see.
func (a *attention) attend(x [3]string, s [3]tensor.Shape, past int) (y, seen string, err error) {
	c, b := a.Call, a.b
	a.batch, a.heads, a.rows, a.size = s[0][0], s[0][1], s[0][2], s[0][3]
	a.shared, a.past, a.total, a.width = s[1][1], past, s[1][2], s[2][3]
	switch {
	case a.shared < 1 || a.heads < 1 || a.heads%a.shared != 0 || a.size == 0:
		return "", "", fmt.Errorf("%d heads of queries of %d elements do not share %d heads of keys", a.heads, a.size, a.shared)
	case !s[1].Equal(tensor.Shape{a.batch, a.shared, a.total, a.size}) || !s[2].Equal(tensor.Shape{a.batch, a.shared, a.total, a.width}):
		return "", "", fmt.Errorf("queries, keys and values have shapes %v, %v and %v, which do not go together", s[0], s[1], s[2])
	}
	a.seen = a.window()
	weights, seen, err := a.weights(x[0], x[1])
	if err != nil {
		return "", "", err
	}
	values := x[2]
	if t := c.In[0].Type; c.In[2].Type != t {
		values = b.Cast(values, t)
	}
	multiply := b.With(a.seen.attrs()...)
	y = a.product(func(in ...string) string { return multiply.Op("BandedMatMul", in...) }, weights, values, a.rows, a.total, a.width)
	return y, seen, nil
}

// withPast joins the keys or values of the past, input i, with those that come.
func withPast(c *lower.Call, b *graph.Builder, i int, x string, s tensor.Shape, t tensor.DType) (string, tensor.Shape, error) {
	if !c.Has(i) {
		return x, s, nil
	}
	past := c.In[i]
	if len(past.Shape) != 4 || past.Type != t {
		return "", nil, fmt.Errorf("input %q is %v%v, but should be %v with 4 axes", c.Inputs[i], past.Type, past.Shape, t)
	}
	s = s.Clone()
	s[2] += past.Shape[2]
	return b.With(graph.Int("axis", 2)).Op("Concat", c.Inputs[i], x), s, nil
}

// window returns the keys that queries see by their places. Where lengths are data, these are: the mask says it all.
func (a *attention) window() band {
	n := band{a.past, -1, -1}
	if a.Has(6) {
		return n
	}
	if left := a.Int("left_window_size"); left >= 0 {
		n.lower = min(left, tensor.MaxDim/2)
	}
	if right := a.Int("right_window_size"); right >= 0 {
		n.upper = min(right, tensor.MaxDim/2)
	}
	if a.Flag("is_causal") {
		n.upper = 0
	}
	return n
}

// product multiplies x [batch, heads, m, k] and y [batch, shared, k, n]: a head
// of y serves as many heads of x as there are for each.
func (a *attention) product(multiply func(in ...string) string, x, y string, m, k, n int) string {
	if a.heads == a.shared {
		return multiply(x, y)
	}
	each := a.heads / a.shared
	x = reshaped(a.b, x, tensor.Shape{a.batch, a.heads, m, k}, tensor.Shape{a.batch, a.shared, each, m, k})
	z := multiply(x, a.b.Op("Unsqueeze", y, a.b.Ints(2)))
	return reshaped(a.b, z, tensor.Shape{a.batch, a.shared, each, m, n}, tensor.Shape{a.batch, a.heads, m, n})
}

// weights writes how much of each value every query takes, and what of this the
// attribute qk_matmul_output_mode asks to see.
func (a *attention) weights(q, k string) (weights, seen string, err error) {
	c, b := a.Call, a.b
	scale := 1 / math.Sqrt(float64(a.size))
	if c.Node.Attr("scale") != nil {
		scale = float64(c.Float("scale"))
	}
	if !(scale >= 0) {
		return "", "", fmt.Errorf("scale %v is not supported; it should not be negative", scale)
	}
	root := floatLike(c, b, math.Sqrt(scale))
	q, k = b.Op("Mul", q, root), swapLast(b, b.Op("Mul", k, root), 4)
	var states [4]string
	x := a.product(func(in ...string) string { return b.Op("MatMul", in...) }, q, k, a.rows, a.size, a.total)
	states[0] = x
	if cap := c.Float("softcap"); cap != 0 {
		limit := floatLike(c, b, float64(cap))
		x = b.Op("Mul", b.Op("Tanh", b.Op("Div", x, limit)), limit)
	}
	states[1] = x
	bias, err := a.bias()
	if err != nil {
		return "", "", err
	}
	if bias != "" {
		x = b.Op("Add", x, bias)
	}
	x = a.hide(x)
	states[2] = x
	empty := ""
	if bias != "" { // some query may see nothing at all
		empty = b.Op("Equal", reduceAlong(b, "ReduceMax", a.hide(bias), -1), floatLike(c, b, math.Inf(-1)))
		x = b.Op("Where", empty, floatLike(c, b, 0), x)
	}
	t := c.In[0].Type
	precise := t
	if c.Node.Attr("softmax_precision") != nil {
		if precise = tensor.DType(c.Int("softmax_precision")); int(precise) != c.Int("softmax_precision") || !precise.Float() {
			return "", "", fmt.Errorf("softmax_precision %d is no type of floats", c.Int("softmax_precision"))
		}
	}
	if precise != t {
		x = b.Cast(x, precise)
	}
	x = b.With(graph.Int("axis", -1)).Op("Softmax", x)
	if precise != t {
		x = b.Cast(x, t)
	}
	if empty != "" {
		x = b.Op("Where", empty, floatLike(c, b, 0), x)
	}
	states[3] = x
	return x, states[a.mode], nil
}

// hide puts −∞ where a query does not see a key by its place.
func (a *attention) hide(x string) string {
	if a.seen.all(a.rows, a.total) {
		return x
	}
	return a.b.Op("Where", a.seen.keep(a.b, tensor.Shape{a.rows, a.total}), x, floatLike(a.Call, a.b, math.Inf(-1)))
}

// bias writes what is added to the products of queries and keys: the mask, and
// −∞ where data say that a query does not see a key. It is empty without data.
func (a *attention) bias() (string, error) {
	c, b := a.Call, a.b
	keep := "" // where a query sees a key
	also := func(condition string) {
		if keep != "" {
			condition = b.Op("And", keep, condition)
		}
		keep = condition
	}
	mask := floatLike(c, b, 0)
	if c.Has(3) {
		m, err := a.mask()
		if err != nil {
			return "", err
		}
		if c.In[3].Type == tensor.Bool {
			also(m)
		} else {
			mask = m
		}
	}
	if c.Has(6) {
		filled, err := perSequence(c, b, 6, a.batch, 0, 4)
		if err != nil {
			return "", err
		}
		grid := tensor.Shape{a.rows, a.total}
		column := positions(b, grid, 1)
		also(b.Op("Less", column, filled))
		at := b.Op("Add", positions(b, grid, 0), b.Op("Sub", filled, int64Const(b, a.rows)))
		if c.Flag("is_causal") {
			also(b.Op("LessOrEqual", column, at))
		}
		if n := c.Int("left_window_size"); n >= 0 {
			also(b.Op("GreaterOrEqual", column, b.Op("Sub", at, int64Const(b, min(n, tensor.MaxDim)))))
		}
		if n := c.Int("right_window_size"); n >= 0 {
			also(b.Op("LessOrEqual", column, b.Op("Add", at, int64Const(b, min(n, tensor.MaxDim)))))
		}
	}
	switch {
	case keep != "":
		return b.Op("Where", keep, mask, floatLike(c, b, math.Inf(-1))), nil
	case c.Has(3):
		return mask, nil
	}
	return "", nil
}

// mask returns the mask with as many columns as there are keys; those that it
// lacks are not seen.
func (a *attention) mask() (string, error) {
	c, b, m := a.Call, a.b, a.Call.In[3]
	name, s := c.Inputs[3], m.Shape.Clone()
	var fill *tensor.Tensor
	if m.Type == tensor.Bool {
		fill = scalarOf(tensor.Bool, 0)
	} else {
		t := c.In[0].Type
		if m.Type != t {
			name = b.Cast(name, t)
		}
		fill = floatOf(t, math.Inf(-1))
	}
	if n := len(s) - 1; n >= 0 && s[n] < a.total {
		name = b.Op("Pad", name, b.Ints(0, a.total-s[n]), b.Const(fill), b.Ints(n))
		s[n] = a.total
	}
	whole := tensor.Shape{a.batch, a.heads, a.rows, a.total}
	if t, err := s.Broadcast(whole); err != nil || !t.Equal(whole) {
		return "", fmt.Errorf("the mask has shape %v, which does not broadcast to %v", m.Shape, whole)
	}
	return name, nil
}

// unpackHeads gives [batch, places, heads·size] the shape [batch, heads, places, size].
func unpackHeads(b *graph.Builder, x string, s tensor.Shape, heads int) (string, tensor.Shape, error) {
	switch {
	case len(s) == 4:
		return x, s, nil
	case len(s) != 3:
		return "", nil, fmt.Errorf("shape %v should have 3 or 4 axes", s)
	case heads < 1 || s[2]%heads != 0:
		return "", nil, fmt.Errorf("%d heads do not divide the last axis of %v", heads, s)
	}
	apart := tensor.Shape{s[0], s[1], heads, s[2] / heads}
	x = b.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", reshaped(b, x, s, apart))
	return x, tensor.Shape{s[0], heads, s[1], s[2] / heads}, nil
}

// packed gives [batch, heads, places, size] the shape [batch, places, heads·size].
func packed(b *graph.Builder, x string, s tensor.Shape) string {
	x = b.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", x)
	return reshaped(b, x, tensor.Shape{s[0], s[2], s[1], s[3]}, tensor.Shape{s[0], s[2], s[1] * s[3]})
}
