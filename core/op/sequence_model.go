package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// What models of sequences have beside attention: the rotation by which queries
// and keys know their places, attention in linear time, and convolution with
// the past alone.

var _ = define(
	Def{Name: "RotaryEmbedding", Min: 3, Max: 4, Outputs: 1, Expand: wide(expandRotaryEmbedding), Attrs: []graph.Attr{
		graph.Int("interleaved", 0), graph.Int("num_heads", 0), graph.Int("rotary_embedding_dim", 0),
	}},
	Def{Name: "LinearAttention", Min: 3, Max: 6, Outputs: 2, Expand: expandLinearAttention, Attrs: []graph.Attr{
		graph.Int("chunk_size", 64), graph.Int("kv_num_heads", 0), graph.Int("q_num_heads", 0), graph.Float("scale", 0),
		graph.String("update_rule", "gated_delta"),
	}},
	Def{Name: "CausalConvWithState", Min: 2, Max: 4, Outputs: 2, Expand: expandCausalConv, Attrs: []graph.Attr{graph.String("activation", "none")}},
)

// expandRotaryEmbedding turns each pair of elements by the angle of its place:
// (cos·x − sin·y, sin·x + cos·y). Pairs are neighbours if interleaved, else an
// element of the first half and one of the second.
func expandRotaryEmbedding(c *Call, b *graph.Builder) ([]string, error) {
	if !c.In[0].Type.Float() {
		return nil, fmt.Errorf("it does not take %v", c.In[0].Type)
	}
	x, s, err := c.unpacked(b, c.Inputs[0], c.In[0].Shape, c.int("num_heads"))
	if err != nil {
		return nil, err
	}
	batch, places, size := s[0], s[2], s[3]
	turned := c.int("rotary_embedding_dim")
	if turned == 0 {
		turned = size
	}
	if turned < 0 || turned > size || turned%2 != 0 {
		return nil, fmt.Errorf("%d of %d elements cannot be turned in pairs", turned, size)
	}
	var angle [2]string
	for i := range angle {
		table := c.In[1+i]
		angle[i] = c.Inputs[1+i]
		have := table.Shape
		if c.has(3) {
			if len(have) != 2 || !c.In[3].Shape.Equal(tensor.Shape{batch, places}) {
				return nil, fmt.Errorf("input %q has shape %v and the positions %v, but should have [positions %d] and [%d %d]", c.Inputs[1+i], have, c.In[3].Shape, turned/2, batch, places)
			}
			angle[i] = b.With(graph.Int("axis", 0)).Op("Gather", angle[i], c.Inputs[3])
			have = tensor.Shape{batch, places, have[1]}
		}
		if !have.Equal(tensor.Shape{batch, places, turned / 2}) || table.Type != c.In[0].Type {
			return nil, fmt.Errorf("input %q is %v%v and does not fit %v%v, of which %d elements are turned", c.Inputs[1+i], table.Type, table.Shape, c.In[0].Type, c.In[0].Shape, turned)
		}
		angle[i] = b.Op("Unsqueeze", angle[i], b.Ints(1))
	}
	cos, sin := angle[0], angle[1]
	part := func(from, to, step int) string {
		return b.Op("Slice", x, b.Ints(from), b.Ints(to), b.Ints(3), b.Ints(step))
	}
	first, second := part(0, turned/2, 1), part(turned/2, turned, 1)
	if c.flag("interleaved") {
		first, second = part(0, turned, 2), part(1, turned, 2)
	}
	first, second = b.Op("Sub", b.Op("Mul", cos, first), b.Op("Mul", sin, second)), b.Op("Add", b.Op("Mul", sin, first), b.Op("Mul", cos, second))
	last := b.With(graph.Int("axis", -1))
	y := ""
	if c.flag("interleaved") {
		y = last.Op("Concat", b.Op("Unsqueeze", first, b.Ints(4)), b.Op("Unsqueeze", second, b.Ints(4)))
		y = reshaped(b, y, tensor.Shape{batch, s[1], places, turned / 2, 2}, tensor.Shape{batch, s[1], places, turned})
	} else {
		y = last.Op("Concat", first, second)
	}
	if turned < size {
		y = last.Op("Concat", y, part(turned, size, 1))
	}
	if len(c.In[0].Shape) == 3 {
		y = packed(b, y, s)
	}
	return []string{y}, nil
}

