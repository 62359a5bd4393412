package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// roundConstants are those of SHA-256 (FIPS 180-4, section 4.2.2).
var roundConstants = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

// initialState is the state before any message (FIPS 180-4, section 5.3.3).
var initialState = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// digests writes the kernels that hash several messages at a time: the instructions for one
// wait for each other, and leave room for those of others.
func digests() {
	k := context.StaticGlobal("roundConstants")
	context.DataAttributes(rodata)
	for i, x := range roundConstants {
		context.AddDatum(4*i, U32(x))
	}
	swap := context.StaticGlobal("bigEndian") // turns the bytes of each word
	context.DataAttributes(rodata)
	for i := range 4 {
		context.AddDatum(4*i, U32(0x00010203+0x04040404*i))
	}
	digestPair(k, swap)
	digestLanes(k, swap)
}

// digestPair writes the kernel of two messages, in the instructions that are made for SHA-256.
func digestPair(k, swap Mem) {
	function("sha256x2", "func(states *[2][8]uint32, a, b *byte, blocks int)", "sha256x2 advances two digests by blocks of 64 bytes; see Digests.")
	states, blocks := param("states"), param("blocks")
	type lane struct {
		at         reg.GPVirtual
		states     [2]Mem
		abef, cdgh reg.VecVirtual
		words      [4]reg.VecVirtual
	}
	var lanes [2]lane
	for i, name := range []string{"a", "b"} {
		l := &lanes[i]
		l.at = param(name)
		l.states = [2]Mem{{Base: states, Disp: 32 * i}, {Base: states, Disp: 32*i + 16}}
		l.abef, l.cdgh = context.XMM(), context.XMM()
		context.VMOVDQU(l.states[0], l.abef)
		context.VMOVDQU(l.states[1], l.cdgh)
		for j := range l.words {
			l.words[j] = context.XMM()
		}
	}
	context.Label("block")
	for i := range 16 { // four rounds each
		for n := range lanes {
			l := &lanes[n]
			now, next, last := l.words[i%4], l.words[(i+1)%4], l.words[(i+3)%4]
			if i < 4 {
				context.VMOVDQU(Mem{Base: l.at, Disp: 16 * i}, now)
				context.VPSHUFB(swap, now, now)
			}
			context.VPADDD(k.Offset(16*i), now, reg.X0)
			context.SHA256RNDS2(reg.X0, l.abef, l.cdgh)
			if i >= 3 && i < 15 {
				x := context.XMM()
				context.VPALIGNR(Imm(4), last, now, x)
				context.VPADDD(x, next, next)
				context.SHA256MSG2(now, next)
			}
			context.VPSHUFD(Imm(0x0e), reg.X0, reg.X0)
			context.SHA256RNDS2(reg.X0, l.cdgh, l.abef)
			if i >= 1 && i < 13 {
				context.SHA256MSG1(now, last)
			}
		}
	}
	for n := range lanes {
		l := &lanes[n]
		context.VPADDD(l.states[0], l.abef, l.abef)
		context.VPADDD(l.states[1], l.cdgh, l.cdgh)
		context.VMOVDQU(l.abef, l.states[0])
		context.VMOVDQU(l.cdgh, l.states[1])
		context.ADDQ(Imm(64), l.at)
	}
	context.DECQ(blocks)
	context.JNZ(LabelRef("block"))
	context.RET()
}

// digestLanes writes the kernel of sixteen messages, of which each has a lane of every register. What a block has of its
// message's body is read where it lies; masked loads touch nothing else.
func digestLanes(k, swap Mem) {
	function("sha256x16", "func(dst *[16][32]byte, bodies *[16]*byte, around *byte, masks *uint64, prefix, blocks int)", "sha256x16 sets dst to the digests of sixteen messages: of blocks of 64 bytes of around, but for bytes of the bodies where the masks say so; see Digests.")
	dst, bodies, around, masks, offset, blocks := param("dst"), param("bodies"), param("around"), param("masks"), param("prefix"), param("blocks")
	context.NEGQ(offset) // from a body to the block
	order := context.ZMM()
	context.VBROADCASTI32X4(swap, order)
	s := avx512.registers(8) // a to h
	before := context.AllocLocal(8 * 64)
	for i, bits := range initialState {
		avx512.constant(s[i], bits)
	}
	context.Label("lanes")
	mask, frame := context.K(), context.ZMM()
	context.KMOVQ(Mem{Base: masks}, mask)
	context.VMOVDQU32(Mem{Base: around}, frame)
	rows := make([]reg.VecVirtual, 16)
	at := context.GP64()
	for i := range rows {
		rows[i] = context.ZMM()
		context.MOVQ(Mem{Base: bodies, Disp: 8 * i}, at)
		context.VMOVDQA32(frame, rows[i])
		context.VMOVDQU8(Mem{Base: at, Index: offset, Scale: 1}, mask, rows[i])
		context.VPSHUFB(order, rows[i], rows[i])
	}
	words := transposeWords(rows)
	for i := range s {
		context.VMOVDQU32(s[i], before.Offset(64*i))
	}
	for i := range 16 {
		round(k.Offset(4*i), words[i], s, i)
	}
	again, constants := context.GP64(), context.GP64()
	context.MOVQ(U32(3), again)
	context.LEAQ(k.Offset(64), constants)
	context.Label("scheduled")
	for i := range 16 {
		schedule(words, i)
		round(Mem{Base: constants, Disp: 4 * i}, words[i], s, i)
	}
	context.ADDQ(Imm(64), constants)
	context.DECQ(again)
	context.JNZ(LabelRef("scheduled"))
	for i := range s {
		context.VPADDD(before.Offset(64*i), s[i], s[i])
	}
	context.ADDQ(Imm(8), masks)
	context.ADDQ(Imm(64), around)
	context.ADDQ(Imm(64), offset)
	context.DECQ(blocks)
	context.JNZ(LabelRef("lanes"))
	for i := range s {
		context.VPSHUFB(order, s[i], s[i])
	}
	for half := range 2 { // of each digest
		for j, x := range transposeFours(s[4*half : 4*half+4]) {
			for q := range 4 {
				context.VEXTRACTI32X4(Imm(uint64(q)), x, Mem{Base: dst, Disp: 32*(4*q+j) + 16*half})
			}
		}
	}
	ret()
}

