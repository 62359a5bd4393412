package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
)

var _ = add(
	sample{name: "AffineGrid", op: "AffineGrid", in: []arg{f(2, 2, 3), list(2, 1, 2, 4)}, want: placed([]float64{-0.5, 0.5}, []float64{-0.75, -0.25, 0.25, 0.75})},
	sample{name: "AffineGrid, corners of a volume", op: "AffineGrid", attrs: []graph.Attr{graph.Int("align_corners", 1)}, in: []arg{f(1, 3, 4), list(1, 1, 2, 3, 1)},
		want: placed([]float64{-1, 1}, []float64{-1, 0, 1}, []float64{0})},
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

// mirroredAt folds places at borders, step by step.
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

func padding(s string) graph.Attr { return graph.String("padding_mode", s) }

var corners = graph.Int("align_corners", 1)

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
