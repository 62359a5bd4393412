package op

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Trigonometric and hyperbolic functions and their inverses, accurate near 0
// as far as the type reaches.

var _ = define(
	Def{Name: "Sin", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.SinF),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string { return b.Op("Cos", x) })},
	Def{Name: "Cos", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.CosF),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string { return b.Op("Neg", b.Op("Sin", x)) })},
	Def{Name: "Tan", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string { return b.Op("Div", b.Op("Sin", x), b.Op("Cos", x)) }),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string {
			return b.Op("Add", b.Op("Mul", c.Outputs[0], c.Outputs[0]), c.real(b, 1))
		})},
	// 2·arctan(x / (1 + √(1−x²)))
	Def{Name: "Asin", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			return c.twice(b, b.Op("Atan", b.Op("Div", x, b.Op("Add", c.circle(b, x), c.real(b, 1)))))
		}),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string { return b.Op("Reciprocal", c.circle(b, x)) })},
	// 2·arctan √((1−x)/(1+x))
	Def{Name: "Acos", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			one := c.real(b, 1)
			return c.twice(b, b.Op("Atan", b.Op("Sqrt", b.Op("Div", b.Op("Sub", one, x), b.Op("Add", one, x)))))
		}),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string {
			return b.Op("Neg", b.Op("Reciprocal", c.circle(b, x)))
		})},
	Def{Name: "Atan", Min: 1, Max: 1, Outputs: 1, Lower: function(tensor.AtanF),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string {
			return b.Op("Reciprocal", b.Op("Add", b.Op("Mul", x, x), c.real(b, 1)))
		})},
	Def{Name: "Sinh", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			return b.Op("Mul", b.Op("Tanh", x), b.Op("Cosh", x))
		}),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string { return b.Op("Cosh", x) })},
	// h + ¼/h, where h = ½e^|x| without overflow before the result
	Def{Name: "Cosh", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			root := b.Op("Exp", b.Op("Mul", b.Op("Abs", x), c.real(b, 0.5)))
			h := b.Op("Mul", b.Op("Mul", root, c.real(b, 0.5)), root)
			return b.Op("Add", h, b.Op("Div", c.real(b, 0.25), h))
		}),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string { return b.Op("Sinh", x) })},
	// log(1 + |x| + x²/(1 + √(1+x²))), with the sign of x
	Def{Name: "Asinh", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			one, a := c.real(b, 1), b.Op("Abs", x)
			square := b.Op("Mul", a, a)
			rest := b.Op("Div", square, b.Op("Add", b.Op("Sqrt", b.Op("Add", square, one)), one))
			return c.signed(b, x, c.orLogTwice(b, a, c.log1p(b, b.Op("Add", rest, a))))
		}),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string {
			return b.Op("Reciprocal", b.Op("Sqrt", b.Op("Add", b.Op("Mul", x, x), c.real(b, 1))))
		})},
	// log(1 + t + √t·√(t+2)), where t = x − 1
	Def{Name: "Acosh", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			t := b.Op("Sub", x, c.real(b, 1))
			root := b.Op("Mul", b.Op("Sqrt", t), b.Op("Sqrt", b.Op("Add", t, c.real(b, 2))))
			return c.orLogTwice(b, x, c.log1p(b, b.Op("Add", root, t)))
		}),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string {
			one := c.real(b, 1)
			return b.Op("Reciprocal", b.Op("Mul", b.Op("Sqrt", b.Op("Sub", x, one)), b.Op("Sqrt", b.Op("Add", x, one))))
		})},
	// ½·log(1 + 2|x|/(1−|x|)), with the sign of x
	Def{Name: "Atanh", Min: 1, Max: 1, Outputs: 1,
		Expand: formula(func(c *Call, b *graph.Builder, x string) string {
			a := b.Op("Abs", x)
			u := b.Op("Div", c.twice(b, a), b.Op("Sub", c.real(b, 1), a))
			return c.signed(b, x, b.Op("Mul", c.log1p(b, u), c.real(b, 0.5)))
		}),
		Grad: slope(func(c *Call, b *graph.Builder, x string) string {
			one := c.real(b, 1)
			return b.Op("Reciprocal", b.Op("Mul", b.Op("Sub", one, x), b.Op("Add", one, x)))
		})},
)

// formula is the expansion of an operator on floats that gives one result.
func formula(f func(c *Call, b *graph.Builder, x string) string) expansion {
	return wide(func(c *Call, b *graph.Builder) ([]string, error) {
		if err := c.floats(); err != nil {
			return nil, err
		}
		return []string{f(c, b, c.Inputs[0])}, nil
	})
}

// slope is the gradient of a function whose derivative is given.
func slope(f func(c *Call, b *graph.Builder, x string) string) func(*Call, *graph.Builder, []string) ([]string, error) {
	return func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
		return c.only(b.Op("Mul", dy[0], f(c, b, c.Inputs[0]))), nil
	}
}

func (c *Call) twice(b *graph.Builder, x string) string { return b.Op("Add", x, x) }

// circle is √(1−x²), from factors that are exact near ±1.
func (c *Call) circle(b *graph.Builder, x string) string {
	one := c.real(b, 1)
	return b.Op("Sqrt", b.Op("Mul", b.Op("Sub", one, x), b.Op("Add", one, x)))
}

// signed gives y the sign of x.
func (c *Call) signed(b *graph.Builder, x, y string) string {
	return b.Op("Where", b.Op("Less", x, c.real(b, 0)), b.Op("Neg", y), y)
}

// log1p is log(1+u), accurate near 0: the error of w = 1+u is the same in log w
// and in w−1, and cancels (W. Kahan).
func (c *Call) log1p(b *graph.Builder, u string) string {
	one := c.real(b, 1)
	w := b.Op("Add", u, one)
	d, log := b.Op("Sub", w, one), b.Op("Log", w)
	near := b.Op("Where", b.Op("Equal", d, c.real(b, 0)), u, b.Op("Div", b.Op("Mul", u, log), d))
	return b.Op("Where", b.Op("Equal", d, u), log, near)
}

// orLogTwice is y where x is small, and log 2x where the square of x might
// overflow and 1/x² does not count.
func (c *Call) orLogTwice(b *graph.Builder, x, y string) string {
	large := b.Op("Add", b.Op("Log", x), c.real(b, math.Ln2))
	return b.Op("Where", b.Op("Greater", x, c.real(b, 1<<28)), large, y)
}
