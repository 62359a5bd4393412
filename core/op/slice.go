package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Parts of tensors: joining, cutting and padding along axes.

var _ = define(
	Def{Name: "Concat", Min: 1, Max: -1, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 0)}, Lower: lowerConcat,
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			a, err := axisOf(c.int("axis"), len(c.Out[0].Shape))
			if err != nil {
				return nil, err
			}
			sizes := make([]int, len(c.In))
			for i, v := range c.In {
				sizes[i] = v.Shape[a]
			}
			return b.With(graph.Int("axis", a)).Ops("Split", len(sizes), dy[0], b.Ints(sizes...)), nil
		}},
	Def{Name: "Split", Min: 1, Max: 2, Outputs: -1, Attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("num_outputs", 0)}, Lower: lowerSplit,
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			parts := make([]string, len(dy))
			for i, d := range dy {
				if parts[i] = d; d == "" {
					parts[i] = zeros(b, c.Out[i].Shape)
				}
			}
			return c.only(b.With(graph.Int("axis", c.int("axis"))).Op("Concat", parts...)), nil
		}},
	Def{Name: "Slice", Min: 3, Max: 5, Outputs: 1, Lower: lowerSlice, Grad: sliceGrad},
	Def{Name: "Pad", Min: 2, Max: 4, Outputs: 1, Attrs: []graph.Attr{graph.String("mode", "constant")}, Lower: lowerPad,
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			before, after, err := c.pads()
			for i := range before {
				before[i], after[i] = -before[i], -after[i]
			}
			pads := b.Ints(append(before, after...)...)
			return c.only(b.Op("Pad", dy[0], pads)), err
		}},
)

// zeros is a value of zeros.
func zeros(b *graph.Builder, s tensor.Shape) string {
	return b.Op("Expand", b.Scalar(0), b.Ints(s...))
}

func lowerConcat(c *Call) ([]view, error) {
	if err := c.alike(0); err != nil {
		return nil, err
	}
	rank := len(c.In[0].Shape)
	a, err := axisOf(c.int("axis"), rank)
	if err != nil {
		return nil, err
	}
	joined := c.In[:1]
	s := c.In[0].Shape.Clone()
	for i, v := range c.In[1:] {
		same := v.Shape.Clone()
		if len(same) == rank {
			same[a] = s[a]
		}
		if !same.Equal(s) {
			return nil, fmt.Errorf("inputs %q and %q have shapes %v and %v, which may differ on axis %d alone", c.Inputs[0], c.Inputs[i+1], c.In[0].Shape, v.Shape, a)
		}
		joined = append(joined[:len(joined):len(joined)], v)
		s[a] += v.Shape[a]
		if err := s.Check(); err != nil {
			return nil, err
		}
		if len(joined) == tensor.MaxArgs && i+2 < len(c.In) {
			part, err := c.l.join(joined, a)
			if err != nil {
				return nil, err
			}
			joined = []view{part}
		}
	}
	return one(c.l.join(joined, a))
}

// join puts tensors of one type one after another along axis a.
func (l *lowering) join(in []view, a int) (view, error) {
	if len(in) == 1 {
		return in[0], nil
	}
	s := in[0].Shape.Clone()
	s[a] = 0
	ops := make([]operand, len(in))
	for i, v := range in {
		v, err := l.bounded(v, a)
		if err != nil {
			return view{}, err
		}
		coords := axes(0, len(s))
		coords[a].Offset = -s[a]
		ops[i] = v.access(coords)
		s[a] += v.Shape[a]
	}
	return l.emit(&tensor.Primitive{Fn: tensor.Join, Type: in[0].Type, Shape: s, Imm: []tensor.Word{0}}, ops...)
}

