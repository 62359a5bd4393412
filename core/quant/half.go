package quant

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// finite reports whether the float16 whose higher byte is b is neither infinite nor NaN.
func finite(b byte) bool { return b&0x7c != 0x7c }

// spoil makes all elements NaN.
func spoil(dst []float32) {
	nan := tensor.CanonNaN(float32(math.NaN()))
	for i := range dst {
		dst[i] = nan
	}
}

// half returns the value of a float16, exactly. Every NaN becomes the canonical one.
func half(lo, hi byte) float32 {
	h := uint32(lo) | uint32(hi)<<8
	if normal(h) {
		return widen(h)
	}
	return unusual(h)
}

// normal reports whether the exponent of a float16 is neither the least nor the greatest.
func normal(h uint32) bool { return h&0x7c00-0x400 < 0x7800 }

// widen returns the value of a float16 that is normal.
func widen(h uint32) float32 { return math.Float32frombits(h&0x8000<<16 | (h&0x7fff<<13 + 112<<23)) }

// unusual returns the value of a float16 that is subnormal, zero, infinite or NaN.
func unusual(h uint32) float32 {
	sign, fraction := h&0x8000<<16, h&0x3ff<<13
	switch {
	case h&0x7c00 == 0: // the fraction stands behind 2⁻¹⁴, which is taken off again
		v := math.Float32frombits(113<<23|fraction) - 0x1p-14
		return math.Float32frombits(sign | math.Float32bits(v))
	case fraction == 0:
		return math.Float32frombits(sign | 0xff<<23)
	}
	return tensor.CanonNaN(float32(math.NaN()))
}
