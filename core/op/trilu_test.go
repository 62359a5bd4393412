package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
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

var _ = withoutGradient("EyeLike")

var _ = refuse(
	refusal{"should be matrices", "Trilu", nil, []arg{f(2)}, 1},
	refusal{"should be a matrix", "EyeLike", nil, []arg{f(2)}, 1},
)

func triangle(keep func(above int) bool) func([]array) []array {
	return func(in []array) []array {
		n := len(in[0].shape)
		return picked(in[0].shape, 0, func(at []int) ([]int, bool) { return at, keep(at[n-1] - at[n-2]) })(in)
	}
}