// maxSteps bounds the steps of a sequence that are written out one by one.
const maxSteps = 1 << 12

// expandLinearAttention writes the recurrence step by step, in float32: the
// state decays, takes what is new along each key, and is read along each query.
func expandLinearAttention(c *Call, b *graph.Builder) ([]string, error) {
	rule := c.text("update_rule")
	gated, delta := rule == "gated" || rule == "gated_delta", rule == "delta" || rule == "gated_delta"
	if !gated && !delta && rule != "linear" {
		return nil, fmt.Errorf("update_rule %q is not supported; use linear, gated, delta or gated_delta", rule)
	}
	if gated != c.has(4) || delta != c.has(5) {
		return nil, fmt.Errorf("update_rule %q goes with decay: %v, and with beta: %v", rule, gated, delta)
	}
	if err := c.floats(); err != nil {
		return nil, err
	}
	of := tensor.Float32 // that it is computed in
	if c.In[0].Type == tensor.Float64 {
		of = tensor.Float64
	}
	convert := func(x string, from, to tensor.DType) string {
		if from == to {
			return x
		}
		return castTo(b, x, to)
	}
	unpacked := func(i, heads int) (string, tensor.Shape, error) {
		if len(c.In[i].Shape) != 3 {
			return "", nil, fmt.Errorf("input %q has shape %v, but should have 3 axes", c.Inputs[i], c.In[i].Shape)
		}
		return c.unpacked(b, convert(c.Inputs[i], c.In[i].Type, of), c.In[i].Shape, heads)
	}
	heads, shared := c.int("q_num_heads"), c.int("kv_num_heads")
	q, qs, err := unpacked(0, heads)
	if err != nil {
		return nil, err
	}
	k, ks, err := unpacked(1, shared)
	if err != nil {
		return nil, err
	}
	v, vs, err := unpacked(2, shared)
	if err != nil {
		return nil, err
	}
	batch, steps, size, width := qs[0], qs[2], qs[3], vs[3]
	state := tensor.Shape{batch, shared, size, width}
	switch {
	case heads%shared != 0 || !ks.Equal(tensor.Shape{batch, shared, steps, size}) || !vs.Equal(tensor.Shape{batch, shared, steps, width}):
		return nil, fmt.Errorf("queries, keys and values have shapes %v, %v and %v, which do not go together", qs, ks, vs)
	case steps < 1 || steps > maxSteps:
		return nil, fmt.Errorf("the sequence has %d steps, and may have 1 to %d", steps, maxSteps)
	case c.has(3) && !c.In[3].Shape.Equal(state):
		return nil, fmt.Errorf("past_state has shape %v, but should have %v", c.In[3].Shape, state)
	}
	// A value for each head, or one for all; for each element of the keys, or one for all.
	gate := func(i int, options ...tensor.Shape) (string, error) {
		have := c.In[i].Shape
		for _, s := range options {
			if have.Equal(tensor.Shape{batch, steps, s[0] * s[1]}) {
				x, _, err := c.unpacked(b, convert(c.Inputs[i], c.In[i].Type, of), have, s[0])
				return x, err
			}
		}
		return "", fmt.Errorf("input %q has shape %v, which does not go with keys of shape %v", c.Inputs[i], have, c.In[1].Shape)
	}
	decay, beta := "", ""
	if gated {
		if decay, err = gate(4, tensor.Shape{shared, 1}, tensor.Shape{shared, size}); err != nil {
			return nil, err
		}
		decay = swapLast(b, b.Op("Exp", decay), 4)
	}
	if delta {
		if beta, err = gate(5, tensor.Shape{shared, 1}, tensor.Shape{1, 1}); err != nil {
			return nil, err
		}
	}
	scale := float64(c.float("scale"))
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(size))
	}
	q = b.Op("Mul", q, b.Const(real(of, scale)))
	kept, present := b.Op("Expand", b.Const(number(of, 0)), b.Ints(state...)), c.In[0].Type
	if c.has(3) {
		present = c.In[3].Type
		kept = convert(c.Inputs[3], present, of)
	}
	cut := func(x string, a int) []string {
		if x == "" {
			return make([]string, steps)
		}
		return apart(b, x, steps, a)
	}
	qt, kt, columns, vt := cut(q, 2), cut(k, 2), cut(swapLast(b, k, 4), 3), cut(v, 2)
	decays, betas := cut(decay, 3), cut(beta, 2)
	var out []string
	for t := range steps {
		if gated {
			kept = b.Op("Mul", kept, decays[t])
		}
		news := vt[t]
		if delta {
			news = b.Op("Mul", betas[t], b.Op("Sub", news, b.Op("MatMul", kt[t], kept)))
		}
		kept = b.Op("Add", kept, b.Op("Mul", columns[t], news))
		asked := reshaped(b, qt[t], tensor.Shape{batch, heads, 1, size}, tensor.Shape{batch, shared, heads / shared, size})
		o := b.Op("MatMul", asked, kept)
		out = append(out, reshaped(b, o, tensor.Shape{batch, shared, heads / shared, width}, tensor.Shape{batch, 1, heads * width}))
		if err := c.settle(); err != nil {
			return nil, fmt.Errorf("step %d: %w", t, err)
		}
	}
	y := b.With(graph.Int("axis", 1)).Op("Concat", out...)
	return []string{convert(y, of, c.In[0].Type), convert(kept, of, present)}, nil
}

