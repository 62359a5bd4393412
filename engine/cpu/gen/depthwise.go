package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
)

// depthwiseTogether are the positions that a depthwise kernel takes together, as long as
// there are enough. Seven accumulators hide the latency of a multiply-add, and lines of
// usual maps are multiples of seven; either set has registers for them.
var depthwiseTogether = []int{7, 4, 2, 1}

func depthwiseKernels() {
	for _, s := range []isa{avx512, avx2} {
		depthwiseKernel(s)
	}
}

// depthwiseKernel writes a kernel whose lanes are channels.
func depthwiseKernel(s isa) {
	const equalOrUnordered = 8
	name := s.name + "Depthwise"
	function(name, "func(positions, taps int, w, x *float32, xStep int, at *int, c *float32) (doubtful int)",
		name+" computes positions of as many channels as lanes; see DepthwiseKernel.")
	x, xStep, c, left, doubtful := param("x"), param("xStep"), param("c"), param("positions"), context.GP64()
	nan, zero, scratch, weight := s.register(), s.register(), s.register(), s.register()
	s.constant(nan, canonicalNaN)
	s.zero(zero)
	context.XORQ(doubtful, doubtful)
	w, at, taps, here := context.GP64(), context.GP64(), context.GP64(), context.GP64()
	rows := rowAddresses(depthwiseTogether[0], here, xStep)
	for _, together := range depthwiseTogether {
		begin, end, tap := fmt.Sprintf("positions%d", together), fmt.Sprintf("end%d", together), fmt.Sprintf("tap%d", together)
		context.Label(begin)
		context.CMPQ(left, Imm(uint64(together)))
		context.JL(LabelRef(end))
		acc := s.registers(together)
		for _, y := range acc {
			s.zero(y)
		}
		context.Load(context.Param("w"), w)
		context.Load(context.Param("at"), at)
		context.Load(context.Param("taps"), taps)
		context.Label(tap)
		context.MOVQ(Mem{Base: at}, here)
		context.ADDQ(x, here)
		context.VMOVUPS(Mem{Base: w}, weight)
		for i, y := range acc {
			context.VFMADD231PS(rows[i], weight, y)
		}
		context.ADDQ(Imm(8), at)
		context.ADDQ(Imm(uint64(s.bytes())), w)
		context.DECQ(taps)
		context.JNZ(LabelRef(tap))
		for i, y := range acc {
			flags := context.GP64()
			if s.wide {
				k := context.K()
				context.VCMPPS(Imm(equalOrUnordered), y, zero, k)
				context.KMOVW(k, flags.As32())
			} else {
				context.VCMPPS(Imm(equalOrUnordered), zero, y, scratch)
				context.VMOVMSKPS(scratch, flags.As32())
			}
			context.ORQ(flags, doubtful)
			s.canonical(y, nan, scratch)
			context.VMOVUPS(y, Mem{Base: c, Disp: i * s.bytes()})
			context.ADDQ(xStep, x)
		}
		context.ADDQ(U32(uint32(together*s.bytes())), c)
		context.SUBQ(Imm(uint64(together)), left)
		context.JMP(LabelRef(begin))
		context.Label(end)
	}
	context.Store(doubtful, context.ReturnIndex(0))
	ret()
}
