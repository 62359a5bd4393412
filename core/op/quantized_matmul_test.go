package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "MatMulInteger", op: "MatMulInteger", in: []arg{bytes(2, 3, 40), signed(40, 2)}, want: func(in []array) []array { return []array{integerProduct(in[0], array{}, in[1], array{})} }},
	sample{name: "MatMulInteger, zero points", op: "MatMulInteger", in: []arg{signed(3, 4), bytes(4, 2), signed(3), bytes(2)},
		want: func(in []array) []array { return []array{integerProduct(in[0], column(in[2]), in[1], in[3])} }},
	sample{name: "MatMulInteger, one zero point", op: "MatMulInteger", in: []arg{signed(3, 4), bytes(4, 2), none, bytes()},
		want: func(in []array) []array { return []array{integerProduct(in[0], array{}, in[1], in[3])} }},
	sample{name: "QLinearMatMul", op: "QLinearMatMul", in: []arg{bytes(3, 8), scales(0.5), bytes(1), signed(8, 2), scales(0.25), signed(1), scales(64), given(tensor.Uint8, []int{1}, 100)}, want: requantized(0, 255)},
	sample{name: "QLinearMatMul, by row and column", op: "QLinearMatMul",
		in: []arg{signed(3, 4), scales(0.5, 1, 2), signed(3), signed(4, 2), scales(0.25, 0.5), signed(2), given(tensor.Float32, nil, 256), one8(tensor.Int8, -7)}, want: requantized(-128, 127)},
	sample{name: "ConvInteger", op: "ConvInteger", attrs: []graph.Attr{graph.Ints("pads", 1, 1)}, in: []arg{bytes(1, 2, 5), signed(3, 2, 3), bytes(), signed(3)},
		want: func(in []array) []array { return []array{integerConv(in[0], in[2], in[1], in[3], 1)} }},
	sample{name: "QLinearConv", op: "QLinearConv", in: []arg{bytes(2, 2, 4), scales(0.5), bytes(), bytes(2, 2, 2), scales(0.25, 0.5), bytes(2), scales(128), one8(tensor.Int8, 5), ints(tensor.Int32, -999, 999, 2)},
		want: func(in []array) []array {
			sums := integerConv(in[0], in[2], in[3], in[5], 0)
			return []array{filled(sums.shape, func(at []int) float64 {
				return clamped(math.RoundToEven((sums.at(at)+in[8].v[at[1]])*in[1].v[0]*in[4].v[at[1]]/in[6].v[0])+5, -128, 127)
			})}
		}},
)

var _ = withoutGradient("MatMulInteger", "QLinearMatMul", "ConvInteger", "QLinearConv")

var _ = refuse(
	refusal{"does not go with matrices of shape [3 4]", "MatMulInteger", nil, []arg{bytes(3, 4), bytes(4, 2), bytes(4)}, 1},
	refusal{"should be int8 or uint8", "MatMulInteger", nil, []arg{f(3, 4), bytes(4, 2)}, 1},
	refusal{"should be one number", "ConvInteger", nil, []arg{bytes(1, 2, 4), bytes(1, 2, 2), bytes(2)}, 1},
	refusal{"does not go with kernels", "ConvInteger", nil, []arg{bytes(1, 2, 4), bytes(1, 2, 2), none, bytes(2)}, 1},
	refusal{"the scales are float32, float32 and float16", "QLinearMatMul", nil, []arg{bytes(1, 1), f(), bytes(), bytes(1, 1), f(), bytes(), as(tensor.Float16, f()), bytes()}, 1},
)

// integerProduct is a matrix product of a and b, each less its zero point.
func integerProduct(a, az, b, bz array) array {
	less := func(x, z array) array {
		if z.v == nil {
			return x
		}
		return filled(x.shape, func(at []int) float64 { return x.at(at) - z.at(at) })
	}
	a, b = less(a, az), less(b, bz)
	n := len(a.shape)
	s := append(slices.Clone(a.shape[:n-1]), b.shape[len(b.shape)-1])
	return filled(s, func(at []int) (sum float64) {
		for k := range a.shape[n-1] {
			left, right := slices.Clone(at), slices.Clone(at)
			left[n-1], right[n-2] = k, k
			sum += a.at(left) * b.at(right)
		}
		return sum
	})
}

// column gives a list a second axis.
func column(x array) array {
	if len(x.shape) == 1 && len(x.v) > 1 {
		return array{[]int{len(x.v), 1}, x.v}
	}
	return x
}

func requantized(lo, hi float64) func([]array) []array {
	return func(in []array) []array {
		sums := integerProduct(in[0], column(in[2]), in[3], in[5])
		return []array{filled(sums.shape, func(at []int) float64 {
			scale := column(in[1]).at(at) * in[4].at(at) / in[6].v[0]
			return clamped(math.RoundToEven(sums.at(at)*scale)+in[7].v[0], lo, hi)
		})}
	}
}

// integerConv convolves x [N C L] with kernels [M C K], each less its zero
// point; what lies outside is 0 then.
func integerConv(x, xz, k, kz array, pad int) array {
	return filled([]int{x.shape[0], k.shape[0], x.shape[2] + 2*pad - k.shape[2] + 1}, func(at []int) (sum float64) {
		for c := range k.shape[1] {
			for j := range k.shape[2] {
				if i := at[2] + j - pad; i >= 0 && i < x.shape[2] {
					zero := 0.0
					if kz.v != nil {
						zero = kz.v[at[1]%len(kz.v)]
					}
					sum += (x.at([]int{at[0], c, i}) - xz.v[0]) * (k.at([]int{at[1], c, j}) - zero)
				}
			}
		}
		return sum
	})
}
