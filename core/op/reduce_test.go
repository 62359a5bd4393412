package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// reduced is the meaning of a reduction over axes; f takes the elements in order.
func reduced(keep bool, f func([]float64) float64, over ...int) func([]array) []array {
	return func(in []array) []array {
		groups := map[int][]float64{}
		kept := slices.Clone(in[0].shape)
		for _, a := range over {
			kept[a] = 1
		}
		strides := tensor.Shape(kept).Strides()
		at := make([]int, len(kept))
		for i, v := range in[0].v {
			tensor.Shape(in[0].shape).Coords(i, at)
			o := 0
			for d, c := range at {
				if !slices.Contains(over, d) {
					o += c * strides[d]
				}
			}
			groups[o] = append(groups[o], v)
		}
		out := array{v: make([]float64, elements(kept))}
		for i := range out.v {
			out.v[i] = f(groups[i])
		}
		for d, n := range kept {
			if keep || !slices.Contains(over, d) {
				out.shape = append(out.shape, n)
			}
		}
		return []array{out}
	}
}

func total(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

func mean(x []float64) float64 { return total(x) / float64(len(x)) }

func greatest(x []float64) float64 {
	m := math.Inf(-1)
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func least(x []float64) float64 {
	m := math.Inf(1)
	for _, v := range x {
		m = min(m, v)
	}
	return m
}

func keepdims(v int) []graph.Attr { return []graph.Attr{graph.Int("keepdims", v)} }

var _ = add(
	sample{name: "ReduceSum", op: "ReduceSum", in: []arg{f(3, 4)}, want: reduced(true, total, 0, 1)},
	sample{name: "ReduceSum, an axis", op: "ReduceSum", attrs: keepdims(0), in: []arg{f(3, 4, 2), list(-2)}, want: reduced(false, total, 1)},
	sample{name: "ReduceSum, outer axes", op: "ReduceSum", in: []arg{f(3, 40, 2), list(1, 0)}, want: reduced(true, total, 0, 1)},
	sample{name: "ReduceSum, no axes", op: "ReduceSum", attrs: []graph.Attr{graph.Int("noop_with_empty_axes", 1)}, in: []arg{f(3, 4), list()}, want: become(3, 4)},
	sample{name: "ReduceSum, empty list", op: "ReduceSum", attrs: keepdims(0), in: []arg{f(3, 4), list()}, want: reduced(false, total, 0, 1)},
	sample{name: "ReduceSum, int64", op: "ReduceSum", in: []arg{ints(tensor.Int64, -9, 9, 3, 4), list(0)}, want: reduced(true, total, 0)},
	sample{name: "ReduceSum of nothing", op: "ReduceSum", attrs: keepdims(0), in: []arg{f(2, 0), list(1)}, want: reduced(false, total, 1)},
	sample{name: "ReduceMean", op: "ReduceMean", attrs: keepdims(0), in: []arg{f(3, 4), list(0)}, want: reduced(false, mean, 0)},
	sample{name: "ReduceMean, all", op: "ReduceMean", in: []arg{f(3, 4)}, want: reduced(true, mean, 0, 1)},
	sample{name: "ReduceMax", op: "ReduceMax", in: []arg{f(3, 4), list(1)}, want: reduced(true, greatest, 1)},
	sample{name: "ReduceMax, all", op: "ReduceMax", attrs: keepdims(0), in: []arg{f(3, 4)}, want: reduced(false, greatest, 0, 1)},
	sample{name: "ReduceMin", op: "ReduceMin", attrs: keepdims(0), in: []arg{f(3, 4), list(0)}, want: reduced(false, least, 0)},
	sample{name: "ReduceMin of nothing", op: "ReduceMin", attrs: keepdims(0), in: []arg{f(2, 0), list(1)}, want: reduced(false, least, 1)},
	sample{name: "ArgMax", op: "ArgMax", attrs: axisIs(-1), in: []arg{ints(tensor.Int64, 0, 3, 4, 6)},
		want: reduced(true, func(x []float64) float64 { return float64(slices.Index(x, greatest(x))) }, 1)},
	sample{name: "ArgMax, last of equals", op: "ArgMax", attrs: append(keepdims(0), graph.Int("select_last_index", 1)), in: []arg{ints(tensor.Int32, 0, 3, 6, 4)},
		want: reduced(false, func(x []float64) float64 {
			slices.Reverse(x)
			return float64(len(x) - 1 - slices.Index(x, greatest(x)))
		}, 0)},
)
