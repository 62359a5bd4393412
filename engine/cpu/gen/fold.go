package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowFolds are folds of float32 along rows: what absent lanes hold, and how two
// registers of lanes become one. Only the end makes NaNs canonical.
var rowFolds = []struct {
	fn       string
	identity uint32
	combine  func(s isa, x []vec) vec
}{
	{"FoldSum", 0, func(s isa, x []vec) vec { return s.add(x[0], x[1]) }},
	{"FoldMax", 0xff800000, greater.of},
	{"FoldMin", 0x7f800000, lesser.of},
}

const lanes = 32 // of a sum, as tensor.Lanes

// folds writes the kernels that fold rows, broadcast elements over rows, and add to
// the lanes of a long sum.
func folds() {
	for _, s := range []isa{avx512, avx2} {
		for _, f := range rowFolds {
			rowFold(s, s.name+f.fn, f.identity, f.combine)
		}
		broadcastRows(s)
		sumLanes(s)
	}
}

// rowFold folds each row: the lanes along the row, then lanes pairwise, l and
// l+16 first.
func rowFold(s isa, name string, identity uint32, combine func(s isa, x []vec) vec) {
	function(name, "func(dst, x *float32, rows, width int)", name+" is a FoldKernel.")
	dst, x, rows, width := param("dst"), param("x"), param("rows"), param("width")
	acc := s.registers(lanes / s.lanes)
	join := func(i int, y vec) { context.VMOVAPS(combine(s, []vec{acc[i], y}), acc[i]) }

	masks := s.masks(width)
	context.Label("row")
	for _, a := range acc {
		context.VMOVUPS(s.bits(identity), a)
	}
	left := context.GP64()
	context.MOVQ(width, left)
	context.CMPQ(left, Imm(lanes))
	context.JL(LabelRef("rest"))
	context.Label("lanes")
	for i := range acc {
		join(i, s.load(Mem{Base: x, Disp: i * s.bytes()}))
	}
	context.ADDQ(Imm(4*lanes), x)
	context.SUBQ(Imm(lanes), left)
	context.CMPQ(left, Imm(lanes))
	context.JGE(LabelRef("lanes"))
	context.Label("rest")
	context.TESTQ(left, left)
	context.JZ(LabelRef("tree"))
	for i := range acc {
		join(i, s.loadMasked(masks[i], Mem{Base: x, Disp: i * s.bytes()}, identity))
	}
	context.LEAQ(Mem{Base: x, Index: left, Scale: 4}, x)
	context.Label("tree")
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			join(i, acc[i+n])
		}
	}
	// What is left are 16 or 8 lanes of one register: its upper half joins the
	// lower. Combining works on all lanes; those that do not count are ignored.
	narrow := avx2
	a := acc[0].AsY()
	if s.wide {
		upper := context.YMM()
		context.VEXTRACTF64X4(U8(1), acc[0], upper)
		context.VMOVAPS(combineY(s, combine, a, upper), a)
	}
	_ = narrow
	upper := context.YMM()
	context.VEXTRACTF128(U8(1), a, upper.AsX())
	context.VMOVAPS(combineY(s, combine, a, upper), a)
	upper = context.YMM()
	context.VPERMILPS(U8(0x0e), a, upper)
	context.VMOVAPS(combineY(s, combine, a, upper), a)
	upper = context.YMM()
	context.VPERMILPS(U8(0x01), a, upper)
	y := combineY(s, combine, a, upper)
	context.VMOVSS(avx2.whole(y.(vec)).AsX(), Mem{Base: dst})
	context.ADDQ(Imm(4), dst)
	context.DECQ(rows)
	context.JNZ(LabelRef("row"))
	ret()
}

// combineY combines registers of eight lanes.
func combineY(_ isa, combine func(s isa, x []vec) vec, x, y reg.Register) reg.Register {
	return combine(avx2, []vec{x.(vec), y.(vec)})
}

