package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "AveragePool", op: "AveragePool", attrs: []graph.Attr{kernel(2, 2)}, in: []arg{f(2, 2, 3, 3)}, want: pooled(plain2, []int{2, 2}, mean)},
	sample{name: "AveragePool, padded", op: "AveragePool", attrs: []graph.Attr{kernel(3, 2), strides(2, 1), dilations(1, 2), pads(1, 1, 1, 0)},
		in: []arg{f(1, 2, 4, 4)}, want: pooled(slide{[]int{3, 2}, []int{2, 1}, []int{1, 2}, []int{1, 1}}, []int{2, 3}, mean)},
	sample{name: "AveragePool, counting pads", op: "AveragePool", attrs: []graph.Attr{kernel(3), pads(1, 1), graph.Int("count_include_pad", 1)},
		in: []arg{f(1, 2, 4)}, want: pooled(slide{[]int{3}, []int{1}, []int{1}, []int{1}}, []int{4}, func(x []float64) float64 { return total(x) / 3 })},
	sample{name: "AveragePool, rounded up", op: "AveragePool", attrs: []graph.Attr{kernel(2), strides(2), graph.Int("ceil_mode", 1), graph.Int("count_include_pad", 1)},
		in: []arg{f(1, 2, 5)}, want: pooled(slide{[]int{2}, []int{2}, []int{1}, []int{0}}, []int{3}, mean)},
	sample{name: "AveragePool of doubles", op: "AveragePool", attrs: []graph.Attr{kernel(2, 2)}, in: []arg{as(tensor.Float64, f(1, 1, 3, 3))}, want: pooled(plain2, []int{2, 2}, mean)},
	sample{name: "MaxPool", op: "MaxPool", attrs: []graph.Attr{kernel(2, 2), strides(2, 2)}, in: []arg{f(2, 2, 4, 4)},
		want: pooled(slide{[]int{2, 2}, []int{2, 2}, []int{1, 1}, []int{0, 0}}, []int{2, 2}, slices.Max[[]float64])},
	sample{name: "MaxPool, places", op: "MaxPool", outs: 2, attrs: []graph.Attr{kernel(3, 2), strides(2, 1), dilations(1, 2), pads(1, 1, 1, 0)}, in: []arg{f(2, 2, 4, 4)},
		want: places(slide{[]int{3, 2}, []int{2, 1}, []int{1, 2}, []int{1, 1}}, []int{2, 3}, []int{4, 1})},
	sample{name: "MaxPool, places by column, rounded up", op: "MaxPool", outs: 2, attrs: []graph.Attr{kernel(2, 2), strides(2, 2), graph.Int("ceil_mode", 1), graph.Int("storage_order", 1)},
		in: []arg{f(1, 2, 3, 5)}, want: places(slide{[]int{2, 2}, []int{2, 2}, []int{1, 1}, []int{0, 0}}, []int{2, 3}, []int{1, 3})},
	sample{name: "MaxPool of the least value, padded", op: "MaxPool", outs: 2, attrs: []graph.Attr{kernel(3), pads(1, 1)}, in: []arg{ints(tensor.Uint8, 0, 1, 1, 2, 6)},
		want: places(slide{[]int{3}, []int{1}, []int{1}, []int{1}}, []int{6}, []int{1})},
	sample{name: "LpPool", op: "LpPool", attrs: []graph.Attr{kernel(2, 2), pads(1, 0, 0, 0)}, in: []arg{f(1, 2, 3, 3)},
		want: pooled(slide{[]int{2, 2}, []int{1, 1}, []int{1, 1}, []int{1, 0}}, []int{3, 2}, norm(2))},
	sample{name: "LpPool, sums", op: "LpPool", attrs: []graph.Attr{kernel(2), graph.Int("p", 1)}, in: []arg{f(1, 2, 4)},
		want: pooled(slide{[]int{2}, []int{1}, []int{1}, []int{0}}, []int{3}, norm(1))},
	sample{name: "GlobalAveragePool", op: "GlobalAveragePool", in: []arg{f(2, 2, 3, 2)}, want: overSpace(mean)},
	sample{name: "GlobalMaxPool", op: "GlobalMaxPool", in: []arg{f(2, 2, 3, 2)}, want: overSpace(slices.Max[[]float64])},
	sample{name: "GlobalLpPool", op: "GlobalLpPool", in: []arg{f(2, 2, 3, 2)}, want: overSpace(norm(2))},
)

// slide is a window of the reference. Its lists are for all spatial axes.
type slide struct{ kernel, stride, dilation, before []int }

// pairs calls f with every position of the result, place in the kernel and
// position of the input that a window puts together; inside says whether the
// last is one.
func (s slide) pairs(in, out []int, f func(o, k, i []int, inside bool)) {
	o, k, i := make([]int, len(in)), make([]int, len(in)), make([]int, len(in))
	for x := range elements(out) {
		tensor.Shape(out).Coords(x, o)
		for y := range elements(s.kernel) {
			tensor.Shape(s.kernel).Coords(y, k)
			inside := true
			for a := range in {
				i[a] = o[a]*s.stride[a] + k[a]*s.dilation[a] - s.before[a]
				inside = inside && i[a] >= 0 && i[a] < in[a]
			}
			f(o, k, i, inside)
		}
	}
}

// pooled is the meaning of a pooling operator that makes one number of the
// elements inside each window, of which n, or as many as are inside, are there.
func pooled(s slide, out []int, f func(inside []float64) float64) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		y := array{append(slices.Clone(x.shape[:2]), out...), nil}
		for n := range x.shape[0] {
			for c := range x.shape[1] {
				windows := make([][]float64, elements(out))
				j := 0
				s.pairs(x.shape[2:], out, func(_, _, i []int, inside bool) {
					if inside {
						o := j / elements(s.kernel)
						windows[o] = append(windows[o], x.at(append([]int{n, c}, i...)))
					}
					j++
				})
				for _, w := range windows {
					y.v = append(y.v, f(w))
				}
			}
		}
		return []array{y}
	}
}

// places is the second output of MaxPool: the flat index of the first of the
// greatest elements, of input axes with the given strides.
func places(s slide, out, strides []int) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		y := pooled(s, out, slices.Max)(in)
		at := array{shape: y[0].shape}
		for n := range x.shape[0] {
			for c := range x.shape[1] {
				best := slices.Repeat([]float64{-1}, elements(out))
				j := 0
				s.pairs(x.shape[2:], out, func(o, _, i []int, inside bool) {
					w := j / elements(s.kernel)
					j++
					if !inside || best[w] >= 0 || x.at(append([]int{n, c}, i...)) != *y[0].cell(n, c, o) {
						return
					}
					best[w] = float64((n*x.shape[1] + c) * elements(x.shape[2:]))
					for a, v := range i {
						best[w] += float64(v * strides[a])
					}
				})
				at.v = append(at.v, best...)
			}
		}
		return append(y, at)
	}
}

func norm(p float64) func([]float64) float64 {
	return func(x []float64) (sum float64) {
		for _, v := range x {
			sum += math.Pow(math.Abs(v), p)
		}
		return math.Pow(sum, 1/p)
	}
}

// overSpace makes one number of all spatial elements.
func overSpace(f func([]float64) float64) func([]array) []array {
	return func(in []array) []array {
		n := len(in[0].shape) - 2
		s := slide{in[0].shape[2:], repeated(1, n), repeated(1, n), repeated(0, n)}
		return pooled(s, repeated(1, n), f)(in)
	}
}
