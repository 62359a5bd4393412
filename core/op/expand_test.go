package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Expand", op: "Expand", in: []arg{f(3, 1), list(2, 1, 4)}, want: expanded(2, 3, 4)},
	sample{name: "Expand, bool", op: "Expand", in: []arg{bools(2), list(3, 1)}, want: expanded(3, 2)},
	sample{name: "Tile", op: "Tile", in: []arg{f(2, 3), list(3, 2)}, want: tiled(3, 2)},
	sample{name: "Tile, an axis", op: "Tile", in: []arg{f(2, 3, 2), list(1, 4, 1)}, want: tiled(1, 4, 1)},
	sample{name: "Tile, once", op: "Tile", in: []arg{f(2), list(1)}, want: tiled(1)},
	sample{name: "Tile, never", op: "Tile", in: []arg{ints(tensor.Int8, 0, 9, 2, 3), list(2, 0)}, want: tiled(2, 0)},
)

var _ = refuse(
	refusal{"is not between 0 and 2^40", "Expand", nil, []arg{f(1), list(math.MaxInt64)}, 1},
	refusal{"more than 2^40 elements", "Expand", nil, []arg{f(1), list(1<<39, 1<<39)}, 1},
	refusal{"3 repeats are given for 1 axes", "Tile", nil, []arg{f(2), list(1, 1, 1)}, 1},
	refusal{"is to be repeated -1 times", "Tile", nil, []arg{f(2), list(-1)}, 1},
	refusal{"more than 2^40 elements", "Tile", nil, []arg{f(2, 2), list(1<<39, 1<<39)}, 1},
)

func tiled(times ...int) func([]array) []array {
	return func(in []array) []array {
		shape := slices.Clone(in[0].shape)
		for a := range shape {
			shape[a] *= times[a]
		}
		return picked(shape, 0, func(at []int) ([]int, bool) {
			for a := range at {
				at[a] %= in[0].shape[a]
			}
			return at, true
		})(in)
	}
}
