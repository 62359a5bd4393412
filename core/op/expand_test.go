package op_test

import "github.com/tally-network/tally/core/tensor"

var _ = add(
	sample{name: "Expand", op: "Expand", in: []arg{f(3, 1), list(2, 1, 4)}, want: expanded(2, 3, 4)},
	sample{name: "Expand, bool", op: "Expand", in: []arg{bools(2), list(3, 1)}, want: expanded(3, 2)},
	sample{name: "Tile", op: "Tile", in: []arg{f(2, 3), list(3, 2)}, want: tiled(3, 2)},
	sample{name: "Tile, an axis", op: "Tile", in: []arg{f(2, 3, 2), list(1, 4, 1)}, want: tiled(1, 4, 1)},
	sample{name: "Tile, once", op: "Tile", in: []arg{f(2), list(1)}, want: tiled(1)},
	sample{name: "Tile, never", op: "Tile", in: []arg{ints(tensor.Int8, 0, 9, 2, 3), list(2, 0)}, want: tiled(2, 0)},
)
