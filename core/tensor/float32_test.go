package tensor

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA rounds a·b + c once, by arbitrary precision.
func exactFMA(a, b, c float32) float32 {
	// 700 bits hold a product and an addend however far apart they lie.
	wide := func(x float32) *big.Float { return new(big.Float).SetPrec(700).SetFloat64(float64(x)) }
	x := wide(a)
	x.Mul(x, wide(b)).Add(x, wide(c))
	if x.Sign() == 0 { // exact; only the sign of zero is left to IEEE's rule
		return float32(float64(a)*float64(b) + float64(c))
	}
	f, _ := x.Float32()
	return f
}

func checkFMA(t *testing.T, a, b, c float32) {
	t.Helper()
	if got, want := FMA(a, b, c), exactFMA(a, b, c); math.Float32bits(got) != math.Float32bits(want) {
		t.Fatalf("FMA(%x, %x, %x) = %x, want %x", a, b, c, got, want)
	}
}

// ties yields products that lie exactly half-way between two floats.
func ties(yield func(a, b float32) bool) {
	for k := 2048; k < 4096; k++ {
		if !yield(float32(k<<12+2048), 1+0x1p-12) {
			return
		}
	}
}

func TestFMADirected(t *testing.T) {
	f := math.Float32frombits
	// Random operands never meet a double rounding: nudge ties, both ways.
	for a, b := range ties {
		for _, scale := range []float32{1, -1, 0x1p-60, 0x1p60} {
			for _, c := range []float32{0, 0x1p-20, 0x1p-40, 0x1p-100, 0x1p-149, 1, 3} {
				checkFMA(t, a*scale, b, c)
				checkFMA(t, a*scale, b, -c)
				checkFMA(t, a*scale, b, float32(c*scale))
			}
			checkFMA(t, a*scale, b, -a*scale)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300000 {
		// Subnormal results, where the rounding position moves.
		a := f(r.Uint32()&0x807fffff | uint32(40+r.IntN(60))<<23)
		b := f(r.Uint32()&0x807fffff | uint32(1+r.IntN(60))<<23)
		checkFMA(t, a, b, f(r.Uint32()&0x80ffffff))
		// Anything finite.
		x, y, z := f(r.Uint32()&0xbfffffff), f(r.Uint32()&0xbfffffff), f(r.Uint32()&0xbfffffff)
		checkFMA(t, x, y, z)
		checkFMA(t, x, y, -float32(x*y)) // cancellation leaves the rounding error
	}
	checkFMA(t, f(0x7f7fffff), 1, 0x1.fffffep102) // just below the overflow threshold
}

func TestFMASpecialValues(t *testing.T) {
	f := math.Float32frombits
	inf, huge, tiny, negZero := f(0x7f800000), f(0x7f7fffff), f(1), f(1<<31)
	nan := f(canonicalNaN)
	for _, c := range []struct{ a, b, c, want float32 }{
		{inf, 1, 1, inf}, {huge, 2, 0, inf}, {huge, 1, huge, inf}, {huge, 1, 0x1p103, inf}, {-huge, 2, 0, -inf},
		{inf, 0, 1, nan}, {inf, 1, -inf, nan}, {f(0x7fc00001), 1, 1, nan}, {1, 1, f(0xffc12345), nan},
		{0, 1, negZero, 0}, {negZero, 1, negZero, negZero}, {1, 1, -1, 0}, {-1, 1, 1, 0},
		{tiny, tiny, negZero, 0}, {tiny, -tiny, 0, negZero},
	} {
		got := CanonNaN(FMA(c.a, c.b, c.c))
		if math.Float32bits(got) != math.Float32bits(c.want) {
			t.Errorf("FMA(%x, %x, %x) = %x, want %x", c.a, c.b, c.c, got, c.want)
		}
	}
}

// The naive emulation must fail on the directed cases, or they prove nothing.
func TestDirectedCasesCatchDoubleRounding(t *testing.T) {
	wrong := 0
	for a, b := range ties {
		for _, c := range []float32{0x1p-40, -0x1p-40} {
			if naive := float32(float64(a)*float64(b) + float64(c)); naive != FMA(a, b, c) {
				wrong++
			}
		}
	}
	if wrong < 1000 {
		t.Fatalf("only %d of 4096 cases tell one rounding from two", wrong)
	}
}

func TestElementaryFunctions(t *testing.T) {
	for _, c := range []struct {
		name   string
		f      func(float32) float32
		exact  func(float64) float64
		lo, hi float64
		ulp    float64
	}{
		{"exp", Exp, math.Exp, -104, 89, 1.2},
		{"log", Log, math.Log, 0, math.MaxFloat32, 1.2},
		{"tanh", Tanh, math.Tanh, -10, 10, 1.5},
		{"erf", Erf, math.Erf, -5, 5, 1.5},
	} {
		worst, at := 0.0, float32(0)
		r := rand.New(rand.NewPCG(7, 7))
		probe := func(x float32) {
			if float64(x) < c.lo || float64(x) > c.hi {
				return
			}
			want := c.exact(float64(x))
			got := c.f(x)
			w32 := float32(want)
			if math.IsInf(float64(w32), 0) || math.IsInf(float64(got), 0) {
				if math.Float32bits(got) != math.Float32bits(w32) && math.Abs(want) < math.MaxFloat32*0.9999999 {
					t.Errorf("%s(%x) = %v, want %v", c.name, x, got, want)
				}
				return
			}
			unit := float64(math.Nextafter32(float32(math.Abs(float64(w32))), math.MaxFloat32)) - math.Abs(float64(w32))
			if e := math.Abs(float64(got)-want) / unit; e > worst {
				worst, at = e, x
			}
		}
		for range 2_000_000 {
			probe(math.Float32frombits(r.Uint32()))
			probe(float32(c.lo + r.Float64()*(min(c.hi, 100)-c.lo)))
			probe(float32(r.NormFloat64()))
		}
		t.Logf("%s: %.3f ulp at %x", c.name, worst, at)
		if worst > c.ulp {
			t.Errorf("%s is off by %.3f ulp at %x, limit %.1f", c.name, worst, at, c.ulp)
		}
	}
}

func TestElementaryEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	weird := math.Float32frombits(0xffc00123)
	for _, c := range []struct {
		name     string
		f        func(float32) float32
		in, want float32
	}{
		{"exp", Exp, 0, 1}, {"exp", Exp, inf, inf}, {"exp", Exp, -inf, 0}, {"exp", Exp, 89, inf}, {"exp", Exp, -104, 0},
		{"exp", Exp, weird, nan},
		{"log", Log, 1, 0}, {"log", Log, 0, -inf}, {"log", Log, -1, nan}, {"log", Log, inf, inf}, {"log", Log, weird, nan},
		{"tanh", Tanh, inf, 1}, {"tanh", Tanh, -inf, -1}, {"tanh", Tanh, weird, nan},
		{"erf", Erf, inf, 1}, {"erf", Erf, -inf, -1}, {"erf", Erf, weird, nan},
		{"sqrt", Sqrt, 4, 2}, {"sqrt", Sqrt, inf, inf},
	} {
		got := c.f(c.in)
		if c.want != c.want {
			if math.Float32bits(CanonNaN(got)) != canonicalNaN || (c.name != "sqrt" && math.Float32bits(got) != canonicalNaN) {
				t.Errorf("%s(%v) = %#x, want the canonical NaN", c.name, c.in, math.Float32bits(got))
			}
		} else if got != c.want {
			t.Errorf("%s(%v) = %v, want %v", c.name, c.in, got, c.want)
		}
	}
	for _, f := range []func(float32) float32{Tanh, Erf, Sqrt} {
		z := math.Float32frombits(1 << 31)
		if math.Float32bits(f(z)) != 1<<31 {
			t.Error("−0 must stay −0")
		}
	}
	if Exp(-103) == 0 || math.Float32bits(Exp(-103))>>23 != 0 {
		t.Error("subnormal results must be kept")
	}
}

func BenchmarkFMA(b *testing.B) {
	acc := float32(0)
	for b.Loop() {
		for i := range 1024 {
			acc = FMA(float32(i), 1.0001, acc)
		}
	}
	sinkF = acc
}

var sinkF float32
