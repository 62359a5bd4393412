package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Parts of tensors: joining and cutting along axes.

var _ = define(
	lower.Operator{Name: "Concat", Min: 1, Max: -1, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 0)}, Lower: lowerConcat,
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			a, err := axisOf(c.Int("axis"), len(c.Out[0].Shape))
			if err != nil {
				return nil, err
			}
			sizes := make([]int, len(c.In))
			for i, v := range c.In {
				sizes[i] = v.Shape[a]
			}
			return b.With(graph.Int("axis", a)).Ops("Split", len(sizes), dy[0], b.Ints(sizes...)), nil
		}},
	lower.Operator{Name: "Split", Min: 1, Max: 2, Outputs: -1, Attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("num_outputs", 0)}, Lower: lowerSplit,
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			parts := make([]string, len(dy))
			for i, d := range dy {
				if parts[i] = d; d == "" {
					parts[i] = zeros(b, c.Out[i].Shape)
				}
			}
			return firstGrad(c, b.With(graph.Int("axis", c.Int("axis"))).Op("Concat", parts...)), nil
		}},
	lower.Operator{Name: "Slice", Min: 3, Max: 5, Outputs: 1, Lower: lowerSlice, Grad: sliceGrad},
)

// zeros is a value of zeros.
func zeros(b *graph.Builder, s tensor.Shape) string {
	return b.Op("Expand", b.Scalar(0), b.Ints(s...))
}

func lowerConcat(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	if err := wantOneType(c, 0); err != nil {
		return nil, err
	}
	rank := len(c.In[0].Shape)
	a, err := axisOf(c.Int("axis"), rank)
	if err != nil {
		return nil, err
	}
	s := c.In[0].Shape.Clone()
	for i, v := range c.In[1:] {
		same := v.Shape.Clone()
		if len(same) == rank {
			same[a] = s[a]
		}
		if !same.Equal(s) {
			return nil, fmt.Errorf("inputs %q and %q have shapes %v and %v, which may differ on axis %d alone", c.Inputs[0], c.Inputs[i+1], c.In[0].Shape, v.Shape, a)
		}
		s[a] += v.Shape[a]
		if err := s.Check(); err != nil {
			return nil, err
		}
	}
	return one(concatViews(e, c.In, a))
}

// concatViews puts any number of tensors one after another along axis a.
func concatViews(e *lower.Emitter, in []lower.View, a int) (lower.View, error) {
	for len(in) > tensor.MaxArgs {
		var parts []lower.View
		for chunk := range slices.Chunk(in, tensor.MaxArgs) {
			part, err := joinViews(e, chunk, a)
			if err != nil {
				return lower.View{}, err
			}
			parts = append(parts, part)
		}
		in = parts
	}
	return joinViews(e, in, a)
}

// joinViews puts tensors of one type one after another along axis a.
func joinViews(e *lower.Emitter, in []lower.View, a int) (lower.View, error) {
	if len(in) == 1 {
		return in[0], nil
	}
	s := in[0].Shape.Clone()
	s[a] = 0
	ops := make([]lower.Operand, len(in))
	for i, v := range in {
		v, err := e.Bounded(v, a)
		if err != nil {
			return lower.View{}, err
		}
		coords := lower.Axes(0, len(s))
		coords[a].Offset = -s[a]
		ops[i] = v.Access(coords)
		s[a] += v.Shape[a]
	}
	return e.Emit(&tensor.Primitive{Fn: tensor.Join, Type: in[0].Type, Shape: s, Imm: []tensor.Word{0}}, ops...)
}

func lowerSplit(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	v, err := e.Affine(c.In[0])
	if err != nil {
		return nil, err
	}
	a, err := axisOf(c.Int("axis"), len(v.Shape))
	if err != nil {
		return nil, err
	}
	n := len(c.Outputs)
	var sizes []int
	if c.Has(1) {
		if sizes, err = intsInput(c, 1); err != nil {
			return nil, err
		}
	} else {
		if k := c.Int("num_outputs"); k != 0 && k != n {
			return nil, fmt.Errorf("it names %d outputs, but gives %d", n, k)
		}
		each := (v.Shape[a] + n - 1) / n
		for i := range n { // the last ones may be smaller
			sizes = append(sizes, max(0, min(each, v.Shape[a]-i*each)))
		}
	}
	if len(sizes) != n {
		return nil, fmt.Errorf("it names %d outputs, but gives %d", n, len(sizes))
	}
	out := make([]lower.View, n)
	at := 0
	for i, size := range sizes {
		if size < 0 || size > v.Shape[a]-at {
			return nil, fmt.Errorf("parts %v do not make up axis %d of %v", sizes, a, v.Shape)
		}
		out[i] = v.Sliced(a, at, 1, size)
		at += size
	}
	if at != v.Shape[a] {
		return nil, fmt.Errorf("parts %v do not make up axis %d of %v", sizes, a, v.Shape)
	}
	return out, nil
}

