package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// counts is n numbers from a start, a step apart.
func counts(start, step float64, n int) func([]array) []array {
	return func([]array) []array {
		return []array{filled([]int{n}, func(at []int) float64 { return start + step*float64(at[0]) })}
	}
}

func limits(t tensor.DType, v ...float64) (out []arg) {
	for _, x := range v {
		out = append(out, fixed(given(t, nil, x)))
	}
	return out
}

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

// hot is one-hot vectors along an axis.
func hot(axis, depth int) func([]array) []array {
	return func(in []array) []array {
		return []array{filled(slices.Insert(slices.Clone(in[0].shape), axis, depth), func(at []int) float64 {
			i := math.Trunc(in[0].at(slices.Delete(slices.Clone(at), axis, axis+1)))
			if i < 0 {
				i += float64(depth)
			}
			if int(i) == at[axis] && i >= 0 {
				return in[len(in)-1].v[1]
			}
			return in[len(in)-1].v[0]
		})}
	}
}

func triangle(keep func(above int) bool) func([]array) []array {
	return func(in []array) []array {
		n := len(in[0].shape)
		return picked(in[0].shape, 0, func(at []int) ([]int, bool) { return at, keep(at[n-1] - at[n-2]) })(in)
	}
}

var _ = add(
	sample{name: "Range", op: "Range", in: limits(tensor.Int64, 3, 12, 2), want: counts(3, 2, 5)},
	sample{name: "Range, down", op: "Range", in: limits(tensor.Int32, 3, -4, -3), want: counts(3, -3, 3)},
	sample{name: "Range, nothing", op: "Range", in: limits(tensor.Int16, 3, 3, 1), want: counts(3, 1, 0)},
	sample{name: "Range, of floats", op: "Range", in: limits(tensor.Float32, 1, 2, 0.25), want: counts(1, 0.25, 4)},
	sample{name: "Range, long", op: "Range", in: limits(tensor.Int64, -5000, 5000, 1), want: counts(-5000, 1, 10000)},
	sample{name: "Size", op: "Size", in: []arg{f(2, 3, 4)}, want: func([]array) []array { return []array{{nil, []float64{24}}} }},
	sample{name: "Tile", op: "Tile", in: []arg{f(2, 3), list(3, 2)}, want: tiled(3, 2)},
	sample{name: "Tile, an axis", op: "Tile", in: []arg{f(2, 3, 2), list(1, 4, 1)}, want: tiled(1, 4, 1)},
	sample{name: "Tile, once", op: "Tile", in: []arg{f(2), list(1)}, want: tiled(1)},
	sample{name: "Tile, never", op: "Tile", in: []arg{ints(tensor.Int8, 0, 9, 2, 3), list(2, 0)}, want: tiled(2, 0)},
	sample{name: "OneHot", op: "OneHot", in: []arg{ints(tensor.Int64, -7, 7, 2, 3), fixed(given(tensor.Int64, nil, 5)), f(2)}, want: hot(2, 5)},
	sample{name: "OneHot, first axis, of floats", op: "OneHot", attrs: axisIs(0), in: []arg{given(tensor.Float32, []int{4}, -1.5, 2.75, 9, 0.5), fixed(given(tensor.Float32, []int{1}, 3.5)), ints(tensor.Int32, 0, 9, 2)}, want: hot(0, 3)},
	sample{name: "OneHot, unsigned", op: "OneHot", attrs: axisIs(-1), in: []arg{given(tensor.Uint64, []int{3}, 1, 4, math.MaxInt64), list(4), bools(2)}, want: hot(1, 4)},
	sample{name: "Trilu", op: "Trilu", in: []arg{f(2, 3, 4)}, want: triangle(func(above int) bool { return above >= 0 })},
	sample{name: "Trilu, lower", op: "Trilu", attrs: []graph.Attr{graph.Int("upper", 0)}, in: []arg{f(4, 3), given(tensor.Int64, nil, -1)}, want: triangle(func(above int) bool { return above <= -1 })},
	sample{name: "Trilu, booleans", op: "Trilu", in: []arg{bools(3, 3), fixed(given(tensor.Int64, []int{1}, 1))}, want: triangle(func(above int) bool { return above >= 1 })},
	sample{name: "EyeLike", op: "EyeLike", attrs: []graph.Attr{graph.Int("k", 1)}, in: []arg{f(3, 4)},
		want: func([]array) []array {
			return []array{filled([]int{3, 4}, func(at []int) float64 { return oneIf(at[1] == at[0]+1) })}
		}},
	sample{name: "EyeLike, of a type", op: "EyeLike", attrs: []graph.Attr{graph.Int("dtype", int(tensor.Uint8))}, in: []arg{f(2, 2)},
		want: func([]array) []array {
			return []array{filled([]int{2, 2}, func(at []int) float64 { return oneIf(at[1] == at[0]) })}
		}},
)

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
