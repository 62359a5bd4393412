package lower_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// multiplications write x·y, x [n k] and y [k 1], with each of the operators that have products.
var multiplications = map[string]func(b *graph.Builder, x, y string, k int) string{
	"MatMul": func(b *graph.Builder, x, y string, _ int) string { return b.Op("MatMul", x, y) },
	"Gemm":   func(b *graph.Builder, x, y string, _ int) string { return b.Op("Gemm", x, y) },
	"Einsum": func(b *graph.Builder, x, y string, _ int) string {
		return b.With(graph.String("equation", "ik,kj->ij")).Op("Einsum", x, y)
	},
	"Conv": func(b *graph.Builder, x, y string, k int) string { // y is [k 1]: a kernel over k positions
		x = b.Op("Reshape", x, b.Ints(-1, 1, k))
		y = b.Op("Reshape", y, b.Ints(1, 1, k))
		return b.Op("Reshape", b.Op("Conv", x, y), b.Ints(-1, 1))
	},
}

// inProfile returns the elements of a product by an operator in a profile.
func inProfile(t *testing.T, profile lower.Profile, name string, x, y *tensor.Tensor) []float64 {
	t.Helper()
	b := graph.NewBuilder("product")
	out := multiplications[name](b, b.Input("x", x.Type, x.Shape), b.Input("y", y.Type, y.Shape), y.Shape[0])
	b.Output(out, 0, nil)
	typed, err := op.Infer(b.Graph(), profile)
	if err != nil {
		t.Fatal(err)
	}
	got := evaluate(t, typed, x, y)[0]
	if got.Type != x.Type {
		t.Fatalf("%s in profile %v gives %v from %v", name, profile, got.Type, x.Type)
	}
	return floats(got)
}

func matrix(t tensor.DType, rows, columns int, at func(i int) float64) *tensor.Tensor {
	x := tensor.Must(tensor.New(t, tensor.Shape{rows, columns}))
	for i := range x.Len() {
		w := tensor.Word(int64(at(i)))
		if t.Float() {
			w = tensor.FloatWord(t, at(i))
		}
		x.Set(i, w)
	}
	return x
}

// What bfloat16 can hold is inProfile as it is; every type of float has the
// same rule.
func TestMixedIsExactWhereFactorsAre(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for name := range multiplications {
		for _, dtype := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
			draw := func(int) float64 { return float64(r.IntN(257) - 128) }
			x, y := matrix(dtype, 3, 7, draw), matrix(dtype, 7, 1, func(int) float64 { return float64(r.IntN(3) - 1) })
			want := inProfile(t, lower.FP32, name, x, y)
			for i, v := range inProfile(t, lower.Mixed, name, x, y) {
				if v != want[i] {
					t.Errorf("%s of %v: %v, want %v", name, dtype, v, want[i])
				}
			}
		}
	}
}

