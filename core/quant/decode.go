package quant

import (
	"encoding/binary"
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// Integers as floats, by the byte that holds them. A load is cheaper than taking a byte apart and
// converting what is in it.
var (
	nibbles  = pairs(func(q int) int { return q })         // both halves of a byte, the lower first
	centered = pairs(func(q int) int { return q - 8 })     // as Q4_0 has them
	places   = pairs(func(q int) int { return Places[q] }) // as IQ4_NL has them
	signed   = singles(256, func(q int) int { return int(int8(q)) })
	fives    = singles(32, func(q int) int { return q })
	fives0   = singles(32, func(q int) int { return q - 16 }) // as Q5_0 has them
	sixes    = singles(64, func(q int) int { return q - 32 }) // as Q6_K has them
)

// Places is the table of IQ4_NL, kvalues_iq4nl of ggml.
var Places = [16]int{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func pairs(value func(int) int) *[256][2]float32 {
	var t [256][2]float32
	for b := range t {
		t[b] = [2]float32{float32(value(b & 15)), float32(value(b >> 4))}
	}
	return &t
}

func singles(n int, value func(int) int) *[256]float32 {
	var t [256]float32
	for q := range n {
		t[q] = float32(value(q))
	}
	return &t
}

func decodeF32(dst []float32, src []byte) {
	for ; len(dst) >= 4; dst, src = dst[4:], src[16:] {
		b, y := (*[16]byte)(src), (*[4]float32)(dst)
		y[0], y[1] = float(b[0:]), float(b[4:])
		y[2], y[3] = float(b[8:]), float(b[12:])
	}
	for i := range dst {
		dst[i] = float(src[4*i:])
	}
}

// float returns the float32 that b begins with, with NaN made canonical.
func float(b []byte) float32 {
	return tensor.CanonNaN(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}

func decodeF16(dst []float32, src []byte) {
	for ; len(dst) >= 4; dst, src = dst[4:], src[8:] {
		b, y := (*[8]byte)(src), (*[4]float32)(dst)
		h0, h1 := uint32(b[0])|uint32(b[1])<<8, uint32(b[2])|uint32(b[3])<<8
		h2, h3 := uint32(b[4])|uint32(b[5])<<8, uint32(b[6])|uint32(b[7])<<8
		if normal(h0) && normal(h1) && normal(h2) && normal(h3) {
			y[0], y[1], y[2], y[3] = widen(h0), widen(h1), widen(h2), widen(h3)
			continue
		}
		for i := range y {
			y[i] = half(b[2*i], b[2*i+1])
		}
	}
	for i := range dst {
		dst[i] = half(src[2*i], src[2*i+1])
	}
}

func decodeBF16(dst []float32, src []byte) {
	for ; len(dst) >= 4; dst, src = dst[4:], src[8:] {
		b, y := (*[8]byte)(src), (*[4]float32)(dst)
		y[0], y[1] = upper(b[0:]), upper(b[2:])
		y[2], y[3] = upper(b[4:]), upper(b[6:])
	}
	for i := range dst {
		dst[i] = upper(src[2*i:])
	}
}

// upper returns the float32 of which b begins with the higher half, with NaN made canonical.
func upper(b []byte) float32 {
	return tensor.CanonNaN(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
}

func decodeQ8_0(dst []float32, src []byte) {
	for len(src) > 0 {
		b, y := (*[34]byte)(src), (*[32]float32)(dst)
		src, dst = src[34:], dst[32:]
		d, q := half(b[0], b[1]), (*[32]byte)(b[2:])
		for i := range 8 {
			y[i] = float32(d * signed[q[i]])
			y[i+8] = float32(d * signed[q[i+8]])
			y[i+16] = float32(d * signed[q[i+16]])
			y[i+24] = float32(d * signed[q[i+24]])
		}
	}
}

func decodeQ4_0(dst []float32, src []byte)   { decodeFours(dst, src, centered) }
func decodeIQ4_NL(dst []float32, src []byte) { decodeFours(dst, src, places) }

// decodeFours decodes blocks of a scale and 32 halves of bytes: those of elements 0 to 15 are the
// lower ones.
func decodeFours(dst []float32, src []byte, table *[256][2]float32) {
	for len(src) > 0 {
		b, y := (*[18]byte)(src), (*[32]float32)(dst)
		src, dst = src[18:], dst[32:]
		d, q := half(b[0], b[1]), (*[16]byte)(b[2:])
		for i := range q {
			v := &table[q[i]]
			y[i] = float32(d * v[0])
			y[i+16] = float32(d * v[1])
		}
	}
}

func decodeQ4_1(dst []float32, src []byte) {
	for len(src) > 0 {
		b, y := (*[20]byte)(src), (*[32]float32)(dst)
		src, dst = src[20:], dst[32:]
		d, m, q := half(b[0], b[1]), half(b[2], b[3]), (*[16]byte)(b[4:])
		for i := range q {
			v := &nibbles[q[i]]
			y[i] = float32(d*v[0]) + m
			y[i+16] = float32(d*v[1]) + m
		}
	}
}

// Of types Q5 the fifth bit of element i is bit i of a word.

func decodeQ5_0(dst []float32, src []byte) {
	for len(src) > 0 {
		b, y := (*[22]byte)(src), (*[32]float32)(dst)
		src, dst = src[22:], dst[32:]
		d, high, q := half(b[0], b[1]), binary.LittleEndian.Uint32(b[2:]), (*[16]byte)(b[6:])
		for i := range q {
			y[i] = float32(d * fives0[q[i]&15|byte(high<<4)&16])
			y[i+16] = float32(d * fives0[q[i]>>4|byte(high>>12)&16])
			high >>= 1
		}
	}
}

func decodeQ5_1(dst []float32, src []byte) {
	for len(src) > 0 {
		b, y := (*[24]byte)(src), (*[32]float32)(dst)
		src, dst = src[24:], dst[32:]
		d, m := half(b[0], b[1]), half(b[2], b[3])
		high, q := binary.LittleEndian.Uint32(b[4:]), (*[16]byte)(b[8:])
		for i := range q {
			y[i] = float32(d*fives[q[i]&15|byte(high<<4)&16]) + m
			y[i+16] = float32(d*fives[q[i]>>4|byte(high>>12)&16]) + m
			high >>= 1
		}
	}
}

// parts returns the scales and minima of the eight parts of a block of Q4_K or Q5_K, which starts
// with b: two float16, by which eight integers of six bits each are multiplied.
func parts(b *[16]byte) (scales, minima [8]float32) {
	d, m, s := half(b[0], b[1]), half(b[2], b[3]), b[4:]
	for i := range 4 {
		scales[i] = float32(d * signed[s[i]&63])
		minima[i] = float32(m * signed[s[i+4]&63])
		scales[i+4] = float32(d * signed[s[i+8]&15|s[i]>>6<<4])
		minima[i+4] = float32(m * signed[s[i+8]>>4|s[i+4]>>6<<4])
	}
	return scales, minima
}

func decodeQ4_K(dst []float32, src []byte) {
	for len(src) > 0 {
		b, y := (*[144]byte)(src), (*[256]float32)(dst)
		src, dst = src[144:], dst[256:]
		scales, minima := parts((*[16]byte)(b[:]))
		for p := range 4 {
			q, y := (*[32]byte)(b[16+32*p:]), (*[64]float32)(y[64*p:])
			d0, m0, d1, m1 := scales[2*p], minima[2*p], scales[2*p+1], minima[2*p+1]
			for i := range q {
				v := &nibbles[q[i]]
				y[i] = float32(d0*v[0]) - m0
				y[i+32] = float32(d1*v[1]) - m1
			}
		}
	}
}

// decodeQ5_K: the fifth bit of element i of part p is bit p of byte i.
func decodeQ5_K(dst []float32, src []byte) {
	for len(src) > 0 {
		b, y := (*[176]byte)(src), (*[256]float32)(dst)
		src, dst = src[176:], dst[256:]
		scales, minima := parts((*[16]byte)(b[:]))
		high := (*[32]byte)(b[16:])
		for p := range 4 {
			q, y := (*[32]byte)(b[48+32*p:]), (*[64]float32)(y[64*p:])
			d0, m0, d1, m1 := scales[2*p], minima[2*p], scales[2*p+1], minima[2*p+1]
			for i := range q {
				h := high[i] >> (2 * p & 7)
				y[i] = float32(d0*fives[q[i]&15|h<<4&16]) - m0
				y[i+32] = float32(d1*fives[q[i]>>4|h<<3&16]) - m1
			}
		}
	}
}

// decodeQ6_K: a block is two halves of four parts of 32 elements. The lower bits of parts 0 and 2
// share bytes, so do those of 1 and 3; the higher bits of all four share 32 bytes. Sixteen
// elements have one scale.
func decodeQ6_K(dst []float32, src []byte) {
	for len(src) > 0 {
		b, y := (*[210]byte)(src), (*[256]float32)(dst)
		src, dst = src[210:], dst[256:]
		d := half(b[208], b[209])
		for h := range 2 {
			low, high, s := (*[64]byte)(b[64*h:]), (*[32]byte)(b[128+32*h:]), (*[8]byte)(b[192+8*h:])
			y := (*[128]float32)(y[128*h:])
			for g := range 2 {
				low, high, y := (*[48]byte)(low[16*g:]), (*[16]byte)(high[16*g:]), (*[112]float32)(y[16*g:])
				d0, d1 := float32(d*signed[s[g]]), float32(d*signed[s[g+2]])
				d2, d3 := float32(d*signed[s[g+4]]), float32(d*signed[s[g+6]])
				for i := range high {
					a, b, c := low[i], low[i+32], high[i]
					y[i] = float32(d0 * sixes[a&15|c<<4&48])
					y[i+32] = float32(d1 * sixes[b&15|c<<2&48])
					y[i+64] = float32(d2 * sixes[a>>4|c&48])
					y[i+96] = float32(d3 * sixes[b>>4|c>>2&48])
				}
			}
		}
	}
}
