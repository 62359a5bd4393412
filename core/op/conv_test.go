package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// slide is a window of the reference. Its lists are for all spatial axes.
type slide struct{ kernel, stride, dilation, before []int }

func repeated(v, n int) []int { return slices.Repeat([]int{v}, n) }

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

// convolved is the meaning of Conv with a result of the given spatial axes.
func convolved(group int, s slide, out ...int) func([]array) []array {
	return func(in []array) []array {
		x, w := in[0], in[1]
		y := array{append([]int{x.shape[0], w.shape[0]}, out...), nil}
		y.v = make([]float64, elements(y.shape))
		s.kernel = w.shape[2:]
		each := w.shape[0] / group
		for n := range x.shape[0] {
			for m := range w.shape[0] {
				if len(in) > 2 {
					for i := range elements(out) {
						y.v[(n*w.shape[0]+m)*elements(out)+i] = in[2].v[m]
					}
				}
				for c := range w.shape[1] {
					s.pairs(x.shape[2:], out, func(o, k, i []int, inside bool) {
						if inside {
							*y.cell(n, m, o) += x.at(append([]int{n, m/each*w.shape[1] + c}, i...)) * w.at(append([]int{m, c}, k...))
						}
					})
				}
			}
		}
		return []array{y}
	}
}

// cell is the element at [n, m, o…].
func (a array) cell(n, m int, o []int) *float64 {
	i := n*a.shape[1] + m
	for d, c := range o {
		i = i*a.shape[2+d] + c
	}
	return &a.v[i]
}

// convolvedBack is the meaning of ConvTranspose with a result of the given
// spatial axes: every input is spread over what its window would read.
func convolvedBack(group int, s slide, out ...int) func([]array) []array {
	return func(in []array) []array {
		x, w := in[0], in[1]
		m := w.shape[1]
		y := array{append([]int{x.shape[0], m * group}, out...), nil}
		y.v = make([]float64, elements(y.shape))
		s.kernel = w.shape[2:]
		for n := range x.shape[0] {
			for c := range m * group {
				if len(in) > 2 {
					for i := range elements(out) {
						y.v[(n*m*group+c)*elements(out)+i] = in[2].v[c]
					}
				}
				for j := range w.shape[0] / group {
					j += c / m * (w.shape[0] / group)
					s.pairs(out, x.shape[2:], func(o, k, i []int, inside bool) {
						if inside {
							*y.cell(n, c, i) += x.at(append([]int{n, j}, o...)) * w.at(append([]int{j, c % m}, k...))
						}
					})
				}
			}
		}
		return []array{y}
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

// over makes one number of all spatial elements.
func overSpace(f func([]float64) float64) func([]array) []array {
	return func(in []array) []array {
		n := len(in[0].shape) - 2
		s := slide{in[0].shape[2:], repeated(1, n), repeated(1, n), repeated(0, n)}
		return pooled(s, repeated(1, n), f)(in)
	}
}

// unpooled is the meaning of MaxUnpool to the given spatial axes, of which the
// indices speak, put into wider ones.
func unpooled(out, wide []int) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		y := array{append(slices.Clone(x.shape[:2]), out...), make([]float64, x.shape[0]*x.shape[1]*elements(out))}
		for i, v := range x.v {
			y.v[int(in[1].v[i])] = v
		}
		return []array{filled(append(slices.Clone(x.shape[:2]), wide...), func(at []int) float64 {
			for a, n := range out {
				if at[2+a] >= n {
					return 0
				}
			}
			return y.at(at)
		})}
	}
}

// imaged is the meaning of Col2Im.
func imaged(s slide, out, blocks []int) func([]array) []array {
	return func(in []array) []array {
		x, taps := in[0], elements(s.kernel)
		y := array{append([]int{x.shape[0], x.shape[1] / taps}, out...), nil}
		y.v = make([]float64, elements(y.shape))
		for n := range x.shape[0] {
			for c := range x.shape[1] / taps {
				j := 0
				s.pairs(out, blocks, func(_, _, i []int, inside bool) {
					if inside {
						*y.cell(n, c, i) += x.at([]int{n, c*taps + j%taps, j / taps})
					}
					j++
				})
			}
		}
		return []array{y}
	}
}

func kernel(v ...int) graph.Attr    { return graph.Ints("kernel_shape", v...) }
func strides(v ...int) graph.Attr   { return graph.Ints("strides", v...) }
func dilations(v ...int) graph.Attr { return graph.Ints("dilations", v...) }
func pads(v ...int) graph.Attr      { return graph.Ints("pads", v...) }
func group(n int) graph.Attr        { return graph.Int("group", n) }
func autoPad(s string) graph.Attr   { return graph.String("auto_pad", s) }

var plain2 = slide{[]int{2, 2}, []int{1, 1}, []int{1, 1}, []int{0, 0}}