// Directed products of one or two terms in profile mixed.
func TestMixedFactorsStayWithinLimits(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name string
		a, b [2]float64
		want float64
	}{
		{"ties go to even", [2]float64{1 + 0x1p-8, 0}, [2]float64{1, 0}, 1},
		{"and up", [2]float64{1 + 0x3p-8, 0}, [2]float64{1, 0}, 1 + 0x2p-7},
		{"2⁶⁴ saturates, so that 2⁶⁴·2⁶⁴ − 2¹²⁷ cannot overflow", [2]float64{-0x1p64, 0x1p64}, [2]float64{0x1p63, 0x1p64}, 0},
		{"the greatest product", [2]float64{0x1p64, 0x1p64}, [2]float64{0x1p64, 0}, 0x1p100},
		{"the least product", [2]float64{0x1p-55, 0}, [2]float64{0x1p-55, 0}, 0x1p-110},
		{"below the least factor", [2]float64{0x1.fep-56, 0}, [2]float64{0x1p50, 0}, 0},
		{"what rounds up to the least factor", [2]float64{0x1.ffp-56, 0}, [2]float64{1, 0}, 0x1p-55},
		{"−0 is +0", [2]float64{math.Copysign(0, -1), 0}, [2]float64{1, 0}, 0},
		{"a subnormal", [2]float64{0x1p-140, 0}, [2]float64{0x1p100, 0}, 0},
		{"an infinity", [2]float64{inf, 0}, [2]float64{1, 0}, nan},
		{"a NaN", [2]float64{nan, 0}, [2]float64{1, 0}, nan},
		{"the greatest float32", [2]float64{math.MaxFloat32, 0}, [2]float64{1, 0}, 0x1p50},
	} {
		x, y := matrix(tensor.Float32, 1, 2, func(i int) float64 { return c.a[i] }), matrix(tensor.Float32, 2, 1, func(i int) float64 { return c.b[i] })
		got := inProfile(t, lower.Mixed, "MatMul", x, y)[0]
		if got != c.want && (got == got || c.want == c.want) || math.Signbit(got) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// In profile int8 each factor is off by at most half a step of its scale.
func TestInt8IsCloseToTheProduct(t *testing.T) {
	const k = 50
	r := rand.New(rand.NewPCG(2, 2))
	for name := range multiplications {
		for _, size := range []float64{1e-15, 1, 1e15} {
			draw := func(int) float64 { return size * (2*r.Float64() - 1) }
			x, y := matrix(tensor.Float32, 4, k, draw), matrix(tensor.Float32, k, 1, draw)
			want := inProfile(t, lower.FP32, name, x, y)
			worst := k * size * size * (0.5/127 + 0.5/127 + 0.25/127/127) * 1.001
			off := 0.0
			for i, v := range inProfile(t, lower.Int8, name, x, y) {
				off = max(off, math.Abs(v-want[i]))
			}
			if off > worst || off == 0 {
				t.Errorf("%s of factors up to %v is off by %v, at most %v is right", name, size, off, worst)
			}
		}
	}
}

func TestInt8OfSpecialFactors(t *testing.T) {
	for name, c := range map[string]struct{ a, want float64 }{
		"zeros": {0, 0}, "a NaN": {math.NaN(), math.NaN()}, "an infinity": {math.Inf(-1), math.NaN()}, "subnormals": {0x1p-140, 0},
	} {
		x := matrix(tensor.Float32, 1, 2, func(i int) float64 { return c.a * float64(1-i) })
		got := inProfile(t, lower.Int8, "MatMul", x, matrix(tensor.Float32, 2, 1, func(int) float64 { return 1 }))[0]
		if got != c.want && (got == got || c.want == c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Products of integers are the same in every profile; sums past 2³¹ wrap.
func TestIntegersHaveOneProfile(t *testing.T) {
	const k = 40000 // 255·255·40000 > 2³¹
	b := graph.NewBuilder("integers")
	x := b.Input("x", tensor.Uint8, tensor.Shape{1, k})
	b.Output(b.Op("MatMulInteger", x, b.Op("Reshape", x, b.Ints(k, 1))), 0, nil)
	full := matrix(tensor.Uint8, 1, k, func(int) float64 { return 255 })
	for _, name := range lower.Profiles() {
		profile, err := lower.ParseProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		typed, err := op.Infer(b.Graph(), profile)
		if err != nil {
			t.Fatal(err)
		}
		var sum int32
		for range k {
			sum += 255 * 255
		}
		if got := evaluate(t, typed, full)[0]; sum >= 0 || tensor.Of[int32](got)[0] != sum {
			t.Errorf("profile %s: %v, want %d", name, tensor.Of[int32](got), sum)
		}
	}
}

func TestProfilesRefuseLongSums(t *testing.T) {
	for profile, k := range map[lower.Profile]int{lower.Mixed: 1 << 26, lower.Int8: 1 << 17} {
		for terms, ok := range map[int]bool{k: true, k + 1: false} {
			b := graph.NewBuilder("long")
			b.Output(b.Op("MatMul", b.Input("x", tensor.Float32, tensor.Shape{1, terms}), b.Input("y", tensor.Float32, tensor.Shape{terms, 1})), 0, nil)
			_, err := op.Infer(b.Graph(), profile)
			if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "too long for profile "+profile.String()) {
				t.Errorf("%d terms in profile %v: %v", terms, profile, err)
			}
		}
	}
	if _, err := lower.ParseProfile("fp8"); err == nil || !strings.Contains(err.Error(), `"fp32" "mixed" "int8"`) {
		t.Errorf("an unknown profile: %v", err)
	}
}
