package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Pad", op: "Pad", in: []arg{f(2, 3), list(1, 0, 0, 2), fixed(given(tensor.Float32, nil, 1.5))}, want: picked([]int{3, 5}, 1.5, inside([]int{2, 3}, []int{1, 0}))},
	sample{name: "Pad, an axis", op: "Pad", in: []arg{f(2, 3), list(2, 1), none, list(-1)}, want: picked([]int{2, 6}, 0, inside([]int{2, 3}, []int{0, 2}))},
	sample{name: "Pad, cropping", op: "Pad", in: []arg{f(4, 3), list(-1, 1, -2, 0)}, want: picked([]int{1, 4}, 0, inside([]int{4, 3}, []int{-1, 1}))},
	sample{name: "Pad, nothing", op: "Pad", in: []arg{f(4), list(0, 0)}, want: become(4)},
	sample{name: "Pad, fill known at run time", op: "Pad", in: []arg{f(2, 3), list(1, 0, 0, -1), f()}, want: func(in []array) []array {
		return []array{filled([]int{3, 2}, func(at []int) float64 {
			if at[0] == 0 {
				return in[2].v[0]
			}
			return in[0].at([]int{at[0] - 1, at[1]})
		})}
	}},
	sample{name: "Pad, bytes", op: "Pad", in: []arg{ints(tensor.Uint8, 0, 255, 2), list(1, 2), fixed(given(tensor.Uint8, []int{1}, 9))}, want: picked([]int{5}, 9, inside([]int{2}, []int{1}))},
	sample{name: "Pad, reflecting", op: "Pad", attrs: padMode("reflect"), in: []arg{f(3, 4), list(1, 2, 2, 3)},
		want: padded([]int{6, 9}, []int{0, 0}, []int{3, 4}, []int{1, 2}, mirrored)},
	sample{name: "Pad, reflecting to and fro", op: "Pad", attrs: padMode("reflect"), in: []arg{f(3), list(7, 5)},
		want: padded([]int{15}, []int{0}, []int{3}, []int{7}, mirrored)},
	sample{name: "Pad, reflecting one", op: "Pad", attrs: padMode("reflect"), in: []arg{f(1, 2), list(2, 1), none, list(0)},
		want: padded([]int{4, 2}, []int{0, 0}, []int{1, 2}, []int{2, 0}, held)},
	sample{name: "Pad, edges", op: "Pad", attrs: padMode("edge"), in: []arg{f(2, 3), list(2, 1, 0, 3)},
		want: padded([]int{4, 7}, []int{0, 0}, []int{2, 3}, []int{2, 1}, held)},
	sample{name: "Pad, edges of what is left", op: "Pad", attrs: padMode("edge"), in: []arg{f(5), list(-2, 3)},
		want: padded([]int{6}, []int{2}, []int{3}, []int{0}, held)},
	sample{name: "Pad, around", op: "Pad", attrs: padMode("wrap"), in: []arg{f(2, 3), list(3, 1, 1, 7)},
		want: padded([]int{6, 11}, []int{0, 0}, []int{2, 3}, []int{3, 1}, wrapped)},
	sample{name: "Pad, around booleans", op: "Pad", attrs: padMode("wrap"), in: []arg{bools(4), list(1, 2)},
		want: padded([]int{7}, []int{0}, []int{4}, []int{1}, wrapped)},
)

var _ = refuse(
	refusal{`mode "mirror" is not supported`, "Pad", padMode("mirror"), []arg{f(4), list(1, 1)}, 1},
	refusal{"are too wide for 2 elements", "Pad", padMode("reflect"), []arg{f(2), list(0, 1<<30)}, 1},
	refusal{"it is empty", "Pad", padMode("edge"), []arg{f(2, 0), list(0, 1, 0, 0)}, 1},
	refusal{"should be one float32", "Pad", nil, []arg{f(2), list(0, 1), few(1)}, 1},
	refusal{"3 pads are given for 1 axes", "Pad", nil, []arg{f(4), list(1, 1, 1)}, 1},
	refusal{"leave nothing", "Pad", nil, []arg{f(4), list(-3, -3)}, 1},
	refusal{"pad 9223372036854775807 is out of range", "Pad", nil, []arg{f(4), list(math.MaxInt64, 0)}, 1},
)

// inside moves coordinates by −before and reports whether they exist.
func inside(shape, before []int) func([]int) ([]int, bool) {
	return func(at []int) ([]int, bool) {
		for d := range at {
			if at[d] -= before[d]; at[d] < 0 || at[d] >= shape[d] {
				return nil, false
			}
		}
		return at, true
	}
}

// mirrored, held and wrapped give the element of n that stands at position i of
// an axis padded by reflection, with its edges, or with itself.
func mirrored(i, n int) int {
	for i < 0 || i >= n {
		if i < 0 {
			i = -i
		} else {
			i = 2*(n-1) - i
		}
	}
	return i
}

func held(i, n int) int { return min(max(i, 0), n-1) }

func wrapped(i, n int) int { return ((i % n) + n) % n }

// padded is padding of the part of a tensor from the given coordinates on.
func padded(shape, from, part, before []int, at func(i, n int) int) func([]array) []array {
	return picked(shape, 0, func(x []int) ([]int, bool) {
		for d := range x {
			x[d] = from[d] + at(x[d]-before[d], part[d])
		}
		return x, true
	})
}

func padMode(m string) []graph.Attr { return []graph.Attr{graph.String("mode", m)} }
