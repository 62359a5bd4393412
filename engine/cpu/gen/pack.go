package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packKernels writes the kernels that bring operands into the order of tiles.
func packKernels() {
	transpose8()
	interleaveBytes()
	for _, s := range []isa{avx512, avx2} {
		gather(s, "Gather", "", s.every)
		gather(s, "GatherStride2", "", s.second)
		gather(s, "GatherReversed", "", s.backwards)
		gather(s, "Deinterleave", ", apart", s.either)
		least(s)
		greatest(s)
	}
}

// transpose8 transposes blocks of 8×8.
func transpose8() {
	const n = 8
	function("avx2Transpose8", "func(blocks int, dst *float32, dstStep int, src *float32, rows *[8]int)", "avx2Transpose8 transposes; see TransposeKernel.")
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

// gather copies segments of lines. What a load leaves out becomes 0, and what a
// store writes too much the next one overwrites. load returns the lanes of mask,
// from an address on; a second vector of them goes to a place of its own, for which
// the kernel has one more parameter.
func gather(s isa, name, more string, load func(mask, at Mem) []vec) {
	doc := name + "Kernel"
	if more == "" {
		doc = "GatherKernel"
	}
	name = s.name + name
	function(name, "func(times int, dst *float32, dstStep"+more+" int, src *float32, at *int, atStep int, segments *[3]int, n int)", name+" copies segments; see "+doc+".")
	times, dst, dstStep, src, at, atStep := param("times"), param("dst"), param("dstStep"), param("src"), param("at"), param("atStep")
	base, segment, left, from, to := context.GP64(), context.GP64(), context.GP64(), context.GP64(), context.GP64()
	context.Label("line")
	context.MOVQ(Mem{Base: at}, base)
	context.LEAQ(Mem{Base: src, Index: base, Scale: 4}, base)
	context.Load(context.Param("segments"), segment)
	context.Load(context.Param("n"), left)
	context.Label("loop")
	context.MOVQ(Mem{Base: segment}, from)
	context.MOVQ(Mem{Base: segment, Disp: 8}, to)
	place := Mem{Base: dst, Index: to, Scale: 4}
	for i, x := range load(Mem{Base: segment, Disp: 16}, Mem{Base: base, Index: from, Scale: 4}) {
		if i > 0 {
			context.LEAQ(place, to)
			place = Mem{Base: to, Index: param("apart"), Scale: 1}
		}
		context.VMOVUPS(x, place)
	}
	context.ADDQ(Imm(24), segment)
	context.DECQ(left)
	context.JNZ(LabelRef("loop"))
	context.ADDQ(atStep, at)
	context.ADDQ(dstStep, dst)
	context.DECQ(times)
	context.JNZ(LabelRef("line"))
	ret()
}

// every loads the lanes of mask, side by side.
func (s isa) every(mask, at Mem) []vec {
	x := s.register()
	if s.wide {
		k := context.K()
		context.KMOVW(mask, k)
		context.VMOVUPS_Z(at, k, x)
	} else {
		s.loadLanes(mask, at, x, "laneBits", 1, 2, 4, 8, 16, 32, 64, 128)
	}
	return []vec{x}
}

// either loads the lanes of mask, of two vectors side by side, and parts those with
// even numbers from the others.
func (s isa) either(mask, at Mem) []vec {
	next, rest := at, mask
	next.Disp += s.bytes()
	low := s.every(mask, at)[0]
	if s.wide {
		rest.Disp += 2
		high, even, odd := s.every(rest, next)[0], s.load(s.evens()), s.load(s.odds())
		context.VPERMI2PS(high, low, even)
		context.VPERMI2PS(high, low, odd)
		return []vec{even, odd}
	}
	high, out := s.register(), s.registers(2)
	s.loadLanes(mask, next, high, "nextBits", 1<<8, 1<<9, 1<<10, 1<<11, 1<<12, 1<<13, 1<<14, 1<<15)
	for i, x := range out {
		context.VSHUFPS(Imm([]uint64{0x88, 0xdd}[i]), high, low, x)
		context.VPERMPD(Imm(0xd8), x, x)
	}
	return out
}

// evens and odds are the numbers of every second lane of two vectors.
func (s isa) evens() Mem {
	return s.table("evens", 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
}

func (s isa) odds() Mem {
	return s.table("odds", 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
}

// second loads the lanes of mask, each two elements behind the one before.
func (s isa) second(mask, at Mem) []vec {
	next, x, y := at, s.register(), s.register()
	next.Disp += s.bytes()
	if s.wide {
		apart, ks := context.GP64(), []reg.OpmaskVirtual{context.K(), context.K()}
		context.MOVQ(U32(0x55555555), apart)
		context.PDEPQ(apart, s.general(mask), apart)
		context.KMOVW(apart.As32(), ks[0])
		context.SHRQ(Imm(16), apart)
		context.KMOVW(apart.As32(), ks[1])
		context.VMOVUPS_Z(at, ks[0], x)
		context.VMOVUPS_Z(next, ks[1], y)
		context.VPERMT2PS(y, s.load(s.evens()), x)
		return []vec{x}
	}
	s.loadLanes(mask, at, x, "lowBits", 1, 0, 2, 0, 4, 0, 8, 0)
	s.loadLanes(mask, next, y, "highBits", 16, 0, 32, 0, 64, 0, 128, 0)
	context.VSHUFPS(Imm(0x88), y, x, x)
	context.VPERMPD(Imm(0xd8), x, x)
	return []vec{x}
}

// backwards loads the lanes of mask, each one element before the last.
func (s isa) backwards(mask, at Mem) []vec {
	at.Disp -= s.bytes() - 4
	turn, x := s.table("countdown", 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), s.register()
	turn.Disp += 64 - s.bytes()
	order := s.load(turn)
	if s.wide {
		k, lanes := context.K(), s.register()
		context.KMOVW(mask, k)
		context.VPMOVM2D(k, lanes)
		context.VPERMD(lanes, order, lanes)
		context.VPMOVD2M(lanes, k)
		context.VMOVUPS_Z(at, k, x)
	} else {
		s.loadLanes(mask, at, x, "lastBits", 128, 64, 32, 16, 8, 4, 2, 1)
	}
	context.VPERMPS(x, order, x)
	return []vec{x}
}

// loadLanes loads the lanes of which mask has the bit.
func (s isa) loadLanes(mask, at Mem, x vec, name string, bits ...uint32) {
	lanes, zero := s.register(), s.register()
	context.VPBROADCASTD(mask, lanes)
	context.VPAND(s.table(name, bits...), lanes, lanes)
	context.VPXOR(zero, zero, zero)
	context.VPCMPGTD(zero, lanes, lanes)
	context.VMASKMOVPS(at, lanes, x)
}

// general loads a register for general purposes.
func (s isa) general(at Mem) reg.GPVirtual {
	r := context.GP64()
	context.MOVQ(at, r)
	return r
}

// table returns a constant with a value for each lane.
func (s isa) table(name string, values ...uint32) Mem {
	m, ok := tables[name]
	if !ok {
		m = context.StaticGlobal(name)
		context.DataAttributes(rodata)
		for _, v := range values {
			context.AppendDatum(U32(v))
		}
		tables[name] = m
	}
	return m
}

// least finds the least magnitude.
func least(s isa) {
	reduce(s, "MinMagnitude", 0xffffffff, context.VPMINUD, func(x, minusOne reg.VecVirtual) { context.VPADDD(minusOne, x, x) })
}

// greatest finds the greatest size.
func greatest(s isa) {
	reduce(s, "MaxSize", 0, context.VPMAXUD, func(reg.VecVirtual, reg.VecVirtual) {})
}

// reduce folds the bits of values, without their signs.
func reduce(s isa, name string, start uint32, fold func(ops ...Op), prepare func(x, minusOne reg.VecVirtual)) {
	function(s.name+name, "func(vectors int, x *float32) uint32", s.name+name+" folds the bits of values; see ReduceKernel.")
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

// interleaveBytes puts the bytes of four lines side by side, sixteen columns at a time.
func interleaveBytes() {
	function("avx2InterleaveBytes", "func(groups int, dst *float32, dstStep int, src *byte, at *int, blocks int, flip uint32)", "avx2InterleaveBytes interleaves bytes; see InterleaveKernel.")
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