var _ = add(
	sample{name: "Conv", op: "Conv", in: []arg{f(2, 2, 4, 3), f(3, 2, 2, 2)}, want: convolved(1, plain2, 3, 2)},
	sample{name: "Conv, everything", op: "Conv", attrs: []graph.Attr{group(2), kernel(3, 2), strides(2, 1), dilations(1, 2), pads(1, 0, 2, 1)},
		in: []arg{f(2, 4, 4, 5), f(6, 2, 3, 2), f(6)}, want: convolved(2, slide{nil, []int{2, 1}, []int{1, 2}, []int{1, 0}}, 3, 4)},
	sample{name: "Conv, one axis, steps that leave a rest", op: "Conv", attrs: []graph.Attr{strides(3), dilations(2)},
		in: []arg{f(2, 2, 9), f(2, 2, 2)}, want: convolved(1, slide{nil, []int{3}, []int{2}, []int{0}}, 3)},
	sample{name: "Conv, depthwise, padded to the same", op: "Conv", attrs: []graph.Attr{group(3), autoPad("SAME_UPPER"), strides(1, 2)},
		in: []arg{f(1, 3, 3, 4), f(3, 1, 2, 3)}, want: convolved(3, slide{nil, []int{1, 2}, []int{1, 1}, []int{0, 0}}, 3, 2)},
	sample{name: "Conv, same from below", op: "Conv", attrs: []graph.Attr{autoPad("SAME_LOWER")},
		in: []arg{f(1, 1, 5), f(1, 1, 4)}, want: convolved(1, slide{nil, []int{1}, []int{1}, []int{2}}, 5)},
	sample{name: "Conv, three axes in groups", op: "Conv", attrs: []graph.Attr{group(2), strides(2, 2, 2), pads(1, 0, 0, 0, 0, 1)},
		in: []arg{f(1, 2, 2, 3, 3), f(2, 1, 2, 2, 2), f(2)}, want: convolved(2, slide{nil, repeated(2, 3), repeated(1, 3), []int{1, 0, 0}}, 1, 1, 2)},
	sample{name: "Conv of halves", op: "Conv", in: []arg{as(tensor.BFloat16, ints(0, -4, 4, 1, 1, 3, 3)), as(tensor.BFloat16, ints(0, -2, 2, 1, 1, 2, 2)), as(tensor.BFloat16, ints(0, -2, 2, 1))},
		want: convolved(1, plain2, 2, 2)},
	sample{name: "ConvTranspose", op: "ConvTranspose", in: []arg{f(2, 2, 2, 3), f(2, 3, 2, 2)}, want: convolvedBack(1, plain2, 3, 4)},
	sample{name: "ConvTranspose, everything", op: "ConvTranspose", attrs: []graph.Attr{group(2), strides(2, 3), pads(1, 0, 0, 2), graph.Ints("output_padding", 1, 2)},
		in: []arg{f(2, 4, 2, 3), f(4, 2, 3, 2), f(4)}, want: convolvedBack(2, slide{nil, []int{2, 3}, []int{1, 1}, []int{1, 0}}, 5, 8)},
	sample{name: "ConvTranspose, zeros between", op: "ConvTranspose", attrs: []graph.Attr{strides(3), dilations(2), pads(2, 0)},
		in: []arg{f(1, 2, 3), f(2, 1, 3)}, want: convolvedBack(1, slide{nil, []int{3}, []int{2}, []int{2}}, 9)},
	sample{name: "ConvTranspose, pads beyond a stride", op: "ConvTranspose", attrs: []graph.Attr{strides(2), pads(3, 1)},
		in: []arg{f(1, 1, 3), f(1, 2, 5)}, want: convolvedBack(1, slide{nil, []int{2}, []int{1}, []int{3}}, 5)},
	sample{name: "ConvTranspose, to a shape", op: "ConvTranspose", attrs: []graph.Attr{strides(2, 2), graph.Ints("output_shape", 4, 7)},
		in: []arg{f(1, 1, 2, 3), f(1, 1, 3, 2)}, want: convolvedBack(1, slide{nil, []int{2, 2}, []int{1, 1}, []int{1, 0}}, 4, 7)},
	sample{name: "ConvTranspose, to the same", op: "ConvTranspose", attrs: []graph.Attr{strides(2, 2), autoPad("SAME_UPPER")},
		in: []arg{f(1, 1, 2, 2), f(1, 1, 3, 3)}, want: convolvedBack(1, slide{nil, []int{2, 2}, []int{1, 1}, []int{0, 0}}, 4, 4)},
	sample{name: "ConvTranspose, three axes in groups", op: "ConvTranspose", attrs: []graph.Attr{group(2), strides(2, 2, 2)},
		in: []arg{f(1, 2, 1, 2, 2), f(2, 1, 1, 2, 3)}, want: convolvedBack(2, slide{nil, repeated(2, 3), repeated(1, 3), repeated(0, 3)}, 1, 4, 5)},

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
	sample{name: "MaxUnpool", op: "MaxUnpool", attrs: []graph.Attr{kernel(2, 2), strides(2, 2)},
		in: []arg{f(1, 2, 1, 2), given(tensor.Int64, []int{1, 2, 1, 2}, 1, 6, 12, 11)}, want: unpooled([]int{2, 4}, []int{2, 4})},
	sample{name: "MaxUnpool, wider", op: "MaxUnpool", attrs: []graph.Attr{kernel(2)},
		in: []arg{f(1, 1, 2), given(tensor.Int64, []int{1, 1, 2}, 2, 0), list(1, 1, 5)}, want: unpooled([]int{3}, []int{5})},
	sample{name: "Col2Im", op: "Col2Im", attrs: []graph.Attr{strides(1, 2), pads(1, 0, 0, 1), dilations(2, 1)},
		in: []arg{f(2, 8, 6), list(3, 5), list(2, 2)}, want: imaged(slide{[]int{2, 2}, []int{1, 2}, []int{2, 1}, []int{1, 0}}, []int{3, 5}, []int{2, 3})},
	sample{name: "Col2Im, steps with gaps", op: "Col2Im", attrs: []graph.Attr{strides(2), dilations(3)},
		in: []arg{f(1, 4, 3), list(8), list(2)}, want: imaged(slide{[]int{2}, []int{2}, []int{3}, []int{0}}, []int{8}, []int{3})},
)
