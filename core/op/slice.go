package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Parts of axes, with steps.

var _ = define(
	lower.Operator{Name: "Slice", Min: 3, Max: 5, Outputs: 1, Lower: lowerSlice, Grad: sliceGrad},
)

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