// expandCausalConv convolves every channel with its own kernel, after as many
// elements of the past, or zeros, as the kernel reaches back.
func expandCausalConv(c *Call, b *graph.Builder) ([]string, error) {
	s, k := c.In[0].Shape, c.In[1].Shape
	if len(s) != 3 || !c.In[0].Type.Float() || len(k) != 3 || k[0] != s[1] || k[1] != 1 || k[2] < 1 {
		return nil, fmt.Errorf("data of %v%v and kernels of shape %v should be floats [batch channels length] and [channels 1 size]", c.In[0].Type, s, k)
	}
	back := k[2] - 1
	x := c.Inputs[0]
	switch {
	case c.has(3) && !c.In[3].Shape.Equal(tensor.Shape{s[0], s[1], back}):
		return nil, fmt.Errorf("past_state has shape %v, but should have [%d %d %d]", c.In[3].Shape, s[0], s[1], back)
	case c.has(3):
		x = b.With(graph.Int("axis", 2)).Op("Concat", c.Inputs[3], x)
	case back > 0:
		x = b.Op("Pad", x, b.Ints(back, 0), "", b.Ints(2))
	}
	in := []string{x, c.Inputs[1]}
	if c.has(2) {
		in = append(in, c.Inputs[2])
	}
	y := b.With(graph.Int("group", s[1])).Op("Conv", in...)
	switch a := c.text("activation"); a {
	case "none":
	case "silu", "swish":
		t := c.In[0].Type
		if t.Half() {
			y = castTo(b, y, tensor.Float32)
		}
		y = b.Op("Mul", y, b.Op("Sigmoid", y))
		if t.Half() {
			y = castTo(b, y, t)
		}
	default:
		return nil, fmt.Errorf("activation %q is not supported; use none, silu or swish", a)
	}
	return []string{y, b.Op("Slice", x, b.Ints(s[2]), b.Ints(s[2]+back), b.Ints(2))}, nil
}