// span is what Slice takes from one axis.
type span struct{ axis, start, step, n int }

// spansOf returns what Slice takes from each axis that it names.
func spansOf(c *lower.Call) ([]span, error) {
	var lists [4][]int // starts, ends, axes, steps
	for i := range lists {
		if !c.Has(i + 1) {
			continue
		}
		var err error
		if lists[i], err = intsInput(c, i+1); err != nil {
			return nil, err
		}
	}
	shape := c.In[0].Shape
	starts, ends, named, steps := lists[0], lists[1], lists[2], lists[3]
	if !c.Has(3) {
		for a := range min(len(starts), len(shape)) {
			named = append(named, a)
		}
	}
	if len(starts) != len(ends) || len(starts) != len(named) || c.Has(4) && len(steps) != len(starts) {
		return nil, fmt.Errorf("starts, ends, axes and steps have lengths %d, %d, %d and %d", len(starts), len(ends), len(named), len(steps))
	}
	if _, err := axesOf(named, len(shape)); err != nil {
		return nil, err
	}
	out := make([]span, len(named))
	for i, a := range named {
		a, _ = axisOf(a, len(shape))
		step := 1
		if steps != nil {
			step = min(max(steps[i], -tensor.MaxDim), tensor.MaxDim)
		}
		if step == 0 {
			return nil, fmt.Errorf("the step on axis %d is 0", a)
		}
		out[i] = spanOf(a, starts[i], ends[i], step, shape[a])
	}
	return out, nil
}

// spanOf clamps a slice to an axis of the given extent.
func spanOf(a, start, end, step, extent int) span {
	lo, hi := 0, extent // what start and end may be
	if step < 0 {
		lo, hi = -1, extent-1
	}
	clamp := func(v int) int {
		if v < 0 {
			v += extent
		}
		return min(max(v, lo), hi)
	}
	start, end = clamp(start), clamp(end)
	n := 0
	if step > 0 && end > start {
		n = (end - start + step - 1) / step
	} else if step < 0 && start > end {
		n = (start - end - step - 1) / -step
	}
	if n == 0 {
		start = 0
	}
	return span{a, start, step, n}
}

func lowerSlice(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	spans, err := spansOf(c)
	if err != nil {
		return nil, err
	}
	v, err := e.Affine(c.In[0])
	if err != nil {
		return nil, err
	}
	for _, s := range spans {
		v = v.Sliced(s.axis, s.start, s.step, s.n)
	}
	return []lower.View{v}, nil
}

// sliceGrad pads with zeros what was cut off, and puts zeros in between where
// elements were skipped.
func sliceGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	spans, err := spansOf(c)
	if err != nil {
		return nil, err
	}
	g, s := dy[0], c.Out[0].Shape.Clone()
	pads := make([]int, 2*len(s))
	for _, p := range spans {
		if p.n <= 1 {
			p.step = 1
		}
		if p.step < 0 {
			g = b.Op("Slice", g, b.Ints(-1), b.Ints(-tensor.MaxDim-1), b.Ints(p.axis), b.Ints(-1))
			p.start, p.step = p.start+(p.n-1)*p.step, -p.step
		}
		if p.step > 1 {
			apart := slices.Insert(s.Clone(), p.axis+1, 1)
			g = reshaped(b, g, s, apart)
			g = b.Op("Pad", g, b.Ints(0, p.step-1), "", b.Ints(p.axis+1))
			apart[p.axis+1] = p.step
			s[p.axis] *= p.step
			g = reshaped(b, g, apart, s)
		}
		pads[p.axis], pads[len(s)+p.axis] = p.start, c.In[0].Shape[p.axis]-p.start-p.n*p.step
	}
	if slices.ContainsFunc(pads, func(n int) bool { return n != 0 }) {
		g = b.Op("Pad", g, b.Ints(pads...))
	}
	return firstGrad(c, g), nil
}
