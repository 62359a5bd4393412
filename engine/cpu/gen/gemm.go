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
	// prefetch tiles fetch b of the next tile.
	prefetch bool
}

var (
	fused    = product{"", "", func(a, b, sum, _ reg.VecVirtual) { context.VFMADD231PS(a, b, sum) }, true, false}
	prefetch = product{"Prefetch", ", and fetches those of b for the next tile", fused.accumulate, true, true}

	// quads are four products of unsigned with signed bytes, none of which
	// saturates on its way to 32 bits.
	quads = product{"Int8Quad", " of sums of four bytes", func(a, b, sum, _ reg.VecVirtual) { context.VPDPBUSD(b, a, sum) }, false, false}

	// pairs are two products of numbers of 16 bits that fit into 9.
	pairs = product{"Int8Pair", " of sums of two bytes widened to 16 bits", func(a, b, sum, tmp reg.VecVirtual) {
		context.VPMADDWD(b, a, tmp)
		context.VPADDD(tmp, sum, sum)
	}, false, false}
)

// shape is the greatest tile of a set of instructions: as many accumulators as
// leave registers for a row of b and one value of a.
type shape struct {
	isa
	product
	rows, vectors int
}

var shapes = []shape{
	{avx512, fused, 8, 3}, {avx512, prefetch, 8, 3}, {avx2, fused, 6, 2},
	{avx512, quads, 8, 3}, {avx512, pairs, 8, 3}, {avx2, pairs, 6, 2},
}

func (s shape) tiles() string { return s.isa.name + s.product.name + "GEMM" }

func (s shape) tile(rows, vectors int) string {
	return fmt.Sprintf("%s%sGEMM%dx%d", s.isa.name, s.product.name, rows, vectors*s.lanes)
}

// gemmKernels writes a micro-kernel for every tile up to the greatest.
func gemmKernels() {
	for _, s := range shapes {
		for rows := 1; rows <= s.rows; rows++ {
			for vectors := 1; vectors <= s.vectors; vectors++ {
				tile(s, rows, vectors)
			}
		}
	}
}

// tile writes one micro-kernel: chains of fused multiply-adds, one accumulator for each
// element of a tile, in registers; tile by tile.
func tile(s shape, rows, vectors int) {
	function(s.tile(rows, vectors), "func(tiles, terms int, a *float32, aRow int, aAt *int, b *float32, bNext int, bAt *int, c *float32, cRow int, add bool)",
		fmt.Sprintf("%s advances tiles of %d×%d accumulators%s; see MicroKernel.", s.tile(rows, vectors), rows, vectors*s.lanes, s.doc))
	a, b, c := param("a"), param("b"), param("c")
	terms, aAt, bAt, here, next := context.GP64(), context.GP64(), context.GP64(), context.GP64(), context.GP64()
	at := rowAddresses(rows, here, param("aRow"))
	context.Label("tile")
	context.Load(context.Param("terms"), terms)
	context.Load(context.Param("aAt"), aAt)
	context.Load(context.Param("bAt"), bAt)
	if s.prefetch {
		context.Load(context.Param("bNext"), next)
		context.ADDQ(b, next)
	}

	acc := newAccumulators(s.isa, rows, vectors)
	acc.begin(c)

	bs, x := s.registers(vectors), s.register()
	var tmp reg.VecVirtual
	if !s.floats {
		tmp = s.register()
	}
	term := context.GP64()
	step := func(n int) {
		context.MOVQ(Mem{Base: aAt, Disp: 8 * n}, here)
		context.ADDQ(a, here)
		context.MOVQ(Mem{Base: bAt, Disp: 8 * n}, term)
		for v, y := range bs {
			context.VMOVUPS(Mem{Base: b, Index: term, Scale: 1, Disp: v * s.bytes()}, y)
		}
		for v := 0; s.prefetch && v < vectors; v++ {
			context.PREFETCHT1(Mem{Base: next, Index: term, Scale: 1, Disp: v * s.bytes()})
		}
		for i, row := range acc.rows {
			context.VBROADCASTSS(at[i], x)
			for v, y := range bs {
				s.accumulate(x, y, row[v], tmp)
			}
		}
	}
	const unrolled = 4
	context.SUBQ(Imm(unrolled), terms)
	context.JL(LabelRef("rest"))
	context.Label("loop")
	for n := range unrolled {
		step(n)
	}
	context.ADDQ(Imm(8*unrolled), aAt)
	context.ADDQ(Imm(8*unrolled), bAt)
	context.SUBQ(Imm(unrolled), terms)
	context.JGE(LabelRef("loop"))
	context.Label("rest")
	context.ADDQ(Imm(unrolled), terms)
	context.JZ(LabelRef("store"))
	context.Label("single")
	step(0)
	context.ADDQ(Imm(8), aAt)
	context.ADDQ(Imm(8), bAt)
	context.DECQ(terms)
	context.JNZ(LabelRef("single"))

	context.Label("store")
	acc.end(c, s.floats)
	context.ADDQ(Imm(uint64(vectors*s.bytes())), c)
	bNext := param("bNext")
	context.ADDQ(bNext, b)
	left, err := context.Param("tiles").Resolve()
	if err != nil {
		panic(err)
	}
	context.DECQ(left.Addr)
	context.JNZ(LabelRef("tile"))
	ret()
}

