package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "LRN", op: "LRN", attrs: lrnAttrs(3, 0.5, 0.75, 1), in: []arg{f(2, 5, 2)}, want: localResponse(3, 0.5, 0.75, 1)},
	sample{name: "LRN, even", op: "LRN", attrs: lrnAttrs(4, 0.25, 0.5, 2), in: []arg{f(1, 3, 2, 2)}, want: localResponse(4, 0.25, 0.5, 2)},
	sample{name: "LRN, one channel", op: "LRN", attrs: []graph.Attr{graph.Int("size", 1)}, in: []arg{as(tensor.Float16, f(2, 3))}, want: localResponse(1, 1e-4, 0.75, 1)},
)

var _ = refuse(
	refusal{"it sums over 0 channels", "LRN", nil, []arg{f(2, 3)}, 1},
	refusal{"it sums over 1099511627776 channels", "LRN", []graph.Attr{graph.Int("size", 1<<40)}, []arg{f(2, 3)}, 1},
)

func localResponse(size int, alpha, beta, bias float64) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		return []array{filled(x.shape, func(at []int) float64 {
			sum, other := 0.0, slices.Clone(at)
			for other[1] = range x.shape[1] {
				if other[1] >= at[1]-(size-1)/2 && other[1] <= at[1]+size/2 {
					sum += x.at(other) * x.at(other)
				}
			}
			return x.at(at) / math.Pow(bias+alpha/float64(size)*sum, beta)
		})}
	}
}

func lrnAttrs(size int, alpha, beta, bias float32) []graph.Attr {
	return []graph.Attr{graph.Int("size", size), graph.Float("alpha", alpha), graph.Float("beta", beta), graph.Float("bias", bias)}
}
