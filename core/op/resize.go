package op

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Resizing, one axis after another: each element of the result is a sum of a
// few elements of the axis times constant weights, or one of them. Places and
// weights are computed in float64 from scales, sizes and regions, which must be
// constant.

var _ = define(
	lower.Operator{Name: "Resize", Min: 1, Max: 4, Outputs: 1, Expand: expandResize, Attrs: []graph.Attr{
		graph.Int("antialias", 0), graph.Ints("axes"), graph.String("coordinate_transformation_mode", "half_pixel"),
		graph.Float("cubic_coeff_a", -0.75), graph.Int("exclude_outside", 0), graph.Float("extrapolation_value", 0),
		graph.String("keep_aspect_ratio_policy", "stretch"), graph.String("mode", "nearest"), graph.String("nearest_mode", "round_prefer_floor"),
	}},
)

// resized is an axis and what becomes of it.
type resized struct {
	axis, in, out int
	scale         float64
	start, end    float64 // of the region, in parts of the axis
}

// resizedAxes returns what becomes of each axis that the inputs speak of.
func resizedAxes(c *lower.Call) ([]resized, error) {
	s := c.In[0].Shape
	named := intsAttr(c, "axes")
	if len(named) == 0 {
		for a := range s {
			named = append(named, a)
		}
	}
	if _, err := axesOf(named, len(s)); err != nil {
		return nil, err
	}
	if hasElements(c, 2) == hasElements(c, 3) {
		return nil, fmt.Errorf("it needs either scales or sizes")
	}
	out := make([]resized, len(named))
	for i, a := range named {
		a, _ = axisOf(a, len(s))
		out[i] = resized{axis: a, in: s[a], end: 1}
	}
	if c.Text("coordinate_transformation_mode") == "tf_crop_and_resize" {
		if !hasElements(c, 1) {
			return nil, fmt.Errorf("it crops, but has no region")
		}
		region, err := floatsInput(c, 1)
		if err != nil {
			return nil, err
		}
		if len(region) != 2*len(out) {
			return nil, fmt.Errorf("the region has %d numbers for %d axes", len(region), len(out))
		}
		for i := range out {
			out[i].start, out[i].end = region[i], region[len(out)+i]
		}
	}
	if hasElements(c, 3) {
		return out, fitSizes(c, out)
	}
	scales, err := floatsInput(c, 2)
	if err != nil {
		return nil, err
	}
	if len(scales) != len(out) {
		return nil, fmt.Errorf("%d scales are given for %d axes", len(scales), len(out))
	}
	for i := range out {
		r := &out[i]
		r.scale = scales[i]
		n := float64(float32(float64(r.in) * r.scale)) // in the type of scales, so that 5 · 1.4 is 7
		if part := r.end - r.start; part != 1 {
			n = float64(float64(float64(r.in)*part) * r.scale)
		}
		if !(r.scale > 0) || !(n >= 0 && n <= tensor.MaxDim) {
			return nil, fmt.Errorf("scale %v of axis %d is out of range", r.scale, r.axis)
		}
		r.out = int(n)
	}
	return out, nil
}

// fitSizes sets extents and scales from sizes.
func fitSizes(c *lower.Call, out []resized) error {
	sizes, err := intsInput(c, 3)
	if err != nil {
		return err
	}
	if len(sizes) != len(out) {
		return fmt.Errorf("%d sizes are given for %d axes", len(sizes), len(out))
	}
	best, policy := 0.0, c.Text("keep_aspect_ratio_policy")
	for i := range out {
		r := &out[i]
		r.out = sizes[i]
		if r.out < 0 || r.out > tensor.MaxDim || r.in < 1 || r.out < 1 && policy != "stretch" {
			return fmt.Errorf("size %d of axis %d is out of range", r.out, r.axis)
		}
		r.scale = float64(r.out) / float64(r.in)
		if i == 0 || policy == "not_larger" && r.scale < best || policy == "not_smaller" && r.scale > best {
			best = r.scale
		}
	}
	switch policy {
	case "stretch":
		return nil
	case "not_larger", "not_smaller":
	default:
		return fmt.Errorf("keep_aspect_ratio_policy %q is not supported; use stretch, not_larger or not_smaller", policy)
	}
	for i := range out {
		r := &out[i]
		r.scale = best
		n := math.Floor(float64(best*float64(r.in)) + 0.5)
		if n > tensor.MaxDim {
			return fmt.Errorf("scale %v of axis %d is out of range", best, r.axis)
		}
		r.out = int(n)
	}
	return nil
}

