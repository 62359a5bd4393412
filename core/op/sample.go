package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Elements at places that are computed: each is a sum of the elements around
// it, times weights that follow from its place.

var _ = define(
	lower.Operator{Name: "GridSample", Min: 2, Max: 2, Outputs: 1, Expand: inFloat32(expandGridSample), Attrs: []graph.Attr{
		graph.Int("align_corners", 0), graph.String("mode", "linear"), graph.String("padding_mode", "zeros"),
	}},
	lower.Operator{Name: "RoiAlign", Min: 3, Max: 3, Outputs: 1, Expand: inFloat32(expandRoiAlign), Attrs: []graph.Attr{
		graph.String("coordinate_transformation_mode", "half_pixel"), graph.String("mode", "avg"), graph.Int("output_height", 1),
		graph.Int("output_width", 1), graph.Int("sampling_ratio", 0), graph.Float("spatial_scale", 1),
	}},
	lower.Operator{Name: "MaxRoiPool", Min: 2, Max: 2, Outputs: 1, Expand: inFloat32(expandMaxRoiPool), Attrs: []graph.Attr{graph.Ints("pooled_shape"), graph.Float("spatial_scale", 1)}},
	lower.Operator{Name: "DeformConv", Min: 3, Max: 5, Outputs: 1, Expand: inFloat32(expandDeformConv), Attrs: append(slices.Clone(windowAttrs), graph.Int("group", 1), graph.Int("offset_group", 1))},
)

// sampler reads data [batch, channels, space…] at points of each batch.
type sampler struct {
	*graph.Builder
	c               *lower.Call
	batch, channels int
	space           tensor.Shape
	points          int
}

// neighbours are the positions around points on one axis, and their weights:
// both are [batch, points, taps], or the weights are one.
type neighbours struct {
	at, weight string
	taps       int
}

// around returns the neighbours of places [batch, points, 1] on axis a. What
// lies outside the axis has weight 0 if masked, and fold, if there is one,
// brings it inside; else the border repeats.
func (s *sampler) around(a int, mode, place string, masked bool, fold func(string) string) (neighbours, error) {
	n := neighbours{}
	base := place
	var offsets []int
	switch mode {
	case "nearest":
		base, offsets = s.Op("Round", place), []int{0}
	case "linear":
		base, offsets = s.Op("Floor", place), []int{0, 1}
	case "cubic":
		base, offsets = s.Op("Floor", place), []int{-1, 0, 1, 2}
	default:
		return n, fmt.Errorf("mode %q is not supported; use nearest, linear or cubic", mode)
	}
	n.taps = len(offsets)
	taps, err := floatTable(s.c, s.c.In[0].Type, tensor.Shape{n.taps}, func(i int) float64 { return float64(offsets[i]) })
	if err != nil {
		return n, err
	}
	at := s.Op("Add", base, s.Const(taps))
	zero, one, last := scalarLike(s.c, s.Builder, 0), scalarLike(s.c, s.Builder, 1), scalarLike(s.c, s.Builder, s.space[a]-1)
	distance := s.Op("Abs", s.Op("Sub", place, at))
	switch mode {
	case "linear":
		n.weight = s.Op("Sub", one, distance)
	case "cubic":
		n.weight = s.cubic(distance)
	}
	if masked {
		inside := s.Op("And", s.Op("GreaterOrEqual", at, zero), s.Op("LessOrEqual", at, last))
		if n.weight == "" {
			n.weight = one
		}
		n.weight = s.Op("Where", inside, n.weight, zero)
	} else if fold != nil {
		at = fold(at)
	}
	n.at = castTo(s.Builder, s.Op("Max", s.Op("Min", at, last), zero), tensor.Int64)
	return n, nil
}

// cubic is the kernel of cubic convolution with a = −¾.
func (s *sampler) cubic(d string) string {
	horner := func(c ...float64) string {
		p := floatLike(s.c, s.Builder, c[0])
		for _, v := range c[1:] {
			p = s.Op("Add", s.Op("Mul", p, d), floatLike(s.c, s.Builder, v))
		}
		return p
	}
	near := s.Op("LessOrEqual", d, scalarLike(s.c, s.Builder, 1))
	return s.Op("Where", near, horner(1.25, -2.25, 0, 1), horner(-0.75, 3.75, -6, 3))
}

