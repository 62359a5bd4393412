package tensor

import "math"

// Elementary functions of float64, within 1 ulp. The reductions and the
// coefficients are those of fdlibm (Sun Microsystems, 1993) and, for tanh, of
// Cephes (Moshier, 1984).

const (
	ln2Hi64 = 6.93147180369123816490e-01 // few bits, so that n·ln2Hi64 is exact
	ln2Lo64 = 1.90821492927058770002e-10
)

// horner returns the polynomial with the given coefficients, the highest first.
func horner(z float64, coefficients ...float64) (p float64) {
	for _, c := range coefficients {
		p = float64(p*z) + c
	}
	return p
}

// exp64 returns eˣ as 2ⁿ·eʳ with |r| ≤ ln2/2.
func exp64(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 709.782712893384:
		return math.Inf(1)
	case x < -745.1332191019412:
		return 0
	}
	n := math.RoundToEven(float64(x * math.Log2E))
	hi, lo := x-float64(n*ln2Hi64), float64(n*ln2Lo64)
	r := hi - lo
	t := float64(r * r)
	p := horner(t, 4.13813679705723846039e-08, -1.65339022054652515390e-06, 6.61375632143793436117e-05, -2.77777777770155933842e-03, 1.66666666666666657415e-01)
	c := r - float64(t*p)
	y := 1 - ((lo - float64(r*c)/(2-c)) - hi)
	return math.Ldexp(y, int(n))
}

// log64 returns the natural logarithm of x = 2ᵏ·(1+f) with √½ ≤ 1+f < √2.
func log64(x float64) float64 {
	switch {
	case x != x || x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x > math.MaxFloat64:
		return x
	}
	m, exponent := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, exponent = float64(m*2), exponent-1
	}
	f, k := m-1, float64(exponent)
	s := f / (2 + f)
	z := float64(s * s)
	w := float64(z * z)
	odd := horner(w, 1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01)
	even := horner(w, 1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01)
	r := float64(z*odd) + float64(w*even)
	half := float64(float64(0.5*f) * f)
	rest := float64(s*(half+r)) + float64(k*ln2Lo64)
	return float64(k*ln2Hi64) - ((half - rest) - f)
}

// tanh64 returns the hyperbolic tangent: a quotient of polynomials below 0.625,
// 1 − 2/(e²ˣ+1) above.
func tanh64(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x || x == 0:
		return x
	case a > 22:
		a = 1
	case a >= 0.625:
		a = 1 - 2/(exp64(float64(2*a))+1)
	default:
		z := float64(x * x)
		p := horner(z, -9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
		q := horner(z, 1, 1.12811678491631932401e2, 2.23548839060100448583e3, 4.84406305325125486048e3)
		return x + float64(float64(x*z)*p)/q
	}
	return math.Copysign(a, x)
}
