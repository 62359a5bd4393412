package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "DeformConv", op: "DeformConv", in: []arg{f(1, 1, 3, 3), f(1, 1, 2, 2), f(1, 8, 2, 2)}, want: deformed(1, 1, plain2, 2, 2)},
	sample{name: "DeformConv, everything", op: "DeformConv", attrs: []graph.Attr{group(2), graph.Int("offset_group", 2), strides(2, 1), pads(1, 0, 0, 1), dilations(1, 2)},
		in: []arg{f(2, 4, 2, 3), f(2, 2, 2, 2), f(2, 16, 1, 2), f(2), f(2, 8, 1, 2)}, want: deformed(2, 2, slide{nil, []int{2, 1}, []int{1, 2}, []int{1, 0}}, 1, 2)},
)

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