// masks tells which lanes of the registers that hold 32 belong to the last of a
// row's terms.
func (s isa) masks(width reg.GPVirtual) []truth {
	var out []truth
	rest := context.GP32()
	context.MOVL(width.As32(), rest)
	context.ANDL(Imm(lanes-1), rest)
	if s.wide {
		ones := context.GP32()
		context.MOVL(I32(-1), ones)
		bits := context.GP32()
		context.BZHIL(rest, ones, bits)
		for range lanes / s.lanes {
			k := context.K()
			context.KMOVW(bits, k)
			context.SHRL(Imm(uint64(s.lanes)), bits)
			out = append(out, k)
		}
		return out
	}
	low, n := context.XMM(), s.register()
	context.VMOVD(rest, low)
	context.VPBROADCASTD(low, n)
	for i := range lanes / s.lanes {
		m := s.register()
		context.VPCMPGTD(s.counting(i*s.lanes), n, m)
		out = append(out, m)
	}
	return out
}

// counting is from, from+1, … in the lanes.
func (s isa) counting(from int) Mem {
	m, ok := counts[from]
	if !ok {
		m = context.StaticGlobal("counting" + string(rune('a'+from/s.lanes)))
		context.DataAttributes(rodata)
		for i := range s.lanes {
			context.AddDatum(4*i, U32(uint32(from+i)))
		}
		counts[from] = m
	}
	return m
}

// loadMasked loads some lanes; the others hold the identity.
func (s isa) loadMasked(mask truth, at Mem, identity uint32) vec {
	out := s.register()
	if s.wide {
		context.VMOVUPS(s.bits(identity), out)
		context.VMOVUPS(at, mask, out)
		return out
	}
	context.VMASKMOVPS(at, mask, out)
	if identity == 0 {
		return out
	}
	return s.choose(mask, out, s.register1(s.bits(identity)))
}

// broadcastRows repeats each element over a row.
func broadcastRows(s isa) {
	name := s.name + "BroadcastRows"
	function(name, "func(dst, x *float32, rows, width int)", name+" is a BroadcastKernel.")
	dst, x, rows, width := param("dst"), param("x"), param("rows"), param("width")
	masks := s.masks(width)
	v := s.register()
	context.Label("row")
	context.VBROADCASTSS(Mem{Base: x}, v)
	context.ADDQ(Imm(4), x)
	left := context.GP64()
	context.MOVQ(width, left)
	context.CMPQ(left, Imm(lanes))
	context.JL(LabelRef("rest"))
	context.Label("lanes")
	for i := range lanes / s.lanes {
		context.VMOVUPS(v, Mem{Base: dst, Disp: i * s.bytes()})
	}
	context.ADDQ(Imm(4*lanes), dst)
	context.SUBQ(Imm(lanes), left)
	context.CMPQ(left, Imm(lanes))
	context.JGE(LabelRef("lanes"))
	context.Label("rest")
	context.TESTQ(left, left)
	context.JZ(LabelRef("next"))
	for i, m := range masks {
		at := Mem{Base: dst, Disp: i * s.bytes()}
		if s.wide {
			context.VMOVUPS(v, m, at)
		} else {
			context.VMASKMOVPS(v, m, at)
		}
	}
	context.LEAQ(Mem{Base: dst, Index: left, Scale: 4}, dst)
	context.Label("next")
	context.DECQ(rows)
	context.JNZ(LabelRef("row"))
	ret()
}

// sumLanes adds terms to lanes.
func sumLanes(s isa) {
	name := s.name + "SumLanes"
	function(name, "func(lanes *[32]float32, x *float32, n int)", name+" is a SumLanesKernel.")
	at, x, n := param("lanes"), param("x"), param("n")
	acc := s.registers(lanes / s.lanes)
	for i, a := range acc {
		context.VMOVUPS(Mem{Base: at, Disp: i * s.bytes()}, a)
	}
	context.Label("loop")
	for i, a := range acc {
		context.VADDPS(Mem{Base: x, Disp: i * s.bytes()}, a, a)
	}
	context.ADDQ(Imm(4*lanes), x)
	context.SUBQ(Imm(lanes), n)
	context.JNZ(LabelRef("loop"))
	for i, a := range acc {
		context.VMOVUPS(a, Mem{Base: at, Disp: i * s.bytes()})
	}
	ret()
}
