package op_test

import "github.com/tally-network/tally/core/graph"

var _ = add(
	sample{name: "DepthToSpace", op: "DepthToSpace", attrs: []graph.Attr{graph.Int("blocksize", 2)}, in: []arg{f(1, 8, 2, 1)},
		want: blocked(2, true, func(c, p int) int { return p*2 + c })},
	sample{name: "DepthToSpace, by channel", op: "DepthToSpace", attrs: []graph.Attr{graph.Int("blocksize", 2), mode("CRD")}, in: []arg{f(2, 8, 1, 2)},
		want: blocked(2, true, func(c, p int) int { return c*4 + p })},
	sample{name: "SpaceToDepth", op: "SpaceToDepth", attrs: []graph.Attr{graph.Int("blocksize", 2)}, in: []arg{f(2, 2, 2, 4)},
		want: blocked(2, false, func(c, p int) int { return p*2 + c })},
	sample{name: "SpaceToDepth, by channel", op: "SpaceToDepth", attrs: []graph.Attr{graph.Int("blocksize", 3), mode("CRD")}, in: []arg{f(1, 2, 3, 3)},
		want: blocked(3, false, func(c, p int) int { return c*9 + p })},
)

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
