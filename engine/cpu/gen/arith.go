package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Arithmetic on registers of float32, each operation one instruction with one
// rounding: what package tensor writes with operators.

type vec = reg.VecVirtual

// constants are those of the file being built, by their bits: 64 bytes of
// memory each, so that any register can take one as an operand.
var (
	constants map[uint32]Mem
	counts    map[int]Mem
	tables    map[string]Mem // of which every lane has its own
)

const rodata = attr.RODATA | attr.NOPTR

// bits returns a constant of every lane.
func (s isa) bits(u uint32) Mem {
	m, ok := constants[u]
	if !ok {
		m = context.StaticGlobal(fmt.Sprintf("lanes%08x", u))
		context.DataAttributes(rodata)
		for i := range 16 {
			context.AddDatum(4*i, U32(u))
		}
		constants[u] = m
	}
	return m
}

func (s isa) number(x float32) Mem { return s.bits(math.Float32bits(x)) }

// binary makes a new register of an instruction with two sources.
func (s isa) binary(do func(...Op), y, x Op) vec {
	out := s.register()
	do(y, x, out)
	return out
}

func (s isa) add(x vec, y Op) vec { return s.binary(context.VADDPS, y, x) }
func (s isa) sub(x vec, y Op) vec { return s.binary(context.VSUBPS, y, x) }
func (s isa) mul(x vec, y Op) vec { return s.binary(context.VMULPS, y, x) }
func (s isa) div(x vec, y Op) vec { return s.binary(context.VDIVPS, y, x) }
func (s isa) and(x vec, y Op) vec { return s.binary(context.VANDPS, y, x) }
func (s isa) or(x vec, y Op) vec  { return s.binary(context.VORPS, y, x) }
func (s isa) xor(x vec, y Op) vec { return s.binary(context.VXORPS, y, x) }

// plus and less are integer.
func (s isa) plus(x vec, y Op) vec { return s.binary(context.VPADDD, y, x) }
func (s isa) less(x vec, y Op) vec { return s.binary(context.VPSUBD, y, x) }

func (s isa) sqrt(x vec) vec {
	out := s.register()
	context.VSQRTPS(x, out)
	return out
}

// shift moves bits left, or right if n is negative, with copies of the sign if
// signed is set.
func (s isa) shift(x vec, n int, signed bool) vec {
	out := s.register()
	switch {
	case n > 0:
		context.VPSLLD(U8(n), x, out)
	case signed:
		context.VPSRAD(U8(-n), x, out)
	default:
		context.VPSRLD(U8(-n), x, out)
	}
	return out
}

// round rounds to an integer; how is 0 for the nearest, 1 down, 2 up.
func (s isa) round(x vec, how uint8) vec {
	out := s.register()
	if s.wide {
		context.VRNDSCALEPS(U8(how), x, out)
	} else {
		context.VROUNDPS(U8(how), x, out)
	}
	return out
}

func (s isa) toInteger(x vec) vec {
	out := s.register()
	context.VCVTTPS2DQ(x, out)
	return out
}

func (s isa) toFloat(x Op) vec {
	out := s.register()
	context.VCVTDQ2PS(x, out)
	return out
}

// A truth is a comparison of every lane: a mask register or a vector.
type truth = reg.Register

// The comparisons, as the instructions number them.
const (
	equal     = 0
	below     = 1
	belowSame = 2
	unordered = 3
	unequal   = 4 // or unordered
	above     = 14
)

func (s isa) compare(how uint8, x vec, y Op) truth {
	if s.wide {
		k := context.K()
		context.VCMPPS(U8(how), y, x, k)
		return k
	}
	out := s.register()
	context.VCMPPS(U8(how), y, x, out)
	return out
}

// choose returns x where t holds, else y.
func (s isa) choose(t truth, x Op, y vec) vec {
	out := s.register()
	if s.wide {
		if s.begun {
			context.VMOVAPS(y, out)
		}
		context.VBLENDMPS(x, y, t, out)
	} else {
		context.VBLENDVPS(t, x, y, out)
	}
	return out
}

