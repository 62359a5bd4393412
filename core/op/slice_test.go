package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
)

// picked is the meaning of operators that take elements of their first input;
// from gives the coordinates, and reports whether there is an element.
func picked(shape []int, fill float64, from func(at []int) ([]int, bool)) func([]array) []array {
	return func(in []array) []array {
		return []array{filled(shape, func(at []int) float64 {
			if x, ok := from(append([]int(nil), at...)); ok {
				return in[0].at(x)
			}
			return fill
		})}
	}
}

func concatenated(axis int) func([]array) []array {
	return func(in []array) []array {
		shape := append([]int(nil), in[0].shape...)
		for _, a := range in[1:] {
			shape[axis] += a.shape[axis]
		}
		return []array{filled(shape, func(at []int) float64 {
			x := append([]int(nil), at...)
			for _, a := range in {
				if x[axis] < a.shape[axis] {
					return a.at(x)
				}
				x[axis] -= a.shape[axis]
			}
			return math.NaN()
		})}
	}
}

func many(n int, a arg) (out []arg) {
	for range n {
		out = append(out, a)
	}
	return out
}

func parts(axis int, sizes ...int) func([]array) []array {
	return func(in []array) (out []array) {
		start := 0
		for _, n := range sizes {
			shape := append([]int(nil), in[0].shape...)
			shape[axis] = n
			from := start
			out = append(out, picked(shape, 0, func(at []int) ([]int, bool) { at[axis] += from; return at, true })(in)...)
			start += n
		}
		return out
	}
}

var _ = add(
	sample{name: "Concat", op: "Concat", attrs: []graph.Attr{graph.Int("axis", 1)}, in: []arg{f(2, 3), f(2, 1), f(2, 2)}, want: concatenated(1)},
	sample{name: "Concat, first axis", op: "Concat", attrs: []graph.Attr{graph.Int("axis", -2)}, in: []arg{f(2, 3), f(0, 3), f(1, 3)}, want: concatenated(0)},
	sample{name: "Concat of forty", op: "Concat", attrs: []graph.Attr{graph.Int("axis", 0)}, in: many(40, f(2)), want: concatenated(0)},
	sample{name: "Concat of one", op: "Concat", attrs: []graph.Attr{graph.Int("axis", 0)}, in: []arg{f(2)}, want: concatenated(0)},
	sample{name: "Split, evenly", op: "Split", attrs: []graph.Attr{graph.Int("num_outputs", 2)}, outs: 2, in: []arg{f(4, 3)}, want: parts(0, 2, 2)},
	sample{name: "Split, last smaller", op: "Split", attrs: []graph.Attr{graph.Int("axis", 1), graph.Int("num_outputs", 3)}, outs: 3, in: []arg{f(2, 7)}, want: parts(1, 3, 3, 1)},
	sample{name: "Split, by sizes", op: "Split", attrs: []graph.Attr{graph.Int("axis", -1)}, outs: 3, in: []arg{f(2, 5), list(1, 0, 4)}, want: parts(1, 1, 0, 4)},
	sample{name: "Slice", op: "Slice", in: []arg{f(5, 4), list(1), list(-1)}, want: picked([]int{3, 4}, 0, func(at []int) ([]int, bool) { at[0]++; return at, true })},
	sample{name: "Slice, an axis", op: "Slice", in: []arg{f(5, 4), list(-2), list(math.MaxInt64), list(-1)},
		want: picked([]int{5, 2}, 0, func(at []int) ([]int, bool) { at[1] += 2; return at, true })},
	sample{name: "Slice, steps", op: "Slice", in: []arg{f(7, 9), list(1, 0), list(6, 9), list(0, 1), list(2, 4)},
		want: picked([]int{3, 3}, 0, func(at []int) ([]int, bool) { return []int{1 + 2*at[0], 4 * at[1]}, true })},
	sample{name: "Slice, backwards", op: "Slice", in: []arg{f(7), list(-1), list(math.MinInt64), list(0), list(-1)},
		want: picked([]int{7}, 0, func(at []int) ([]int, bool) { return []int{6 - at[0]}, true })},
	sample{name: "Slice, steps backwards", op: "Slice", in: []arg{f(2, 8), list(6), list(0), list(1), list(-3)},
		want: picked([]int{2, 2}, 0, func(at []int) ([]int, bool) { at[1] = 6 - 3*at[1]; return at, true })},
	sample{name: "Slice, one of a giant step", op: "Slice", in: []arg{f(5), list(3), list(math.MaxInt64), list(0), list(math.MaxInt64)},
		want: picked([]int{1}, 0, func(at []int) ([]int, bool) { return []int{3}, true })},
	sample{name: "Slice, nothing", op: "Slice", in: []arg{f(5, 2), list(4), list(2)}, want: picked([]int{0, 2}, 0, nil)},
)
