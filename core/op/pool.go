package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Pooling: folds of windows. What is outside the input takes no part.

var _ = define(
	lower.Operator{Name: "AveragePool", Min: 1, Max: 1, Outputs: 1, Attrs: append(poolAttrs, graph.Int("count_include_pad", 0)), Lower: lowerAveragePool, Grad: averagePoolGrad},
	lower.Operator{Name: "LpPool", Min: 1, Max: 1, Outputs: 1, Attrs: append(poolAttrs, graph.Int("p", 2)), Expand: inFloat32(expandLpPool)},
	lower.Operator{Name: "MaxPool", Min: 1, Max: 1, Outputs: 2, Attrs: append(poolAttrs, graph.Int("storage_order", 0)), Lower: lowerMaxPool, Grad: maxPoolGrad},
	lower.Operator{Name: "GlobalAveragePool", Min: 1, Max: 1, Outputs: 1, Expand: global("ReduceMean")},
	lower.Operator{Name: "GlobalMaxPool", Min: 1, Max: 1, Outputs: 1, Expand: global("ReduceMax")},
	lower.Operator{Name: "GlobalLpPool", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("p", 2)},
		Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
			return normOver(c, b, func(x string) string { return reduceAlong(b, "ReduceSum", x, spatialAxes(len(c.In[0].Shape))...) })
		})},
)

var poolAttrs = slices.Clip(append(windowAttrs, graph.Int("ceil_mode", 0)))

// global reduces all spatial axes.
func global(reduce string) expandFunc {
	return func(c *lower.Call, b *graph.Builder) ([]string, error) {
		if len(c.In[0].Shape) < 2 {
			return nil, fmt.Errorf("input %q has shape %v, but should have a batch and channels", c.Inputs[0], c.In[0].Shape)
		}
		if over := spatialAxes(len(c.In[0].Shape)); len(over) > 0 {
			return []string{reduceAlong(b, reduce, c.Inputs[0], over...)}, nil
		}
		return []string{b.Op("Identity", c.Inputs[0])}, nil
	}
}

// poolWindow returns the window of a pooling operator.
func poolWindow(c *lower.Call) (*window, error) {
	x := c.In[0].Shape
	if len(x) < 3 {
		return nil, fmt.Errorf("input %q has shape %v, but should have a batch, channels and at least one spatial axis", c.Inputs[0], x)
	}
	w, err := newWindow(c, x[2:], intsAttr(c, "kernel_shape"))
	if err != nil {
		return nil, err
	}
	return w, w.place(c.Text("auto_pad"), c.Flag("ceil_mode"))
}

// lowerAveragePool divides the sum of each window by its number of terms;
// padding counts among them if it is included.
func lowerAveragePool(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	w, err := poolWindow(c)
	if err == nil {
		err = wantFloats(c)
	}
	if err != nil {
		return nil, err
	}
	return one(e.Summed(c.In[0], func(x lower.View) (lower.View, error) {
		counts, err := windowCounts(c, w, x.Type)
		if err != nil {
			return lower.View{}, err
		}
		y, err := foldWindows(e, tensor.FoldSum, x, w)
		if err != nil {
			return lower.View{}, err
		}
		return e.Map(tensor.Div, x.Type, y, e.Const(counts))
	}))
}

// foldWindows folds each window of x.
func foldWindows(e *lower.Emitter, fn tensor.Fn, x lower.View, w *window) (lower.View, error) {
	x, err := e.Bounded(x, spatialAxes(len(x.Shape))...)
	if err != nil {
		return lower.View{}, err
	}
	s := append(x.Shape[:2].Clone(), w.out...)
	p := &tensor.Primitive{Fn: fn, Type: x.Type, Shape: s, Fold: w.kernel}
	return e.Emit(p, x.Access(append(lower.Axes(0, 2), w.reads(2, len(s))...)))
}

// averagePoolGrad gives each element of a window its share.
func averagePoolGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	w, err := poolWindow(c)
	if err != nil {
		return nil, err
	}
	counts, err := windowCounts(c, w, tensor.Float32)
	if err != nil {
		return nil, err
	}
	s := c.In[0].Shape
	planes, taps, n := s[0]*s[1], tensor.Shape(w.kernel).Elements(), tensor.Shape(w.out).Elements()
	g := reshaped(b, b.Op("Div", dy[0], b.Const(counts)), c.Out[0].Shape, tensor.Shape{planes, 1, n})
	dx := col2im(b, b.Op("Expand", g, b.Ints(planes, taps, n)), w)
	return firstGrad(c, reshaped(b, dx, append(tensor.Shape{planes, 1}, w.in...), s)), nil
}

