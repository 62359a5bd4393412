package main

import (
	"bytes"
	"fmt"
	"go/format"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// mapping is a map function of float32: its name in package tensor and what it
// computes of registers.
type mapping struct {
	fn       string
	operands int
	compute  func(s isa, x []vec) vec
	compare  uint8 // if there is no compute
}

var mappings = []mapping{
	{fn: "Add", operands: 2, compute: func(s isa, x []vec) vec { return s.whole(s.add(x[0], x[1])) }},
	{fn: "Sub", operands: 2, compute: func(s isa, x []vec) vec { return s.whole(s.sub(x[0], x[1])) }},
	{fn: "Mul", operands: 2, compute: func(s isa, x []vec) vec { return s.whole(s.mul(x[0], x[1])) }},
	{fn: "Div", operands: 2, compute: func(s isa, x []vec) vec { return s.whole(s.div(x[0], x[1])) }},
	{fn: "Max", operands: 2, compute: func(s isa, x []vec) vec { return s.whole(greater.of(s, x)) }},
	{fn: "Min", operands: 2, compute: func(s isa, x []vec) vec { return s.whole(lesser.of(s, x)) }},
	{fn: "Neg", operands: 1, compute: func(s isa, x []vec) vec { return s.whole(s.xor(x[0], s.bits(1<<31))) }},
	{fn: "Abs", operands: 1, compute: func(s isa, x []vec) vec { return s.and(x[0], s.bits(1<<31-1)) }},
	{fn: "SqrtF", operands: 1, compute: func(s isa, x []vec) vec { return s.whole(s.sqrt(x[0])) }},
	{fn: "Floor", operands: 1, compute: func(s isa, x []vec) vec { return s.round(x[0], 1) }},
	{fn: "Ceil", operands: 1, compute: func(s isa, x []vec) vec { return s.round(x[0], 2) }},
	{fn: "Round", operands: 1, compute: func(s isa, x []vec) vec { return s.round(x[0], 0) }},
	{fn: "ExpF", operands: 1, compute: exp},
	{fn: "LogF", operands: 1, compute: logarithm},
	{fn: "TanhF", operands: 1, compute: tanh},
	{fn: "ErfF", operands: 1, compute: erf},
	{fn: "Eq", operands: 2, compare: equal},
	{fn: "Lt", operands: 2, compare: below},
	{fn: "Le", operands: 2, compare: belowSame},
}

const mapSignature = "func(dst, x, y, z *byte, n int)"

// maps writes a kernel for every map function and cast.
func maps() {
	for _, s := range []isa{avx512, avx2} {
		for _, m := range mappings {
			name := s.name + m.fn
			function(name, mapSignature, name+" is a MapKernel.")
			l := newMapLoop(s)
			var x []vec
			for i := range m.operands {
				x = append(x, s.load(l.next([]string{"x", "y"}[i], s.bytes())))
			}
			if m.compute != nil {
				context.VMOVUPS(m.compute(s, x), l.next("dst", s.bytes()))
			} else {
				s.storeTruth(s.compare(m.compare, x[0], x[1]), l.next("dst", s.lanes))
			}
			l.end()
		}
		where(s)
		for _, w := range int64Mappings {
			name := s.name + "Int64" + w.fn
			function(name, mapSignature, name+" is a MapKernel.")
			l := newMapLoop(s)
			w.write(s, l)
			l.end()
		}
		for _, c := range casts {
			name := s.name + c.name
			function(name, mapSignature, name+" is a MapKernel.")
			l := newMapLoop(s)
			c.write(s, l)
			l.end()
		}
	}
}

// mapLoop is the loop over the vectors of a map.
type mapLoop struct {
	isa
	n     reg.GPVirtual
	at    map[string]reg.GPVirtual
	steps []func()
}

func newMapLoop(s isa) *mapLoop {
	l := &mapLoop{isa: s, n: param("n"), at: map[string]reg.GPVirtual{}}
	for _, p := range []string{"dst", "x", "y", "z"} {
		l.at[p] = param(p)
	}
	context.Label("loop")
	return l
}

// next returns the place of the vector at work and moves on behind it.
func (l *mapLoop) next(name string, bytes int) Mem {
	p := l.at[name]
	l.steps = append(l.steps, func() { context.ADDQ(Imm(uint64(bytes)), p) })
	return Mem{Base: p}
}

func (l *mapLoop) end() {
	for _, step := range l.steps {
		step()
	}
	context.SUBQ(Imm(uint64(l.lanes)), l.n)
	context.JNZ(LabelRef("loop"))
	ret()
}

// storeTruth stores a byte for each lane.
func (s isa) storeTruth(t truth, at Mem) {
	if s.wide {
		x := context.XMM()
		context.VMOVDQU8_Z(s.bits(0x01010101), t, x)
		context.VMOVDQU(x, at)
		return
	}
	v := t.(vec)
	low, high := context.XMM(), context.XMM()
	context.VEXTRACTF128(U8(1), v, high)
	context.VPACKSSDW(high, v.AsX(), low)
	context.VPACKSSWB(low, low, low)
	context.VPAND(s.bits(0x01010101), low, low)
	context.VMOVQ(low, at)
}

// loadTruth loads a byte for each lane.
func (s isa) loadTruth(at Mem) truth {
	wide := s.register()
	context.VPMOVZXBD(at, wide)
	zero := s.register1(s.number(0))
	if s.wide {
		k := context.K()
		context.VPCMPUD(U8(unequal), zero, wide, k)
		return k
	}
	out := s.register()
	context.VPCMPGTD(zero, wide, out)
	return out
}

// where is Where, on 32 bits of anything.
func where(s isa) {
	name := s.name + "Where"
	function(name, mapSignature, name+" is a MapKernel.")
	l := newMapLoop(s)
	c := s.loadTruth(l.next("x", s.lanes))
	x, y := s.load(l.next("y", s.bytes())), s.load(l.next("z", s.bytes()))
	context.VMOVUPS(s.choose(c, x, y), l.next("dst", s.bytes()))
	l.end()
}

// int64Mappings are map functions of integers of 64 bits. A round takes as many as there
// are lanes of 32 bits, in two registers.
var int64Mappings = []struct {
	fn    string
	write func(s isa, l *mapLoop)
}{
	{"Add", func(s isa, l *mapLoop) { l.halves(context.VPADDQ) }},
	{"Sub", func(s isa, l *mapLoop) { l.halves(context.VPSUBQ) }},
	{"Eq", func(s isa, l *mapLoop) {
		x, y := l.pair("x"), l.pair("y")
		if s.wide {
			low, high, both := context.K(), context.K(), context.K()
			context.VPCMPEQQ(y[0], s.load(x[0]), low)
			context.VPCMPEQQ(y[1], s.load(x[1]), high)
			context.KUNPCKBW(low, high, both)
			s.storeTruth(both, l.next("dst", s.lanes))
			return
		}
		low, high := s.binary(context.VPCMPEQQ, y[0], s.load(x[0])), s.binary(context.VPCMPEQQ, y[1], s.load(x[1]))
		both := s.register()
		context.VSHUFPS(Imm(0x88), high, low, both)
		context.VPERMQ(Imm(0xd8), both, both)
		s.storeTruth(both, l.next("dst", s.lanes))
	}},
}

// pair returns the places of two vectors at work, and moves on behind them.
func (l *mapLoop) pair(name string) [2]Mem {
	at := l.next(name, 2*l.bytes())
	next := at
	next.Disp += l.bytes()
	return [2]Mem{at, next}
}

// halves computes two vectors by one instruction each.
func (l *mapLoop) halves(do func(...Op)) {
	x, y, dst := l.pair("x"), l.pair("y"), l.pair("dst")
	for i := range dst {
		context.VMOVUPS(l.binary(do, y[i], l.load(x[i])), dst[i])
	}
}

// casts are conversions between types.
var casts = []struct {
	name, from, to string
	write          func(s isa, l *mapLoop)
}{
	{"Int32ToFloat32", "Int32", "Float32", func(s isa, l *mapLoop) {
		context.VMOVUPS(s.toFloat(l.next("x", s.bytes())), l.next("dst", s.bytes()))
	}},
	{"BoolToFloat32", "Bool", "Float32", func(s isa, l *mapLoop) {
		wide := s.register()
		context.VPMOVZXBD(l.next("x", s.lanes), wide)
		context.VMOVUPS(s.toFloat(wide), l.next("dst", s.bytes()))
	}},
	{"Float32ToInt32", "Float32", "Int32", func(s isa, l *mapLoop) {
		x := s.load(l.next("x", s.bytes()))
		y := s.choose(s.compare(belowSame, s.register1(s.number(0x1p31)), x), s.bits(1<<31-1), s.toInteger(x))
		y = s.choose(s.compare(unordered, x, x), s.number(0), y)
		context.VMOVUPS(y, l.next("dst", s.bytes()))
	}},
	{"Float32ToBool", "Float32", "Bool", func(s isa, l *mapLoop) {
		x := s.load(l.next("x", s.bytes()))
		s.storeTruth(s.compare(unequal, x, s.number(0)), l.next("dst", s.lanes))
	}},
	{"BFloat16ToFloat32", "BFloat16", "Float32", func(s isa, l *mapLoop) {
		wide := s.register()
		context.VPMOVZXWD(l.next("x", s.bytes()/2), wide)
		context.VMOVUPS(s.shift(wide, 16, false), l.next("dst", s.bytes()))
	}},
	{"Float32ToBFloat16", "Float32", "BFloat16", func(s isa, l *mapLoop) {
		s.storeHigh(s.nearestHigh(s.load(l.next("x", s.bytes()))), l.next("dst", s.bytes()/2))
	}},
	{"Narrow", "", "", func(s isa, l *mapLoop) {
		x := s.load(l.next("x", s.bytes()))
		y := s.and(s.nearestHigh(x), s.bits(0xffff0000))
		a := s.and(y, s.bits(1<<31-1))
		greatest := s.or(s.and(x, s.bits(1<<31)), s.number(0x1p50))
		y = s.choose(s.compare(above, a, s.number(0x1p50)), greatest, y)
		y = s.choose(s.compare(below, a, s.number(0x1p-55)), s.number(0), y)
		// ∞ − ∞ is NaN
		y = s.choose(s.compare(unordered, s.sub(x, x), x), s.bits(canonicalNaN), y)
		s.storeHigh(y, l.next("dst", s.bytes()/2))
	}},
}

// nearestHigh rounds to what the upper half of the bits can hold, and leaves
// anything in the lower.
func (s isa) nearestHigh(x vec) vec {
	odd := s.and(s.shift(x, -16, false), s.bits(1))
	y := s.plus(s.plus(x, s.bits(0x7fff)), odd)
	return s.choose(s.compare(unordered, x, x), s.bits(canonicalNaN), y)
}

// storeHigh stores the upper half of each lane.
func (s isa) storeHigh(x vec, at Mem) {
	low := s.shift(x, -16, false)
	if s.wide {
		context.VPMOVDW(low, at)
		return
	}
	high := context.XMM()
	context.VEXTRACTF128(U8(1), low, high)
	out := context.XMM()
	context.VPACKUSDW(high, low.AsX(), out)
	context.VMOVDQU(out, at)
}

// mapTable writes the tables of maps, casts and folds.
func mapTable() []byte {
	var b bytes.Buffer
	b.WriteString("// Code generated by engine/cpu/gen. DO NOT EDIT.\n\npackage asm\n\nimport \"github.com/tally-network/tally/core/tensor\"\n")
	for _, s := range []isa{avx512, avx2} {
		fmt.Fprintf(&b, "\nvar %sMaps = map[tensor.Fn]MapKernel{\n", s.name)
		for _, m := range mappings {
			fmt.Fprintf(&b, "tensor.%s: %s%s,\n", m.fn, s.name, m.fn)
		}
		fmt.Fprintf(&b, "tensor.Where: %sWhere,\ntensor.Narrow: %sNarrow,\n}\n", s.name, s.name)
		fmt.Fprintf(&b, "\nvar %sInt64Maps = map[tensor.Fn]MapKernel{\n", s.name)
		for _, w := range int64Mappings {
			fmt.Fprintf(&b, "tensor.%s: %sInt64%s,\n", w.fn, s.name, w.fn)
		}
		fmt.Fprintf(&b, "}\n\nvar %sCasts = map[Cast]MapKernel{\n", s.name)
		for _, c := range casts {
			if c.from != "" {
				fmt.Fprintf(&b, "{tensor.%s, tensor.%s}: %s%s,\n", c.from, c.to, s.name, c.name)
			}
		}
		fmt.Fprintf(&b, "}\n\nvar %sFolds = map[tensor.Fn]FoldKernel{\n", s.name)
		for _, f := range rowFolds {
			fmt.Fprintf(&b, "tensor.%s: %s%s,\n", f.fn, s.name, f.fn)
		}
		b.WriteString("}\n")
	}
	text, err := format.Source(b.Bytes())
	if err != nil {
		panic(err)
	}
	return text
}
