package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Powers: exact products for small whole and half exponents, e^(y·log x) for others.

var _ = define(
	lower.Operator{Name: "Pow", Min: 2, Max: 2, Outputs: 1, Expand: inFloat32(expandPow), Grad: powGrad, Settings: []int{1}},
)

// maxPower bounds the exponents n and n+½ whose powers are products.
const maxPower = 64

// expandPow writes x to a power. An exponent n or n+½ up to maxPower gives
// products, from its highest bit to its lowest, times a square root, and the
// reciprocal if it is negative; any other gives e^(y·log|x|). An integer has
// integer powers by products that wrap, and others in float64, truncated.
func expandPow(c *lower.Call, b *graph.Builder) ([]string, error) {
	t, u := c.In[0].Type, c.In[1].Type
	if !t.Numeric() || !u.Numeric() {
		return nil, fmt.Errorf("%v does not have powers of type %v", t, u)
	}
	x, y := c.Inputs[0], c.Inputs[1]
	e, err := c.Known(c.In[1])
	if err != nil {
		return nil, err
	}
	if e != nil {
		if twice, ok := halves(e); ok && (t.Float() || twice >= 0 && twice%2 == 0) {
			return fixedPower(c, b, x, twice)
		}
	}
	switch {
	case t.Integer() && u.Integer():
		return []string{integerPower(c, b, x, y)}, nil
	case t.Integer():
		z := b.Op("Pow", b.Cast(x, tensor.Float64), b.Cast(y, tensor.Float64))
		return []string{b.Cast(z, t)}, nil
	case u != t:
		return []string{b.Op("Pow", x, b.Cast(y, t))}, nil
	}
	z := realPower(c, b, x, y)
	if e == nil || anyHalf(e) {
		z = b.Op("Where", isHalfOf(c, b, y), halfPower(c, b, x, y), z)
	}
	return []string{z}, nil
}

// fixedPower writes x to the power twice/2.
func fixedPower(c *lower.Call, b *graph.Builder, x string, twice int) ([]string, error) {
	n := max(twice, -twice)
	if n%2 != 0 {
		x = ofRoot(c, b, x)
	}
	power := ""
	for bit := 1 << 30; bit > 0; bit >>= 1 {
		if power != "" {
			power = b.Op("Mul", power, power)
		}
		if n/2&bit != 0 {
			power = product(b, power, x)
		}
	}
	if n%2 != 0 {
		power = product(b, power, b.Op("Sqrt", x))
	}
	s, err := c.In[0].Shape.Broadcast(c.In[1].Shape)
	if err != nil {
		return nil, err
	}
	have := c.In[0].Shape
	if power == "" {
		power, have = scalarLike(c, b, 1), nil
	}
	if !have.Equal(s) {
		power = b.Op("Expand", power, b.Ints(s...))
	}
	if twice < 0 {
		power = b.Op("Reciprocal", power)
	}
	return []string{power}, nil
}

// ofRoot is x for a power n+½, where IEEE 754 lets −∞ and −0 count as ∞ and 0.
func ofRoot(c *lower.Call, b *graph.Builder, x string) string {
	x = b.Op("Where", b.Op("Equal", x, floatLike(c, b, math.Inf(-1))), floatLike(c, b, math.Inf(1)), x)
	return b.Op("Add", x, floatLike(c, b, 0))
}

func product(b *graph.Builder, x, y string) string {
	if x == "" {
		return y
	}
	return b.Op("Mul", x, y)
}

// halves returns twice the one value that all elements of an exponent have, if
// it is n or n+½ up to maxPower.
func halves(e *tensor.Tensor) (twice int, ok bool) {
	if e.Len() == 0 {
		return 0, false
	}
	for i := range e.Len() {
		if e.At(i) != e.At(0) {
			return 0, false
		}
	}
	v := exponent(e, 0)
	return int(v + v), halfOrWhole(v)
}

func anyHalf(e *tensor.Tensor) bool {
	for i := range e.Len() {
		if halfOrWhole(exponent(e, i)) {
			return true
		}
	}
	return false
}

func exponent(e *tensor.Tensor, i int) float64 {
	switch {
	case e.Type.Float():
		return tensor.FloatOf(e.Type, e.At(i))
	case e.Type == tensor.Uint64:
		return float64(e.At(i))
	}
	return float64(int64(e.At(i)))
}

func halfOrWhole(v float64) bool { return math.Abs(v) <= maxPower && v+v == math.Floor(v+v) }

// isHalfOf tells which elements of y halfPower takes.
func isHalfOf(c *lower.Call, b *graph.Builder, y string) string {
	twice := b.Op("Add", y, y)
	small := b.Op("LessOrEqual", b.Op("Abs", y), floatLike(c, b, maxPower))
	return b.Op("And", small, b.Op("Equal", b.Op("Floor", twice), twice))
}

