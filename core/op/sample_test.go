package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// lookup reads data [batch, channels, space…] at places between its elements.
type lookup struct {
	reach  int // neighbours on either side; 0: the nearest alone
	weight func(d float64) float64
	fold   func(p, n float64) float64 // brings a place outside into an axis of n; nil: zeros
}

// at returns the sum of the elements around a place, times their weights.
func (l lookup) at(x array, b, c int, place []float64) float64 {
	n := len(place)
	sum, at := 0.0, make([]int, n)
	var walk func(a int, weight float64)
	walk = func(a int, weight float64) {
		if a == n {
			sum += weight * x.at(append([]int{b, c}, at...))
			return
		}
		p, extent := place[a], x.shape[2+a]
		lo, hi := math.Floor(p)-float64(l.reach-1), math.Floor(p)+float64(l.reach)
		if l.reach == 0 {
			lo, hi = math.RoundToEven(p), math.RoundToEven(p)
		}
		for q := lo; q <= hi; q++ {
			w, e := 1.0, q
			if l.reach > 0 {
				w = l.weight(math.Abs(p - q))
			}
			if e < 0 || e >= float64(extent) {
				if l.fold == nil {
					continue
				}
				e = l.fold(e, float64(extent))
			}
			at[a] = int(e)
			walk(a+1, weight*w)
		}
	}
	walk(0, 1)
	return sum
}

// gridded is the meaning of GridSample. Places beyond low or n − 1 − low are
// folded before they are looked up.
func gridded(l lookup, corners bool) func([]array) []array {
	return func(in []array) []array {
		x, g := in[0], in[1]
		r := len(x.shape) - 2
		shape := append(slices.Clone(x.shape[:2]), g.shape[1:r+1]...)
		return []array{filled(shape, func(at []int) float64 {
			place := make([]float64, r)
			for a := range place {
				n := float64(x.shape[2+a])
				v := g.at(append(append([]int{at[0]}, at[2:]...), r-1-a))
				low, p := -0.5, ((v+1)*n-1)/2
				if corners {
					low, p = 0, (v+1)/2*(n-1)
				}
				if l.reach == 0 {
					p = math.RoundToEven(p)
				}
				if l.fold != nil && (p < low || p > n-1-low) {
					p = l.fold(p, n)
				}
				place[a] = p
			}
			return l.at(x, at[0], at[1], place)
		})}
	}
}

func nearBorder(p, n float64) float64 { return max(0, min(p, n-1)) }

// mirrored folds places at borders, step by step.
func mirroredAt(low float64) func(p, n float64) float64 {
	return func(p, n float64) float64 {
		for p < low || p > n-1-low {
			if p < low {
				p = 2*low - p
			} else {
				p = 2*(n-1-low) - p
			}
		}
		return p
	}
}

// aligned is the meaning of RoiAlign with bins of ratio × ratio points.
func aligned(h, w, ratio int, scale, shift float64, greatest bool) func([]array) []array {
	return func(in []array) []array {
		x, rois := in[0], in[1]
		return []array{filled([]int{rois.shape[0], x.shape[1], h, w}, func(at []int) float64 {
			var place, start, size [2]float64
			for a, bins := range []int{h, w} {
				start[a] = rois.at([]int{at[0], 1 - a})*scale - shift
				size[a] = rois.at([]int{at[0], 3 - a})*scale - shift - start[a]
				if shift == 0 {
					size[a] = max(size[a], 1)
				}
				size[a] /= float64(bins)
			}
			sum, best := 0.0, math.Inf(-1)
			for p := range ratio * ratio {
				outside := false
				for a, i := range []int{p / ratio, p % ratio} {
					n := float64(x.shape[2+a])
					v := start[a] + size[a]*(float64(at[2+a])+(float64(i)+0.5)/float64(ratio))
					outside = outside || v < -1 || v > n
					place[a] = nearBorder(v, n)
				}
				terms := []float64{0}
				if !outside {
					terms = nil
					l := lookup{reach: 1, fold: nearBorder, weight: linear}
					for corner := range 4 { // one neighbour at a time
						dy, dx := math.Floor(place[0])+float64(corner/2), math.Floor(place[1])+float64(corner%2)
						w := linear(math.Abs(place[0]-dy)) * linear(math.Abs(place[1]-dx))
						terms = append(terms, w*l.at(x, int(in[2].v[at[0]]), at[1], []float64{min(dy, float64(x.shape[2]-1)), min(dx, float64(x.shape[3]-1))}))
					}
				}
				sum += total(terms)
				best = max(best, slices.Max(terms))
			}
			if greatest {
				return best
			}
			return sum / float64(ratio*ratio)
		})}
	}
}

