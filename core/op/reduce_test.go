package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

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
	sample{name: "ReduceMax, bool", op: "ReduceMax", in: []arg{bools(3, 4), list(1)}, want: reduced(true, greatest, 1)},
	sample{name: "ReduceMin, bool", op: "ReduceMin", attrs: keepdims(0), in: []arg{bools(3, 4), list(0)}, want: reduced(false, least, 0)},
	sample{name: "ReduceMax of nothing, bool", op: "ReduceMax", attrs: keepdims(0), in: []arg{bools(2, 0), list(1)}, want: reduced(false, func([]float64) float64 { return 0 }, 1)},
	sample{name: "ReduceMin of nothing, int8", op: "ReduceMin", attrs: keepdims(0), in: []arg{ints(tensor.Int8, 0, 1, 2, 0), list(1)}, want: reduced(false, func([]float64) float64 { return 127 }, 1)},
	sample{name: "ReduceProd", op: "ReduceProd", in: []arg{f(3, 4), list(1)}, want: reduced(true, multiplied, 1)},
	sample{name: "ReduceProd, outer axes", op: "ReduceProd", attrs: keepdims(0), in: []arg{f(2, 3, 2), list(0, 2)}, want: reduced(false, multiplied, 0, 2)},
	sample{name: "ReduceProd with zeros", op: "ReduceProd", in: []arg{given(tensor.Float32, []int{3, 3}, 0, 2, 3, 4, 0, 0, 5, 6, 0.5), list(1)}, want: reduced(true, multiplied, 1)},
	sample{name: "ReduceProd of nothing", op: "ReduceProd", attrs: keepdims(0), in: []arg{f(2, 0), list(1)}, want: reduced(false, multiplied, 1)},
	sample{name: "ReduceProd, int32", op: "ReduceProd", in: []arg{ints(tensor.Int32, -4, 4, 3, 4), list(0)}, want: reduced(true, multiplied, 0)},
	sample{name: "ReduceProd, bfloat16", op: "ReduceProd", in: []arg{as(tensor.BFloat16, f(3, 4)), list(0)}, want: reduced(true, multiplied, 0)},
	sample{name: "ReduceL1", op: "ReduceL1", in: []arg{f(3, 4), list(1)}, want: reduced(true, normOf(1), 1)},
	sample{name: "ReduceL1, no axes", op: "ReduceL1", attrs: []graph.Attr{graph.Int("noop_with_empty_axes", 1)}, in: []arg{f(3, 4)}, want: pointwise(func(x []float64) float64 { return math.Abs(x[0]) })},
	sample{name: "ReduceL2", op: "ReduceL2", attrs: keepdims(0), in: []arg{f(3, 4), list(0)}, want: reduced(false, normOf(2), 0)},
	sample{name: "ReduceL2, int32", op: "ReduceL2", in: []arg{ints(tensor.Int32, -9, 9, 3, 4)}, want: reduced(true, func(x []float64) float64 { return math.Trunc(normOf(2)(x)) }, 0, 1)},
	sample{name: "ReduceL2, float16", op: "ReduceL2", in: []arg{as(tensor.Float16, f(3, 4)), list(1)}, want: reduced(true, normOf(2), 1)},
	sample{name: "ReduceSumSquare", op: "ReduceSumSquare", in: []arg{f(3, 4), list(1)}, want: reduced(true, squares, 1)},
	sample{name: "ReduceSumSquare, no axes", op: "ReduceSumSquare", attrs: []graph.Attr{graph.Int("noop_with_empty_axes", 1)}, in: []arg{f(3, 4), list()}, want: func(in []array) []array { return power(2)(in[:1]) }},
	sample{name: "ReduceLogSum", op: "ReduceLogSum", in: []arg{positive(3, 4), list(-1)}, want: reduced(true, func(x []float64) float64 { return math.Log(total(x)) }, 1)},
	sample{name: "ReduceLogSum of nothing", op: "ReduceLogSum", in: []arg{f(2, 0), list(1)}, want: reduced(true, func(x []float64) float64 { return math.Inf(-1) }, 1)},
	sample{name: "ReduceLogSumExp", op: "ReduceLogSumExp", attrs: keepdims(0), in: []arg{f(3, 4), list(1)}, want: reduced(false, logSumExp, 1)},
	sample{name: "ReduceLogSumExp of large numbers", op: "ReduceLogSumExp", in: []arg{fixed(given(tensor.Float32, []int{2, 2}, 1000, 1001, -1000, -1000)), list(1)}, want: func([]array) []array {
		return []array{{[]int{2, 1}, []float64{1001.313261687, -999.306852819}}}
	}},
	sample{name: "ReduceLogSumExp of infinities", op: "ReduceLogSumExp", in: []arg{fixed(given(tensor.Float32, []int{2, 2}, math.Inf(-1), math.Inf(-1), math.Inf(1), 1)), list(1)}, want: func([]array) []array {
		return []array{{[]int{2, 1}, []float64{math.Inf(-1), math.Inf(1)}}}
	}},
	sample{name: "ReduceLogSumExp, float64", op: "ReduceLogSumExp", in: []arg{as(tensor.Float64, f(3, 4)), list(1)}, want: reduced(true, logSumExp, 1)},
	sample{name: "ReduceLogSumExp, int32", op: "ReduceLogSumExp", in: []arg{ints(tensor.Int32, 1, 9, 3, 4), list(1)}, want: reduced(true, func(x []float64) float64 { return math.Trunc(logSumExp(x)) }, 1)},
)

var _ = refuse(
	refusal{"axis -3 does not exist", "ReduceSum", nil, []arg{f(2, 2), list(-3)}, 1},
	refusal{"the number of terms, 256, is no int8", "ReduceMean", nil, []arg{ints(tensor.Int8, 0, 1, 256)}, 1},
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

var (
	exclusive = []graph.Attr{graph.Int("exclusive", 1)}
	reverse   = []graph.Attr{graph.Int("reverse", 1)}
)

func multiplied(x []float64) float64 {
	p := 1.0
	for _, v := range x {
		p *= v
	}
	return p
}

func squares(x []float64) (s float64) {
	for _, v := range x {
		s += v * v
	}
	return s
}

func normOf(p int) func([]float64) float64 {
	return func(x []float64) (s float64) {
		if p == 2 {
			return math.Sqrt(squares(x))
		}
		for _, v := range x {
			s += math.Abs(v)
		}
		return s
	}
}

func logSumExp(x []float64) (s float64) {
	for _, v := range x {
		s += math.Exp(v)
	}
	return math.Log(s)
}
