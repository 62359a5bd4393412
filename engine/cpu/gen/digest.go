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

// digests writes the kernel that hashes two messages at a time: a round of one
// takes as long as rounds of both, for its instructions wait for each other.
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
	function("sha256x2", "func(states *[2][8]uint32, a, b *byte, blocks int, ahead *byte, aheadStep, aheadRows int)", "sha256x2 advances two digests by blocks of 64 bytes, and fetches a row ahead for each of the first blocks; see SumSHA256x2.")
	states, blocks := param("states"), param("blocks")
	ahead, aheadStep, aheadRows := param("ahead"), param("aheadStep"), param("aheadRows")
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
	context.DECQ(aheadRows)
	context.JS(LabelRef("rounds"))
	for line := range 4 {
		context.PREFETCHT0(Mem{Base: ahead, Disp: 64 * line})
	}
	context.ADDQ(aheadStep, ahead)
	context.Label("rounds")
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