func lowerSplit(c *Call) ([]view, error) {
	v, err := c.l.affine(c.In[0])
	if err != nil {
		return nil, err
	}
	a, err := axisOf(c.int("axis"), len(v.Shape))
	if err != nil {
		return nil, err
	}
	n := len(c.Outputs)
	var sizes []int
	if c.has(1) {
		if sizes, err = c.vector(1); err != nil {
			return nil, err
		}
	} else {
		if k := c.int("num_outputs"); k != 0 && k != n {
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
	out := make([]view, n)
	at := 0
	for i, size := range sizes {
		if size < 0 || size > v.Shape[a]-at {
			return nil, fmt.Errorf("parts %v do not make up axis %d of %v", sizes, a, v.Shape)
		}
		out[i] = v.sliced(a, at, 1, size)
		at += size
	}
	if at != v.Shape[a] {
		return nil, fmt.Errorf("parts %v do not make up axis %d of %v", sizes, a, v.Shape)
	}
	return out, nil
}

// sliced returns n elements of axis a from start on, step apart. v must not be
// flat.
func (v view) sliced(a, start, step, n int) view {
	s, coords := v.Shape.Clone(), axes(0, len(v.Shape))
	s[a] = n
	if n <= 1 {
		step = 1
	}
	if n != v.Shape[a] || step != 1 {
		coords[a] = strided(start, a, step)
	}
	return v.through(s, coords)
}

// span is what Slice takes from one axis.
type span struct{ axis, start, step, n int }

// spans returns what Slice takes from each axis that it names.
func (c *Call) spans() ([]span, error) {
	var lists [4][]int // starts, ends, axes, steps
	for i := range lists {
		if !c.has(i + 1) {
			continue
		}
		var err error
		if lists[i], err = c.vector(i + 1); err != nil {
			return nil, err
		}
	}
	shape := c.In[0].Shape
	starts, ends, named, steps := lists[0], lists[1], lists[2], lists[3]
	if !c.has(3) {
		for a := range min(len(starts), len(shape)) {
			named = append(named, a)
		}
	}
	if len(starts) != len(ends) || len(starts) != len(named) || c.has(4) && len(steps) != len(starts) {
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

func lowerSlice(c *Call) ([]view, error) {
	spans, err := c.spans()
	if err != nil {
		return nil, err
	}
	v, err := c.l.affine(c.In[0])
	if err != nil {
		return nil, err
	}
	for _, s := range spans {
		v = v.sliced(s.axis, s.start, s.step, s.n)
	}
	return []view{v}, nil
}

// sliceGrad pads with zeros what was cut off, and puts zeros in between where
// elements were skipped.
func sliceGrad(c *Call, b *graph.Builder, dy []string) ([]string, error) {
	spans, err := c.spans()
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
	return c.only(g), nil
}

// pads returns how much Pad adds before and after each axis.
func (c *Call) pads() (before, after []int, err error) {
	list, err := c.vector(1)
	if err != nil {
		return nil, nil, err
	}
	rank := len(c.In[0].Shape)
	named := make([]int, rank)
	for a := range named {
		named[a] = a
	}
	if c.has(3) {
		if named, err = c.vector(3); err != nil {
			return nil, nil, err
		}
	}
	if _, err := axesOf(named, rank); err != nil {
		return nil, nil, err
	}
	if len(list) != 2*len(named) {
		return nil, nil, fmt.Errorf("%d pads are given for %d axes", len(list), len(named))
	}
	before, after = make([]int, rank), make([]int, rank)
	for i, a := range named {
		a, _ = axisOf(a, rank)
		before[a], after[a] = list[i], list[len(named)+i]
		for _, p := range []int{before[a], after[a]} {
			if p > tensor.MaxDim || p < -tensor.MaxDim {
				return nil, nil, fmt.Errorf("pad %d is out of range", p)
			}
		}
	}
	return before, after, nil
}

func lowerPad(c *Call) ([]view, error) {
	if m := c.text("mode"); m != "constant" {
		return nil, fmt.Errorf("mode %q is not supported; use constant", m)
	}
	before, after, err := c.pads()
	if err != nil {
		return nil, err
	}
	var fill tensor.Word
	if c.has(2) {
		t, err := c.constant(2)
		if err != nil {
			return nil, err
		}
		if t.Len() != 1 || t.Type != c.In[0].Type {
			return nil, fmt.Errorf("input %q is %v%v, but should be one %v", c.Inputs[2], t.Type, t.Shape, c.In[0].Type)
		}
		fill = t.At(0)
	}
	v := c.In[0]
	s := v.Shape.Clone()
	coords := axes(0, len(s))
	var moved []int
	for a := range s {
		if before[a] == 0 && after[a] == 0 {
			continue
		}
		moved = append(moved, a)
		coords[a].Offset = -before[a]
		if s[a] += before[a] + after[a]; s[a] < 0 {
			return nil, fmt.Errorf("pads %d and %d leave nothing of axis %d of %v", before[a], after[a], a, v.Shape)
		}
	}
	if len(moved) == 0 {
		return []view{v}, nil
	}
	if v, err = c.l.bounded(v, moved...); err != nil {
		return nil, err
	}
	return one(c.l.emit(&tensor.Primitive{Fn: tensor.Copy, Type: v.Type, Shape: s, Imm: []tensor.Word{fill}}, v.access(coords)))
}
