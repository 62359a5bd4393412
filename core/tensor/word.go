package tensor

import (
	"encoding/binary"
	"math"
)

// Word is one element in 64 bits: the bits of a float, the value of an integer,
// sign-extended if its type is signed, 0 or 1 for a boolean.
type Word = uint64

// F32 returns the word of x, with NaN made canonical.
func F32(x float32) Word { return Word(math.Float32bits(CanonNaN(x))) }

// AsF32 returns the float32 whose word is w.
func AsF32(w Word) float32 { return math.Float32frombits(uint32(w)) }

// F64 returns the word of x, with NaN made canonical.
func F64(x float64) Word {
	if x != x {
		return canonicalNaN64
	}
	return math.Float64bits(x)
}

const canonicalNaN64 = 0x7ff8000000000000

// layout is that of a float of 16 bits: the width of its fraction.
type layout struct{ fraction, bias uint }

var halves = map[DType]layout{Float16: {10, 15}, BFloat16: {7, 127}}

// FloatWord returns x as a word of a float type, rounded once, to nearest, ties
// to even. Every NaN becomes the canonical one.
func FloatWord(t DType, x float64) Word {
	switch t {
	case Float64:
		return F64(x)
	case Float32:
		return F32(float32(x))
	case Float16:
		return narrow(halves[Float16], x)
	}
	return narrow(halves[BFloat16], x)
}

// FloatOf returns the value of a word of a float type, exactly.
func FloatOf(t DType, w Word) float64 {
	switch t {
	case Float64:
		return math.Float64frombits(w)
	case Float32:
		return float64(AsF32(w))
	case Float16:
		return widen(halves[Float16], w)
	}
	return float64(math.Float32frombits(uint32(w) << 16))
}

// Limits of a factor of profile mixed. A product of two lies between 2⁻¹¹⁰ and
// 2¹⁰⁰, has 16 bits and is a multiple of 2⁻¹²⁴: it is exact in float32, and so no
// sum of up to 2²⁶ of them overflows or becomes subnormal.
const (
	leastFactor    = 0x1p-55
	greatestFactor = 0x1p50
)

// Narrowed rounds x to bfloat16; what is then below the least factor becomes +0,
// what is above the greatest becomes that, with its sign. An infinity has no
// factor that stands for it and gives NaN, like a NaN.
func Narrowed(x float64) Word {
	if math.IsInf(x, 0) {
		x = math.NaN()
	}
	w := narrow(halves[BFloat16], x)
	switch r := FloatOf(BFloat16, w); {
	case math.Abs(r) < leastFactor:
		return 0
	case math.Abs(r) > greatestFactor:
		return narrow(halves[BFloat16], math.Copysign(greatestFactor, r))
	}
	return w
}

// narrow rounds x to a float of 16 bits.
func narrow(l layout, x float64) Word {
	u := math.Float64bits(x)
	sign := u >> 63 << 15
	exponents := uint64(1)<<(15-l.fraction) - 1 // that of infinity
	inf := exponents << l.fraction
	exp := int(u >> 52 & 0x7ff)
	fraction := u & (1<<52 - 1)
	switch {
	case exp == 0x7ff && fraction != 0:
		return inf | 1<<(l.fraction-1)
	case exp == 0x7ff:
		return sign | inf
	case exp == 0:
		return sign // far below the least subnormal
	}
	fraction |= 1 << 52
	e := exp - 1023 + int(l.bias)
	drop := 52 - l.fraction
	if e < 1 { // subnormal
		if drop += uint(1 - e); drop > 60 {
			return sign
		}
		e = 0
	}
	kept := fraction >> drop
	switch rest, tie := fraction&(1<<drop-1), uint64(1)<<(drop-1); {
	case rest > tie, rest == tie && kept&1 == 1:
		kept++
	}
	if e > 0 {
		kept += uint64(e-1) << l.fraction // the hidden bit adds the last one
	}
	return sign | min(kept, inf)
}

// widen returns the value of a float16.
func widen(l layout, w Word) float64 {
	exponents := Word(1)<<(15-l.fraction) - 1
	exp, fraction := w>>l.fraction&exponents, w&(1<<l.fraction-1)
	var x float64
	switch {
	case exp == exponents && fraction != 0:
		return math.NaN()
	case exp == exponents:
		x = math.Inf(1)
	case exp == 0: // float: products with powers of two are exact
		x = float64(fraction) * math.Float64frombits(uint64(1023+1-l.bias-l.fraction)<<52)
	default: // float: exact
		x = float64(fraction|1<<l.fraction) * math.Float64frombits((uint64(exp)+1023-uint64(l.bias)-uint64(l.fraction))<<52)
	}
	if w>>15&1 == 1 {
		return -x
	}
	return x
}

// canonical returns a word of type t with every NaN made canonical.
func canonical(t DType, w Word) Word {
	if !t.Float() {
		return w
	}
	if x := FloatOf(t, w); x != x {
		return FloatWord(t, x)
	}
	return w
}

// wrap reduces an integer to the range of t.
func wrap(t DType, v int64) Word {
	switch t {
	case Int8:
		v = int64(int8(v))
	case Int16:
		v = int64(int16(v))
	case Int32:
		v = int64(int32(v))
	case Uint8:
		v = int64(uint8(v))
	case Uint16:
		v = int64(uint16(v))
	case Uint32:
		v = int64(uint32(v))
	}
	return Word(v)
}

// bounds returns the least and the greatest value of an integer type, as words.
func bounds(t DType) (least, greatest Word) {
	bits := uint(8 * t.Size())
	if t.Unsigned() {
		return 0, math.MaxUint64 >> (64 - bits)
	}
	return Word(int64(math.MinInt64) >> (64 - bits)), Word(int64(math.MaxInt64) >> (64 - bits))
}

// storable reports whether w is the word of some element of type t.
func storable(t DType, w Word) bool {
	switch t.class() {
	case float:
		bits := uint(8 * t.Size())
		return (bits == 64 || w>>bits == 0) && w == canonical(t, w)
	case boolean:
		return w <= 1
	}
	return w == wrap(t, int64(w))
}

// stored returns the word of type t that has the low bits of w.
func stored(t DType, w Word) Word {
	w &= math.MaxUint64 >> (64 - 8*uint(t.Size()))
	switch t.class() {
	case float:
		return canonical(t, w)
	case boolean:
		return truth(w != 0)
	}
	return wrap(t, int64(w))
}

// At returns element i.
func (t *Tensor) At(i int) Word { return wordAt(t.Type, t.buf, i) }

// Set stores element i, wrapped to its type.
func (t *Tensor) Set(i int, w Word) {
	switch t.Type.Size() {
	case 1:
		t.buf[i] = byte(w)
	case 2:
		binary.LittleEndian.PutUint16(t.buf[2*i:], uint16(w))
	case 4:
		binary.LittleEndian.PutUint32(t.buf[4*i:], uint32(w))
	default:
		binary.LittleEndian.PutUint64(t.buf[8*i:], w)
	}
}

func wordAt(t DType, b []byte, i int) Word {
	var w Word
	switch t.Size() {
	case 1:
		w = Word(b[i])
	case 2:
		w = Word(binary.LittleEndian.Uint16(b[2*i:]))
	case 4:
		w = Word(binary.LittleEndian.Uint32(b[4*i:]))
	default:
		w = binary.LittleEndian.Uint64(b[8*i:])
	}
	if t.Signed() {
		return wrap(t, int64(w))
	}
	return w
}
