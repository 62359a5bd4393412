package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
)

// sweptTerms are the terms that a sweep takes at a time.
const sweptTerms = 4

// sweptRows are the rows of the greatest sweep: values of a stay in registers.
const sweptRows = 2

var sweptSets = []isa{avx512, avx2}

func (s isa) swept(rows int) string { return fmt.Sprintf("%sSwept%d", s.name, rows) }

func sweeps() {
	for _, s := range sweptSets {
		for rows := 1; rows <= sweptRows; rows++ {
			swept(s, rows)
		}
	}
}

// swept writes a sweep: vector by vector along rows of b.
func swept(s isa, rows int) {
	name := s.swept(rows)
	function(name, "func(vectors int, a *float32, aRow, aStep int, b *float32, bRow int, c *float32, cRow int)",
		fmt.Sprintf("%s advances %d rows of chains by %d terms; see Swept.", name, rows, sweptTerms))
	a := param("a")
	var values [sweptTerms][]vec
	at, aStep := rowAddresses(rows, a, param("aRow")), param("aStep")
	for t := range values {
		values[t] = s.registers(rows)
		for i, x := range values[t] {
			context.VBROADCASTSS(at[i], x)
		}
		context.ADDQ(aStep, a)
	}
	b, c, vectors := param("b"), param("c"), param("vectors")
	bs, cs := rowAddresses(sweptTerms, b, param("bRow")), rowAddresses(rows, c, param("cRow"))
	context.Label("loop")
	acc := s.registers(rows)
	for i, x := range acc {
		context.VMOVUPS(cs[i], x)
	}
	for t, m := range bs {
		y := s.load(m)
		for i, x := range acc {
			context.VFMADD231PS(values[t][i], y, x)
		}
	}
	for i, x := range acc {
		context.VMOVUPS(s.whole(x), cs[i])
	}
	context.ADDQ(Imm(uint64(s.bytes())), b)
	context.ADDQ(Imm(uint64(s.bytes())), c)
	context.DECQ(vectors)
	context.JNZ(LabelRef("loop"))
	ret()
}