// pairOf returns what two instructions make of two registers.
func pairOf(first, second func(_, _, _ Op), a, b reg.VecVirtual) (x, y reg.VecVirtual) {
	x, y = context.ZMM(), context.ZMM()
	first(b, a, x)
	second(b, a, y)
	return x, y
}

// transposeFours transposes four rows, each quarter of a register for itself.
func transposeFours(rows []reg.VecVirtual) [4]reg.VecVirtual {
	low := func(x, y, to Op) { context.VPUNPCKLDQ(x, y, to) }
	high := func(x, y, to Op) { context.VPUNPCKHDQ(x, y, to) }
	lowTwo := func(x, y, to Op) { context.VPUNPCKLQDQ(x, y, to) }
	highTwo := func(x, y, to Op) { context.VPUNPCKHQDQ(x, y, to) }
	a, b := pairOf(low, high, rows[0], rows[1])
	c, d := pairOf(low, high, rows[2], rows[3])
	var out [4]reg.VecVirtual
	out[0], out[1] = pairOf(lowTwo, highTwo, a, c)
	out[2], out[3] = pairOf(lowTwo, highTwo, b, d)
	return out
}

// transposeWords returns registers of which the i-th holds the i-th words of sixteen rows.
func transposeWords(rows []reg.VecVirtual) []reg.VecVirtual {
	quarters := func(order uint64) func(_, _, _ Op) {
		return func(x, y, to Op) { context.VSHUFI32X4(Imm(order), x, y, to) }
	}
	var fours [4][4]reg.VecVirtual
	for q := range fours {
		fours[q] = transposeFours(rows[4*q : 4*q+4])
	}
	out := make([]reg.VecVirtual, 16)
	for j := range 4 {
		a, b := pairOf(quarters(0x44), quarters(0xee), fours[0][j], fours[1][j])
		c, d := pairOf(quarters(0x44), quarters(0xee), fours[2][j], fours[3][j])
		out[j], out[4+j] = pairOf(quarters(0x88), quarters(0xdd), a, c)
		out[8+j], out[12+j] = pairOf(quarters(0x88), quarters(0xdd), b, d)
	}
	return out
}

// Truth tables of three operands, the first of which is replaced.
const (
	parity   = 0x96
	choice   = 0xca
	majority = 0xe8
)

// rotations sets a register to the parity of x rotated right by three numbers of bits; the last is a shift if shifts says so.
func rotations(x reg.VecVirtual, by [3]uint64, shifts bool) reg.VecVirtual {
	var turned [3]reg.VecVirtual
	for i, n := range by {
		turned[i] = context.ZMM()
		if i == 2 && shifts {
			context.VPSRLD(Imm(n), x, turned[i])
		} else {
			context.VPRORD(Imm(n), x, turned[i])
		}
	}
	context.VPTERNLOGD(Imm(parity), turned[2], turned[1], turned[0])
	return turned[0]
}

// logic sets a register to what a truth table makes of three.
func logic(table uint64, x, y, z reg.VecVirtual) reg.VecVirtual {
	out := context.ZMM()
	context.VMOVDQA32(x, out)
	context.VPTERNLOGD(Imm(table), z, y, out)
	return out
}

// round is the i-th of SHA-256; a to h change places instead of registers.
func round(k Mem, word reg.VecVirtual, s []reg.VecVirtual, i int) {
	at := func(n int) reg.VecVirtual { return s[(n-i%8+8)%8] }
	a, b, c, d, e, f, g, h := at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)
	constant := context.ZMM()
	context.VPADDD_BCST(k, word, constant)
	context.VPADDD(constant, h, h)
	context.VPADDD(logic(choice, e, f, g), h, h)
	context.VPADDD(rotations(e, [3]uint64{6, 11, 25}, false), h, h)
	context.VPADDD(h, d, d)
	context.VPADDD(logic(majority, a, b, c), h, h)
	context.VPADDD(rotations(a, [3]uint64{2, 13, 22}, false), h, h)
}

// schedule replaces the i-th word by that of sixteen rounds later.
func schedule(words []reg.VecVirtual, i int) {
	at := func(n int) reg.VecVirtual { return words[(i+n)%16] }
	context.VPADDD(rotations(at(1), [3]uint64{7, 18, 3}, true), at(0), at(0))
	context.VPADDD(at(9), at(0), at(0))
	context.VPADDD(rotations(at(14), [3]uint64{17, 19, 10}, true), at(0), at(0))
}
