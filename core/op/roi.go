package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Pooling of regions of interest.

var _ = define(
	lower.Operator{Name: "RoiAlign", Min: 3, Max: 3, Outputs: 1, Expand: inFloat32(expandRoiAlign), Attrs: []graph.Attr{
		graph.String("coordinate_transformation_mode", "half_pixel"), graph.String("mode", "avg"), graph.Int("output_height", 1),
		graph.Int("output_width", 1), graph.Int("sampling_ratio", 0), graph.Float("spatial_scale", 1),
	}},
	lower.Operator{Name: "MaxRoiPool", Min: 2, Max: 2, Outputs: 1, Expand: inFloat32(expandMaxRoiPool), Attrs: []graph.Attr{graph.Ints("pooled_shape"), graph.Float("spatial_scale", 1)}},
)

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
	data := b.Op("Gather", c.Inputs[0], b.Cast(c.Inputs[2], tensor.Int64))
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
	y := b.Op("Gather", c.Inputs[0], b.Op("Squeeze", b.Cast(column(0), tensor.Int64), b.Ints(1)))
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