// whole returns x with every NaN made canonical.
func (s isa) whole(x vec) vec {
	return s.choose(s.compare(unordered, x, x), s.bits(canonicalNaN), x)
}

func (s isa) load(at Mem) vec {
	out := s.register()
	context.VMOVUPS(at, out)
	return out
}

// copy of a constant in a register.
func (s isa) register1(x Mem) vec { return s.load(x) }

// horner returns the polynomial in z whose first coefficients make p: each step
// is p·z, rounded, plus the next, rounded. A subtracted coefficient is the same
// as one added with the other sign.
func (s isa) horner(z vec, coefficients ...float32) vec {
	p := s.register1(s.number(coefficients[0]))
	for _, c := range coefficients[1:] {
		p = s.add(s.mul(p, z), s.number(c))
	}
	return p
}

// exponential is tensor.Exp for what is neither NaN nor out of range.
func (s isa) exponential(x vec) vec {
	const magic = 1.5 * (1 << 23)
	n := s.sub(s.add(s.mul(x, s.number(1.44269504)), s.number(magic)), s.number(magic))
	r := s.register()
	context.VMOVAPS(n, r)
	context.VFNMADD132PS(s.number(0.693359375), x, r) // the product is exact: 8 bits by 9
	r = s.sub(r, s.mul(n, s.number(-2.12194440e-4)))
	p := s.horner(r, 0.0013814467, 0.008368781, 0.041668393, 0.1666652, 0.49999994)
	p = s.add(s.mul(s.mul(p, r), r), r)
	p = s.add(p, s.number(1))
	if s.wide { // which rounds once, as the last of two products by powers of two does
		context.VSCALEFPS(n, p, p)
		return p
	}
	k := s.toInteger(n)
	half := s.shift(s.plus(k, s.shift(k, -31, false)), -1, true) // towards zero
	power := func(k vec) vec { return s.shift(s.plus(k, s.bits(127)), 23, false) }
	return s.mul(s.mul(p, power(half)), power(s.less(k, half)))
}

// exp is tensor.Exp.
func exp(s isa, x []vec) vec { return s.whole(anyExp(s, x)) }

// anyExp is tensor.Exp, but that a NaN may become any other.
func anyExp(s isa, x []vec) vec {
	y := s.exponential(x[0])
	y = s.choose(s.compare(above, x[0], s.number(88.72284)), s.number(float32(math.Inf(1))), y)
	return s.choose(s.compare(below, x[0], s.number(-103.97209)), s.number(0), y)
}

// logarithm is tensor.Log.
func logarithm(s isa, x []vec) vec {
	tiny := s.compare(below, x[0], s.number(0x1p-126))
	m := s.choose(tiny, s.mul(x[0], s.number(0x1p23)), x[0])
	exponent := s.less(s.shift(m, -23, false), s.bits(127))
	n := s.choose(tiny, s.less(exponent, s.bits(23)), exponent)
	m = s.or(s.and(m, s.bits(0x7fffff)), s.bits(127<<23))
	high := s.compare(above, m, s.number(math.Sqrt2))
	n = s.choose(high, s.plus(n, s.bits(1)), n)
	m = s.choose(high, s.mul(m, s.number(0.5)), m)
	f := s.sub(m, s.number(1))
	p := s.horner(f, -0.078596212, 0.12881647, -0.1312875, 0.14181192, -0.16624555, 0.20002286, -0.2500081, 0.33333316)
	f2 := s.mul(f, f)
	p = s.mul(s.mul(p, f), f2)
	e := s.toFloat(n)
	p = s.add(p, s.mul(e, s.number(-2.12194440e-4)))
	p = s.sub(p, s.mul(f2, s.number(0.5)))
	p = s.add(f, p)
	y := s.add(p, s.mul(e, s.number(0.693359375)))
	y = s.choose(s.compare(equal, x[0], s.number(float32(math.Inf(1)))), x[0], y)
	y = s.choose(s.compare(equal, x[0], s.number(0)), s.number(float32(math.Inf(-1))), y)
	y = s.choose(s.compare(below, x[0], s.number(0)), s.bits(canonicalNaN), y)
	return s.choose(s.compare(unordered, x[0], x[0]), s.bits(canonicalNaN), y)
}