// read returns the elements [batch, channels, points, taps] that all
// combinations of neighbours name, and their weights [batch, points, taps],
// empty if all are 1.
func (s *sampler) read(x string, axes []neighbours) (values, weights string, taps int, err error) {
	n := len(axes)
	shape := tensor.Shape{s.batch, s.points}
	strides := s.space.Strides()
	at := ""
	taps = 1
	for a, k := range axes {
		spread := append(tensor.Shape{s.batch, s.points}, slices.Repeat([]int{1}, n)...)
		spread[2+a] = k.taps
		have := tensor.Shape{s.batch, s.points, k.taps}
		shape, taps = append(shape, k.taps), taps*k.taps
		part := s.Op("Mul", reshaped(s.Builder, k.at, have, spread), int64Const(s.Builder, strides[a]))
		if at = sum(s.Builder, "Add", at, part); k.weight != "" {
			weights = sum(s.Builder, "Mul", weights, reshaped(s.Builder, k.weight, have, spread))
		}
	}
	if err := shape.Check(); err != nil {
		return "", "", 0, err
	}
	flat := tensor.Shape{s.batch, 1, s.points * taps}
	at = s.Op("Expand", reshaped(s.Builder, at, shape, flat), s.Ints(s.batch, s.channels, flat[2]))
	plane := tensor.Shape{s.batch, s.channels, s.space.Elements()}
	x = reshaped(s.Builder, x, append(plane[:2].Clone(), s.space...), plane)
	x = s.With(graph.Int("axis", 2)).Op("GatherElements", x, at)
	values = reshaped(s.Builder, x, tensor.Shape{s.batch, s.channels, flat[2]}, tensor.Shape{s.batch, s.channels, s.points, taps})
	if weights != "" {
		weights = reshaped(s.Builder, weights, shape, tensor.Shape{s.batch, s.points, taps})
	}
	return values, weights, taps, nil
}

// sum joins values by an operator; the first may be missing.
func sum(b *graph.Builder, op, x, y string) string {
	if x == "" {
		return y
	}
	return b.Op(op, x, y)
}

// sums returns the weighted sums [batch, channels, points].
func (s *sampler) sums(x string, axes []neighbours) (string, error) {
	values, weights, taps, err := s.read(x, axes)
	if err != nil {
		return "", err
	}
	if weights == "" {
		return reshaped(s.Builder, values, tensor.Shape{s.batch, s.channels, s.points, taps}, tensor.Shape{s.batch, s.channels, s.points}), nil
	}
	return s.With(graph.String("equation", "bcpt,bpt->bcp")).Op("Einsum", values, weights), nil
}

// expandGridSample takes places from −1 to 1 on each axis, the last axis first.
func expandGridSample(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, g := c.In[0].Shape, c.In[1].Shape
	n := len(x) - 2
	if n < 1 || len(g) != len(x) || g[0] != x[0] || g[len(g)-1] != n {
		return nil, fmt.Errorf("a grid of shape %v does not place points in data of shape %v", g, x)
	}
	if err := wantFloats(c); err != nil {
		return nil, err
	}
	out := g[1 : len(g)-1]
	s := &sampler{Builder: b, c: c, batch: x[0], channels: x[1], space: x[2:], points: out.Elements()}
	grid := c.Inputs[1]
	if c.In[1].Type != c.In[0].Type {
		grid = castTo(b, grid, c.In[0].Type)
	}
	grid = reshaped(b, grid, g, tensor.Shape{s.batch, s.points, n})
	axes := make([]neighbours, n)
	for a := range axes {
		if s.space[a] < 1 {
			return nil, fmt.Errorf("data of shape %v has no elements", x)
		}
		place := b.Op("Slice", grid, b.Ints(n-1-a), b.Ints(n-a), b.Ints(2))
		var err error
		if axes[a], err = s.gridAxis(a, place); err != nil {
			return nil, err
		}
	}
	y, err := s.sums(c.Inputs[0], axes)
	if err != nil {
		return nil, err
	}
	return []string{reshaped(b, y, tensor.Shape{s.batch, s.channels, s.points}, append(x[:2].Clone(), out...))}, nil
}

// gridAxis returns the neighbours of places from −1 to 1 on axis a.
func (s *sampler) gridAxis(a int, place string) (neighbours, error) {
	c, n := s.c, float64(s.space[a])
	real := func(v float64) string { return floatLike(c, s.Builder, v) }
	place = s.Op("Add", place, real(1))
	low, high := -0.5, n-0.5
	if c.Flag("align_corners") {
		low, high = 0, n-1
		place = s.Op("Mul", place, real((n-1)/2))
	} else {
		place = s.Op("Div", s.Op("Sub", s.Op("Mul", place, real(n)), real(1)), real(2))
	}
	mode, padding := c.Text("mode"), c.Text("padding_mode")
	if mode == "nearest" {
		place = s.Op("Round", place)
	}
	reflect := func(x string) string { return s.reflect(x, low, high) }
	fold := reflect
	switch padding {
	case "zeros":
		return s.around(a, mode, place, true, nil)
	case "border":
		fold = func(x string) string { return s.Op("Max", s.Op("Min", x, real(n-1)), real(0)) }
	case "reflection":
	default:
		return neighbours{}, fmt.Errorf("padding_mode %q is not supported; use zeros, border or reflection", padding)
	}
	beyond := s.Op("Or", s.Op("Less", place, real(low)), s.Op("Greater", place, real(high)))
	return s.around(a, mode, s.Op("Where", beyond, fold(place), place), false, fold)
}

