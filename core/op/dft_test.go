package op_test

import (
	"math"
	"math/cmplx"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "DFT", op: "DFT", in: []arg{f(2, 5, 1)}, want: transform(1, 5, 5, 2, false, false)},
	sample{name: "DFT, complex, first axis, longer", op: "DFT", in: []arg{f(3, 2, 2), one(4), one(0)}, want: transform(0, 4, 4, 2, false, false)},
	sample{name: "DFT, one side, shorter", op: "DFT", attrs: []graph.Attr{onesided}, in: []arg{f(1, 7, 1), one(6)}, want: transform(1, 6, 4, 2, false, false)},
	sample{name: "DFT, inverse from one side", op: "DFT", attrs: []graph.Attr{inverse, onesided}, in: []arg{f(1, 4, 2)}, want: transform(1, 6, 6, 1, true, true)},
	sample{name: "DFT, inverse from one side, odd", op: "DFT", attrs: []graph.Attr{inverse, onesided}, in: []arg{f(1, 3, 2), one(5)}, want: transform(1, 5, 5, 1, true, true)},
	sample{name: "STFT", op: "STFT", in: []arg{f(2, 9, 1), one(2), f(4)}, want: framed(2, 4, 3)},
	sample{name: "STFT, both sides, no window", op: "STFT", attrs: []graph.Attr{graph.Int("onesided", 0)}, in: []arg{f(1, 7, 1), one(3), none, one(4)}, want: framed(3, 4, 4)},
)

var _ = refuse(
	refusal{"forward transform of the conjugate", "DFT", []graph.Attr{inverse}, []arg{f(1, 6, 2)}, 1},
)

// transform is the meaning of DFT of length n along an axis to k places, with
// the given number of parts. mirrored says that of the input only the first
// half is there.
func transform(axis, n, k, parts int, inverse, mirrored bool) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		last := len(x.shape) - 1
		shape := slices.Clone(x.shape)
		shape[axis], shape[last] = k, parts
		return []array{filled(shape, func(at []int) float64 {
			from, sum := slices.Clone(at), complex(0, 0)
			element := func(j int) complex128 {
				if j >= x.shape[axis] {
					return 0
				}
				from[axis], from[last] = j, 0
				v := complex(x.at(from), 0)
				if x.shape[last] == 2 {
					from[last] = 1
					v += complex(0, x.at(from))
				}
				return v
			}
			sign, scale := -1.0, 1.0
			if inverse {
				sign, scale = 1, 1/float64(n)
			}
			for j := range n {
				v := element(j)
				if mirrored && 2*j > n {
					v = cmplx.Conj(element(n - j))
				}
				sum += v * cmplx.Exp(complex(0, sign*2*math.Pi*float64(j*at[axis])/float64(n)))
			}
			if at[last] == 1 {
				return imag(sum) * scale
			}
			return real(sum) * scale
		})}
	}
}

// framed is the meaning of STFT of a real signal.
func framed(step, n, k int) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		s := []int{x.shape[0], (x.shape[1]-n)/step + 1, n, 1}
		frames := filled(s, func(at []int) float64 {
			w := 1.0
			if len(in) > 2 && in[2].shape != nil {
				w = in[2].v[at[2]]
			}
			return w * x.at([]int{at[0], at[1]*step + at[2], 0})
		})
		return transform(2, n, k, 2, false, false)([]array{frames})
	}
}

func one(v float64) arg { return fixed(given(tensor.Int64, nil, v)) }

var (
	inverse  = graph.Int("inverse", 1)
	onesided = graph.Int("onesided", 1)
)
