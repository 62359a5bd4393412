package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "RotaryEmbedding", op: "RotaryEmbedding", in: []arg{f(2, 3, 4, 6), f(2, 4, 3), f(2, 4, 3)}, want: turned(0, 6, false)},
	sample{name: "RotaryEmbedding, packed, by positions", op: "RotaryEmbedding", attrs: []graph.Attr{graph.Int("num_heads", 2), graph.Int("interleaved", 1)},
		in: []arg{f(2, 3, 8), f(5, 2), f(5, 2), ints(tensor.Int64, 0, 4, 2, 3)}, want: turned(2, 4, true)},
	sample{name: "RotaryEmbedding, part of it", op: "RotaryEmbedding", attrs: []graph.Attr{graph.Int("rotary_embedding_dim", 4)}, in: []arg{f(1, 2, 3, 6), f(1, 3, 2), f(1, 3, 2)}, want: turned(0, 4, false)},
)

var _ = refuse(
	refusal{"cannot be turned in pairs", "RotaryEmbedding", nil, []arg{f(1, 1, 2, 3), f(1, 2, 1), f(1, 2, 1)}, 1},
	refusal{"should have [positions 1] and [1 2]", "RotaryEmbedding", nil, []arg{f(1, 1, 2, 2), f(1, 2, 1), f(1, 2, 1), few(1, 2)}, 1},
)

// turned rotates pairs of elements of [batch, heads, places, size].
func turned(n, size int, interleaved bool) func([]array) []array {
	return func(in []array) []array {
		x := heads(in[0], n)
		y := filled(x.shape, func(at []int) float64 {
			e := at[3]
			if e >= size {
				return x.at(at)
			}
			pair, second, first, other := e%(size/2), e >= size/2, e%(size/2), e%(size/2)+size/2
			if interleaved {
				pair, second, first, other = e/2, e%2 == 1, e/2*2, e/2*2+1
			}
			place := []int{at[0], at[2], pair}
			if len(in) > 3 {
				place = []int{int(in[3].at([]int{at[0], at[2]})), pair}
			}
			cos, sin := in[1].at(place), in[2].at(place)
			u, v := x.at([]int{at[0], at[1], at[2], first}), x.at([]int{at[0], at[1], at[2], other})
			if second {
				return sin*u + cos*v
			}
			return cos*u - sin*v
		})
		if len(in[0].shape) == 3 {
			y = headless(y)
		}
		return []array{y}
	}
}
