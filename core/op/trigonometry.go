package op

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Trigonometric and hyperbolic functions and their inverses, accurate near 0
// as far as the type reaches.

var _ = define(
	lower.Operator{Name: "Sin", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.SinF),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string { return b.Op("Cos", x) })},
	lower.Operator{Name: "Cos", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.CosF),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string { return b.Op("Neg", b.Op("Sin", x)) })},
	lower.Operator{Name: "Tan", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			return b.Op("Div", b.Op("Sin", x), b.Op("Cos", x))
		}),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string {
			return b.Op("Add", b.Op("Mul", c.Outputs[0], c.Outputs[0]), floatLike(c, b, 1))
		})},
	// 2·arctan(x / (1 + √(1−x²)))
	lower.Operator{Name: "Asin", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			return twice(b, b.Op("Atan", b.Op("Div", x, b.Op("Add", circle(c, b, x), floatLike(c, b, 1)))))
		}),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string { return b.Op("Reciprocal", circle(c, b, x)) })},
	// 2·arctan √((1−x)/(1+x))
	lower.Operator{Name: "Acos", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			one := floatLike(c, b, 1)
			return twice(b, b.Op("Atan", b.Op("Sqrt", b.Op("Div", b.Op("Sub", one, x), b.Op("Add", one, x)))))
		}),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string {
			return b.Op("Neg", b.Op("Reciprocal", circle(c, b, x)))
		})},
	lower.Operator{Name: "Atan", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.AtanF),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string {
			return b.Op("Reciprocal", b.Op("Add", b.Op("Mul", x, x), floatLike(c, b, 1)))
		})},
	lower.Operator{Name: "Sinh", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			return b.Op("Mul", b.Op("Tanh", x), b.Op("Cosh", x))
		}),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string { return b.Op("Cosh", x) })},
	// h + ¼/h, where h = ½e^|x| without overflow before the result
	lower.Operator{Name: "Cosh", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			root := b.Op("Exp", b.Op("Mul", b.Op("Abs", x), floatLike(c, b, 0.5)))
			h := b.Op("Mul", b.Op("Mul", root, floatLike(c, b, 0.5)), root)
			return b.Op("Add", h, b.Op("Div", floatLike(c, b, 0.25), h))
		}),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string { return b.Op("Sinh", x) })},
	// log(1 + |x| + x²/(1 + √(1+x²))), with the sign of x
	lower.Operator{Name: "Asinh", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			one, a := floatLike(c, b, 1), b.Op("Abs", x)
			square := b.Op("Mul", a, a)
			rest := b.Op("Div", square, b.Op("Add", b.Op("Sqrt", b.Op("Add", square, one)), one))
			return signed(c, b, x, orLogTwice(c, b, a, log1p(c, b, b.Op("Add", rest, a))))
		}),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string {
			return b.Op("Reciprocal", b.Op("Sqrt", b.Op("Add", b.Op("Mul", x, x), floatLike(c, b, 1))))
		})},
	// log(1 + t + √t·√(t+2)), where t = x − 1
	lower.Operator{Name: "Acosh", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			t := b.Op("Sub", x, floatLike(c, b, 1))
			root := b.Op("Mul", b.Op("Sqrt", t), b.Op("Sqrt", b.Op("Add", t, floatLike(c, b, 2))))
			return orLogTwice(c, b, x, log1p(c, b, b.Op("Add", root, t)))
		}),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string {
			one := floatLike(c, b, 1)
			return b.Op("Reciprocal", b.Op("Mul", b.Op("Sqrt", b.Op("Sub", x, one)), b.Op("Sqrt", b.Op("Add", x, one))))
		})},
	// ½·log(1 + 2|x|/(1−|x|)), with the sign of x
	lower.Operator{Name: "Atanh", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *lower.Call, b *graph.Builder, x string) string {
			a := b.Op("Abs", x)
			u := b.Op("Div", twice(b, a), b.Op("Sub", floatLike(c, b, 1), a))
			return signed(c, b, x, b.Op("Mul", log1p(c, b, u), floatLike(c, b, 0.5)))
		}),
		Grad: slope(func(c *lower.Call, b *graph.Builder, x string) string {
			one := floatLike(c, b, 1)
			return b.Op("Reciprocal", b.Op("Mul", b.Op("Sub", one, x), b.Op("Add", one, x)))
		})},
)

func twice(b *graph.Builder, x string) string { return b.Op("Add", x, x) }

// circle is √(1−x²), from factors that are exact near ±1.
func circle(c *lower.Call, b *graph.Builder, x string) string {
	one := floatLike(c, b, 1)
	return b.Op("Sqrt", b.Op("Mul", b.Op("Sub", one, x), b.Op("Add", one, x)))
}

// signed gives y the sign of x.
func signed(c *lower.Call, b *graph.Builder, x, y string) string {
	return b.Op("Where", b.Op("Less", x, floatLike(c, b, 0)), b.Op("Neg", y), y)
}

// log1p is log(1+u), accurate near 0: the error of w = 1+u is the same in log w
// and in w−1, and cancels (W. Kahan).
func log1p(c *lower.Call, b *graph.Builder, u string) string {
	one := floatLike(c, b, 1)
	w := b.Op("Add", u, one)
	d, log := b.Op("Sub", w, one), b.Op("Log", w)
	near := b.Op("Where", b.Op("Equal", d, floatLike(c, b, 0)), u, b.Op("Div", b.Op("Mul", u, log), d))
	return b.Op("Where", b.Op("Equal", d, u), log, near)
}

// orLogTwice is y where x is small, and log 2x where the square of x might
// overflow and 1/x² does not count.
func orLogTwice(c *lower.Call, b *graph.Builder, x, y string) string {
	large := b.Op("Add", b.Op("Log", x), floatLike(c, b, math.Ln2))
	return b.Op("Where", b.Op("Greater", x, floatLike(c, b, 1<<28)), large, y)
}