// halfPower is fixedPower where y is known only when it is computed.
func halfPower(c *lower.Call, b *graph.Builder, x, y string) string {
	a := b.Op("Abs", y)
	a = b.Op("Where", isHalfOf(c, b, y), b.Op("Add", a, a), floatLike(c, b, 0))
	twice := b.Cast(a, tensor.Int32)
	n := binary{twice, tensor.Int32, 2 * maxPower, 2}
	odd := n.has(b, 1)
	x = b.Op("Where", odd, ofRoot(c, b, x), x)
	p := bitPower(c, b, x, n)
	p = b.Op("Where", odd, b.Op("Mul", p, b.Op("Sqrt", x)), p)
	return b.Op("Where", b.Op("Less", y, floatLike(c, b, 0)), b.Op("Reciprocal", p), p)
}

// binary is a value of integers by its bits, of which those from the highest to the
// lowest count.
type binary struct {
	name            string
	dtype           tensor.DType
	highest, lowest int
}

// has tells where n has a bit.
func (n binary) has(b *graph.Builder, bit int) string {
	mask := b.Const(scalarOf(n.dtype, bit))
	return b.Op("Equal", b.Op("BitwiseAnd", n.name, mask), mask)
}

// bitPower multiplies from the highest bit of n to the lowest.
func bitPower(c *lower.Call, b *graph.Builder, x string, n binary) string {
	p := b.Op("Where", n.has(b, n.highest), x, scalarLike(c, b, 1))
	for bit := n.highest / 2; bit >= n.lowest; bit /= 2 {
		p = b.Op("Mul", p, p)
		p = b.Op("Where", n.has(b, bit), b.Op("Mul", p, x), p)
	}
	return p
}

// integerPower writes an integer to an integer power. Beyond 63, of which the
// power of every number but −1, 0 and 1 has overflowed, an exponent counts as
// 62 or 63. A negative one gives the quotient of 1, which is 0 for most.
func integerPower(c *lower.Call, b *graph.Builder, x, y string) string {
	u := c.In[1].Type
	n := y
	if u.Signed() {
		u = tensor.Int64
		y = b.Cast(y, u)
		least := int64(math.MinInt64) + 2 // as even as the number that has no opposite
		n = b.Op("Abs", b.Op("Max", y, b.Const(tensor.Scalar(least))))
	}
	constant := func(v int) string { return b.Const(scalarOf(u, v)) }
	capped := b.Op("Add", b.Op("BitwiseAnd", n, constant(1)), constant(62))
	n = b.Op("Where", b.Op("Greater", n, constant(63)), capped, n)
	p := bitPower(c, b, x, binary{n, u, 32, 1})
	if u.Signed() {
		p = b.Op("Where", b.Op("Less", y, constant(0)), b.Op("Div", scalarLike(c, b, 1), p), p)
	}
	return p
}

// realPower writes e^(y·log|x|), with the sign and the special cases of IEEE
// 754: 1 to any power is 1, −1 to an infinite one too, and a negative number
// has only whole powers.
func realPower(c *lower.Call, b *graph.Builder, x, y string) string {
	a, one, zero := b.Op("Abs", x), floatLike(c, b, 1), floatLike(c, b, 0)
	z := b.Op("Exp", b.Op("Mul", b.Op("Log", a), y))
	unit := b.Op("Or", b.Op("Equal", x, one), b.Op("And", b.Op("Equal", a, one), b.Op("IsInf", y)))
	z = b.Op("Where", unit, one, z)
	whole := b.Op("Equal", b.Op("Floor", y), y)
	half := b.Op("Mul", y, floatLike(c, b, 0.5))
	odd := b.Op("And", whole, b.Op("Not", b.Op("Equal", b.Op("Floor", half), half)))
	bits := tensor.Int32
	if c.In[0].Type == tensor.Float64 {
		bits = tensor.Int64
	}
	minus := b.Op("Less", b.With(graph.Int("to", int(bits))).Op("BitCast", x), b.Const(scalarOf(bits, 0)))
	z = b.Op("Where", b.Op("And", minus, odd), b.Op("Neg", z), z)
	negative := b.Op("And", b.Op("Less", x, zero), b.Op("Less", a, floatLike(c, b, math.Inf(1))))
	return b.Op("Where", b.Op("And", negative, b.Op("Not", whole)), floatLike(c, b, math.NaN()), z)
}

// powGrad: dx = dy·y·x^(y−1), and dy·z·log x for the exponent.
func powGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	x, y, z, zero := c.Inputs[0], c.Inputs[1], c.Outputs[0], b.Scalar(0)
	out := []string{"", ""}
	if c.In[1].Type == tensor.Float32 {
		log := b.Op("Where", b.Op("Equal", z, zero), zero, b.Op("Mul", z, b.Op("Log", x)))
		out[1] = unbroadcast(c, b, 1, b.Op("Mul", dy[0], log))
	} else {
		y = b.Cast(y, tensor.Float32)
	}
	rate := b.Op("Mul", y, b.Op("Pow", x, b.Op("Sub", y, b.Scalar(1))))
	rate = b.Op("Where", b.Op("Equal", y, zero), zero, rate)
	out[0] = unbroadcast(c, b, 0, b.Op("Mul", dy[0], rate))
	return out, nil
}
