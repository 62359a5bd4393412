package op_test

import "math"

var _ = add(
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

var _ = refuse(
	refusal{"step on axis 0 is 0", "Slice", nil, []arg{f(4), list(0), list(1), list(0), list(0)}, 1},
	refusal{"have lengths 1, 2, 1 and 0", "Slice", nil, []arg{f(4), list(0), list(1, 2)}, 1},
	refusal{"axis 9 does not exist", "Slice", nil, []arg{f(4), list(0), list(1), list(9)}, 1},
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
