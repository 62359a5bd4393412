package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Convolutions with any number of spatial axes. Each is one contraction over
// the channels of a group and the kernel, in that order.

var _ = define(
	lower.Operator{Name: "Conv", Min: 2, Max: 3, Outputs: 1, Attrs: append(windowAttrs, graph.Int("group", 1)), Lower: lowerConv, Grad: convGrad},
	lower.Operator{Name: "ConvTranspose", Min: 2, Max: 3, Outputs: 1, Lower: lowerConvTranspose, Grad: convTransposeGrad,
		Attrs: append(windowAttrs, graph.Int("group", 1), graph.Ints("output_padding"), graph.Ints("output_shape"))},
)

// kernelWindow returns the window that the kernels of input 1 move with over
// input 0, and the number of groups.
func kernelWindow(c *lower.Call) (*window, int, error) {
	x, k := c.In[0].Shape, c.In[1].Shape
	if len(x) < 3 || len(k) != len(x) {
		return nil, 0, fmt.Errorf("data of shape %v and kernels of shape %v should both have two axes and the same spatial ones", x, k)
	}
	if given := tensor.Shape(intsAttr(c, "kernel_shape")); len(given) > 0 && !given.Equal(k[2:]) {
		return nil, 0, fmt.Errorf("kernel_shape %v is not that of kernels of shape %v", given, k)
	}
	w, err := newWindow(c, x[2:], k[2:])
	group := c.Int("group")
	if err == nil && (group < 1 || group > tensor.MaxDim || k[0]%group != 0 || x[1]%group != 0) {
		err = fmt.Errorf("%d groups do not divide data of shape %v and kernels of shape %v", group, x, k)
	}
	return w, group, err
}

// convWindow returns the window of Conv, whose kernels are [out channels, in
// channels of a group, …].
func convWindow(c *lower.Call) (*window, int, error) {
	w, group, err := kernelWindow(c)
	if err != nil {
		return nil, 0, err
	}
	if x, k := c.In[0].Shape, c.In[1].Shape; x[1]/group != k[1] {
		return nil, 0, fmt.Errorf("kernels of shape %v in %d groups do not fit data of shape %v", k, group, x)
	}
	return w, group, w.place(c.Text("auto_pad"), false)
}

func lowerConv(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	if err := wantOneType(c, 0); err != nil {
		return nil, err
	}
	w, group, err := convWindow(c)
	if err != nil {
		return nil, err
	}
	y, err := convolve(e, c.In[0], c.In[1], w, group)
	if err != nil {
		return nil, err
	}
	return one(addBias(c, e, y))
}

// convolve sums products of x [N, group·C, …] and k [M, C, …] over C and the
// window. The types are any that have products.
func convolve(e *lower.Emitter, x, k lower.View, w *window, group int) (lower.View, error) {
	x, err := e.Bounded(x, spatialAxes(len(x.Shape))...)
	if err != nil {
		return lower.View{}, err
	}
	if k, err = e.Affine(k); err != nil {
		return lower.View{}, err
	}
	s := groups(x.Shape[0], group, k.Shape[0]/group)
	space, out := len(s), channels(k.Shape[0]/group, len(s)-1, group)
	s = append(s, w.out...)
	p := &tensor.Primitive{Fn: tensor.Dot, Type: productType(x.Type), Shape: s, Fold: k.Shape[1:]}
	in, tap := channels(k.Shape[1], len(s), group), len(s)+1
	y, err := e.Emit(p,
		x.Access(append([]tensor.Dim{lower.Axis(0), in}, w.reads(space, tap)...)),
		k.Access(append([]tensor.Dim{out, lower.Axis(len(s))}, lower.Axes(tap, len(w.in))...)))
	if err != nil {
		return lower.View{}, err
	}
	return e.Reshape(y, append(tensor.Shape{x.Shape[0], k.Shape[0]}, w.out...))
}

// groups returns the leading axes of a convolution: batch, group if there are
// several, and channel of a group.
func groups(batch, group, n int) tensor.Shape {
	if group == 1 {
		return tensor.Shape{batch, n}
	}
	return tensor.Shape{batch, group, n}
}

// channels is the coordinate of the channel that lies on axis a within its
// group of n.
func channels(n, a, group int) tensor.Dim {
	if group == 1 {
		return lower.Axis(a)
	}
	return tensor.Dim{Terms: []tensor.Term{{Axis: 1, Step: n}, {Axis: a, Step: 1}}}
}

