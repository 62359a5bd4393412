package op_test

import (
	"math"
	"math/cmplx"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
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

// windowed is the meaning of a window of n elements that repeats after period.
func windowed(n, period int, p, q, r float64) func([]array) []array {
	return func([]array) []array {
		return []array{filled([]int{n}, func(at []int) float64 {
			x := 2 * math.Pi * float64(at[0]) / float64(period)
			return p - q*math.Cos(x) + r*math.Cos(2*x)
		})}
	}
}

// mel is the meaning of MelWeightMatrix.
func mel(bands, length, rate int, low, high float64) func([]array) []array {
	scale := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	bin := func(i int) float64 {
		m := scale(low) + float64(i)*(scale(high)-scale(low))/float64(bands+2)
		return math.Floor(700 * (math.Pow(10, m/2595) - 1) * float64(length+1) / float64(rate))
	}
	return func([]array) []array {
		return []array{filled([]int{length/2 + 1, bands}, func(at []int) float64 {
			j, left, top, right := float64(at[0]), bin(at[1]), bin(at[1]+1), bin(at[1]+2)
			switch {
			case j >= top && j < right:
				return (right - j) / (right - top)
			case j == top:
				return 1
			case j >= left && j < top:
				return (j - left) / (top - left)
			}
			return 0
		})}
	}
}

func one(v float64) arg { return fixed(given(tensor.Int64, nil, v)) }

var (
	inverse  = graph.Int("inverse", 1)
	onesided = graph.Int("onesided", 1)
)

var _ = add(
	sample{name: "DFT", op: "DFT", in: []arg{f(2, 5, 1)}, want: transform(1, 5, 5, 2, false, false)},
	sample{name: "DFT, complex, first axis, longer", op: "DFT", in: []arg{f(3, 2, 2), one(4), one(0)}, want: transform(0, 4, 4, 2, false, false)},
	sample{name: "DFT, one side, shorter", op: "DFT", attrs: []graph.Attr{onesided}, in: []arg{f(1, 7, 1), one(6)}, want: transform(1, 6, 4, 2, false, false)},
	sample{name: "DFT, inverse from one side", op: "DFT", attrs: []graph.Attr{inverse, onesided}, in: []arg{f(1, 4, 2)}, want: transform(1, 6, 6, 1, true, true)},
	sample{name: "DFT, inverse from one side, odd", op: "DFT", attrs: []graph.Attr{inverse, onesided}, in: []arg{f(1, 3, 2), one(5)}, want: transform(1, 5, 5, 1, true, true)},
	sample{name: "STFT", op: "STFT", in: []arg{f(2, 9, 1), one(2), f(4)}, want: framed(2, 4, 3)},
	sample{name: "STFT, both sides, no window", op: "STFT", attrs: []graph.Attr{graph.Int("onesided", 0)}, in: []arg{f(1, 7, 1), one(3), none, one(4)}, want: framed(3, 4, 4)},
	sample{name: "HannWindow", op: "HannWindow", in: []arg{one(7)}, want: windowed(7, 7, 0.5, 0.5, 0)},
	sample{name: "HammingWindow", op: "HammingWindow", attrs: []graph.Attr{graph.Int("periodic", 0)}, in: []arg{one(8)}, want: windowed(8, 7, 25./46, 21./46, 0)},
	sample{name: "BlackmanWindow", op: "BlackmanWindow", attrs: []graph.Attr{graph.Int("output_datatype", int(tensor.Float64))}, in: []arg{one(10)}, want: windowed(10, 10, 0.42, 0.5, 0.08)},
	sample{name: "MelWeightMatrix", op: "MelWeightMatrix", in: []arg{one(8), one(16), one(8192), fixed(given(tensor.Float32, nil, 0)), fixed(given(tensor.Float32, nil, 4096))}, want: mel(8, 16, 8192, 0, 4096)},
)
