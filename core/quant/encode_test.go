package quant

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

var encoded = []Type{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0}

// A block is near its elements: by half a step of its integers, but for what the scale loses as float16, and the end of a range without a place.
func TestEncodeIsNear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	steps := map[Type]float64{Q4_0: 8, Q4_1: 15, Q5_0: 16, Q5_1: 31, Q8_0: 127}
	for _, of := range encoded {
		_, size := of.Block()
		for range 2000 {
			var x, back [32]float32
			scale, offset := math.Exp2(float64(r.IntN(12)-8)), r.NormFloat64()
			most := 0.0
			for i := range x {
				x[i] = float32(scale * (r.NormFloat64() + offset))
				most = max(most, math.Abs(float64(x[i])))
			}
			b := make([]byte, size)
			if err := of.Encode(b, x[:]); err != nil {
				t.Fatal(err)
			}
			if err := of.Check(b); err != nil {
				t.Fatal(err)
			}
			of.Decode(back[:], b)
			wide := most
			if of == Q4_1 || of == Q5_1 {
				wide = 2 * most
			}
			for i := range x {
				off := math.Abs(float64(x[i] - back[i]))
				if limit := 1.01*wide/steps[of] + most/512; off > limit { // −max/−8 has a place, +max has none
					t.Fatalf("%v: %v became %v, off by more than %v", of, x[i], back[i], limit)
				}
			}
		}
	}
}

// Zeros, and what is too small for a scale, become zeros: of _0 with the scale −0, as 0/−8 is. Halves go away from zero.
func TestEncodeOfZerosAndHalves(t *testing.T) {
	for of, want := range map[Type]string{
		Q4_0: "0080" + strings.Repeat("88", 16), Q4_1: "00000000" + strings.Repeat("00", 16), Q5_0: "0080" + "ffffffff" + strings.Repeat("00", 16),
		Q5_1: "00000000" + "00000000" + strings.Repeat("00", 16), Q8_0: "0000" + strings.Repeat("00", 32),
	} {
		_, size := of.Block()
		b := make([]byte, size)
		for _, zero := range []float32{0, math.SmallestNonzeroFloat32} { // whose inverse is no number
			x := [32]float32{}
			for i := range x {
				x[i] = zero
			}
			if err := of.Encode(b, x[:]); err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(b); got != want {
				t.Errorf("%v of %v: %s, want %s", of, zero, got, want)
			}
		}
	}
	x := [32]float32{127, 0.5, -0.5, 1.5, -1.5, 2.4, -127}
	b := make([]byte, 34)
	if err := Q8_0.Encode(b, x[:]); err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b[:9]); got != "003c"+"7f"+"01"+"ff"+"02"+"fe"+"02"+"81" {
		t.Errorf("halves go to %s", got)
	}
}

func TestEncodeRefuses(t *testing.T) {
	x := make([]float32, 64)
	for says, f := range map[string]func() error{
		"no type that weights": func() error { return Q4_K.Encode(make([]byte, 144), make([]float32, 256)) },
		"are no blocks":        func() error { return Q8_0.Encode(make([]byte, 34), x) },
		"infinite or NaN": func() error {
			y := append([]float32{float32(math.NaN())}, x[:31]...)
			return Q8_0.Encode(make([]byte, 34), y)
		},
		"beyond float16": func() error { y := append([]float32{1e9}, x[:31]...); return Q4_0.Encode(make([]byte, 18), y) },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	for _, of := range Types {
		if of.Encodes() != (encoders[of] != nil) {
			t.Error(of)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	x := make([]float32, 1<<16)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for _, of := range encoded {
		b.Run(of.String(), func(b *testing.B) {
			_, size := of.Block()
			dst := make([]byte, len(x)/32*size)
			b.SetBytes(int64(4 * len(x)))
			b.ReportAllocs()
			for b.Loop() {
				if err := of.Encode(dst, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
