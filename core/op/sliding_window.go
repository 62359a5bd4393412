package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Windows that slide over spatial axes: what convolutions and pooling read.

// A window slides over spatial axes: position o of the result reads position
// o·stride + k·dilation − before of the input for each k of the kernel. What
// lies outside the input is skipped.
type window struct {
	in, kernel, stride, dilation, before, after, out []int
}

var windowAttrs = []graph.Attr{
	graph.String("auto_pad", "NOTSET"), graph.Ints("dilations"), graph.Ints("kernel_shape"), graph.Ints("pads"), graph.Ints("strides"),
}

// newWindow reads how a kernel moves over an input; place says where to.
func newWindow(c *lower.Call, in, kernel []int) (*window, error) {
	n := len(in)
	w := &window{in: in, kernel: kernel}
	if n < 1 || len(kernel) != n || slices.Min(in) < 1 {
		return nil, fmt.Errorf("a kernel of shape %v does not fit spatial axes %v", kernel, in)
	}
	pads, err := spatialAttr(c, "pads", 2*n, 0, -tensor.MaxDim)
	if err != nil {
		return nil, err
	}
	w.before, w.after = pads[:n:n], pads[n:]
	if w.stride, err = spatialAttr(c, "strides", n, 1, 1); err != nil {
		return nil, err
	}
	if w.dilation, err = spatialAttr(c, "dilations", n, 1, 1); err != nil {
		return nil, err
	}
	for a, k := range kernel {
		if k < 1 || k > tensor.MaxDim || w.dilation[a] > tensor.MaxDim/k {
			return nil, fmt.Errorf("a kernel of extent %d with dilation %d is out of range", k, w.dilation[a])
		}
	}
	return w, nil
}

// spatialAttr returns a list of n integers, which are all by default if it is not
// given.
func spatialAttr(c *lower.Call, name string, n, all, least int) ([]int, error) {
	list := intsAttr(c, name)
	if len(list) == 0 {
		list = slices.Repeat([]int{all}, n)
	}
	if len(list) != n {
		return nil, fmt.Errorf("%s has %d numbers, but should have %d", name, len(list), n)
	}
	for _, v := range list {
		if v < least || v > tensor.MaxDim {
			return nil, fmt.Errorf("%s %v are out of range", name, list)
		}
	}
	return list, nil
}

// span is how far the kernel reaches along an axis.
func (w *window) span(a int) int { return (w.kernel[a]-1)*w.dilation[a] + 1 }

// place sets pads, if they are automatic, and the extents of the result. ceil
// keeps a last window that does not end inside.
func (w *window) place(auto string, ceil bool) error {
	w.out = make([]int, len(w.in))
	for a, n := range w.in {
		s := w.stride[a]
		switch auto {
		case "SAME_UPPER", "SAME_LOWER":
			w.out[a] = (n + s - 1) / s
			total := max(0, (w.out[a]-1)*s+w.span(a)-n)
			w.halve(a, total, auto)
			continue
		case "VALID":
			w.before[a], w.after[a] = 0, 0
		case "NOTSET":
		default:
			return badAutoPad(auto)
		}
		room := n + w.before[a] + w.after[a] - w.span(a)
		if room < 0 {
			return fmt.Errorf("a kernel that spans %d does not fit in %d with pads %d and %d", w.span(a), n, w.before[a], w.after[a])
		}
		w.out[a] = room/s + 1
		if ceil && room%s != 0 && w.out[a]*s < n+w.before[a] { // a window that begins after the end is none
			w.out[a]++
		}
	}
	return nil
}

// halve divides the pads of an axis: the odd one comes last for SAME_UPPER.
func (w *window) halve(a, total int, auto string) {
	w.before[a], w.after[a] = total-total/2, total/2
	if auto == "SAME_UPPER" {
		w.before[a], w.after[a] = w.after[a], w.before[a]
	}
}

func badAutoPad(auto string) error {
	return fmt.Errorf("auto_pad %q is not supported; use NOTSET, SAME_UPPER, SAME_LOWER or VALID", auto)
}

// attrs states the window explicitly.
func (w *window) attrs(more ...graph.Attr) []graph.Attr {
	pads := append(append([]int{}, w.before...), w.after...)
	return append(more, graph.Ints("strides", w.stride...), graph.Ints("dilations", w.dilation...), graph.Ints("pads", pads...))
}

// closed returns w with the pads at the end that its last position needs.
func (w *window) closed() *window {
	out := *w
	out.after = make([]int, len(w.in))
	for a := range w.in {
		out.after[a] = max(0, (w.out[a]-1)*w.stride[a]+w.span(a)-w.in[a]-w.before[a])
	}
	return &out
}

