package tensor

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// Every half is read as a float and written back, and its neighbours' midpoint
// goes to the even one.
func TestHalvesRoundToNearestEven(t *testing.T) {
	for _, typ := range []DType{Float16, BFloat16} {
		inf := FloatWord(typ, math.Inf(1))
		for w := Word(0); w < inf; w++ {
			x := FloatOf(typ, w)
			if FloatWord(typ, x) != w || FloatWord(typ, -x) != w|1<<15 {
				t.Fatalf("%v %#x is %v and back %#x", typ, w, x, FloatWord(typ, x))
			}
			next := FloatOf(typ, w+1)
			if w+1 == inf {
				next = 2*x - FloatOf(typ, w-1)
			}
			mid := x + (next-x)/2
			even := w + w&1
			for y, want := range map[float64]Word{
				mid: even, math.Nextafter(mid, 0): w, math.Nextafter(mid, math.Inf(1)): w + 1,
			} {
				if got := FloatWord(typ, y); got != want {
					t.Fatalf("%v: %v between %#x and %#x is %#x", typ, y, w, w+1, got)
				}
			}
		}
		for w := inf + 1; w < 1<<15; w++ {
			if x := FloatOf(typ, w); x == x || FloatWord(typ, x) != FloatWord(typ, math.NaN()) {
				t.Fatalf("%v %#x is %v", typ, w, x)
			}
		}
		if FloatOf(typ, inf) != math.Inf(1) || FloatOf(typ, inf|1<<15) != math.Inf(-1) {
			t.Errorf("infinities of %v", typ)
		}
	}
}

func TestWordsOfEveryType(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, typ := range DTypes {
		x := Must(New(typ, Shape{3}))
		for range 2000 {
			w := r.Uint64() >> r.IntN(64)
			x.Set(1, w)
			got := x.At(1)
			if typ.Integer() && got != wrap(typ, int64(w)) || x.At(0) != 0 || x.At(2) != 0 {
				t.Fatalf("%v: %#x stored as %#x", typ, w, got)
			}
			c := canonical(typ, got)
			if typ != Bool && !storable(typ, c) {
				t.Fatalf("%v: %#x cannot be stored", typ, c)
			}
		}
		if typ.Integer() {
			lo, hi := bounds(typ)
			if !storable(typ, lo) || !storable(typ, hi) || wrap(typ, int64(hi)+1) != lo {
				t.Errorf("%v reaches from %#x to %#x", typ, lo, hi)
			}
		}
	}
}

func TestCasts(t *testing.T) {
	f := func(x float64) Word { return F32(float32(x)) }
	d := F64
	for _, c := range []struct {
		from, to DType
		w, want  Word
	}{
		{Float32, Uint8, f(-1), 0}, {Float32, Uint8, f(255.9), 255}, {Float32, Uint8, f(300), 255}, {Float32, Uint8, f(math.NaN()), 0},
		{Float32, Int8, f(-129), Word(1<<64 - 128)}, {Float32, Int8, f(127.5), 127}, {Float32, Uint64, f(math.Inf(1)), math.MaxUint64},
		{Float64, Int64, d(-1e30), 1 << 63}, {Float64, Float32, d(1 + 0x1p-24), f(1)}, {Float64, Float32, d(1 + 0x1p-24 + 0x1p-52), f(1 + 0x1p-23)},
		{Float64, Float16, d(1 + 0x1p-11 + 0x1p-52), 0x3c01}, {Float64, Float16, d(1 + 0x1p-11), 0x3c00},
		{Float64, Float16, d(65520), 0x7c00}, {Float64, Float16, d(65519), 0x7bff}, {Float64, Float16, d(0x1p-25), 0}, {Float64, Float16, d(0x1.8p-25), 1},
		{Uint64, Float32, math.MaxUint64, f(0x1p64)}, {Int64, Float32, Word(1<<53 + 1), f(0x1p53)}, {Uint64, Float32, 1<<63 + 1<<39 + 1, f(0x1p63 + 0x1p40)},
		{Int64, Uint8, Word(1<<64 - 1), 255}, {Uint8, Int8, 200, Word(1<<64 - 56)}, {Int16, Bool, Word(1<<64 - 4), 1}, {Bool, Float16, 1, 0x3c00},
		{Float16, Bool, 1 << 15, 0}, {BFloat16, Float16, 0x7f7f, 0x7c00}, {Int32, BFloat16, 257, 0x4380},
	} {
		if got := castWord(c.from, c.to, c.w); got != c.want {
			t.Errorf("%v %#x to %v: %#x, want %#x", c.from, c.w, c.to, got, c.want)
		}
	}
}

func TestIntegersOfEveryType(t *testing.T) {
	for _, c := range []struct {
		f          Fn
		t          DType
		x, y, want int64
	}{
		{Div, Uint64, -1, 2, math.MaxInt64}, {Div, Int8, -128, -1, -128}, {Div, Uint8, 7, 0, 0}, {Mod, Int32, -7, 3, 2}, {Mod, Int32, 7, -3, -2},
		{Mod, Int32, 7, 0, 0}, {Rem, Int32, -7, 3, -1}, {Rem, Int32, -7, 0, 0}, {Mod, Uint64, -1, 10, 5}, {Max, Uint64, -1, 1, -1}, {Min, Uint64, -1, 1, 1},
		{Max, Int64, -1, 1, 1}, {Sub, Uint8, 1, 2, 255}, {Mul, Int8, 100, 2, -56}, {BitNot, Uint16, 1, 0, 65534}, {BitNot, Int16, 1, 0, -2},
		{ShiftLeft, Uint8, 129, 1, 2}, {ShiftLeft, Uint8, 1, 8, 0}, {ShiftRight, Uint64, -1, 63, 1}, {ShiftRight, Uint64, -1, 64, 0}, {ShiftRight, Int8, -128, 3, -16},
		{BitXor, Int32, -1, 5, -6}, {Abs, Int8, -128, 0, -128}, {Neg, Uint8, 1, 0, 255},
	} {
		a := []Word{Word(c.x), Word(c.y)}
		if got := c.f.apply(c.t, c.t, a); int64(got) != c.want {
			t.Errorf("%v %d, %d of %v: %d, want %d", c.f, c.x, c.y, c.t, int64(got), c.want)
		}
	}
}

