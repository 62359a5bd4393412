package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packs writes the kernels that bring operands into the order of tiles.
func packs() {
	turn()
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
		x, y := avx2.registers(4), avx2.registers(4)
		for i := range x {
			context.VMOVUPS(Mem{Base: src, Index: row[i], Scale: 4, Disp: 16 * half}, x[i].AsX())
			context.VINSERTF128(Imm(1), Mem{Base: src, Index: row[i+4], Scale: 4, Disp: 16 * half}, x[i], x[i])
		}
		context.VUNPCKLPS(x[1], x[0], y[0])
		context.VUNPCKHPS(x[1], x[0], y[1])
		context.VUNPCKLPS(x[3], x[2], y[2])
		context.VUNPCKHPS(x[3], x[2], y[3])
		context.VSHUFPS(Imm(0x44), y[2], y[0], x[0])
		context.VSHUFPS(Imm(0xee), y[2], y[0], x[1])
		context.VSHUFPS(Imm(0x44), y[3], y[1], x[2])
		context.VSHUFPS(Imm(0xee), y[3], y[1], x[3])
		for i := range x {
			context.VMOVUPS(x[i], Mem{Base: dst})
			context.ADDQ(step, dst)
		}
	}
	context.ADDQ(Imm(4*n), src)
	context.DECQ(blocks)
	context.JNZ(LabelRef("loop"))
	ret()
}
