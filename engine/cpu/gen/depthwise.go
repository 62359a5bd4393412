package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
)

// depthwiseShapes are the sets that have depthwise kernels, and how many lines a kernel of
// so many vectors takes together: accumulators that hide the latency of a multiply-add
// and leave registers for a weight, and a part of the lines of usual maps.
var depthwiseShapes = []struct {
	isa
	lines []int // by vectors − 1
}{{avx512, []int{7, 7, 7, 6}}, {avx2, []int{7, 7, 4, 3}}}

func (s isa) depthwiseName(vectors int) string {
	return fmt.Sprintf("%sDepthwise%d", s.name, vectors*s.lanes)
}

func depthwiseKernels() {
	for _, s := range depthwiseShapes {
		for i, lines := range s.lines {
			depthwiseKernel(s.isa, lines, i+1)
		}
	}
}

// depthwiseKernel writes a kernel that takes lines together as long as there are enough,
// and then one by one.
func depthwiseKernel(s isa, together, vectors int) {
	name := s.depthwiseName(vectors)
	function(name, "func(lines, taps int, w *float32, wStep int, x *float32, xLine int, at *int, c *float32, cRow int)",
		fmt.Sprintf("%s computes lines of %d elements; see DepthwiseKernel.", name, vectors*s.lanes))
	x, xLine, c, left := param("x"), param("xLine"), param("c"), param("lines")
	for _, lines := range []int{together, 1} {
		begin, end := fmt.Sprintf("lines%d", lines), fmt.Sprintf("end%d", lines)
		context.Label(begin)
		context.CMPQ(left, Imm(uint64(lines)))
		context.JL(LabelRef(end))
		acc := newAccumulators(s, lines, vectors)
		for _, row := range acc.rows {
			for _, y := range row {
				s.zero(y)
			}
		}
		w, wStep, at, taps, here := param("w"), param("wStep"), param("at"), param("taps"), context.GP64()
		rows, weight := rowAddresses(lines, here, xLine), s.register()
		tap := fmt.Sprintf("tap%d", lines)
		context.Label(tap)
		context.MOVQ(Mem{Base: at}, here)
		context.ADDQ(x, here)
		context.VBROADCASTSS(Mem{Base: w}, weight)
		for i, m := range rows {
			for v, y := range acc.rows[i] {
				context.VFMADD231PS(m.Offset(v*s.bytes()), weight, y)
			}
		}
		context.ADDQ(Imm(8), at)
		context.ADDQ(wStep, w)
		context.DECQ(taps)
		context.JNZ(LabelRef(tap))
		acc.end(c, true)
		for range lines {
			context.ADDQ(xLine, x)
		}
		cRow := param("cRow")
		for range lines {
			context.ADDQ(cRow, c)
		}
		context.SUBQ(Imm(uint64(lines)), left)
		context.JMP(LabelRef(begin))
		context.Label(end)
	}
	ret()
}
