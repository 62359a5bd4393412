package tensor

import "math"

// Canonical float32 arithmetic. Each function has one result, bit for bit, on
// every machine: only IEEE 754 additions, multiplications, divisions and square
// roots with one rounding each, in the order written. The conversions around
// products keep a compiler from fusing them.

// canonicalNaN is the only NaN that a tensor holds.
const canonicalNaN = 0x7fc00000

// CanonNaN returns x, or the canonical NaN if x is any NaN.
func CanonNaN(x float32) float32 {
	if x != x {
		return math.Float32frombits(canonicalNaN)
	}
	return x
}

// FMA returns a·b + c with a single rounding (to nearest, ties to even,
// subnormals kept), without needing the machine's instruction.
//
// The product is exact in float64. Rounding the float64 sum again is right
// unless that sum is a tie of float32 that the exact sum is not, or lies in
// the subnormal range; there the sum is first rounded to odd.
func FMA(a, b, c float32) float32 {
	p := float64(a) * float64(b) // float: exact
	s := p + float64(c)
	if u := math.Float64bits(s); u&tieMask != tieBits && u&^signBit >= leastNormal {
		return float32(s)
	}
	return fmaSlow(p, s, float64(c))
}

const (
	tieMask     = 1<<29 - 1
	tieBits     = 1 << 28
	signBit     = 1 << 63
	leastNormal = (1023 - 126) << 52 // 2⁻¹²⁶
)

func fmaSlow(p, s, c float64) float32 {
	if s == 0 || s != s {
		return float32(s)
	}
	// TwoSum: p + c = s + e exactly.
	t := s - p
	e := (p - (s - t)) + (c - t)
	u := math.Float64bits(s)
	if e != 0 && u&1 == 0 {
		if (e > 0) == (s > 0) {
			u++
		} else {
			u--
		}
	}
	return float32(math.Float64frombits(u))
}

// Sqrt returns the correctly rounded square root.
func Sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

const (
	log2e = 1.44269504
	ln2Hi = 0.693359375 // few bits, so that n·ln2Hi is exact for |n| < 2¹⁵
	ln2Lo = -2.12194440e-4
)

// Exp returns eˣ within 1.2 ulp: eⁿ ˡⁿ² · eʳ with |r| ≤ ln2/2 and a polynomial
// of degree 6 for eʳ.
func Exp(x float32) float32 {
	switch {
	case x != x:
		return CanonNaN(x)
	case x > 88.72284:
		return float32(math.Inf(1))
	case x < -103.97209:
		return 0
	}
	n := roundEven(float32(x * log2e))
	r := x - float32(n*ln2Hi)
	r = r - float32(n*ln2Lo)
	p := float32(0.0013814467)
	p = float32(p*r) + 0.008368781
	p = float32(p*r) + 0.041668393
	p = float32(p*r) + 0.1666652
	p = float32(p*r) + 0.49999994
	p = float32(float32(p*r)*r) + r
	p = p + 1
	// Two exact powers of two, so that only the last product rounds.
	k := int(n)
	h := k / 2
	return float32(float32(p*pow2(h)) * pow2(k-h))
}

// roundEven rounds |x| < 2²² to an integer, ties to even.
func roundEven(x float32) float32 {
	const magic = 1.5 * (1 << 23)
	return float32(x+magic) - magic
}

// pow2 returns 2ᵏ for −126 ≤ k ≤ 127.
func pow2(k int) float32 { return math.Float32frombits(uint32(k+127) << 23) }

// Log returns the natural logarithm within 1.2 ulp.
func Log(x float32) float32 {
	switch {
	case x != x || x < 0:
		return math.Float32frombits(canonicalNaN)
	case x == 0:
		return float32(math.Inf(-1))
	case x > math.MaxFloat32:
		return x
	}
	n := 0
	if x < 0x1p-126 {
		x, n = float32(x*0x1p23), -23
	}
	u := math.Float32bits(x)
	n += int(u>>23) - 127
	m := math.Float32frombits(u&0x7fffff | 127<<23) // 1 ≤ m < 2
	if m > math.Sqrt2 {
		m, n = float32(m*0.5), n+1
	}
	f := m - 1
	p := float32(-0.078596212)
	p = float32(p*f) + 0.12881647
	p = float32(p*f) - 0.1312875
	p = float32(p*f) + 0.14181192
	p = float32(p*f) - 0.16624555
	p = float32(p*f) + 0.20002286
	p = float32(p*f) - 0.2500081
	p = float32(p*f) + 0.33333316
	f2 := float32(f * f)
	p = float32(float32(p*f) * f2)
	e := float32(n)
	p = p + float32(e*ln2Lo)
	p = p - float32(0.5*f2)
	p = f + p
	return p + float32(e*ln2Hi)
}

// Tanh returns the hyperbolic tangent within 1.5 ulp.
func Tanh(x float32) float32 {
	a := x
	if a < 0 {
		a = -a
	}
	switch {
	case x != x:
		return CanonNaN(x)
	case a == 0:
		return x
	case a < 0.625:
		z := float32(x * x)
		p := float32(-0.0057175038)
		p = float32(p*z) + 0.020651052
		p = float32(p*z) - 0.053743664
		p = float32(p*z) + 0.13331494
		p = float32(p*z) - 0.33333284
		return x + float32(float32(x*z)*p)
	case a > 9.02:
		a = 1
	default:
		a = 1 - float32(2/(Exp(float32(2*a))+1))
	}
	if x < 0 {
		return -a
	}
	return a
}

// Erf returns the error function within 1.5 ulp: an odd polynomial below 0.9,
// 1 − e^q(|x|) with q ≈ log erfc above.
func Erf(x float32) float32 {
	a := x
	if a < 0 {
		a = -a
	}
	switch {
	case x != x:
		return CanonNaN(x)
	case a < 0.9:
		z := float32(x * x)
		p := float32(8.538841e-05)
		p = float32(p*z) - 0.0008181928
		p = float32(p*z) + 0.0052044359
		p = float32(p*z) - 0.026860753
		p = float32(p*z) + 0.1128372
		p = float32(p*z) - 0.37612635
		p = float32(p*z) + 0.12837917
		return x + float32(x*p)
	case a > 3.95:
		a = 1
	default:
		p := float32(-3.0470488e-07)
		p = float32(p*a) - 1.6940443e-05
		p = float32(p*a) + 0.00041019346
		p = float32(p*a) - 0.0040917089
		p = float32(p*a) + 0.024960516
		p = float32(p*a) - 0.10808042
		p = float32(p*a) - 0.6335007
		p = float32(p*a) - 1.1294485
		p = float32(p*a) + 0.00016236032
		a = 1 - Exp(p)
	}
	if x < 0 {
		return -a
	}
	return a
}
