package main

import (
	"bytes"
	"fmt"
	"go/format"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// product is what a tile does with its operands.
type product struct {
	name string // suffix of function names
	doc  string
	// accumulate adds the products of a, a value of a row in all lanes, and b. tmp may
	// change.
	accumulate func(a, b, sum, tmp reg.VecVirtual)
	// floats are stored with canonical NaNs.
	floats bool
}

var (
	fused = product{"", "", func(a, b, sum, _ reg.VecVirtual) { context.VFMADD231PS(a, b, sum) }, true}

	// quads are four products of unsigned with signed bytes, none of which
	// saturates on its way to 32 bits.
	quads = product{"Quads", " of sums of four bytes", func(a, b, sum, _ reg.VecVirtual) { context.VPDPBUSD(b, a, sum) }, false}

	// pairs are two products of numbers of 16 bits that fit into 9.
	pairs = product{"Pairs", " of sums of two bytes widened to 16 bits", func(a, b, sum, tmp reg.VecVirtual) {
		context.VPMADDWD(b, a, tmp)
		context.VPADDD(tmp, sum, sum)
	}, false}
)

// shape is the greatest tile of a set of instructions: as many accumulators as
// leave registers for a row of b and one value of a.
type shape struct {
	isa
	product
	rows, vectors int
}

var shapes = []shape{
	{avx512, fused, 8, 3}, {avx2, fused, 6, 2},
	{avx512, quads, 8, 3}, {avx512, pairs, 8, 3}, {avx2, pairs, 6, 2},
}

func (s shape) tiles() string { return s.isa.name + s.product.name + "Tiles" }

func (s shape) tile(rows, vectors int) string {
	return fmt.Sprintf("%s%sTile%dx%d", s.isa.name, s.product.name, rows, vectors*s.lanes)
}

// tiles writes a kernel for every tile up to the greatest.
func tiles() {
	for _, s := range shapes {
		for rows := 1; rows <= s.rows; rows++ {
			for vectors := 1; vectors <= s.vectors; vectors++ {
				tile(s, rows, vectors)
			}
		}
	}
}

// tile writes one kernel: chains of fused multiply-adds, one for each element
// of the tile, in registers.
func tile(s shape, rows, vectors int) {
	function(s.tile(rows, vectors), "func(terms int, a *float32, aRow, aStep int, b *float32, bAt *int, c *float32, cRow int, add bool)",
		fmt.Sprintf("%s advances a tile of %d×%d chains%s; see Tile.", s.tile(rows, vectors), rows, vectors*s.lanes, s.doc))
	terms, a, aStep, b, bAt := param("terms"), param("a"), param("aStep"), param("b"), param("bAt")
	at := rowAddresses(rows, a, param("aRow"))

	acc := make([][]reg.VecVirtual, rows)
	for i := range acc {
		acc[i] = s.registers(vectors)
	}
	eachRow := func(do func(i, v int, at Mem)) {
		c, cRow := param("c"), param("cRow")
		for i := range rows {
			for v := range vectors {
				do(i, v, Mem{Base: c, Disp: v * s.bytes()})
			}
			if i < rows-1 {
				context.ADDQ(cRow, c)
			}
		}
	}
	add := context.GP8()
	context.Load(context.Param("add"), add)
	context.TESTB(add, add)
	context.JNZ(LabelRef("load"))
	for i := range acc {
		for _, x := range acc[i] {
			s.zero(x)
		}
	}
	context.JMP(LabelRef("begin"))
	context.Label("load")
	eachRow(func(i, v int, at Mem) { context.VMOVUPS(at, acc[i][v]) })
	context.Label("begin")

	bs, x := s.registers(vectors), s.register()
	var tmp reg.VecVirtual
	if !s.floats {
		tmp = s.register()
	}
	term := context.GP64()
	step := func(n int) {
		context.MOVQ(Mem{Base: bAt, Disp: 8 * n}, term)
		for v, y := range bs {
			context.VMOVUPS(Mem{Base: b, Index: term, Scale: 1, Disp: v * s.bytes()}, y)
		}
		for i := range acc {
			context.VBROADCASTSS(at[i], x)
			for v, y := range bs {
				s.accumulate(x, y, acc[i][v], tmp)
			}
		}
		context.ADDQ(aStep, a)
	}
	const unrolled = 4
	context.SUBQ(Imm(unrolled), terms)
	context.JL(LabelRef("rest"))
	context.Label("loop")
	for n := range unrolled {
		step(n)
	}
	context.ADDQ(Imm(8*unrolled), bAt)
	context.SUBQ(Imm(unrolled), terms)
	context.JGE(LabelRef("loop"))
	context.Label("rest")
	context.ADDQ(Imm(unrolled), terms)
	context.JZ(LabelRef("store"))
	context.Label("single")
	step(0)
	context.ADDQ(Imm(8), bAt)
	context.DECQ(terms)
	context.JNZ(LabelRef("single"))

	context.Label("store")
	s.constant(x, canonicalNaN)
	eachRow(func(i, v int, at Mem) {
		if s.floats {
			s.canonical(acc[i][v], x, bs[0])
		}
		context.VMOVUPS(acc[i][v], at)
	})
	ret()
}

// rowAddresses returns where the rows of a lie, of which the first is at a.
func rowAddresses(rows int, a, row reg.GPVirtual) []Mem {
	times := map[int]reg.GPVirtual{1: row}
	multiple := func(n int) reg.GPVirtual {
		if times[n] == nil {
			times[n] = context.GP64()
			context.LEAQ(Mem{Base: row, Index: row, Scale: uint8(n - 1)}, times[n])
		}
		return times[n]
	}
	at := []Mem{{Base: a}}
	for i := 1; i < rows; i++ {
		m := Mem{Base: a}
		switch i {
		case 1, 2, 4:
			m.Index, m.Scale = row, uint8(i)
		case 3, 5:
			m.Index, m.Scale = multiple(i), 1
		case 6:
			m.Index, m.Scale = multiple(3), 2
		case 7:
			if times[7] == nil {
				times[7] = context.GP64()
				context.LEAQ(Mem{Base: multiple(3), Index: row, Scale: 4}, times[7])
			}
			m.Index, m.Scale = times[7], 1
		}
		at = append(at, m)
	}
	return at
}

// tileTable returns the Go source that lists the kernels by size.
func tileTable() []byte {
	var text bytes.Buffer
	fmt.Fprint(&text, "// Code generated by engine/cpu/gen. DO NOT EDIT.\n\npackage asm\n")
	for _, s := range shapes {
		fmt.Fprintf(&text, "\nvar %s = [][]Tile{\n", s.tiles())
		for rows := 1; rows <= s.rows; rows++ {
			fmt.Fprint(&text, "{")
			for vectors := 1; vectors <= s.vectors; vectors++ {
				fmt.Fprintf(&text, "%s,", s.tile(rows, vectors))
			}
			fmt.Fprint(&text, "},\n")
		}
		fmt.Fprint(&text, "}\n")
	}
	out, err := format.Source(text.Bytes())
	if err != nil {
		panic(err)
	}
	return out
}
