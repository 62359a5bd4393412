package kerneltest

import (
	"math"
	"math/rand/v2"

	"github.com/tally-network/tally/core/tensor"
)

// Normal returns normal numbers, or bytes of either sign.
func Normal(t tensor.DType, s tensor.Shape) *tensor.Tensor {
	r := rand.New(rand.NewPCG(1, 2))
	x := tensor.Must(tensor.New(t, s))
	for i := range x.Len() {
		if t.Float() {
			x.Set(i, tensor.FloatWord(t, r.NormFloat64()))
		} else {
			x.Set(i, tensor.Word(int64(r.IntN(100)-50)))
		}
	}
	return x
}

// Drawn returns a tensor of the given values in random order.
func Drawn(r *rand.Rand, t tensor.DType, s tensor.Shape, from ...float64) *tensor.Tensor {
	x := tensor.Must(tensor.New(t, s))
	for i := range x.Len() {
		v := from[r.IntN(len(from))]
		if t.Float() {
			x.Set(i, tensor.FloatWord(t, v))
		} else {
			x.Set(i, tensor.Word(int64(v)))
		}
	}
	return x
}

// Values on which kernels fail if they fail at all.
var (
	NegativeZero = math.Copysign(0, -1)
	// NearTies have products that end half-way between two floats, or so near
	// that rounding to float64 first goes wrong.
	NearTies = []float64{1, -1, 1 + 0x1p-12, -1 - 0x1p-12, 0x1p-12, 0x1.000002p-12, -0x1.fffffcp-13, 0x1p-20, -0x1p-60, 4095 << 12, 0}
	// Small have products among the subnormals and below.
	Small = []float64{0x1p-63, -0x1.000002p-75, 0x1p-75, -0x1p-100, 0x1p-149, 0x1p-126, -0x1.fffffcp-127, 1, NegativeZero}
	// Huge have sums and products that overflow.
	Huge = []float64{math.MaxFloat32, -math.MaxFloat32, 1, -2, 0, NegativeZero}
	// Wild are infinities and NaNs among ordinary values.
	Wild = []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0, NegativeZero, 1, -1, 0x1p-100}
)
