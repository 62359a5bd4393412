package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
)

// axpyTerms are the terms that axpy form takes at a time.
const axpyTerms = 4

// axpyRows are the rows of the greatest kernel: values of a stay in registers.
const axpyRows = 2

var axpySets = []isa{avx512, avx2}

func (s isa) axpyName(rows int) string { return fmt.Sprintf("%sAxpyGEMM%d", s.name, rows) }

func axpyKernels() {
	for _, s := range axpySets {
		for rows := 1; rows <= axpyRows; rows++ {
			axpyKernel(s, rows)
		}
	}
}

// axpyKernel writes a sweep along rows of b: some vectors of each at a time, for long
// pieces of memory arrive faster, and then those that are left.
func axpyKernel(s isa, rows int) {
	name := s.axpyName(rows)
	function(name, "func(vectors int, a *float32, aRow, aStep int, b *float32, bRow int, c *float32, cRow int)",
		fmt.Sprintf("%s advances %d rows of accumulators by %d terms; see AxpyKernel.", name, rows, axpyTerms))
	a := param("a")
	var values [axpyTerms][]vec
	at, aStep := rowAddresses(rows, a, param("aRow")), param("aStep")
	for t := range values {
		values[t] = s.registers(rows)
		for i, x := range values[t] {
			context.VBROADCASTSS(at[i], x)
		}
		context.ADDQ(aStep, a)
	}
	b, c, vectors := param("b"), param("c"), param("vectors")
	bs, cs := rowAddresses(axpyTerms, b, param("bRow")), rowAddresses(rows, c, param("cRow"))
	step := func(n int) {
		acc := newAccumulators(s, rows, n)
		for i := range cs {
			for v, x := range acc.rows[i] {
				context.VMOVUPS(cs[i].Offset(v*s.bytes()), x)
			}
		}
		for t, m := range bs {
			for v := range n {
				y := s.load(m.Offset(v * s.bytes()))
				for i := range cs {
					context.VFMADD231PS(values[t][i], y, acc.rows[i][v])
				}
			}
		}
		for i := range cs {
			for v, x := range acc.rows[i] {
				context.VMOVUPS(s.whole(x), cs[i].Offset(v*s.bytes()))
			}
		}
		context.ADDQ(U32(n*s.bytes()), b)
		context.ADDQ(U32(n*s.bytes()), c)
	}
	const together = 4 // chains
	n := together / rows
	context.SUBQ(Imm(uint64(n)), vectors)
	context.JL(LabelRef("rest"))
	context.Label("loop")
	step(n)
	context.SUBQ(Imm(uint64(n)), vectors)
	context.JGE(LabelRef("loop"))
	context.Label("rest")
	context.ADDQ(Imm(uint64(n)), vectors)
	context.JZ(LabelRef("end"))
	context.Label("single")
	step(1)
	context.DECQ(vectors)
	context.JNZ(LabelRef("single"))
	context.Label("end")
	ret()
}