// origin returns the place in the input of position i of the result.
func (r *resized) origin(mode string, i int) (float64, error) {
	at, in := float64(i), float64(r.in)
	width := float64(r.scale * in) // of the result, before it was rounded
	half := (at+0.5)/r.scale - 0.5
	var x float64
	switch mode {
	case "half_pixel":
		x = half
	case "pytorch_half_pixel":
		if r.out > 1 {
			x = half
		}
	case "half_pixel_symmetric":
		x = half + float64(in/2*(1-float64(r.out)/width))
	case "asymmetric":
		x = at / r.scale
	case "align_corners":
		if width != 1 {
			x = float64(at*(in-1)) / (width - 1)
		}
	case "tf_crop_and_resize":
		part := float64((r.end - r.start) * (in - 1))
		if width == 1 {
			x = part / 2
		} else {
			x = float64(at*part) / (width - 1)
		}
		x += float64(r.start * (in - 1))
	default:
		return 0, fmt.Errorf("coordinate_transformation_mode %q is not supported", mode)
	}
	if !(x > -tensor.MaxDim && x < tensor.MaxDim) {
		return 0, fmt.Errorf("position %d of axis %d comes from nowhere", i, r.axis)
	}
	return x, nil
}

// nearest returns the position next to x.
func nearest(mode string, x float64) (int, error) {
	low := math.Floor(x)
	up := x > low
	switch mode {
	case "round_prefer_floor":
		up = x-low > 0.5
	case "round_prefer_ceil":
		up = x-low >= 0.5
	case "floor":
		up = false
	case "ceil":
	default:
		return 0, fmt.Errorf("nearest_mode %q is not supported; use round_prefer_floor, round_prefer_ceil, floor or ceil", mode)
	}
	if up {
		low++
	}
	return int(low), nil
}

// filter is a kernel of interpolation: the weight of a position by its distance.
type filter struct {
	reach  int     // on either side
	shrink float64 // below 1 the kernel is wider
	weight func(distance float64) float64
}

func newFilter(c *lower.Call, shrink float64) (filter, error) {
	f := filter{shrink: shrink}
	reach := 1.0
	switch mode := c.Text("mode"); mode {
	case "linear":
		f.weight = func(d float64) float64 { return max(0, 1-d) }
	case "cubic":
		reach, f.weight = 2, cubic(float64(c.Float("cubic_coeff_a")))
	default:
		return f, fmt.Errorf("mode %q is not supported; use nearest, linear or cubic", mode)
	}
	if !(reach/shrink < tensor.MaxDim) {
		return f, fmt.Errorf("scale %v is out of range", shrink)
	}
	f.reach = int(math.Ceil(reach / shrink))
	return f, nil
}

// cubic is the kernel of cubic convolution with parameter a.
func cubic(a float64) func(d float64) float64 {
	return func(d float64) float64 {
		switch {
		case d <= 1:
			return float64(float64(float64(float64((a+2)*d)-(a+3))*d)*d) + 1
		case d < 2:
			return float64(float64(float64(float64(float64(float64(a*d)-float64(5*a))*d)+float64(8*a))*d) - float64(4*a))
		}
		return 0
	}
}

// weigh sets the weights of the positions around x, and returns the first of
// them.
func (f *filter) weigh(weights []float64, x float64, in int, exclude bool) (first int) {
	first = int(math.Ceil(x)) - f.reach
	sum := 0.0
	for i := range weights {
		p := first + i
		weights[i] = f.weight(float64(math.Abs(float64(p)-x) * f.shrink))
		if exclude && (p < 0 || p >= in) {
			weights[i] = 0
		}
		sum += weights[i]
	}
	if (f.shrink < 1 || exclude) && sum != 0 {
		for i := range weights {
			weights[i] /= sum
		}
	}
	return first
}