// addBias adds input 2 to the channels of y, and rounds to the type of input 0.
func addBias(c *lower.Call, e *lower.Emitter, y lower.View) (lower.View, error) {
	if c.Has(2) {
		v := c.In[2]
		if len(v.Shape) != 1 || v.Shape[0] != y.Shape[1] {
			return lower.View{}, fmt.Errorf("input %q has shape %v, but should have %v", c.Inputs[2], v.Shape, y.Shape[1:2])
		}
		s := make(tensor.Shape, len(y.Shape)-1)
		for a := range s {
			s[a] = 1
		}
		s[0] = v.Shape[0]
		v, err := e.Reshape(v, s)
		if err == nil {
			v, err = e.Cast(v, y.Type)
		}
		if err == nil {
			y, err = e.Map(tensor.Add, y.Type, y, v)
		}
		if err != nil {
			return lower.View{}, err
		}
	}
	return e.Cast(y, c.In[0].Type)
}

// transposeWindow returns the window of which ConvTranspose is the transpose:
// its input is the output here, and the other way round.
func transposeWindow(c *lower.Call) (*window, int, error) {
	w, group, err := kernelWindow(c)
	if err != nil {
		return nil, 0, err
	}
	x, n := c.In[0].Shape, len(w.in)
	if k := c.In[1].Shape; k[0] != x[1] {
		return nil, 0, fmt.Errorf("kernels of shape %v do not fit data of shape %v", k, x)
	}
	more, err := spatialAttr(c, "output_padding", n, 0, 0)
	if err != nil {
		return nil, 0, err
	}
	want := intsAttr(c, "output_shape")
	if len(want) == n+2 { // some exporters state batch and channels as well
		want = want[2:]
	}
	if len(want) != 0 && len(want) != n {
		return nil, 0, fmt.Errorf("output_shape %v does not fit %d spatial axes", want, n)
	}
	auto := c.Text("auto_pad")
	w.out, w.in = w.in, make([]int, n)
	for a, o := range w.out {
		s := w.stride[a]
		if o > tensor.MaxDim/s {
			return nil, 0, fmt.Errorf("a stride of %d over %d is out of range", s, o)
		}
		full := s*(o-1) + w.span(a) + more[a]
		switch {
		case len(want) != 0:
			w.in[a] = want[a]
			w.halve(a, max(0, full-w.in[a]), auto)
		case auto == "SAME_UPPER" || auto == "SAME_LOWER":
			w.in[a] = o * s
			w.halve(a, max(0, full-w.in[a]), auto)
		case auto == "VALID":
			w.before[a], w.after[a] = 0, 0
			w.in[a] = full
		case auto == "NOTSET":
			w.in[a] = full - w.before[a] - w.after[a]
		default:
			return nil, 0, badAutoPad(auto)
		}
	}
	if slices.Min(w.in) < 1 {
		return nil, 0, fmt.Errorf("pads %v and %v leave nothing of the result", w.before, w.after)
	}
	return w, group, append(tensor.Shape{x[0], 1}, w.in...).Check()
}

func lowerConvTranspose(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	if err := wantOneType(c, 0); err != nil {
		return nil, err
	}
	w, group, err := transposeWindow(c)
	if err != nil {
		return nil, err
	}
	y, err := convolveBack(e, c.In[0], c.In[1], w, group)
	if err != nil {
		return nil, err
	}
	return one(addBias(c, e, y))
}

// convolveBack sums products of x [N, group·C, …] and k [group·C, M, …] over C
// and the transpose of the window.
func convolveBack(e *lower.Emitter, x, k lower.View, w *window, group int) (lower.View, error) {
	m, c := k.Shape[1], k.Shape[0]/group
	lead := groups(x.Shape[0], group, m)
	x, t, err := planTranspose(e, x, w, lead, []int{c})
	if err != nil {
		return lower.View{}, err
	}
	if x, err = e.Bounded(x, spatialAxes(len(x.Shape))...); err != nil {
		return lower.View{}, err
	}
	if k, err = e.Bounded(k, spatialAxes(len(k.Shape))...); err != nil {
		return lower.View{}, err
	}
	in := channels(c, len(t.shape), group)
	y, err := e.Emit(&tensor.Primitive{Fn: tensor.Dot, Type: productType(x.Type), Shape: t.shape, Fold: t.fold},
		x.Access(append([]tensor.Dim{lower.Axis(0), in}, t.o...)),
		k.Access(append([]tensor.Dim{in, lower.Axis(len(lead) - 1)}, t.k...)))
	if err != nil {
		return lower.View{}, err
	}
	return cutTranspose(e, y, t, w, tensor.Shape{x.Shape[0], group * m})
}

