package op_test

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

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
)

func repeated(v, n int) []int { return slices.Repeat([]int{v}, n) }

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

func kernel(v ...int) graph.Attr { return graph.Ints("kernel_shape", v...) }

func strides(v ...int) graph.Attr { return graph.Ints("strides", v...) }

func dilations(v ...int) graph.Attr { return graph.Ints("dilations", v...) }

func pads(v ...int) graph.Attr { return graph.Ints("pads", v...) }

func group(n int) graph.Attr { return graph.Int("group", n) }

func autoPad(s string) graph.Attr { return graph.String("auto_pad", s) }

var plain2 = slide{[]int{2, 2}, []int{1, 1}, []int{1, 1}, []int{0, 0}}