// reflect folds x at the borders low and high until it lies between them.
func (s *sampler) reflect(x string, low, high float64) string {
	real := func(v float64) string { return floatLike(s.c, s.Builder, v) }
	if high <= low {
		return s.Op("Mul", x, real(0))
	}
	way := s.Op("Abs", s.Op("Sub", x, real(low)))
	round := real(float64(2 * (high - low)))
	way = s.Op("Sub", way, s.Op("Mul", s.Op("Floor", s.Op("Div", way, round)), round))
	return s.Op("Add", s.Op("Min", way, s.Op("Sub", round, way)), real(low))
}

// expandRoiAlign reads the points of a fixed lattice in each region, and takes
// the mean of those of a bin, or the greatest weighted neighbour.
func expandRoiAlign(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, rois := c.In[0].Shape, c.In[1].Shape
	per := [2]int{c.Int("output_height"), c.Int("output_width")}
	ratio := c.Int("sampling_ratio")
	mode, pixels := c.Text("mode"), c.Text("coordinate_transformation_mode")
	switch {
	case len(x) != 4 || len(rois) != 2 || rois[1] != 4 || !c.In[2].Shape.Equal(rois[:1]):
		return nil, fmt.Errorf("regions of shape %v in images %v do not select from data of shape %v", rois, c.In[2].Shape, x)
	case ratio < 1 || ratio > maxVector || min(per[0], per[1]) < 1 || max(per[0], per[1]) > maxVector:
		return nil, fmt.Errorf("sampling_ratio is %d to %v bins; set it to the number of points on each axis of a bin, so that their number is known", ratio, per)
	case mode != "avg" && mode != "max":
		return nil, fmt.Errorf("mode %q is not supported; use avg or max", mode)
	case pixels != "half_pixel" && pixels != "output_half_pixel":
		return nil, fmt.Errorf("coordinate_transformation_mode %q is not supported; use half_pixel or output_half_pixel", pixels)
	case x[2] < 1 || x[3] < 1:
		return nil, fmt.Errorf("data of shape %v has no elements", x)
	}
	if c.In[1].Type != c.In[0].Type || !c.In[0].Type.Float() {
		return nil, fmt.Errorf("data and regions are %v and %v, but should be floats of one type", c.In[0].Type, c.In[1].Type)
	}
	s := &sampler{Builder: b, c: c, batch: rois[0], channels: x[1], space: x[2:], points: per[0] * per[1] * ratio * ratio}
	scaled := b.Op("Mul", c.Inputs[1], floatLike(c, b, float64(c.Float("spatial_scale"))))
	if pixels == "half_pixel" {
		scaled = b.Op("Sub", scaled, floatLike(c, b, 0.5))
	}
	axes := make([]neighbours, 2)
	for a := range axes {
		start := b.Op("Slice", scaled, b.Ints(1-a), b.Ints(2-a), b.Ints(1))
		size := b.Op("Sub", b.Op("Slice", scaled, b.Ints(3-a), b.Ints(4-a), b.Ints(1)), start)
		if pixels != "half_pixel" {
			size = b.Op("Max", size, floatLike(c, b, 1))
		}
		// The points of an axis in parts of the region; they lie on the lattice
		// [height, width, points down, points across].
		parts, err := floatTable(c, c.In[0].Type, tensor.Shape{1, s.points}, func(i int) float64 {
			at := [4]int{i / (per[1] * ratio * ratio), i / (ratio * ratio) % per[1], i / ratio % ratio, i % ratio}
			return (float64(at[a]) + (float64(at[2+a])+0.5)/float64(ratio)) / float64(per[a])
		})
		if err != nil {
			return nil, err
		}
		place := b.Op("Unsqueeze", b.Op("Add", start, b.Op("Mul", size, b.Const(parts))), b.Ints(2))
		if axes[a], err = s.regionAxis(a, place); err != nil {
			return nil, err
		}
	}
	data := b.Op("Gather", c.Inputs[0], castTo(b, c.Inputs[2], tensor.Int64))
	bins := tensor.Shape{s.batch, s.channels, per[0], per[1], ratio * ratio}
	if mode == "max" {
		values, weights, taps, err := s.read(data, axes)
		if err != nil {
			return nil, err
		}
		y := b.Op("Mul", values, b.Op("Unsqueeze", weights, b.Ints(1)))
		y = reshaped(b, y, tensor.Shape{s.batch, s.channels, s.points, taps}, append(bins[:4].Clone(), ratio*ratio*taps))
		return []string{b.With(graph.Int("keepdims", 0)).Op("ReduceMax", y, b.Ints(4))}, nil
	}
	y, err := s.sums(data, axes)
	if err != nil {
		return nil, err
	}
	y = reshaped(b, y, tensor.Shape{s.batch, s.channels, s.points}, bins)
	return []string{b.With(graph.Int("keepdims", 0)).Op("ReduceMean", y, b.Ints(4))}, nil
}