// windowCounts returns how many terms each window has, or one number if all have as
// many.
func windowCounts(c *lower.Call, w *window, t tensor.DType) (*tensor.Tensor, error) {
	along := make([]func(o int) int, len(w.in))
	s := make(tensor.Shape, len(w.in))
	for a := range w.in {
		lo, hi := 0, w.in[a]
		if c.Flag("count_include_pad") {
			lo, hi = -w.before[a], hi+w.after[a]
		}
		d, k := w.dilation[a], w.kernel[a]
		terms := func(o int) int {
			start := o*w.stride[a] - w.before[a]
			from, to := max(0, -floorDiv(start-lo, d)), min(k-1, floorDiv(hi-1-start, d))
			return max(1, to-from+1)
		}
		s[a] = w.out[a]
		if w.out[a] > 0 && terms(0) == k && terms(w.out[a]-1) == k {
			s[a] = 1
		}
		along[a] = terms
	}
	x, err := c.Account.NewConst(t, s)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(s))
	for i := range x.Len() {
		s.Coords(i, at)
		n := 1
		for a, o := range at {
			n *= along[a](o)
		}
		x.Set(i, scalarOf(t, n).At(0))
	}
	return x, nil
}

// normOver writes the p-norm over what sum adds up.
func normOver(c *lower.Call, b *graph.Builder, sum func(x string) string) ([]string, error) {
	p := c.Int("p")
	if p < 1 || p > tensor.MaxDim {
		return nil, fmt.Errorf("p is %d, but should be positive", p)
	}
	if err := wantFloats(c); err != nil {
		return nil, err
	}
	power := b.Op("Abs", c.Inputs[0])
	if p > 1 {
		power = b.Op("Pow", power, scalarLike(c, b, p))
	}
	y := sum(power)
	switch p {
	case 1:
	case 2:
		y = b.Op("Sqrt", y)
	default:
		y = b.Op("Pow", y, b.Op("Div", scalarLike(c, b, 1), scalarLike(c, b, p)))
	}
	return []string{y}, nil
}

// expandLpPool sums by a convolution of each channel with ones.
func expandLpPool(c *lower.Call, b *graph.Builder) ([]string, error) {
	w, err := poolWindow(c)
	if err != nil {
		return nil, err
	}
	s := c.In[0].Shape
	planes := tensor.Shape{s[0] * s[1], 1}
	return normOver(c, b, func(x string) string {
		ones := b.Op("Expand", scalarLike(c, b, 1), b.Ints(append(tensor.Shape{1, 1}, w.kernel...)...))
		y := b.With(w.closed().attrs()...).Op("Conv", reshaped(b, x, s, append(planes.Clone(), w.in...)), ones)
		return reshaped(b, y, append(planes.Clone(), w.out...), append(s[:2].Clone(), w.out...))
	})
}

// lowerMaxPool folds each window. The position of its greatest element is that of the last in a
// kernel read backwards. So it is the first of equals, and never outside the input.
func lowerMaxPool(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	w, err := poolWindow(c)
	if err != nil {
		return nil, err
	}
	x := c.In[0]
	if !x.Type.Numeric() {
		return nil, fmt.Errorf("it does not take %v", x.Type)
	}
	if x, err = e.Bounded(x, spatialAxes(len(x.Shape))...); err != nil {
		return nil, err
	}
	y, err := foldWindows(e, tensor.FoldMax, x, w)
	if err != nil || len(c.Outputs) < 2 {
		return []lower.View{y}, err
	}
	s := y.Shape
	back := w.reads(2, len(s))
	for a := range back {
		back[a].Offset += w.span(a) - 1
		back[a].Terms[1].Step = -w.dilation[a]
	}
	p := &tensor.Primitive{Fn: tensor.FoldArgMax, Type: tensor.Int64, Shape: s, Fold: w.kernel, Imm: []tensor.Word{1}}
	at, err := e.Emit(p, x.Access(append(lower.Axes(0, 2), back...)))
	if err != nil {
		return nil, err
	}
	at, err = flatIndex(c, e, at, w)
	return []lower.View{y, at}, err
}