// convGrad: the data's gradient is the transpose of the convolution, that of
// the kernels a convolution of the data with the gradient.
func convGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	w, group, err := convWindow(c)
	if err != nil {
		return nil, err
	}
	attrs := w.attrs(graph.Int("group", group), graph.Ints("output_padding", w.unread(w.out)...))
	return biasGrad(c, b, dy[0],
		b.With(attrs...).Op("ConvTranspose", dy[0], c.Inputs[1]),
		w.kernelGrad(b, c.Inputs[0], dy[0], c.In[0].Shape, c.Out[0].Shape, group)), nil
}

// unread returns how many positions at the end of each padded axis no window of an
// output of the given extents reaches.
func (w *window) unread(out []int) []int {
	n := make([]int, len(w.in))
	for a := range n {
		n[a] = w.in[a] + w.before[a] + w.after[a] - w.span(a) - w.stride[a]*(out[a]-1)
	}
	return n
}

func convTransposeGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	w, group, err := transposeWindow(c)
	if err != nil {
		return nil, err
	}
	over := tensor.Shape(make([]int, len(w.in)))
	for a := range over {
		over[a] = (w.in[a]+w.before[a]+w.after[a]-w.span(a))/w.stride[a] + 1
	}
	dx := b.With(w.attrs(graph.Int("group", group))...).Op("Conv", dy[0], c.Inputs[1])
	return biasGrad(c, b, dy[0], firstOf(b, dx, over, w.out),
		w.kernelGrad(b, dy[0], c.Inputs[0], c.Out[0].Shape, c.In[0].Shape, group)), nil
}

// firstOf returns the first positions of each spatial axis.
func firstOf(b *graph.Builder, value string, from, to tensor.Shape) string {
	for a := range from {
		if from[a] != to[a] {
			value = b.Op("Slice", value, b.Ints(0), b.Ints(to[a]), b.Ints(2+a))
		}
	}
	return value
}

// biasGrad adds the gradient of a bias, if there is one.
func biasGrad(c *lower.Call, b *graph.Builder, dy, dx, dk string) []string {
	out := []string{dx, dk}
	if c.Has(2) {
		over := append(spatialAxes(len(c.Out[0].Shape)), 0)
		out = append(out, b.With(graph.Int("keepdims", 0)).Op("ReduceSum", dy, b.Ints(over...)))
	}
	return out
}

// kernelGrad is the gradient of kernels that convolve x to y, of the given
// shapes, where g is the gradient of y: the batch becomes the channels that are
// summed, and strides and dilations change places.
func (w *window) kernelGrad(b *graph.Builder, x, g string, xs, ys tensor.Shape, group int) string {
	n, each := xs[0], xs[1]/group
	perm := append([]int{1, 0}, spatialAxes(len(xs))...)
	if group == 1 {
		x = b.With(graph.Ints("perm", perm...)).Op("Transpose", x)
	} else {
		split := append(tensor.Shape{n, group, each}, xs[2:]...)
		moved := append([]int{2, 1, 0}, spatialAxes(len(split))[1:]...)
		x = b.With(graph.Ints("perm", moved...)).Op("Transpose", reshaped(b, x, xs, split))
		x = reshaped(b, x, append(tensor.Shape{each, group, n}, xs[2:]...), append(tensor.Shape{each, group * n}, xs[2:]...))
	}
	g = b.With(graph.Ints("perm", perm...)).Op("Transpose", g)
	// What is not read is left out, of the padding and then of x, so that as many
	// positions come out as kernels have.
	swapped := *w
	swapped.stride, swapped.dilation, swapped.after = w.dilation, w.stride, slices.Clone(w.after)
	read := xs[2:].Clone()
	for a, n := range w.unread(ys[2:]) {
		swapped.after[a] = max(w.after[a]-n, 0)
		read[a] -= max(n-w.after[a], 0)
	}
	k := b.With(swapped.attrs(graph.Int("group", group))...).Op("Conv", firstOf(b, x, xs[2:], read), g)
	return b.With(graph.Ints("perm", perm...)).Op("Transpose", k)
}