// accumulators are those of a tile.
type accumulators struct {
	isa
	rows [][]vec
}

func newAccumulators(s isa, rows, vectors int) accumulators {
	x := accumulators{s, make([][]vec, rows)}
	for i := range x.rows {
		x.rows[i] = s.registers(vectors)
	}
	return x
}

// begin sets the accumulators to those at c, if add says so, or to zeros.
func (x accumulators) begin(c reg.GPVirtual) {
	add := context.GP8()
	context.Load(context.Param("add"), add)
	context.TESTB(add, add)
	context.JNZ(LabelRef("load"))
	for _, row := range x.rows {
		for _, y := range row {
			x.zero(y)
		}
	}
	context.JMP(LabelRef("begin"))
	context.Label("load")
	x.each(c, func(y vec, at Mem) { context.VMOVUPS(at, y) })
	context.Label("begin")
}

// end stores the accumulators at c, with canonical NaNs if they are floats.
func (x accumulators) end(c reg.GPVirtual, floats bool) {
	nan, scratch := x.register(), x.register()
	if floats {
		x.constant(nan, canonicalNaN)
	}
	x.each(c, func(y vec, at Mem) {
		if floats {
			x.canonical(y, nan, scratch)
		}
		context.VMOVUPS(y, at)
	})
}

// each goes through the accumulators and where they lie.
func (x accumulators) each(c reg.GPVirtual, do func(y vec, at Mem)) {
	at, cRow := context.GP64(), param("cRow")
	context.MOVQ(c, at)
	for i, row := range x.rows {
		if i > 0 {
			context.ADDQ(cRow, at)
		}
		for v, y := range row {
			do(y, Mem{Base: at, Disp: v * x.bytes()})
		}
	}
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

// gemmTable returns the Go source that lists the kernels of multiply-adds by size.
func gemmTable() []byte {
	var text bytes.Buffer
	fmt.Fprint(&text, "// Code generated by engine/cpu/gen. DO NOT EDIT.\n\npackage asm\n")
	for _, s := range shapes {
		fmt.Fprintf(&text, "\nvar %s = [][]MicroKernel{\n", s.tiles())
		for rows := 1; rows <= s.rows; rows++ {
			fmt.Fprint(&text, "{")
			for vectors := 1; vectors <= s.vectors; vectors++ {
				fmt.Fprintf(&text, "%s,", s.tile(rows, vectors))
			}
			fmt.Fprint(&text, "},\n")
		}
		fmt.Fprint(&text, "}\n")
	}
	list := func(name, kind string, rows int, function func(rows int) string) {
		fmt.Fprintf(&text, "\nvar %s%sGEMM = []%[2]sKernel{", name, kind)
		for i := 1; i <= rows; i++ {
			fmt.Fprintf(&text, "%s,", function(i))
		}
		fmt.Fprint(&text, "}\n")
	}
	for _, s := range dotShapes {
		list(s.name, "Dot", s.rows, s.dotName)
	}
	for _, s := range axpySets {
		list(s.name, "Axpy", axpyRows, s.axpyName)
	}
	out, err := format.Source(text.Bytes())
	if err != nil {
		panic(err)
	}
	return out
}
