package tensor

import (
	"math"
	"math/bits"
)

// Trigonometric functions of float32, computed in float64 and rounded once:
// within 0.51 ulp, and so the same as correctly rounded almost everywhere.

// Sin returns the sine of x, in radians.
func Sin(x float32) float32 { return wave(x, 0) }

// Cos returns the cosine of x, in radians.
func Cos(x float32) float32 { return wave(x, 1) }

// wave returns sin(x + quarter·π/2).
func wave(x float32, quarter int) float32 {
	if x != x || x-x != 0 {
		return math.Float32frombits(canonicalNaN)
	}
	if x == 0 && quarter == 0 {
		return x
	}
	q, r := quadrant(x)
	q += quarter
	var y float64
	if q&1 == 0 {
		y = sine(r)
	} else {
		y = cosine(r)
	}
	if q&2 != 0 {
		y = -y
	}
	return float32(y)
}

// halfPi are the bits of π/2, 28 at a time, so that a product with an integer
// below 2²⁵ is exact.
var halfPi = [4]float64{0x1.921fb54p+0, 0x1.10b461p-30, 0x1.a62633p-58, 0x1.45c06ep-86}

// twoOverPi are the bits of 2/π after the point.
var twoOverPi = [5]uint64{0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0}

// quadrant returns q and r with x = (q + 4n)·π/2 + r for some n, and |r| ≤ π/4.
func quadrant(x float32) (q int, r float64) {
	a := math.Abs(float64(x))
	if a < 1<<25 {
		n := math.RoundToEven(float64(a * (2 / math.Pi)))
		r = a
		for _, part := range halfPi {
			r -= float64(n * part)
		}
		q = int(n)
	} else {
		q, r = largeQuadrant(a)
	}
	if x < 0 {
		return -q, -r
	}
	return q, r
}

// largeQuadrant multiplies with those bits of 2/π that matter (Payne and Hanek,
// 1983): a = m·2ᵉ with e ≥ 2, and what is a multiple of four does not count.
func largeQuadrant(a float64) (q int, r float64) {
	u := math.Float64bits(a)
	e := uint(u>>52) - 1023 - 23
	m := u&(1<<52-1)>>29 | 1<<23
	skip := e - 2
	var w [3]uint64
	for i := range w {
		at, shift := skip/64+uint(i), skip%64
		w[i] = twoOverPi[at] << shift
		if shift > 0 && at+1 < uint(len(twoOverPi)) {
			w[i] |= twoOverPi[at+1] >> (64 - shift)
		}
	}
	carry, _ := bits.Mul64(m, w[2])
	hi, lo := bits.Mul64(m, w[1])
	lo, c := bits.Add64(lo, carry, 0)
	top := m*w[0] + hi + c // modulo 4 quarters: two bits before the point
	q = int(top >> 62)
	fraction := int64(top<<2 | lo>>62) // of a quarter, as a number with sign: rounded
	if fraction < 0 {
		q++
	}
	rest := float64(float64(lo<<2) * 0x1p-128)
	r = float64(float64(fraction)*0x1p-64) + rest
	return q, float64(r * (math.Pi / 2))
}

// sine returns sin r for |r| ≤ π/4, by its series.
func sine(r float64) float64 {
	z := float64(r * r)
	p := float64(1.0 / 6227020800)
	for _, c := range [...]float64{-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6} {
		p = float64(p*z) + c
	}
	return r + float64(float64(r*z)*p)
}

// cosine returns cos r for |r| ≤ π/4, by its series.
func cosine(r float64) float64 {
	z := float64(r * r)
	p := float64(-1.0 / 87178291200)
	for _, c := range [...]float64{1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -1.0 / 2, 1} {
		p = float64(p*z) + c
	}
	return p
}

// Atan returns the angle in radians whose tangent is x.
func Atan(x float32) float32 {
	if x != x {
		return math.Float32frombits(canonicalNaN)
	}
	if x == 0 {
		return x
	}
	t := math.Abs(float64(x))
	base := 0.0
	inverse := t > 1
	if inverse {
		t = 1 / t
	}
	if t > math.Sqrt2-1 {
		t, base = (t-1)/(t+1), math.Pi/4
	}
	z := float64(t * t)
	p := 0.0
	for k := 25; k >= 1; k -= 2 {
		p = 1/float64(k) - float64(p*z)
	}
	y := base + float64(t*p)
	if inverse {
		y = math.Pi/2 - y
	}
	if x < 0 {
		y = -y
	}
	return float32(y)
}
