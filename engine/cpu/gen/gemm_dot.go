package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Columns of a tile in dot form, and the terms that it takes at a time: a line of
// cache of each column.
const (
	dotColumns = 16
	dotTerms   = 16
)

// dotShapes are the sets that have tiles in dot form, and rows of the greatest.
var dotShapes = []struct {
	isa
	rows int
}{{avx512, 8}, {avx2, 4}}

func (s isa) dotName(rows int) string {
	return fmt.Sprintf("%sDotGEMM%dx%d", s.name, rows, dotColumns)
}

func dotKernels() {
	for _, s := range dotShapes {
		for rows := 1; rows <= s.rows; rows++ {
			dotKernel(s.isa, rows)
		}
	}
}

// dotKernel writes a tile that transposes operand b, quads of columns by quads of
// terms, on its way to the accumulators. Where columns lie a power of two apart their
// lines share places in the cache; what is fetched ahead is a line farther for
// each column, and does not. It goes to the second cache: past it (PREFETCHNTA) takes
// about three times as long on Ice Lake; see docs/performance.md.
func dotKernel(s isa, rows int) {
	const (
		quad    = 4
		fetched = 512 // bytes ahead
	)
	name := s.dotName(rows)
	function(name, "func(terms int, a, b *float32, bColumn int, c *float32, cRow int, add bool)",
		fmt.Sprintf("%s advances a tile of %d×%d accumulators; see DotKernel.", name, rows, dotColumns))
	vectors := dotColumns / s.lanes
	acc := newAccumulators(s, rows, vectors)
	acc.begin(param("c"))
	terms, a, column := param("terms"), param("a"), param("bColumn")
	var quads [dotColumns / quad]reg.GPVirtual // the first column of each
	quads[0] = param("b")
	for i := 1; i < len(quads); i++ {
		quads[i] = context.GP64()
		context.LEAQ(Mem{Base: quads[i-1], Index: column, Scale: quad}, quads[i])
	}
	threeColumns := context.GP64()
	context.LEAQ(Mem{Base: column, Index: column, Scale: 2}, threeColumns)
	columnAt := func(i, disp int) Mem {
		m := Mem{Base: quads[i/quad], Disp: disp}
		switch i % quad {
		case 1, 2:
			m.Index, m.Scale = column, uint8(i%quad)
		case 3:
			m.Index, m.Scale = threeColumns, 1
		}
		return m
	}

	context.Label("loop")
	for t := range dotTerms / quad {
		for i := t * quad; i < (t+1)*quad; i++ {
			context.PREFETCHT1(columnAt(i, fetched+64*i))
		}
		for v := range vectors {
			for term, b := range s.turnQuads(func(i int) Mem { return columnAt(v*s.lanes+i, 4*quad*t) }) {
				for i, chains := range acc.rows {
					s.fuse(Mem{Base: a, Disp: 4 * ((quad*t+term)*rows + i)}, b, chains[v])
				}
			}
		}
	}
	context.ADDQ(U32(4*dotTerms*rows), a)
	for _, q := range quads {
		context.ADDQ(Imm(4*dotTerms), q)
	}
	context.SUBQ(Imm(dotTerms), terms)
	context.JNZ(LabelRef("loop"))
	acc.end(param("c"), true)
	ret()
}

// fuse adds the products of a value in memory and b.
func (s isa) fuse(a Mem, b, sum vec) {
	if s.wide {
		context.VFMADD231PS_BCST(a, b, sum)
		return
	}
	x := s.register()
	context.VBROADCASTSS(a, x)
	context.VFMADD231PS(x, b, sum)
}

// turnQuads returns four terms of as many columns as there are lanes, of which
// at says where the four lie.
func (s isa) turnQuads(at func(column int) Mem) [4]vec {
	var x, y [4]vec
	for i := range x {
		x[i] = s.register()
		if s.wide {
			context.VBROADCASTF32X4(at(i), x[i])
		} else {
			context.VBROADCASTF128(at(i), x[i])
		}
		for quad := 1; quad < s.lanes/4; quad++ {
			if s.wide {
				context.VINSERTF32X4(U8(quad), at(4*quad+i), x[i], x[i])
			} else {
				context.VINSERTF128(U8(quad), at(4*quad+i), x[i], x[i])
			}
		}
	}
	for i := range y {
		y[i] = s.register()
	}
	context.VUNPCKLPS(x[1], x[0], y[0])
	context.VUNPCKHPS(x[1], x[0], y[1])
	context.VUNPCKLPS(x[3], x[2], y[2])
	context.VUNPCKHPS(x[3], x[2], y[3])
	for i, select4 := range [4]uint8{0x44, 0xee, 0x44, 0xee} {
		x[i] = s.register()
		context.VSHUFPS(U8(select4), y[i/2+2], y[i/2], x[i])
	}
	return x
}
