package op_test

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "CenterCropPad", op: "CenterCropPad", in: []arg{f(5, 2, 3), list(2, 5, 3)}, want: cropped([]int{1, -1, 0}, []int{2, 5, 3})},
	sample{name: "CenterCropPad, some axes", op: "CenterCropPad", attrs: []graph.Attr{graph.Ints("axes", -1)}, in: []arg{ints(tensor.Uint8, 1, 9, 2, 4), list(1)}, want: cropped([]int{0, 1}, []int{2, 1})},
)

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
