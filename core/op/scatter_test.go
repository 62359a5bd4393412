package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "ScatterElements", op: "ScatterElements", in: []arg{f(4, 2), given(tensor.Int64, []int{3, 2}, 0, 3, -1, 1, 2, 0), f(3, 2)}, want: scatteredElements(0, setting)},
	sample{name: "ScatterElements, adding", op: "ScatterElements", attrs: append(axisIs(1), adds), in: []arg{f(2, 3), ints(tensor.Int64, -3, 2, 2, 5), f(2, 5)}, want: scatteredElements(1, adding)},
	sample{name: "ScatterElements, smaller", op: "ScatterElements", attrs: append(axisIs(1), adds), in: []arg{f(3, 4), ints(tensor.Int32, -4, 3, 2, 3), f(2, 3)}, want: scatteredElements(1, adding)},
	sample{name: "ScatterND", op: "ScatterND", in: []arg{f(4, 3), given(tensor.Int64, []int{2, 1}, 3, -4), f(2, 3)}, want: scatteredND(setting)},
	sample{name: "ScatterND, the last of two", op: "ScatterND", in: []arg{ints(tensor.Int32, 0, 9, 4), given(tensor.Int64, []int{3, 1}, 2, 1, 2), ints(tensor.Int32, 10, 99, 3)}, want: scatteredND(setting)},
	sample{name: "ScatterND, adding, some outside", op: "ScatterND", attrs: []graph.Attr{adds}, in: []arg{f(3, 2, 2), ints(tensor.Int64, -3, 1, 2, 3, 2), f(2, 3, 2)}, want: scatteredND(adding)},
	sample{name: "ScatterElements, multiplying", op: "ScatterElements", attrs: append(axisIs(1), reduction("mul")), in: []arg{f(2, 3), ints(tensor.Int64, -3, 2, 2, 5), f(2, 5)}, want: scatteredElements(1, multiplying)},
	sample{name: "ScatterElements, greatest", op: "ScatterElements", attrs: []graph.Attr{reduction("max")}, in: []arg{f(3, 2), ints(tensor.Int64, 0, 2, 4, 2), f(4, 2)}, want: scatteredElements(0, math.Max)},
	sample{name: "ScatterND, least", op: "ScatterND", attrs: []graph.Attr{reduction("min")}, in: []arg{f(3, 2), ints(tensor.Int64, -3, 3, 4, 1), f(4, 2)}, want: scatteredND(math.Min)},
	sample{name: "ScatterND, least of small integers", op: "ScatterND", attrs: []graph.Attr{reduction("min")}, in: []arg{ints(tensor.Int8, -9, 9, 3), ints(tensor.Int64, 0, 2, 7, 1), ints(tensor.Int8, -9, 9, 7)}, want: scatteredND(math.Min)},
	sample{name: "ScatterND, multiplying integers", op: "ScatterND", attrs: []graph.Attr{reduction("mul")}, in: []arg{ints(tensor.Int32, 1, 9, 3), ints(tensor.Int64, 0, 2, 5, 1), ints(tensor.Int32, -3, 3, 5)}, want: scatteredND(multiplying)},
	sample{name: "TensorScatter", op: "TensorScatter", in: []arg{f(2, 5, 3), f(2, 2, 3)}, want: written(1, []int{0, 0}, false)},
	sample{name: "TensorScatter, places", op: "TensorScatter", attrs: axisIs(-1), in: []arg{f(2, 3, 5), f(2, 3, 2), given(tensor.Int64, []int{2}, 3, 1)}, want: written(2, []int{3, 1}, false)},
	sample{name: "TensorScatter, around", op: "TensorScatter", attrs: []graph.Attr{graph.String("mode", "circular")}, in: []arg{f(2, 4, 3), f(2, 3, 3), given(tensor.Int64, []int{2}, 2, 7)}, want: written(1, []int{2, 7}, true)},
)

var _ = refuse(
	refusal{"does not go into a cache", "TensorScatter", nil, []arg{f(2, 3, 2), f(2, 4, 2)}, 1},
	refusal{"does not go into a cache", "TensorScatter", axisIs(0), []arg{f(2, 3), f(2, 3)}, 1},
	refusal{"updates have shape", "ScatterND", nil, []arg{f(4), few(2, 1), f(3)}, 1},
	refusal{`reduction "mean" is not supported`, "ScatterND", []graph.Attr{reduction("mean")}, []arg{f(4), few(2, 1), f(2)}, 1},
)

// merged is what becomes of an element and an update of it.
type merged func(old, update float64) float64

// scattered merges the updates, in their order; to gives each its place.
func scattered(in []array, merge merged, to func(at []int) []int) []array {
	out := array{in[0].shape, slices.Clone(in[0].v)}
	strides := tensor.Shape(out.shape).Strides()
	at := make([]int, len(in[2].shape))
	for i, v := range in[2].v {
		tensor.Shape(in[2].shape).Coords(i, at)
		p := to(slices.Clone(at))
		if p == nil {
			continue
		}
		o := 0
		for d, c := range p {
			o += c * strides[d]
		}
		out.v[o] = merge(out.v[o], v)
	}
	return []array{out}
}

func scatteredND(merge merged) func([]array) []array {
	return func(in []array) []array {
		n := len(in[1].shape) - 1
		return scattered(in, merge, func(at []int) []int {
			p := place(in[0], in[1], at[:n])
			if p == nil {
				return nil
			}
			return append(p, at[n:]...)
		})
	}
}

func scatteredElements(axis int, merge merged) func([]array) []array {
	return func(in []array) []array {
		return scattered(in, merge, func(at []int) []int {
			if at[axis] = index(in[1].at(slices.Clone(at)), in[0].shape[axis]); at[axis] < 0 {
				return nil
			}
			return at
		})
	}
}

var adds = reduction("add")

// written is a cache after an update from the given places on.
func written(axis int, starts []int, circular bool) func([]array) []array {
	return func(in []array) []array {
		return scattered([]array{in[0], {}, in[1]}, setting, func(at []int) []int {
			at = slices.Clone(at)
			at[axis] += starts[at[0]]
			if circular {
				at[axis] %= in[0].shape[axis]
			}
			return at
		})
	}
}
