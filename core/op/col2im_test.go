package op_test

import "github.com/tally-network/tally/core/graph"

var _ = add(
	sample{name: "Col2Im", op: "Col2Im", attrs: []graph.Attr{strides(1, 2), pads(1, 0, 0, 1), dilations(2, 1)},
		in: []arg{f(2, 8, 6), list(3, 5), list(2, 2)}, want: imaged(slide{[]int{2, 2}, []int{1, 2}, []int{2, 1}, []int{1, 0}}, []int{3, 5}, []int{2, 3})},
	sample{name: "Col2Im, steps with gaps", op: "Col2Im", attrs: []graph.Attr{strides(2), dilations(3)},
		in: []arg{f(1, 4, 3), list(8), list(2)}, want: imaged(slide{[]int{2}, []int{2}, []int{3}, []int{0}}, []int{8}, []int{3})},
)

// imaged is the meaning of Col2Im.
func imaged(s slide, out, blocks []int) func([]array) []array {
	return func(in []array) []array {
		x, taps := in[0], elements(s.kernel)
		y := array{append([]int{x.shape[0], x.shape[1] / taps}, out...), nil}
		y.v = make([]float64, elements(y.shape))
		for n := range x.shape[0] {
			for c := range x.shape[1] / taps {
				j := 0
				s.pairs(out, blocks, func(_, _, i []int, inside bool) {
					if inside {
						*y.cell(n, c, i) += x.at([]int{n, c*taps + j%taps, j / taps})
					}
					j++
				})
			}
		}
		return []array{y}
	}
}
