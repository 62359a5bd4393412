package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Attention in linear time: a recurrence over a state.

var _ = define(
	lower.Operator{Name: "LinearAttention", Min: 3, Max: 6, Outputs: 2, Expand: expandLinearAttention, Attrs: []graph.Attr{
		graph.Int("chunk_size", 64), graph.Int("kv_num_heads", 0), graph.Int("q_num_heads", 0), graph.Float("scale", 0),
		graph.String("update_rule", "gated_delta"),
	}},
)

// maxSteps bounds the steps of a sequence that are written out one by one.
const maxSteps = 1 << 12

// expandLinearAttention writes the recurrence step by step, in float32: the
// state decays, takes what is new along each key, and is read along each query.
func expandLinearAttention(c *lower.Call, b *graph.Builder) ([]string, error) {
	a, err := newLinearAttention(c, b)
	if err != nil {
		return nil, err
	}
	// A value for each head, or one for all; for each element of the keys, or one for all.
	decay, beta := "", ""
	if a.gated {
		if decay, err = a.gate(4, tensor.Shape{a.shared, 1}, tensor.Shape{a.shared, a.size}); err != nil {
			return nil, err
		}
		decay = swapLast(b, b.Op("Exp", decay), 4)
	}
	if a.delta {
		if beta, err = a.gate(5, tensor.Shape{a.shared, 1}, tensor.Shape{1, 1}); err != nil {
			return nil, err
		}
	}
	scale := float64(c.Float("scale"))
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(a.size))
	}
	a.q = b.Op("Mul", a.q, b.Const(floatOf(a.dtype, scale)))
	state, present := b.Op("Expand", b.Const(scalarOf(a.dtype, 0)), b.Ints(a.stateShape()...)), c.In[0].Type
	if c.Has(3) {
		present = c.In[3].Type
		state = converted(a.b, c.Inputs[3], present, a.dtype)
	}
	y, state, err := a.recur(state, decay, beta)
	if err != nil {
		return nil, err
	}
	return []string{converted(a.b, y, a.dtype, c.In[0].Type), converted(a.b, state, a.dtype, present)}, nil
}

// linearAttention is one call of LinearAttention, its inputs with an axis for heads:
// q [batch heads steps size], k [batch shared steps size], v [batch shared steps width].
type linearAttention struct {
	c            *lower.Call
	b            *graph.Builder
	dtype        tensor.DType // that it is computed in
	gated, delta bool         // the state decays; only what it does not yet give is new
	q, k, v      string

	heads, shared, batch, steps, size, width int
}

func newLinearAttention(c *lower.Call, b *graph.Builder) (*linearAttention, error) {
	rule := c.Text("update_rule")
	a := &linearAttention{
		c: c, b: b, dtype: tensor.Float32, gated: rule == "gated" || rule == "gated_delta", delta: rule == "delta" || rule == "gated_delta",
		heads: c.Int("q_num_heads"), shared: c.Int("kv_num_heads"),
	}
	if !a.gated && !a.delta && rule != "linear" {
		return nil, fmt.Errorf("update_rule %q is not supported; use linear, gated, delta or gated_delta", rule)
	}
	if a.gated != c.Has(4) || a.delta != c.Has(5) {
		needs := map[bool]string{true: "required", false: "not taken"}
		return nil, fmt.Errorf("update_rule %q: decay (input 5) is %s, beta (input 6) is %s", rule, needs[a.gated], needs[a.delta])
	}
	err := wantFloats(c)
	if err != nil {
		return nil, err
	}
	if c.In[0].Type == tensor.Float64 {
		a.dtype = tensor.Float64
	}
	var shapes [3]tensor.Shape
	for i, x := range []*string{&a.q, &a.k, &a.v} {
		heads := a.shared
		if i == 0 {
			heads = a.heads
		}
		if len(c.In[i].Shape) != 3 {
			return nil, fmt.Errorf("input %q has shape %v, but should have 3 axes", c.Inputs[i], c.In[i].Shape)
		}
		if *x, shapes[i], err = a.unpacked(i, heads); err != nil {
			return nil, err
		}
	}
	qs, ks, vs := shapes[0], shapes[1], shapes[2]
	a.batch, a.steps, a.size, a.width = qs[0], qs[2], qs[3], vs[3]
	switch {
	case a.heads%a.shared != 0 || !ks.Equal(tensor.Shape{a.batch, a.shared, a.steps, a.size}) || !vs.Equal(tensor.Shape{a.batch, a.shared, a.steps, a.width}):
		return nil, fmt.Errorf("queries, keys and values have shapes %v, %v and %v, which do not go together", qs, ks, vs)
	case a.steps < 1 || a.steps > maxSteps:
		return nil, fmt.Errorf("the sequence has %d steps, and may have 1 to %d", a.steps, maxSteps)
	case c.Has(3) && !c.In[3].Shape.Equal(a.stateShape()):
		return nil, fmt.Errorf("past_state has shape %v, but should have %v", c.In[3].Shape, a.stateShape())
	}
	return a, nil
}

// stateShape is the shape of the state: for each head a matrix from keys to values.
func (a *linearAttention) stateShape() tensor.Shape {
	return tensor.Shape{a.batch, a.shared, a.size, a.width}
}

// unpacked gives an input an axis for heads.
func (a *linearAttention) unpacked(i, heads int) (string, tensor.Shape, error) {
	x := converted(a.b, a.c.Inputs[i], a.c.In[i].Type, a.dtype)
	return unpackHeads(a.b, x, a.c.In[i].Shape, heads)
}

// gate returns an input of one of the forms [heads elements], for each step of each
// sequence.
func (a *linearAttention) gate(i int, forms ...tensor.Shape) (string, error) {
	have := a.c.In[i].Shape
	for _, s := range forms {
		if have.Equal(tensor.Shape{a.batch, a.steps, s[0] * s[1]}) {
			x, _, err := a.unpacked(i, s[0])
			return x, err
		}
	}
	return "", fmt.Errorf("input %q has shape %v, which does not go with keys of shape %v", a.c.Inputs[i], have, a.c.In[1].Shape)
}

// recur writes the steps, and returns what they read [batch steps heads·width] and the
// last state.
func (a *linearAttention) recur(state, decay, beta string) (y, last string, err error) {
	b := a.b
	each := func(x string, axis int) []string {
		if x == "" {
			return make([]string, a.steps)
		}
		return apart(b, x, a.steps, axis)
	}
	queries, keys, columns, values := each(a.q, 2), each(a.k, 2), each(swapLast(b, a.k, 4), 3), each(a.v, 2)
	decays, betas := each(decay, 3), each(beta, 2)
	group := a.heads / a.shared
	var out []string
	for t := range a.steps {
		if a.gated {
			state = b.Op("Mul", state, decays[t])
		}
		update := values[t]
		if a.delta {
			update = b.Op("Mul", betas[t], b.Op("Sub", update, b.Op("MatMul", keys[t], state)))
		}
		state = b.Op("Add", state, b.Op("Mul", columns[t], update))
		query := reshaped(b, queries[t], tensor.Shape{a.batch, a.heads, 1, a.size}, tensor.Shape{a.batch, a.shared, group, a.size})
		o := b.Op("MatMul", query, state)
		out = append(out, reshaped(b, o, tensor.Shape{a.batch, a.shared, group, a.width}, tensor.Shape{a.batch, 1, a.heads * a.width}))
		if err := a.c.Settle(); err != nil {
			return "", "", fmt.Errorf("step %d: %w", t, err)
		}
	}
	return b.With(graph.Int("axis", 1)).Op("Concat", out...), state, nil
}