// reads returns the coordinates that a window reads when the positions of the
// result lie on axes from out on and those of the kernel on axes from tap on.
func (w *window) reads(out, tap int) []tensor.Dim {
	dims := make([]tensor.Dim, len(w.in))
	for a := range dims {
		dims[a] = tensor.Dim{Offset: -w.before[a], Terms: []tensor.Term{{Axis: out + a, Step: w.stride[a]}, {Axis: tap + a, Step: w.dilation[a]}}}
	}
	return dims
}

// spatialAxes are the axes of a tensor after the first two.
func spatialAxes(rank int) []int {
	out := make([]int, 0, rank)
	for a := 2; a < rank; a++ {
		out = append(out, a)
	}
	return out
}

// A transpose sums for each position i of a window's input what the results
// that read it hold: over all o and k with o·stride + k·dilation = i + before.
// With a stride s and no dilation, i + before = s·q + r has the taps k = s·t + r
// of the results o = q − t, so that nothing is multiplied by zero. Where that
// cannot be, zeros come between the results.
type transpose struct {
	shape tensor.Shape // of the sum: leading axes, then q and r or i for each axis
	fold  []int        // leading folded axes, then t or k
	o, k  []tensor.Dim
	whole tensor.Shape // q and r joined
	start []int        // where i = 0 lies
}

// planTranspose plans the sum behind the given leading axes. x holds the results on
// its last axes.
func planTranspose(e *lower.Emitter, x lower.View, w *window, lead tensor.Shape, fold []int) (lower.View, *transpose, error) {
	n := len(w.in)
	t := &transpose{shape: lead.Clone(), fold: append([]int{}, fold...), whole: lead.Clone()}
	stride := append([]int{}, w.stride...)
	free := tensor.MaxRank - len(lead) - n
	for a := range n {
		if stride[a] > 1 && (w.dilation[a] > 1 || free == 0) {
			var err error
			if x, err = spaceOut(e, x, len(x.Shape)-n+a, stride[a]); err != nil {
				return x, nil, err
			}
			stride[a] = 1
		} else if stride[a] > 1 {
			free--
		}
		q, s := floorDiv(w.before[a], stride[a]), stride[a]
		t.start = append(t.start, w.before[a]-q*s)
		if s == 1 {
			t.shape, t.whole = append(t.shape, w.in[a]), append(t.whole, w.in[a])
			t.fold = append(t.fold, w.kernel[a])
			continue
		}
		extent := (t.start[a] + w.in[a] + s - 1) / s
		t.shape, t.whole = append(t.shape, extent, s), append(t.whole, extent*s)
		t.fold = append(t.fold, (w.kernel[a]+s-1)/s)
	}
	axis, tap := len(lead), len(t.shape)+len(fold)
	for a, s := range stride {
		if s == 1 {
			t.o = append(t.o, tensor.Dim{Offset: w.before[a], Terms: []tensor.Term{{Axis: axis, Step: 1}, {Axis: tap + a, Step: -w.dilation[a]}}})
			t.k = append(t.k, lower.Strided(0, tap+a, 1))
			axis++
			continue
		}
		t.o = append(t.o, tensor.Dim{Offset: floorDiv(w.before[a], s), Terms: []tensor.Term{{Axis: axis, Step: 1}, {Axis: tap + a, Step: -1}}})
		t.k = append(t.k, tensor.Dim{Terms: []tensor.Term{{Axis: axis + 1, Step: 1}, {Axis: tap + a, Step: s}}})
		axis += 2
	}
	return x, t, nil
}

// cutTranspose brings the sum v into shape: axes joined, and only positions 0 to n of
// each spatial axis.
func cutTranspose(e *lower.Emitter, v lower.View, t *transpose, w *window, lead tensor.Shape) (lower.View, error) {
	s := append(lead.Clone(), t.whole[len(t.whole)-len(w.in):]...)
	v, err := e.Reshape(v, s)
	if err != nil {
		return v, err
	}
	for a, n := range w.in {
		if d := len(lead) + a; n != v.Shape[d] {
			if v, err = e.Affine(v); err != nil {
				return v, err
			}
			v = v.Sliced(d, t.start[a], 1, n)
		}
	}
	return v, nil
}

// spaceOut puts step−1 zeros between the elements of an axis.
func spaceOut(e *lower.Emitter, v lower.View, a, step int) (lower.View, error) {
	n := v.Shape[a]
	if n > tensor.MaxDim/step {
		return v, fmt.Errorf("a stride of %d over %d is out of range", step, n)
	}
	s := v.Shape.Clone()
	s[a] = n * step
	split := append(append(s[:a:a].Clone(), n, 1), s[a+1:]...)
	if err := split.Check(); err != nil {
		return v, err
	}
	v, err := e.Reshape(v, split)
	if err != nil {
		return v, err
	}
	split = split.Clone()
	split[a+1] = step
	if v, err = padTo(e, v, split, 0); err != nil {
		return v, err
	}
	return e.Reshape(v, s)
}

// floorDiv divides, rounding down.
func floorDiv(x, y int) int {
	q := x / y
	if x%y != 0 && x < 0 {
		q--
	}
	return q
}
