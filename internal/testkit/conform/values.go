package conform

import (
	"math"
	"math/rand/v2"

	"github.com/tally-network/tally/core/tensor"
)

// Tensor returns a tensor of random values. Floats come from one of several
// mixtures, each of which makes another trap of float arithmetic likely.
func Tensor(r *rand.Rand, t tensor.DType, s tensor.Shape) *tensor.Tensor {
	return mixture(r.Uint32()).tensor(r, t, s)
}

// mixture numbers a way to draw values. Operands of one mixture spring traps
// that need both.
type mixture uint32

func (m mixture) tensor(r *rand.Rand, t tensor.DType, s tensor.Shape) *tensor.Tensor {
	x := tensor.Must(tensor.New(t, s))
	draw := integers[int(m)%len(integers)]
	switch t {
	case tensor.Float32:
		draw = floats[int(m)%len(floats)]
	case tensor.Float64:
		draw = func(r *rand.Rand) tensor.Word { return wide(r, floats[int(m)%len(floats)]) }
	case tensor.Float16, tensor.BFloat16:
		draw = func(r *rand.Rand) tensor.Word {
			return tensor.FloatWord(t, float64(tensor.AsF32(floats[int(m)%len(floats)](r))))
		}
	case tensor.Bool:
		draw = func(r *rand.Rand) tensor.Word { return tensor.Word(r.IntN(2)) }
	}
	for i := range x.Len() {
		x.Set(i, draw(r))
	}
	return x
}

// wide draws a float64 near one that a float32 can hold.
func wide(r *rand.Rand, near func(*rand.Rand) tensor.Word) tensor.Word {
	x := float64(tensor.AsF32(near(r)))
	return tensor.F64(x + x*float64(r.IntN(5)-2)*0x1p-40)
}

var integers = []func(r *rand.Rand) tensor.Word{
	func(r *rand.Rand) tensor.Word { return tensor.Word(int64(r.IntN(13) - 6)) },
	func(r *rand.Rand) tensor.Word { return r.Uint64() },
	func(r *rand.Rand) tensor.Word {
		return [...]tensor.Word{0, 1, 1<<64 - 1, 1 << 31, 1<<31 - 1, 1 << 63, 1<<63 - 1, 1 << 24, 1<<24 + 1}[r.IntN(9)]
	},
}

var floats = []func(r *rand.Rand) tensor.Word{normal, normal, whole, special, mixed, tiny, anyBits, ties, halves, lowHalves, vanishing}

// hazards returns one of the mixtures that make sums of products hard.
func hazards(r *rand.Rand) mixture { return mixture(len(floats) - 1 - r.IntN(3)) }

func normal(r *rand.Rand) tensor.Word { return tensor.F32(float32(r.NormFloat64())) }

func whole(r *rand.Rand) tensor.Word { return tensor.F32(float32(r.IntN(9)-4) / 2) }

func special(r *rand.Rand) tensor.Word {
	return [...]tensor.Word{
		0, 1 << 31, 0x3f800000, 0xbf800000, // zeros and ones
		0x7f800000, 0xff800000, 0x7fc00000, // infinities and NaN
		0x7f7fffff, 0xff7fffff, 1, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, // edges of the range
	}[r.IntN(14)]
}

// mixed is normal with something special now and then, zeros above all.
func mixed(r *rand.Rand) tensor.Word {
	switch n := r.IntN(100); {
	case n < 2:
		return special(r)
	case n < 12:
		return tensor.Word(r.IntN(2)) << 31
	}
	return normal(r)
}

// tiny values have products among the subnormals and below.
func tiny(r *rand.Rand) tensor.Word {
	return tensor.Word(r.Uint32()&0x807fffff | uint32(r.IntN(128))<<23)
}

func anyBits(r *rand.Rand) tensor.Word {
	return tensor.F32(math.Float32frombits(r.Uint32()))
}

// ties are factors of products that lie half-way between two floats, and what
// nudges a sum off such a tie by less than float64 can hold.
func ties(r *rand.Rand) tensor.Word {
	x := [...]float32{1, 1 + 0x1p-12, float32((2048+r.IntN(2048))<<12 + 2048), 0x1p-20, 0x1p-40, 0x1p-60}[r.IntN(6)]
	return signed(r, x)
}

// halves have products of half a unit in the last place of 1, or nearly.
func halves(r *rand.Rand) tensor.Word {
	x := [...]float32{0x1p-12, 0x1.000002p-12, 0x1.fffffcp-13, 1 + 0x1p-23}[r.IntN(4)]
	return signed(r, x)
}

// lowHalves are halves whose sums of products are subnormal.
func lowHalves(r *rand.Rand) tensor.Word {
	return tensor.F32(tensor.AsF32(halves(r)) * 0x1p-63)
}

// vanishing values have products that round to zeros of either sign.
func vanishing(r *rand.Rand) tensor.Word {
	return signed(r, float32(1+r.IntN(4))*0x1p-100)
}

func signed(r *rand.Rand, x float32) tensor.Word { return tensor.F32(x) | tensor.Word(r.IntN(2))<<31 }
