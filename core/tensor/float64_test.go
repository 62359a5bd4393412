package tensor

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestElementaryFunctionsOfFloat64(t *testing.T) {
	for _, c := range []struct {
		name     string
		f, exact func(float64) float64
		lo, hi   float64
		ulp      float64
	}{
		{"exp", exp64, math.Exp, -708, 709, 2}, // the reference has an error of its own
		{"log", log64, math.Log, 0x1p-1022, math.MaxFloat64, 2},
		{"tanh", tanh64, math.Tanh, -25, 25, 3},
	} {
		worst, at := 0.0, 0.0
		r := rand.New(rand.NewPCG(7, 7))
		probe := func(x float64) {
			if !(x >= c.lo && x <= c.hi) {
				return
			}
			got, want := c.f(x), c.exact(x)
			unit := math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want)
			if e := math.Abs(got-want) / unit; !(e <= worst) {
				worst, at = e, x
			}
		}
		for range 300_000 {
			probe(math.Float64frombits(r.Uint64()))
			probe(c.lo + r.Float64()*(min(c.hi, 100)-c.lo))
			probe(r.NormFloat64())
		}
		if !(worst <= c.ulp) {
			t.Errorf("%s is off by %.3f ulp at %x, limit %.1f", c.name, worst, at, c.ulp)
		}
	}
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name     string
		f        func(float64) float64
		in, want float64
	}{
		{"exp", exp64, 0, 1}, {"exp", exp64, inf, inf}, {"exp", exp64, -inf, 0}, {"exp", exp64, 710, inf}, {"exp", exp64, -746, 0}, {"exp", exp64, nan, nan},
		{"log", log64, 1, 0}, {"log", log64, 0, -inf}, {"log", log64, -1, nan}, {"log", log64, inf, inf}, {"log", log64, nan, nan},
		{"tanh", tanh64, inf, 1}, {"tanh", tanh64, -inf, -1}, {"tanh", tanh64, nan, nan},
	} {
		if got := c.f(c.in); got != c.want && (got == got || c.want == c.want) {
			t.Errorf("%s(%v) = %v, want %v", c.name, c.in, got, c.want)
		}
	}
	if x := exp64(-740); x == 0 || x >= 0x1p-1022 || math.Abs(log64(x)+740) > 1 {
		t.Error("subnormal numbers must be kept")
	}
	if !math.Signbit(tanh64(math.Copysign(0, -1))) {
		t.Error("tanh: −0 must stay −0")
	}
}