// deformed is the meaning of DeformConv in the given groups.
func deformed(group, parts int, s slide, out ...int) func([]array) []array {
	return func(in []array) []array {
		x, w, offset := in[0], in[1], in[2]
		r := len(out)
		s.kernel = w.shape[2:]
		taps := elements(s.kernel)
		l := lookup{reach: 1, weight: linear}
		return []array{filled(append([]int{x.shape[0], w.shape[0]}, out...), func(at []int) float64 {
			sum := 0.0
			if len(in) > 3 && in[3].shape != nil {
				sum = in[3].v[at[1]]
			}
			k, place := make([]int, r), make([]float64, r)
			for c := range w.shape[1] {
				from := at[1]/(w.shape[0]/group)*w.shape[1] + c
				part := from / (x.shape[1] / parts)
				for t := range taps {
					tensor.Shape(s.kernel).Coords(t, k)
					for a := range place {
						d := offset.at(append([]int{at[0], (part*taps+t)*r + a}, at[2:]...))
						place[a] = float64(at[2+a]*s.stride[a]+k[a]*s.dilation[a]-s.before[a]) + d
					}
					v := l.at(x, at[0], from, place) * w.at(append([]int{at[1], c}, k...))
					if len(in) > 4 {
						v *= in[4].at(append([]int{at[0], part*taps + t}, at[2:]...))
					}
					sum += v
				}
			}
			return sum
		})}
	}
}

// pooledRegions is the meaning of MaxRoiPool.
func pooledRegions(h, w int, scale float64) func([]array) []array {
	return func(in []array) []array {
		x, rois := in[0], in[1]
		return []array{filled([]int{rois.shape[0], x.shape[1], h, w}, func(at []int) float64 {
			var lo, hi [2]int
			for a, bins := range []int{h, w} {
				start := math.Round(rois.at([]int{at[0], 2 - a}) * scale)
				size := max(1, math.Round(rois.at([]int{at[0], 4 - a})*scale)-start+1) / float64(bins)
				lo[a] = int(start + math.Floor(float64(at[2+a])*size))
				hi[a] = int(start + math.Ceil(float64(at[2+a]+1)*size))
			}
			best := math.Inf(-1)
			for i := max(0, lo[0]); i < min(hi[0], x.shape[2]); i++ {
				for j := max(0, lo[1]); j < min(hi[1], x.shape[3]); j++ {
					best = max(best, x.at([]int{int(rois.at([]int{at[0], 0})), at[1], i, j}))
				}
			}
			if math.IsInf(best, -1) {
				return 0
			}
			return best
		})}
	}
}

func padding(s string) graph.Attr { return graph.String("padding_mode", s) }

var corners = graph.Int("align_corners", 1)

