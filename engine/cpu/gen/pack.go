package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packs writes the kernels that bring operands into the order of tiles.
func packs() {
	turn()
	weave()
	for _, s := range []isa{avx512, avx2} {
		patch(s)
		least(s)
		greatest(s)
	}
}

// turn transposes blocks of 8×8.
func turn() {
	const n = 8
	function("avx2Turn", "func(blocks int, dst *float32, dstStep int, src *float32, rows *[8]int)", "avx2Turn transposes; see Turn.")
	blocks, dst, step, src, rows := param("blocks"), param("dst"), param("dstStep"), param("src"), param("rows")
	var row [n]reg.GPVirtual
	for i := range row {
		row[i] = context.GP64()
		context.MOVQ(Mem{Base: rows, Disp: 8 * i}, row[i])
	}
	context.Label("loop")
	for half := range 2 { // four terms of all rows
		terms := avx2.turnQuads(func(r int) Mem { return Mem{Base: src, Index: row[r], Scale: 4, Disp: 16 * half} })
		for _, x := range terms {
			context.VMOVUPS(x, Mem{Base: dst})
			context.ADDQ(step, dst)
		}
	}
	context.ADDQ(Imm(4*n), src)
	context.DECQ(blocks)
	context.JNZ(LabelRef("loop"))
	ret()
}

// patch copies segments of lines. What a load leaves out becomes 0, and what a
// store writes too much the next one overwrites.
func patch(s isa) {
	name := s.name + "Patch"
	function(name, "func(times int, dst *float32, dstStep int, src *float32, at *int, atStep int, segments *[3]int, n int)", name+" copies segments; see Patch.")
	times, dst, dstStep, src, at, atStep := param("times"), param("dst"), param("dstStep"), param("src"), param("at"), param("atStep")
	bits := s.register()
	if !s.wide {
		context.VMOVUPS(laneBits(), bits)
	}
	base, segment, left, from, to := context.GP64(), context.GP64(), context.GP64(), context.GP64(), context.GP64()
	context.Label("line")
	context.MOVQ(Mem{Base: at}, base)
	context.LEAQ(Mem{Base: src, Index: base, Scale: 4}, base)
	context.Load(context.Param("segments"), segment)
	context.Load(context.Param("n"), left)
	context.Label("loop")
	context.MOVQ(Mem{Base: segment}, from)
	context.MOVQ(Mem{Base: segment, Disp: 8}, to)
	x, source := s.register(), Mem{Base: base, Index: from, Scale: 4}
	if mask := (Mem{Base: segment, Disp: 16}); s.wide {
		k := context.K()
		context.KMOVW(mask, k)
		context.VMOVUPS_Z(source, k, x)
	} else {
		lanes := s.register()
		context.VPBROADCASTD(mask, lanes)
		context.VPAND(bits, lanes, lanes)
		context.VPCMPEQD(bits, lanes, lanes)
		context.VMASKMOVPS(source, lanes, x)
	}
	context.VMOVUPS(x, Mem{Base: dst, Index: to, Scale: 4})
	context.ADDQ(Imm(24), segment)
	context.DECQ(left)
	context.JNZ(LabelRef("loop"))
	context.ADDQ(atStep, at)
	context.ADDQ(dstStep, dst)
	context.DECQ(times)
	context.JNZ(LabelRef("line"))
	ret()
}

// laneBits holds bit i in lane i.
func laneBits() Mem {
	bits := context.StaticGlobal("laneBits")
	context.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range avx2.lanes {
		context.AppendDatum(U32(1 << i))
	}
	return bits
}

// least finds the least magnitude.
func least(s isa) {
	reduce(s, "Least", 0xffffffff, context.VPMINUD, func(x, minusOne reg.VecVirtual) { context.VPADDD(minusOne, x, x) })
}

// greatest finds the greatest size.
func greatest(s isa) {
	reduce(s, "Greatest", 0, context.VPMAXUD, func(reg.VecVirtual, reg.VecVirtual) {})
}

// reduce folds the bits of values, without their signs.
func reduce(s isa, name string, start uint32, fold func(ops ...Op), prepare func(x, minusOne reg.VecVirtual)) {
	function(s.name+name, "func(vectors int, x *float32) uint32", s.name+name+" folds the bits of values; see Reduce.")
	vectors, at := param("vectors"), param("x")
	x, sum, minusOne := s.register(), s.register(), s.register()
	s.constant(sum, start)
	s.constant(minusOne, 0xffffffff)
	context.Label("loop")
	context.VMOVUPS(Mem{Base: at}, x)
	context.VPADDD(x, x, x)
	prepare(x, minusOne)
	fold(x, sum, sum)
	context.ADDQ(Imm(uint64(s.bytes())), at)
	context.DECQ(vectors)
	context.JNZ(LabelRef("loop"))
	if s.wide {
		context.VEXTRACTI64X4(Imm(1), sum, x.AsY())
		fold(x.AsY(), sum.AsY(), sum.AsY())
	}
	context.VEXTRACTI128(Imm(1), sum.AsY(), x.AsX())
	fold(x.AsX(), sum.AsX(), sum.AsX())
	for _, swap := range []uint64{0x4e, 0xb1} {
		context.VPSHUFD(Imm(swap), sum.AsX(), x.AsX())
		fold(x.AsX(), sum.AsX(), sum.AsX())
	}
	out := context.GP32()
	context.VMOVD(sum.AsX(), out)
	context.Store(out, context.ReturnIndex(0))
	ret()
}

// weave puts the bytes of four lines side by side, sixteen columns at a time.
func weave() {
	function("avx2Weave", "func(groups int, dst *float32, dstStep int, src *byte, at *int, blocks int, flip uint32)", "avx2Weave interleaves bytes; see Weave.")
	groups, dst, dstStep, at := param("groups"), param("dst"), param("dstStep"), param("at")
	flip := context.XMM()
	context.VMOVD(context.Load(context.Param("flip"), context.GP32()), flip)
	context.VPBROADCASTD(flip, flip)
	var line [4]reg.GPVirtual
	for i := range line {
		line[i] = context.GP64()
	}
	left, to := context.GP64(), context.GP64()
	context.Label("group")
	for i := range line {
		context.MOVQ(Mem{Base: at, Disp: 8 * i}, line[i])
		src := param("src")
		context.ADDQ(src, line[i])
	}
	context.Load(context.Param("blocks"), left)
	context.MOVQ(dst, to)
	context.Label("block")
	var x, half, words [4]reg.VecVirtual
	for i := range x {
		x[i], half[i], words[i] = context.XMM(), context.XMM(), context.XMM()
		context.VPXOR(Mem{Base: line[i]}, flip, x[i])
		context.ADDQ(Imm(16), line[i])
	}
	context.VPUNPCKLBW(x[1], x[0], half[0])
	context.VPUNPCKLBW(x[3], x[2], half[1])
	context.VPUNPCKHBW(x[1], x[0], half[2])
	context.VPUNPCKHBW(x[3], x[2], half[3])
	for i := 0; i < 4; i += 2 {
		context.VPUNPCKLWD(half[i+1], half[i], words[i])
		context.VPUNPCKHWD(half[i+1], half[i], words[i+1])
	}
	for i, w := range words {
		context.VMOVDQU(w, Mem{Base: to, Disp: 16 * i})
	}
	context.ADDQ(Imm(64), to)
	context.DECQ(left)
	context.JNZ(LabelRef("block"))
	context.ADDQ(Imm(32), at)
	context.ADDQ(dstStep, dst)
	context.DECQ(groups)
	context.JNZ(LabelRef("group"))
	ret()
}
