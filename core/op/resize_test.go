package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Resize", op: "Resize", attrs: []graph.Attr{graph.String("nearest_mode", "floor"), coordinates("asymmetric")}, in: []arg{f(2, 3), none, reals(1, 2)},
		want: chosen([]int{0, 1}, []int{0, 0, 1, 1, 2, 2})},
	sample{name: "Resize, halves down", op: "Resize", in: []arg{f(4), none, none, list(2)}, want: chosen([]int{0, 2})},
	sample{name: "Resize, halves up, integers", op: "Resize", attrs: []graph.Attr{graph.String("nearest_mode", "round_prefer_ceil")}, in: []arg{ints(tensor.Int32, 0, 99, 4), none, none, list(2)}, want: chosen([]int{1, 3})},
	sample{name: "Resize, upwards, axes", op: "Resize", attrs: []graph.Attr{graph.String("nearest_mode", "ceil"), coordinates("align_corners"), graph.Ints("axes", -1)},
		in: []arg{f(2, 3), none, none, list(4)}, want: chosen([]int{0, 1}, []int{0, 1, 2, 2})},
	sample{name: "Resize, linear", op: "Resize", attrs: []graph.Attr{mode("linear")}, in: []arg{f(1, 2, 3), none, reals(1, 2, 1.5)},
		want: stretched(stretch{axis: 1, out: 4, reach: 1, place: halfPixel(2), weight: linear}, stretch{axis: 2, out: 4, reach: 1, place: halfPixel(1.5), weight: linear})},
	sample{name: "Resize, linear, symmetric", op: "Resize", attrs: []graph.Attr{mode("linear"), coordinates("half_pixel_symmetric")}, in: []arg{f(2, 5), none, reals(1, 0.5)},
		want: stretched(stretch{axis: 1, out: 2, reach: 1, place: func(i float64) float64 { return 2.5*(1-2/2.5) + halfPixel(0.5)(i) }, weight: linear})},
	sample{name: "Resize, linear to one", op: "Resize", attrs: []graph.Attr{mode("linear"), coordinates("pytorch_half_pixel")}, in: []arg{f(2, 4), none, none, list(2, 1)},
		want: stretched(stretch{axis: 1, out: 1, reach: 1, place: func(float64) float64 { return 0 }, weight: linear})},
	sample{name: "Resize, linear, not larger", op: "Resize", attrs: []graph.Attr{mode("linear"), graph.String("keep_aspect_ratio_policy", "not_larger")}, in: []arg{f(2, 4), none, none, list(5, 6)},
		want: stretched(stretch{axis: 0, out: 3, reach: 1, place: halfPixel(1.5), weight: linear}, stretch{axis: 1, out: 6, reach: 1, place: halfPixel(1.5), weight: linear})},
	sample{name: "Resize, linear, against aliasing", op: "Resize", attrs: []graph.Attr{mode("linear"), graph.Int("antialias", 1)}, in: []arg{f(2, 5), none, reals(1, 0.4)},
		want: stretched(stretch{axis: 1, out: 2, reach: 3, place: halfPixel(0.4), weight: func(d float64) float64 { return linear(d * 0.4) }, norm: true})},
	sample{name: "Resize, cubic", op: "Resize", attrs: []graph.Attr{mode("cubic"), coordinates("align_corners")}, in: []arg{f(2, 4), none, none, list(2, 7)},
		want: stretched(stretch{axis: 1, out: 7, reach: 2, place: func(i float64) float64 { return i / 2 }, weight: cubic(-0.75)})},
	sample{name: "Resize, cubic inside", op: "Resize", attrs: []graph.Attr{mode("cubic"), graph.Float("cubic_coeff_a", -0.5), graph.Int("exclude_outside", 1)}, in: []arg{f(4), none, reals(2)},
		want: stretched(stretch{axis: 0, out: 8, reach: 2, place: halfPixel(2), weight: cubic(-0.5), inside: true})},
	sample{name: "Resize, cropping beyond", op: "Resize", attrs: []graph.Attr{mode("linear"), coordinates("tf_crop_and_resize"), graph.Float("extrapolation_value", 9)},
		in: []arg{f(2, 5), reals(0, 0.25, 1, 1.25), none, list(2, 3)}, want: func(in []array) []array {
			return []array{filled([]int{2, 3}, func(at []int) float64 {
				if at[1] == 2 {
					return 9
				}
				return in[0].at([]int{at[0], []int{1, 3}[at[1]]})
			})}
		}},
)

// stretch is what Resize does to one axis: element i of the result is the sum
// of weight(d) times the elements at distance d from its place, of which there
// are 2·reach. Outside the input its border repeats.
type stretch struct {
	axis, out, reach int
	place            func(i float64) float64
	weight           func(d float64) float64
	norm             bool // weights are divided by their sum
	inside           bool // only elements of the input count
}

func (s stretch) of(x array) array {
	n := x.shape[s.axis]
	shape := slices.Clone(x.shape)
	shape[s.axis] = s.out
	return filled(shape, func(at []int) float64 {
		p := s.place(float64(at[s.axis]))
		var sum, weights float64
		from := slices.Clone(at)
		for q := -3 * s.reach; q < n+3*s.reach; q++ {
			w := 0.0
			if d := math.Abs(float64(q) - p); d < float64(s.reach) && (!s.inside || q >= 0 && q < n) {
				w = s.weight(d)
			}
			from[s.axis] = min(max(q, 0), n-1)
			sum, weights = sum+w*x.at(from), weights+w
		}
		if s.norm || s.inside {
			sum /= weights
		}
		return sum
	})
}

func stretched(axes ...stretch) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		for _, s := range axes {
			x = s.of(x)
		}
		return []array{x}
	}
}

func linear(d float64) float64 { return max(0, 1-d) }

func cubic(a float64) func(d float64) float64 {
	return func(d float64) float64 {
		if d <= 1 {
			return (a+2)*d*d*d - (a+3)*d*d + 1
		}
		return a*d*d*d - 5*a*d*d + 8*a*d - 4*a
	}
}

// halfPixel is the place of a pixel's middle.
func halfPixel(scale float64) func(float64) float64 {
	return func(i float64) float64 { return (i+0.5)/scale - 0.5 }
}

// chosen is a nearest Resize, of which places are given for each axis.
func chosen(places ...[]int) func([]array) []array {
	return func(in []array) []array {
		shape := make([]int, len(places))
		for a, p := range places {
			shape[a] = len(p)
		}
		return []array{filled(shape, func(at []int) float64 {
			from := slices.Clone(at)
			for a, p := range places {
				from[a] = p[at[a]]
			}
			return in[0].at(from)
		})}
	}
}

func mode(s string) graph.Attr { return graph.String("mode", s) }

func coordinates(s string) graph.Attr { return graph.String("coordinate_transformation_mode", s) }

func reals(v ...float64) arg { return fixed(given(tensor.Float32, []int{len(v)}, v...)) }