// regionAxis returns the neighbours of places on axis a: a place up to 1 before
// the first element or behind the last is moved there; others have no weight.
func (s *sampler) regionAxis(a int, place string) (neighbours, error) {
	c, n := s.c, s.space[a]
	near := s.Op("And", s.Op("GreaterOrEqual", place, scalarLike(c, s.Builder, -1)), s.Op("LessOrEqual", place, scalarLike(c, s.Builder, n)))
	inside := s.Op("Max", s.Op("Min", place, scalarLike(c, s.Builder, n-1)), scalarLike(c, s.Builder, 0))
	k, err := s.around(a, "linear", inside, false, nil)
	if err == nil {
		k.weight = s.Op("Where", near, k.weight, scalarLike(c, s.Builder, 0))
	}
	return k, err
}

// expandDeformConv reads what each tap of the kernel meets at its own place,
// times its mask, and multiplies that by the kernels.
func expandDeformConv(c *lower.Call, b *graph.Builder) ([]string, error) {
	if err := wantFloats(c); err != nil {
		return nil, err
	}
	w, group, err := convWindow(c)
	if err != nil {
		return nil, err
	}
	x, k, parts, n := c.In[0].Shape, c.In[1].Shape, c.Int("offset_group"), len(w.in)
	taps, places := tensor.Shape(w.kernel).Elements(), tensor.Shape(w.out).Elements()
	if parts < 1 || parts > tensor.MaxDim || x[1]%parts != 0 || tensor.Shape(w.in).Elements() < 1 {
		return nil, fmt.Errorf("data of shape %v does not fall into %d offset groups", x, parts)
	}
	if want := append(tensor.Shape{x[0], parts * taps * n}, w.out...); !c.In[2].Shape.Equal(want) {
		return nil, fmt.Errorf("offsets have shape %v, but should have %v", c.In[2].Shape, want)
	}
	s := &sampler{Builder: b, c: c, batch: x[0] * parts, channels: x[1] / parts, space: x[2:], points: taps * places}
	offsets := reshaped(b, c.Inputs[2], c.In[2].Shape, tensor.Shape{s.batch, taps, n, places})
	axes := make([]neighbours, n)
	tap, at := make([]int, n), make([]int, n)
	for a := range axes {
		grid, err := floatTable(c, c.In[0].Type, tensor.Shape{1, taps, 1, places}, func(i int) float64 {
			tensor.Shape(w.kernel).Coords(i/places, tap)
			tensor.Shape(w.out).Coords(i%places, at)
			return float64(at[a]*w.stride[a] + tap[a]*w.dilation[a] - w.before[a])
		})
		if err != nil {
			return nil, err
		}
		place := b.Op("Add", b.Op("Slice", offsets, b.Ints(a), b.Ints(a+1), b.Ints(2)), b.Const(grid))
		place = reshaped(b, place, tensor.Shape{s.batch, taps, 1, places}, tensor.Shape{s.batch, s.points, 1})
		if axes[a], err = s.around(a, "linear", place, true, nil); err != nil {
			return nil, err
		}
	}
	read, err := s.sums(c.Inputs[0], axes)
	if err != nil {
		return nil, err
	}
	if c.Has(4) {
		have := c.In[4].Shape
		if !have.Equal(append(tensor.Shape{x[0], parts * taps}, w.out...)) {
			return nil, fmt.Errorf("the mask has shape %v, but should have a place for each offset", have)
		}
		read = b.Op("Mul", read, reshaped(b, c.Inputs[4], have, tensor.Shape{s.batch, 1, s.points}))
	}
	read = reshaped(b, read, tensor.Shape{s.batch, s.channels, s.points}, tensor.Shape{x[0], group, k[1], taps, places})
	kernels := reshaped(b, c.Inputs[1], k, tensor.Shape{group, k[0] / group, k[1], taps})
	y := b.With(graph.String("equation", "ngckp,gmck->ngmp")).Op("Einsum", read, kernels)
	y = reshaped(b, y, tensor.Shape{x[0], group, k[0] / group, places}, append(tensor.Shape{x[0], k[0]}, w.out...))
	if c.Has(3) {
		if !c.In[3].Shape.Equal(k[:1]) {
			return nil, fmt.Errorf("input %q has shape %v, but should have %v", c.Inputs[3], c.In[3].Shape, k[:1])
		}
		y = b.Op("Add", y, reshaped(b, c.Inputs[3], k[:1], append(k[:1].Clone(), slices.Repeat([]int{1}, n)...)))
	}
	return []string{y}, nil
}