// flatIndex turns places in a kernel read backwards into flat indices of input
// 0; its spatial axes may count from the first on.
func flatIndex(c *lower.Call, e *lower.Emitter, at lower.View, w *window) (lower.View, error) {
	stride := tensor.Shape(w.in).Strides()
	if c.Int("storage_order") != 0 {
		for a, n := 0, 1; a < len(w.in); a++ {
			stride[a], n = n, n*w.in[a]
		}
	}
	taps := tensor.Shape(w.kernel)
	coord := make([]int, len(taps))
	table, err := intConst(c, e, tensor.Shape{taps.Elements()}, func(i int) int {
		taps.Coords(taps.Elements()-1-i, coord)
		v := 0
		for a, k := range coord {
			v += stride[a] * w.dilation[a] * k
		}
		return v
	})
	if err != nil {
		return lower.View{}, err
	}
	if at, err = e.Affine(at); err != nil {
		return lower.View{}, err
	}
	at, err = gather(e, table, at.Shape, []tensor.Dim{{Via: 1}}, at.Access(lower.Axes(0, len(at.Shape))))
	for d, n := range at.Shape {
		s := make(tensor.Shape, len(at.Shape)-d)
		for i := range s {
			s[i] = 1
		}
		s[0] = n
		step := tensor.Shape(w.in).Elements()
		switch {
		case d == 0:
			step *= at.Shape[1]
		case d >= 2:
			step = stride[d-2] * w.stride[d-2]
		}
		var part lower.View
		if err == nil {
			part, err = intConst(c, e, s, func(i int) int {
				if d < 2 {
					return i * step
				}
				return i*step - w.before[d-2]*stride[d-2]
			})
		}
		if err == nil {
			at, err = e.Map(tensor.Add, tensor.Int64, at, part)
		}
		if err != nil {
			return lower.View{}, err
		}
	}
	return at, nil
}

// intConst returns a constant of integers.
func intConst(c *lower.Call, e *lower.Emitter, s tensor.Shape, f func(i int) int) (lower.View, error) {
	t, err := intTable(c, s, f)
	if err != nil {
		return lower.View{}, err
	}
	return e.Const(t), nil
}

// maxPoolGrad puts each gradient at the place of its window that Indices names,
// and adds up what windows share.
func maxPoolGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	if dy[0] == "" {
		return firstGrad(c, ""), nil
	}
	w, err := poolWindow(c)
	if err != nil {
		return nil, err
	}
	s, in, taps, out := c.In[0].Shape, tensor.Shape(w.in), tensor.Shape(w.kernel), tensor.Shape(w.out)
	k, n, planes := taps.Elements(), out.Elements(), s[0]*s[1]
	attrs := slices.DeleteFunc(slices.Clone(c.Attrs), func(a graph.Attr) bool { return a.Name == "storage_order" })
	index := b.With(attrs...).Ops("MaxPool", 2, c.Inputs[0])[1]
	plane, err := intTable(c, tensor.Shape{s[0], s[1], 1, 1}, func(i int) int { return i * in.Elements() })
	if err != nil {
		return nil, err
	}
	tap, at, strides := make([]int, len(taps)), make([]int, len(out)), in.Strides()
	places, err := intTable(c, tensor.Shape{k, n}, func(i int) int {
		taps.Coords(i/n, tap)
		out.Coords(i%n, at)
		place := 0
		for a, o := range at {
			p := o*w.stride[a] + tap[a]*w.dilation[a] - w.before[a]
			if p < 0 || p >= in[a] {
				return -1
			}
			place += p * strides[a]
		}
		return place
	})
	if err != nil {
		return nil, err
	}
	full := append(s[:2].Clone(), out...)
	column := tensor.Shape{s[0], s[1], 1, n}
	hit := b.Op("Equal", b.Op("Sub", reshaped(b, index, full, column), b.Const(plane)), b.Const(places))
	shares := b.Op("Where", hit, reshaped(b, dy[0], full, column), b.Scalar(0))
	dx := col2im(b, reshaped(b, shares, tensor.Shape{s[0], s[1], k, n}, tensor.Shape{planes, k, n}), w)
	return []string{reshaped(b, dx, append(tensor.Shape{planes, 1}, in...), s)}, nil
}
