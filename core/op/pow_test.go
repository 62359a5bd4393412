package op_test

import (
	"math"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Pow, 0", op: "Pow", in: []arg{f(2, 3), fixed(given(tensor.Float32, nil, 0))}, want: power(0)},
	sample{name: "Pow, 1", op: "Pow", in: []arg{f(2, 3), fixed(given(tensor.Float32, nil, 1))}, want: power(1)},
	sample{name: "Pow, 2", op: "Pow", in: []arg{f(2, 3), fixed(given(tensor.Float32, nil, 2))}, want: power(2)},
	sample{name: "Pow, 7", op: "Pow", in: []arg{positive(3), fixed(given(tensor.Int64, nil, 7))}, want: power(7)},
	sample{name: "Pow, −3", op: "Pow", in: []arg{positive(3), fixed(given(tensor.Float32, nil, -3))}, want: power(-3)},
	sample{name: "Pow, ½", op: "Pow", in: []arg{positive(3), fixed(given(tensor.Float32, nil, 0.5))}, want: power(0.5)},
	sample{name: "Pow, −2½", op: "Pow", in: []arg{positive(3), fixed(given(tensor.Float32, []int{1}, -2.5))}, want: power(-2.5)},
	sample{name: "Pow, broadcasting", op: "Pow", in: []arg{f(3), fixed(given(tensor.Int32, []int{2, 1}, 2, 2))},
		want: pointwise(func(x []float64) float64 { return math.Pow(x[0], x[1]) })},
	sample{name: "Pow, int32", op: "Pow", in: []arg{ints(tensor.Int32, -4, 4, 6), fixed(given(tensor.Int64, nil, 3))}, want: power(3)},
	sample{name: "Pow, int64 to 0", op: "Pow", in: []arg{ints(tensor.Int64, -4, 4, 6), fixed(given(tensor.Int64, nil, 0))}, want: power(0)},
	sample{name: "Pow", op: "Pow", in: []arg{positive(3, 4), f(4)}, want: pointwise(powers)},
	sample{name: "Pow, known when it is computed", op: "Pow", in: []arg{positive(2, 6), exponents(0, 1, -2, 3.5, -0.5, 17)}, want: pointwise(powers)},
	sample{name: "Pow, a constant", op: "Pow", in: []arg{positive(6), fixed(exponents(1.3))}, want: pointwise(powers)},
	sample{name: "Pow, constants", op: "Pow", in: []arg{positive(2, 3), fixed(exponents(1.3, 2, -0.75))}, want: pointwise(powers)},
	sample{name: "Pow, uint8", op: "Pow", in: []arg{f(5), ints(tensor.Uint8, 0, 9, 5)}, want: pointwise(powers)},
	sample{name: "Pow, int64", op: "Pow", in: []arg{f(5), ints(tensor.Int64, -5, 9, 5)}, want: pointwise(powers)},
	sample{name: "Pow of float16", op: "Pow", in: []arg{as(tensor.Float16, positive(5)), as(tensor.Float16, f(5))}, want: pointwise(powers)},
	sample{name: "Pow of float64", op: "Pow", in: []arg{as(tensor.Float64, positive(5)), f(5)}, want: pointwise(powers)},
	sample{name: "Pow of int32", op: "Pow", in: []arg{ints(tensor.Int32, -4, 4, 7), ints(tensor.Int32, 0, 9, 7)}, want: pointwise(powers)},
	sample{name: "Pow of int64, float32", op: "Pow", in: []arg{ints(tensor.Int64, 1, 9, 7), exponents(2, 3, 0.5, -1, 0, 1.7, 12)}, want: pointwise(truncated)},
)

var _ = refuse(
	refusal{"float32 does not have powers of type bool", "Pow", nil, []arg{f(2), bools(2)}, 1},
)

func powers(x []float64) float64 { return math.Pow(x[0], x[1]) }

func truncated(x []float64) float64 { return math.Trunc(math.Pow(x[0], x[1])) }

func exponents(v ...float64) arg { return given(tensor.Float32, []int{len(v)}, v...) }

// Powers have the special values of IEEE 754, whichever way they are computed.
func TestSpecialPowers(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	bases := []float64{0, math.Copysign(0, -1), 1, -1, 2, -2, 0.5, -0.5, inf, -inf, nan, 1e-30, 3}
	exponents := []float64{0, 1, -1, 2, -3, 3, 65, -65, 66, 0.3, -0.3, 2.7, inf, -inf, nan, 1e10, 100.5, 0.5, -0.5, 1.5, -2.5}
	check := func(typ tensor.DType, b, e, got float64) {
		t.Helper()
		want := math.Pow(b, e)
		if typ == tensor.Float32 {
			want = float64(float32(want))
		}
		if math.Signbit(got) != math.Signbit(want) && got == got || !near(got, want, 2e-5) {
			t.Errorf("%v: %v to the power %v: %v, want %v", typ, b, e, got, want)
		}
	}
	for _, typ := range []tensor.DType{tensor.Float32, tensor.Float64} {
		x := array{[]int{len(bases), 1}, bases}.tensor(typ)
		y := array{[]int{len(exponents)}, exponents}.tensor(typ)
		z := read(apply(t, "Pow", nil, x, y))
		for j := range exponents {
			e := array{[]int{1}, exponents[j:][:1]}.tensor(typ)
			g := graph.NewBuilder("known")
			g.Init("e", e)
			known := read(evaluate(t, infer(t, g, g.Op("Pow", g.Input("x", typ, x.Shape), "e")), []*tensor.Tensor{x}, nil)[0])
			for i, b := range read(x).v {
				check(typ, b, read(e).v[0], z.v[i*len(exponents)+j])
				check(typ, b, read(e).v[0], known.v[i])
			}
		}
	}
}

// An integer wraps as its products do, up to the exponents that count.
func TestIntegerPowers(t *testing.T) {
	for _, c := range []struct{ x, y, want int64 }{
		{3, 41, -420491770248316829}, {2, 63, math.MinInt64}, {2, 64, 1 << 62}, {-1, math.MaxInt64, -1}, {-1, math.MinInt64, 1},
		{1, -5, 1}, {-1, -5, -1}, {2, -1, 0}, {0, 0, 1}, {0, 7, 0}, {0, -1, 0}, {-2, 3, -8},
	} {
		x := tensor.Must(tensor.From(tensor.Shape{1}, []int64{c.x}))
		y := tensor.Must(tensor.From(tensor.Shape{1}, []int64{c.y}))
		if got := int64(apply(t, "Pow", nil, x, y).At(0)); got != c.want {
			t.Errorf("%d to the power %d: %d, want %d", c.x, c.y, got, c.want)
		}
	}
}
