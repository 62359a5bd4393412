package op_test

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "MelWeightMatrix", op: "MelWeightMatrix", in: []arg{one(8), one(16), one(8192), fixed(given(tensor.Float32, nil, 0)), fixed(given(tensor.Float32, nil, 4096))}, want: mel(8, 16, 8192, 0, 4096)},
)

var _ = withoutGradient("MelWeightMatrix")

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