var _ = add(
	sample{name: "GridSample", op: "GridSample", in: []arg{f(2, 2, 3, 2), f(2, 2, 3, 2)}, want: gridded(lookup{1, linear, nil}, false)},
	sample{name: "GridSample, corners, border", op: "GridSample", attrs: []graph.Attr{corners, padding("border")}, in: []arg{f(1, 2, 3, 4), f(1, 2, 2, 2)},
		want: gridded(lookup{1, linear, nearBorder}, true)},
	sample{name: "GridSample, reflected", op: "GridSample", attrs: []graph.Attr{padding("reflection")}, in: []arg{f(1, 1, 3, 2), f(1, 3, 2, 2)},
		want: gridded(lookup{1, linear, mirroredAt(-0.5)}, false)},
	sample{name: "GridSample, nearest in a volume", op: "GridSample", attrs: []graph.Attr{mode("nearest")}, in: []arg{f(1, 2, 2, 3, 2), f(1, 1, 2, 2, 3)},
		want: gridded(lookup{0, nil, nil}, false)},
	sample{name: "GridSample, nearest, reflected at corners", op: "GridSample", attrs: []graph.Attr{mode("nearest"), corners, padding("reflection")}, in: []arg{f(1, 1, 4), f(1, 5, 1)},
		want: gridded(lookup{0, nil, mirroredAt(0)}, true)},
	sample{name: "GridSample, cubic", op: "GridSample", attrs: []graph.Attr{mode("cubic")}, in: []arg{f(1, 1, 4, 3), f(1, 2, 2, 2)}, want: gridded(lookup{2, cubic(-0.75), nil}, false)},
	sample{name: "GridSample, cubic, reflected", op: "GridSample", attrs: []graph.Attr{mode("cubic"), padding("reflection"), corners}, in: []arg{f(1, 1, 3, 3), f(1, 2, 2, 2)},
		want: gridded(lookup{2, cubic(-0.75), mirroredAt(0)}, true)},
	sample{name: "RoiAlign", op: "RoiAlign", attrs: []graph.Attr{graph.Int("sampling_ratio", 2), graph.Int("output_height", 2), graph.Int("output_width", 3), graph.Float("spatial_scale", 0.5)},
		in: []arg{f(2, 2, 4, 5), given(1, []int{2, 4}, 1.3, 0.1, 9.3, 7.7, -3.1, 2.3, 4.9, 5.1), ints(7, 0, 1, 2)}, want: aligned(2, 3, 2, 0.5, 0.5, false)},
	sample{name: "RoiAlign, greatest", op: "RoiAlign", attrs: []graph.Attr{graph.Int("sampling_ratio", 2), mode("max"), coordinates("output_half_pixel"), graph.Int("output_width", 2)},
		in: []arg{f(1, 1, 4, 4), given(1, []int{2, 4}, 0.3, 0.6, 3.4, 2.9, 1.15, 1.35, 1.45, 1.85), given(7, []int{2}, 0, 0)}, want: aligned(1, 2, 2, 1, 0, true)},
	sample{name: "MaxRoiPool", op: "MaxRoiPool", attrs: []graph.Attr{graph.Ints("pooled_shape", 2, 3), graph.Float("spatial_scale", 0.5)},
		in: []arg{f(2, 2, 4, 5), fixed(given(1, []int{3, 5}, 1, 1.2, 0, 9.1, 7.4, 0, 3, 2.2, 4, 2.9, 0, 30, 0, 40, 7))}, want: pooledRegions(2, 3, 0.5)},
	sample{name: "DeformConv", op: "DeformConv", in: []arg{f(1, 1, 3, 3), f(1, 1, 2, 2), f(1, 8, 2, 2)}, want: deformed(1, 1, plain2, 2, 2)},
	sample{name: "DeformConv, everything", op: "DeformConv", attrs: []graph.Attr{group(2), graph.Int("offset_group", 2), strides(2, 1), pads(1, 0, 0, 1), dilations(1, 2)},
		in: []arg{f(2, 4, 2, 3), f(2, 2, 2, 2), f(2, 16, 1, 2), f(2), f(2, 8, 1, 2)}, want: deformed(2, 2, slide{nil, []int{2, 1}, []int{1, 2}, []int{1, 0}}, 1, 2)},
)
