package op_test

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "MatMul", op: "MatMul", in: []arg{f(3, 5), f(5, 2)}, want: product},
	sample{name: "MatMul, one matrix for many", op: "MatMul", in: []arg{f(2, 3, 4), f(4, 2)}, want: product},
	sample{name: "MatMul, many for one", op: "MatMul", in: []arg{f(3, 4), f(2, 4, 2)}, want: product},
	sample{name: "MatMul, batches", op: "MatMul", in: []arg{f(2, 1, 3, 4), f(3, 4, 2)}, want: product},
	sample{name: "MatMul, row", op: "MatMul", in: []arg{f(4), f(4, 3)}, want: product},
	sample{name: "MatMul, rows", op: "MatMul", in: []arg{f(4), f(2, 4, 3)}, want: product},
	sample{name: "MatMul, column", op: "MatMul", in: []arg{f(2, 3, 4), f(4)}, want: product},
	sample{name: "MatMul, dot", op: "MatMul", in: []arg{f(4), f(4)}, want: product},
	sample{name: "MatMul, int32", op: "MatMul", in: []arg{ints(tensor.Int32, -9, 9, 2, 3), ints(tensor.Int32, -9, 9, 3, 2)}, want: product},
	sample{name: "MatMul of nothing", op: "MatMul", in: []arg{f(2, 0), f(0, 3)}, want: product},
	sample{name: "Gemm", op: "Gemm", in: []arg{f(3, 4), f(4, 2), f(2)}, want: scaledProduct(1, 1, false, false)},
	sample{name: "Gemm, transposed and scaled", op: "Gemm", in: []arg{f(4, 3), f(2, 4), f(3, 1)}, want: scaledProduct(0.5, 2, true, true),
		attrs: []graph.Attr{graph.Int("transA", 1), graph.Int("transB", 1), graph.Float("alpha", 0.5), graph.Float("beta", 2)}},
	sample{name: "Gemm without C", op: "Gemm", attrs: []graph.Attr{graph.Int("transB", 1)}, in: []arg{f(3, 4), f(2, 4)}, want: scaledProduct(1, 0, false, true)},
)

var _ = refuse(
	refusal{"cannot be multiplied", "MatMul", nil, []arg{as(tensor.Int8, few(2, 2)), as(tensor.Int8, few(2, 2))}, 1},
	refusal{"alpha is 0.5, but should be an integer", "Gemm", []graph.Attr{graph.Float("alpha", 0.5)}, []arg{few(2, 2), few(2, 2)}, 1},
	refusal{"do not fit: 3 against 4", "MatMul", nil, []arg{f(2, 3), f(4, 2)}, 1},
	refusal{"cannot be multiplied", "MatMul", nil, []arg{f(), f(4)}, 1},
	refusal{"should be a matrix", "Gemm", nil, []arg{f(2), f(2, 2)}, 1},
	refusal{"does not broadcast to [2 2]", "Gemm", nil, []arg{f(2, 2), f(2, 2), f(3, 1, 1)}, 1},
)

// product is the meaning of MatMul.
func product(in []array) []array {
	a, b := in[0], in[1]
	row, column := len(a.shape) > 1, len(b.shape) > 1
	if !row {
		a = array{append([]int{1}, a.shape...), a.v}
	}
	if !column {
		b = array{append(slices.Clone(b.shape), 1), b.v}
	}
	k := a.shape[len(a.shape)-1]
	m, n := a.shape[len(a.shape)-2], b.shape[len(b.shape)-1]
	batch := broadcast(array{shape: a.shape[:len(a.shape)-2]}, array{shape: b.shape[:len(b.shape)-2]})
	out := filled(append(batch, m, n), func(at []int) (sum float64) {
		front := at[:len(at)-2]
		for i := range k {
			sum += a.at(append(slices.Clone(front), at[len(at)-2], i)) * b.at(append(slices.Clone(front), i, at[len(at)-1]))
		}
		return sum
	})
	if !column {
		out.shape = out.shape[:len(out.shape)-1]
	}
	if !row {
		i := len(batch)
		out.shape = slices.Delete(slices.Clone(out.shape), i, i+1)
	}
	return []array{out}
}

// scaledProduct is the meaning of Gemm.
func scaledProduct(alpha, beta float64, flipA, flipB bool) func([]array) []array {
	return func(in []array) []array {
		a, b := in[0], in[1]
		if flipA {
			a = transposed(1, 0)([]array{a})[0]
		}
		if flipB {
			b = transposed(1, 0)([]array{b})[0]
		}
		y := product([]array{a, b})[0]
		return []array{filled(y.shape, func(at []int) float64 {
			v := alpha * y.at(at)
			if len(in) > 2 {
				v += beta * in[2].at(at)
			}
			return v
		})}
	}
}
