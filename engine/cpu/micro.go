package cpu

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// A micro-kernel advances the 2×4 chains of a tile by the terms of one panel of
// each operand. Operands are float32 values held as float64, so a product is
// exact, and rounding a sum to float64 and then to float32 is rounding once,
// unless the first sum looks like a tie or lies among the subnormals (see
// tensor.FMA).
const (
	tileRows = 2
	tileCols = 4
	tileSize = tileRows * tileCols
)

// quick does that for panels that are safe.
func quick(acc *[tileSize]float64, a, b []float64) {
	for {
		at, left := untilTie(acc, a, b)
		if at == tileSize {
			return
		}
		// Some chains have taken the term; the rest take it with care.
		a, b = a[len(a)-left*tileRows:], b[len(b)-left*tileCols:]
		for ; at < tileSize; at++ {
			acc[at] = float64(tensor.FMA(float32(a[at/tileCols]), float32(b[at%tileCols]), float32(acc[at])))
		}
		a, b = a[tileRows:], b[tileCols:]
	}
}

// untilTie advances the chains until a sum looks like a tie, in random data once
// in 2²⁹ terms. It returns at which chain, and how many terms are left, that one
// included. Eight chains hide the latency of one; they are written out because
// the compiler keeps only named variables in registers.
//
// float: products are exact
func untilTie(acc *[tileSize]float64, a, b []float64) (at, left int) {
	c0, c1, c2, c3 := acc[0], acc[1], acc[2], acc[3]
	c4, c5, c6, c7 := acc[4], acc[5], acc[6], acc[7]
	at = tileSize
	for len(a) >= tileRows && len(b) >= tileCols {
		a0, a1 := a[0], a[1]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		a, b = a[tileRows:], b[tileCols:]
		s := a0*b0 + c0
		if tie(s) {
			at = 0
			break
		}
		c0 = float64(float32(s))
		s = a0*b1 + c1
		if tie(s) {
			at = 1
			break
		}
		c1 = float64(float32(s))
		s = a0*b2 + c2
		if tie(s) {
			at = 2
			break
		}
		c2 = float64(float32(s))
		s = a0*b3 + c3
		if tie(s) {
			at = 3
			break
		}
		c3 = float64(float32(s))
		s = a1*b0 + c4
		if tie(s) {
			at = 4
			break
		}
		c4 = float64(float32(s))
		s = a1*b1 + c5
		if tie(s) {
			at = 5
			break
		}
		c5 = float64(float32(s))
		s = a1*b2 + c6
		if tie(s) {
			at = 6
			break
		}
		c6 = float64(float32(s))
		s = a1*b3 + c7
		if tie(s) {
			at = 7
			break
		}
		c7 = float64(float32(s))
	}
	*acc = [tileSize]float64{c0, c1, c2, c3, c4, c5, c6, c7}
	return at, len(a)/tileRows + 1
}

// tie reports whether the bits of s beyond float32's are 100…0.
func tie(s float64) bool { return uint32(math.Float64bits(s))<<3 == 1<<31 }

// tiny reports whether 0 < |s| < 2⁻¹²⁶.
func tiny(s float64) bool { return math.Float64bits(s)<<1-1 < (1023-126)<<53-1 }

// careful is quick for any operands. It reports whether a chain became −0.
//
// float: products are exact
func careful(acc *[tileSize]float64, a, b []float64) (negativeZero bool) {
	for len(a) >= tileRows && len(b) >= tileCols {
		for i := range acc {
			x, y, c := a[i/tileCols], b[i%tileCols], acc[i]
			s := x*y + c
			if tie(s) || tiny(s) {
				r := tensor.FMA(float32(x), float32(y), float32(c))
				negativeZero = negativeZero || math.Float32bits(r) == 1<<31
				s = float64(r)
			}
			acc[i] = float64(float32(s))
		}
		a, b = a[tileRows:], b[tileCols:]
	}
	return negativeZero
}

// A panel's floor bounds the exponents of its values from below: no value other
// than zero has a lesser biased exponent.
type floor uint32

const noFloor floor = 255

// magnitude orders float32 values by size: zeros last, then upwards from the
// least subnormal.
func magnitude(x float32) uint32 { return math.Float32bits(x)<<1 - 1 }

func floorOf(leastMagnitude uint32) floor { return floor(leastMagnitude >> 24) }

// safe reports whether quick may take two panels. Products are multiples of
// 2^(a+b−300), for a value with biased exponent e is one of 2^(e−150). If that
// is at least 2⁻¹⁷⁹, a sum below 2⁻¹²⁶ is exact in float64, and rounded once.
func safe(a, b floor) bool { return a+b >= 300-179 }

// keepsZero reports whether, besides, no chain can become −0: products are
// multiples of the least subnormal, 2⁻¹⁴⁹, so that nothing rounds to zero.
func keepsZero(a, b floor) bool { return a+b >= 300-149 }
