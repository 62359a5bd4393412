package op_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	elementwise("Sin", within(-9, 9, 2, 5), math.Sin),
	elementwise("Cos", within(-9, 9, 2, 5), math.Cos),
	elementwise("Tan", within(-1.4, 1.4, 2, 5), math.Tan),
	elementwise("Asin", within(-0.95, 0.95, 2, 5), math.Asin),
	elementwise("Acos", within(-0.95, 0.95, 2, 5), math.Acos),
	elementwise("Atan", f(2, 5), math.Atan),
	elementwise("Sinh", f(2, 5), math.Sinh),
	elementwise("Cosh", f(2, 5), math.Cosh),
	elementwise("Asinh", f(2, 5), math.Asinh),
	elementwise("Acosh", within(1.1, 9, 2, 5), math.Acosh),
	elementwise("Atanh", within(-0.95, 0.95, 2, 5), math.Atanh),
	sample{name: "Sinh on float16", op: "Sinh", in: []arg{as(tensor.Float16, f(5))}, want: pointwise(func(x []float64) float64 { return math.Sinh(x[0]) })},
	sample{name: "Asinh on float64", op: "Asinh", in: []arg{as(tensor.Float64, f(5))}, want: pointwise(func(x []float64) float64 { return math.Asinh(x[0]) })},
)

// within is a float32 input between lo and hi.
func within(lo, hi float64, shape ...int) arg {
	return arg{t: tensor.Float32, shape: shape, draw: func(r *rand.Rand, _ int) float64 {
		return float64(float32(lo + r.Float64()*(hi-lo)))
	}}
}

// apply runs an operator on elements.
func apply(t *testing.T, op string, attrs []graph.Attr, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	b := graph.NewBuilder(op)
	names := make([]string, len(in))
	for i, x := range in {
		names[i] = b.Input("x", x.Type, x.Shape)
	}
	return evaluate(t, infer(t, b, b.With(attrs...).Op(op, names...)), in, nil)[0]
}

// Expansions keep their relative accuracy at every magnitude, and their special
// values.
func TestFunctionsAreAccurateEverywhere(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), 1, -1, 2, -2, math.Inf(1), math.Inf(-1), math.NaN(), 88.9, -88.9, 1e30, -1e30}
	for op, exact := range map[string]func(float64) float64{
		"Tan": math.Tan, "Asin": math.Asin, "Acos": math.Acos, "Sinh": math.Sinh, "Cosh": math.Cosh, "Asinh": math.Asinh, "Acosh": math.Acosh, "Atanh": math.Atanh,
		"Softplus": func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) },
		"Elu": func(x float64) float64 {
			if x < 0 {
				return math.Expm1(x)
			}
			return x
		},
	} {
		r := rand.New(rand.NewPCG(3, 3))
		values := special
		for range 2000 {
			x := math.Ldexp(1+r.Float64(), r.IntN(40)-30)
			values = append(values, x, -x, 1+math.Ldexp(r.Float64(), -r.IntN(20)))
		}
		x := array{[]int{len(values)}, values}.tensor(tensor.Float32)
		y := apply(t, op, nil, x)
		for i := range values {
			v := float64(tensor.AsF32(x.At(i)))
			got, want := float64(tensor.AsF32(y.At(i))), float64(float32(exact(v)))
			if got != want && !(math.IsNaN(got) && math.IsNaN(want)) && !(math.Abs(got-want) <= 1.2e-6*math.Abs(want)+1e-44) {
				t.Errorf("%s(%v) = %v, want %v", op, v, got, want)
			}
		}
	}
}
