package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
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

// cropped is CenterCropPad: an element comes from first on, or is zero.
func cropped(first, to []int) func([]array) []array {
	return func(in []array) []array {
		return []array{filled(to, func(at []int) float64 {
			from := slices.Clone(at)
			for a := range at {
				if from[a] += first[a]; from[a] < 0 || from[a] >= in[0].shape[a] {
					return 0
				}
			}
			return in[0].at(from)
		})}
	}
}

// blocked moves pixels of n×n blocks to channels, or back: channel c and place
// p of a block are channel number(c, p).
func blocked(n int, back bool, number func(c, p int) int) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		s := x.shape
		deep, flat := []int{s[0], s[1] * n * n, s[2] / n, s[3] / n}, s
		if back {
			deep, flat = s, []int{s[0], s[1] / n / n, s[2] * n, s[3] * n}
		}
		y := array{deep, make([]float64, len(x.v))}
		if back {
			y.shape = flat
		}
		for b := range flat[0] {
			for c := range flat[1] {
				for h := range flat[2] {
					for w := range flat[3] {
						place, k := []int{h / n, w / n}, number(c, h%n*n+w%n)
						if back {
							*y.cell(b, c, []int{h, w}) = x.at(append([]int{b, k}, place...))
						} else {
							*y.cell(b, k, place) = x.at([]int{b, c, h, w})
						}
					}
				}
			}
		}
		return []array{y}
	}
}

// placed is AffineGrid, for pixels at the given places of each axis.
func placed(places ...[]float64) func([]array) []array {
	return func(in []array) []array {
		shape := []int{in[0].shape[0]}
		for _, p := range places {
			shape = append(shape, len(p))
		}
		n := len(places)
		return []array{filled(append(shape, n), func(at []int) float64 {
			sum := in[0].at([]int{at[0], at[n+1], n})
			for j := range n {
				sum += in[0].at([]int{at[0], at[n+1], j}) * places[n-1-j][at[n-j]]
			}
			return sum
		})}
	}
}

func mode(s string) graph.Attr        { return graph.String("mode", s) }
func coordinates(s string) graph.Attr { return graph.String("coordinate_transformation_mode", s) }

func reals(v ...float64) arg { return fixed(given(tensor.Float32, []int{len(v)}, v...)) }

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
	sample{name: "DepthToSpace", op: "DepthToSpace", attrs: []graph.Attr{graph.Int("blocksize", 2)}, in: []arg{f(1, 8, 2, 1)},
		want: blocked(2, true, func(c, p int) int { return p*2 + c })},
	sample{name: "DepthToSpace, by channel", op: "DepthToSpace", attrs: []graph.Attr{graph.Int("blocksize", 2), mode("CRD")}, in: []arg{f(2, 8, 1, 2)},
		want: blocked(2, true, func(c, p int) int { return c*4 + p })},
	sample{name: "SpaceToDepth", op: "SpaceToDepth", attrs: []graph.Attr{graph.Int("blocksize", 2)}, in: []arg{f(2, 2, 2, 4)},
		want: blocked(2, false, func(c, p int) int { return p*2 + c })},
	sample{name: "SpaceToDepth, by channel", op: "SpaceToDepth", attrs: []graph.Attr{graph.Int("blocksize", 3), mode("CRD")}, in: []arg{f(1, 2, 3, 3)},
		want: blocked(3, false, func(c, p int) int { return c*9 + p })},
	sample{name: "CenterCropPad", op: "CenterCropPad", in: []arg{f(5, 2, 3), list(2, 5, 3)}, want: cropped([]int{1, -1, 0}, []int{2, 5, 3})},
	sample{name: "CenterCropPad, some axes", op: "CenterCropPad", attrs: []graph.Attr{graph.Ints("axes", -1)}, in: []arg{ints(tensor.Uint8, 1, 9, 2, 4), list(1)}, want: cropped([]int{0, 1}, []int{2, 1})},
	sample{name: "AffineGrid", op: "AffineGrid", in: []arg{f(2, 2, 3), list(2, 1, 2, 4)}, want: placed([]float64{-0.5, 0.5}, []float64{-0.75, -0.25, 0.25, 0.75})},
	sample{name: "AffineGrid, corners of a volume", op: "AffineGrid", attrs: []graph.Attr{graph.Int("align_corners", 1)}, in: []arg{f(1, 3, 4), list(1, 1, 2, 3, 1)},
		want: placed([]float64{-1, 1}, []float64{-1, 0, 1}, []float64{0})},
)