// The reference is math/big: the series in 300 bits.
func TestTrigonometry(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	worst := map[string]float64{}
	for i := range 4000 {
		x := math.Float32frombits(r.Uint32())
		if i%4 == 0 {
			x = float32(r.NormFloat64() * 10)
		}
		if x != x || x-x != 0 {
			continue
		}
		s, c := bigSinCos(float64(x))
		for name, p := range map[string][2]float64{"sin": {float64(Sin(x)), s}, "cos": {float64(Cos(x)), c}, "atan": {float64(Atan(x)), math.Atan(float64(x))}} {
			want := p[1]
			ulp := math.Ldexp(1, max(math.Ilogb(want)-23, -149))
			if e := math.Abs(p[0]-want) / ulp; e > worst[name] {
				worst[name] = e
			}
			if worst[name] > 0.51 {
				t.Fatalf("%s(%v) is %v, want %v: %.3f ulp off", name, x, p[0], want, worst[name])
			}
		}
	}
	t.Logf("greatest errors in ulp: %v", worst)
	inf := float32(math.Inf(1))
	for _, x := range []float32{inf, -inf, float32(math.NaN())} {
		if y := Sin(x); y == y {
			t.Errorf("sin(%v) = %v", x, y)
		}
	}
	if Atan(inf) != float32(math.Pi/2) || math.Float32bits(Sin(float32(math.Copysign(0, -1)))) != 1<<31 || Cos(0) != 1 {
		t.Error("special values")
	}
}

const precision = 300

var bigPi = func() *big.Float {
	inverse := func(n int64) *big.Float { // arctan 1/n
		sum, x := new(big.Float).SetPrec(precision), new(big.Float).SetPrec(precision).SetInt64(1)
		x.Quo(x, big.NewFloat(float64(n)))
		square := new(big.Float).SetPrec(precision).SetInt64(n * n)
		for k := int64(1); k < 400; k += 2 {
			term := new(big.Float).Quo(x, new(big.Float).SetInt64(k))
			if k%4 == 1 {
				sum.Add(sum, term)
			} else {
				sum.Sub(sum, term)
			}
			x.Quo(x, square)
		}
		return sum
	}
	a, b := inverse(5), inverse(239)
	a.Mul(a, big.NewFloat(16))
	return a.Sub(a, b.Mul(b, big.NewFloat(4)))
}()

func bigSinCos(x float64) (sin, cos float64) {
	v := new(big.Float).SetPrec(precision).SetFloat64(x)
	turn := new(big.Float).Mul(bigPi, big.NewFloat(2))
	n, _ := new(big.Float).Quo(v, turn).Int(nil)
	v.Sub(v, turn.Mul(turn, new(big.Float).SetPrec(precision).SetInt(n)))
	s, c := new(big.Float).SetPrec(precision), new(big.Float).SetPrec(precision)
	term := new(big.Float).SetPrec(precision).SetInt64(1)
	for k := range int64(80) {
		switch k % 4 {
		case 0:
			c.Add(c, term)
		case 1:
			s.Add(s, term)
		case 2:
			c.Sub(c, term)
		case 3:
			s.Sub(s, term)
		}
		term.Mul(term, v)
		term.Quo(term, new(big.Float).SetInt64(k+1))
	}
	sin, _ = s.Float64()
	cos, _ = c.Float64()
	return sin, cos
}

func TestBitsStayWhatTheyAre(t *testing.T) {
	for _, c := range []struct {
		from, to DType
		w, want  Word
	}{
		{Float32, Int32, F32(-1), Word(0xffffffffbf800000)}, {Int32, Float32, 0x3f800000, F32(1)}, {Float32, Uint32, F32(-1), 0xbf800000},
		{Int8, Uint8, Word(1<<64 - 1), 255}, {Uint16, Int16, 65535, Word(1<<64 - 1)}, {Int16, Float16, Word(1<<64 - 1), 0x7e00},
		{Int64, Float64, Word(1<<64 - 1), canonicalNaN64}, {Float64, Uint64, F64(2), 0x4000000000000000}, {Uint8, Bool, 2, 1}, {Bool, Int8, 1, 1},
		{Int32, Float32, 0x7f800001, canonicalNaN}, {BFloat16, Float16, 0x8000, 0x8000},
	} {
		if got := Bits.apply(c.from, c.to, []Word{c.w}); got != c.want {
			t.Errorf("%v %#x as %v: %#x, want %#x", c.from, c.w, c.to, got, c.want)
		}
	}
	p := &Primitive{Fn: Bits, Type: Int16, Shape: Shape{1}, Args: []Access{{Type: Float32, Shape: Shape{1}, Dims: []Dim{{}}}}}
	if p.Check() == nil {
		t.Error("bits of another size")
	}
}