// expandMaxRoiPool takes the greatest element of each bin of whole pixels, along
// one axis and then the other. A bin without pixels gives zero.
func expandMaxRoiPool(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, rois, per := c.In[0].Shape, c.In[1].Shape, intsAttr(c, "pooled_shape")
	switch {
	case len(x) != 4 || len(rois) != 2 || rois[1] != 5 || x[2] < 1 || x[3] < 1:
		return nil, fmt.Errorf("regions of shape %v do not select from data of shape %v", rois, x)
	case len(per) != 2 || min(per[0], per[1]) < 1 || max(per[0], per[1]) > maxVector:
		return nil, fmt.Errorf("pooled_shape %v should be two positive numbers", per)
	case c.In[1].Type != c.In[0].Type || !c.In[0].Type.Float():
		return nil, fmt.Errorf("data and regions are %v and %v, but should be floats of one type", c.In[0].Type, c.In[1].Type)
	}
	column := func(i int) string { return b.Op("Slice", c.Inputs[1], b.Ints(i), b.Ints(i+1), b.Ints(1)) }
	// pixel rounds to whole pixels, halves away from zero.
	pixel := func(i int) string {
		v := b.Op("Mul", column(i), floatLike(c, b, float64(c.Float("spatial_scale"))))
		return b.Op("Mul", b.Op("Sign", v), b.Op("Floor", b.Op("Add", b.Op("Abs", v), floatLike(c, b, 0.5))))
	}
	zero, one := scalarLike(c, b, 0), scalarLike(c, b, 1)
	keep := b.With(graph.Int("keepdims", 0))
	y := b.Op("Gather", c.Inputs[0], b.Op("Squeeze", castTo(b, column(0), tensor.Int64), b.Ints(1)))
	filled := ""
	for _, a := range []int{1, 0} { // the pixels of axis a come last
		n := x[2+a]
		start := pixel(2 - a)
		size := b.Op("Max", b.Op("Add", b.Op("Sub", pixel(4-a), start), one), one)
		size = b.Op("Div", size, scalarLike(c, b, per[a]))
		bins, err := floatTable(c, c.In[0].Type, tensor.Shape{1, per[a]}, func(i int) float64 { return float64(i) })
		if err != nil {
			return nil, err
		}
		pixels, err := floatTable(c, c.In[0].Type, tensor.Shape{n}, func(i int) float64 { return float64(i) })
		if err != nil {
			return nil, err
		}
		bin := b.Const(bins)
		inside := func(v string) string {
			return b.Op("Max", b.Op("Min", b.Op("Add", v, start), scalarLike(c, b, n)), zero)
		}
		from := inside(b.Op("Floor", b.Op("Mul", bin, size)))
		to := inside(b.Op("Ceil", b.Op("Mul", b.Op("Add", bin, one), size)))
		spread := []int{1, 3 - a, 4} // beside channels, the other axis and pixels
		some := b.Op("Unsqueeze", b.Op("Less", from, to), b.Ints(1, 3-a))
		from, to = b.Op("Unsqueeze", from, b.Ints(spread...)), b.Op("Unsqueeze", to, b.Ints(spread...))
		in := b.Op("And", b.Op("GreaterOrEqual", b.Const(pixels), from), b.Op("Less", b.Const(pixels), to))
		if a == 0 {
			y = b.With(graph.Ints("perm", 0, 1, 3, 2)).Op("Transpose", y)
		}
		y = b.Op("Where", in, b.Op("Unsqueeze", y, b.Ints(2+a)), floatLike(c, b, math.Inf(-1)))
		y = keep.Op("ReduceMax", y, b.Ints(4))
		filled = sum(b, "And", filled, some)
	}
	return []string{b.Op("Where", filled, y, zero)}, nil
}