// expandResize writes a Gather along each axis, followed by an Einsum with the
// weights if several elements take part.
func expandResize(c *lower.Call, b *graph.Builder) ([]string, error) {
	all, err := resizedAxes(c)
	if err != nil {
		return nil, err
	}
	y, s, t := c.Inputs[0], c.In[0].Shape, c.In[0].Type
	near := c.Text("mode") == "nearest"
	kind := t
	switch {
	case near:
	case t.Half() || t.Integer() && t.Size() < 4:
		kind = tensor.Float32
	case t.Integer():
		kind = tensor.Float64
	case !t.Float():
		return nil, fmt.Errorf("%v cannot be interpolated; use mode nearest", t)
	}
	if kind != t {
		y = b.Cast(y, kind)
	}
	outside := ""
	for _, r := range all {
		if r.in == r.out && r.scale == 1 && r.start == 0 && r.end == 1 {
			continue
		}
		if r.in < 1 && r.out > 0 {
			return nil, fmt.Errorf("axis %d has no elements", r.axis)
		}
		if y, s, err = resizeAxis(c, b, y, s, kind, r); err != nil {
			return nil, err
		}
		mask, err := beyond(c, b, r, len(s))
		if err != nil {
			return nil, err
		}
		if outside == "" {
			outside = mask
		} else if mask != "" {
			outside = b.Op("Or", outside, mask)
		}
	}
	if kind != t && t.Integer() {
		y = b.Op("Round", y)
	}
	if outside != "" {
		fill := b.Cast(b.Const(floatOf(tensor.Float64, float64(c.Float("extrapolation_value")))), kind)
		y = b.Op("Where", outside, fill, y)
	}
	if kind != t {
		y = b.Cast(y, t)
	}
	return []string{b.Op("Identity", y)}, nil
}

// resizeAxis resizes one axis of x, which has the given shape and type.
func resizeAxis(c *lower.Call, b *graph.Builder, x string, s tensor.Shape, t tensor.DType, r resized) (string, tensor.Shape, error) {
	shrink := 1.0
	if c.Flag("antialias") {
		shrink = min(1, r.scale)
	}
	var fault error
	origin := func(i int) float64 {
		x, err := r.origin(c.Text("coordinate_transformation_mode"), i)
		fault = cmp.Or(fault, err)
		return x
	}
	s = s.Clone()
	s[r.axis] = r.out
	gather := b.With(graph.Int("axis", r.axis))
	if c.Text("mode") == "nearest" {
		index, err := intTable(c, tensor.Shape{r.out}, func(i int) int {
			p, err := nearest(c.Text("nearest_mode"), origin(i))
			fault = cmp.Or(fault, err)
			return min(max(p, 0), r.in-1)
		})
		if err = cmp.Or(fault, err); err != nil {
			return "", nil, err
		}
		return gather.Op("Gather", x, b.Const(index)), s, nil
	}
	f, err := newFilter(c, shrink)
	if err != nil {
		return "", nil, fmt.Errorf("axis %d: %w", r.axis, err)
	}
	taps := tensor.Shape{r.out, 2 * f.reach}
	index, err := c.Account.NewConst(tensor.Int64, taps)
	if err != nil {
		return "", nil, err
	}
	w, err := c.Account.NewConst(t, taps)
	if err != nil {
		return "", nil, err
	}
	weights := make([]float64, 2*f.reach)
	for i := range r.out {
		first := f.weigh(weights, origin(i), r.in, c.Flag("exclude_outside"))
		for k, v := range weights {
			index.Set(i*len(weights)+k, tensor.Word(min(max(first+k, 0), r.in-1)))
			w.Set(i*len(weights)+k, tensor.FloatWord(t, v))
		}
	}
	if fault != nil {
		return "", nil, fault
	}
	text := letters[:len(s)]
	in := text[:r.axis+1] + "Z" + text[r.axis+1:]
	einsum := b.With(graph.String("equation", in+","+text[r.axis:r.axis+1]+"Z->"+text))
	return einsum.Op("Einsum", gather.Op("Gather", x, b.Const(index)), b.Const(w)), s, nil
}

// beyond names a mask of the positions on an axis that come from outside the
// input, where cropping extrapolates; it is empty if there are none.
func beyond(c *lower.Call, b *graph.Builder, r resized, rank int) (string, error) {
	mode := c.Text("coordinate_transformation_mode")
	if mode != "tf_crop_and_resize" {
		return "", nil
	}
	s := tensor.Shape(slices.Repeat([]int{1}, rank))
	s[r.axis] = r.out
	mask, err := c.Account.NewConst(tensor.Bool, s)
	if err != nil {
		return "", err
	}
	found := false
	for i := range r.out {
		x, err := r.origin(mode, i)
		if err != nil {
			return "", err
		}
		if x < 0 || x > float64(r.in-1) {
			mask.Set(i, 1)
			found = true
		}
	}
	if !found {
		return "", nil
	}
	return b.Const(mask), nil
}

// hasElements reports whether input i is there and has elements.
func hasElements(c *lower.Call, i int) bool { return c.Has(i) && c.In[i].Shape.Elements() > 0 }