// tanh is tensor.Tanh.
func tanh(s isa, x []vec) vec {
	a := s.and(x[0], s.bits(1<<31-1))
	z := s.mul(x[0], x[0])
	p := s.horner(z, -0.0057175038, 0.020651052, -0.053743664, 0.13331494, -0.33333284)
	small := s.add(x[0], s.mul(s.mul(x[0], z), p))
	large := s.add(s.exponential(s.mul(a, s.number(2))), s.number(1))
	large = s.sub(s.register1(s.number(1)), s.div(s.register1(s.number(2)), large))
	return s.odd(x[0], a, 0.625, small, 9.02, large)
}

// erf is tensor.Erf.
func erf(s isa, x []vec) vec {
	a := s.and(x[0], s.bits(1<<31-1))
	z := s.mul(x[0], x[0])
	p := s.horner(z, 8.538841e-05, -0.0008181928, 0.0052044359, -0.026860753, 0.1128372, -0.37612635, 0.12837917)
	small := s.add(x[0], s.mul(x[0], p))
	q := s.horner(a, -3.0470488e-07, -1.6940443e-05, 0.00041019346, -0.0040917089, 0.024960516, -0.10808042, -0.6335007, -1.1294485, 0.00016236032)
	large := s.sub(s.register1(s.number(1)), s.exponential(q))
	return s.odd(x[0], a, 0.9, small, 3.95, large)
}

// odd joins the parts of an odd function of x, a = |x|: one below a limit, one
// above, which gets the sign of x and is 1 from the end on.
func (s isa) odd(x, a vec, limit float32, small vec, end float32, large vec) vec {
	large = s.choose(s.compare(above, a, s.number(end)), s.number(1), large)
	large = s.choose(s.compare(below, x, s.number(0)), s.xor(large, s.bits(1<<31)), large)
	y := s.choose(s.compare(below, a, s.number(limit)), small, large)
	y = s.choose(s.compare(equal, x, s.number(0)), x, y)
	return s.choose(s.compare(unordered, x, x), s.bits(canonicalNaN), y)
}

// An extreme is a maximum or a minimum: a NaN wins, and zeros are ordered by their
// signs. The instruction gives its second operand, x, if both are zeros or one is a
// NaN. So what y is then joins the result, else something neutral: the greater of
// two zeros is their sum, the lesser has the signs of both.
type extreme struct {
	take, join func(*build.Context, ...Op)
	neutral    uint32
	classes    uint32 // of which zeros and NaNs are kept, and others made neutral
}

var (
	greater = extreme{(*build.Context).VMAXPS, (*build.Context).VADDPS, 1 << 31, 0x77777000}
	lesser  = extreme{(*build.Context).VMINPS, (*build.Context).VORPS, 0, 0x88888000}
)

// rest returns what joins the extreme of y and others. AVX-512 has the classes in
// a register.
func (e *extreme) rest(s isa, y, classes vec) vec {
	if s.wide {
		return s.classify(y, y, classes)
	}
	const known = 12 // unequal and ordered
	out := s.register()
	context.VCMPPS(U8(known), s.bits(0), y, out)
	context.VBLENDVPS(out, s.bits(e.neutral), y, out)
	return out
}

// apply sets out, which may be x, to the extreme of x and y. Its NaNs need not be
// canonical.
func (e *extreme) apply(x, y, rest, out vec) {
	e.take(context, x, y, out)
	e.join(context, rest, out, out)
}

// of returns the extreme of two registers.
func (e *extreme) of(s isa, x []vec) vec {
	out, classes := s.register(), vec(nil)
	if s.wide {
		classes = s.load(s.bits(e.classes))
	}
	e.apply(x[0], x[1], e.rest(s, x[1], classes), out)
	return out
}

// classify returns x with some lanes replaced: classes has four bits for each
// class to which y can belong there. The instruction is slow if they lie in memory.
func (s isa) classify(y, x, classes vec) vec {
	out := s.register()
	context.VMOVAPS(x, out)
	context.VFIXUPIMMPS(U8(0), classes, y, out)
	return out
}
