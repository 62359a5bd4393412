package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
)

var _ = add(
	sample{name: "RoiAlign", op: "RoiAlign", attrs: []graph.Attr{graph.Int("sampling_ratio", 2), graph.Int("output_height", 2), graph.Int("output_width", 3), graph.Float("spatial_scale", 0.5)},
		in: []arg{f(2, 2, 4, 5), given(1, []int{2, 4}, 1.3, 0.1, 9.3, 7.7, -3.1, 2.3, 4.9, 5.1), ints(7, 0, 1, 2)}, want: aligned(2, 3, 2, 0.5, 0.5, false)},
	sample{name: "RoiAlign, greatest", op: "RoiAlign", attrs: []graph.Attr{graph.Int("sampling_ratio", 2), mode("max"), coordinates("output_half_pixel"), graph.Int("output_width", 2)},
		in: []arg{f(1, 1, 4, 4), given(1, []int{2, 4}, 0.3, 0.6, 3.4, 2.9, 1.15, 1.35, 1.45, 1.85), given(7, []int{2}, 0, 0)}, want: aligned(1, 2, 2, 1, 0, true)},
	sample{name: "MaxRoiPool", op: "MaxRoiPool", attrs: []graph.Attr{graph.Ints("pooled_shape", 2, 3), graph.Float("spatial_scale", 0.5)},
		in: []arg{f(2, 2, 4, 5), fixed(given(1, []int{3, 5}, 1, 1.2, 0, 9.1, 7.4, 0, 3, 2.2, 4, 2.9, 0, 30, 0, 40, 7))}, want: pooledRegions(2, 3, 0.5)},
)

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
