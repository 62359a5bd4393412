package op_test

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "MaxUnpool", op: "MaxUnpool", attrs: []graph.Attr{kernel(2, 2), strides(2, 2)},
		in: []arg{f(1, 2, 1, 2), given(tensor.Int64, []int{1, 2, 1, 2}, 1, 6, 12, 11)}, want: unpooled([]int{2, 4}, []int{2, 4})},
	sample{name: "MaxUnpool, wider", op: "MaxUnpool", attrs: []graph.Attr{kernel(2)},
		in: []arg{f(1, 1, 2), given(tensor.Int64, []int{1, 1, 2}, 2, 0), list(1, 1, 5)}, want: unpooled([]int{3}, []int{5})},
)

// unpooled is the meaning of MaxUnpool to the given spatial axes, of which the
// indices speak, put into wider ones.
func unpooled(out, wide []int) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		y := array{append(slices.Clone(x.shape[:2]), out...), make([]float64, x.shape[0]*x.shape[1]*elements(out))}
		for i, v := range x.v {
			y.v[int(in[1].v[i])] = v
		}
		return []array{filled(append(slices.Clone(x.shape[:2]), wide...), func(at []int) float64 {
			for a, n := range out {
				if at[2+a] >= n {
					return 0
				}
			}
			return y.at(at)
		})}
	}
}
