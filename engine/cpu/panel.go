package cpu

import (
	"math"
	"unsafe"

	"github.com/tally-network/tally/engine/cpu/asm"
)

// panels are the rows (or columns) of one operand that a piece needs, and what
// of them is packed: for each tile, terms one after the other, and side by side
// the values of its rows.
type panels struct {
	side    *side
	set     *asm.Set
	rows    *grid // of all pieces
	steps   *grid // terms
	first   int   // row of the grid at which the piece begins
	base    int   // position of that row, in place
	own     []int // position of each row
	terms   []int // and what each term adds
	coords  []coords
	src     []float32
	start   int // first packed term
	deep    int // packed terms
	packed  int // row of the piece at which words begins
	words   []float32
	line    []float32 // rows before they are transposed
	runs    []run
	bounded bool  // values of either operand may be absent
	absent  bool  // some value lay outside the operand
	least   floor // of all values, if some may be absent
}

// coords are the coordinates of one bound: of each row, and what a term adds.
type coords struct{ own, terms []int }

// place sets the rows from, from+1, …
func (p *panels) place(s *side, k *dot, g *grid, batch, from, n int) {
	p.side, p.set, p.rows, p.steps, p.first = s, k.set, g, &k.terms, from
	p.bounded, p.absent, p.least = k.bounded, false, noFloor
	p.base = k.batch.at(s.base, s.batch, batch)
	p.coords = p.coords[:0]
	if s.inPlace {
		p.base += from * s.own[0]
		if n%k.set.Lanes == 0 || s == &k.a {
			return
		}
	}
	p.own = grow(p.own, n)
	g.table(p.own, k.batch.at(s.base, s.batch, batch), s.own, from)
	p.coords = grow(p.coords, len(s.bounds))
	for i := range s.bounds {
		b, c := &s.bounds[i], &p.coords[i]
		c.own = grow(c.own, n)
		g.table(c.own, k.batch.at(b.offset, b.batch, batch), b.own, from)
	}
}

// reach moves to terms t … t+deep−1.
func (p *panels) reach(src []float32, t, deep int) {
	p.src, p.start, p.deep = src, t, deep
	p.terms = grow(p.terms, deep)
	p.steps.table(p.terms, 0, p.side.terms, t)
	for i := range p.coords {
		c := &p.coords[i]
		c.terms = grow(c.terms, deep)
		p.steps.table(c.terms, 0, p.side.bounds[i].terms, t)
	}
}

// pack packs n rows from a row of the piece on, for tiles of at most so many,
// in whole vectors. What is read in place needs it only for the vector that is
// not full.
func (p *panels) pack(from, n, most, vector int) {
	p.packed = from
	p.words = grow(p.words, (roundUp(n, vector)+1)*p.deep+asm.TurnRows)
	for row := from; row < from+n; {
		size := nextPart(from+n-row, most, vector)
		if !p.side.inPlace || size%vector != 0 {
			p.packTile(p.words[(row-from)*p.deep:], row, size, roundUp(size, vector))
		}
		row += size
	}
	if p.bounded {
		least := uint32(math.MaxUint32)
		for _, x := range p.words[:roundUp(n, vector)*p.deep] {
			least = min(least, magnitude(x))
		}
		p.least = min(p.least, floorOf(least))
	}
}

// packTile packs n rows for one tile, so many values for each term.
func (p *panels) packTile(dst []float32, row, n, width int) {
	if width > n {
		clear(dst[:width*p.deep])
	}
	switch own := p.own[row:][:n]; {
	case len(p.side.bounds) > 0:
		p.packBounded(dst, row, n, width)
	case sideBySide(own):
		for t, at := range p.terms {
			copy(dst[t*width:][:n], p.src[own[0]+at:])
		}
	case p.set.Turn != nil && sideBySide(p.terms):
		p.turn(dst, p.src, own, p.terms[0], width)
	default:
		for t, at := range p.terms {
			d := dst[t*width:][:n]
			for i, o := range own {
				d[i] = p.src[o+at]
			}
		}
	}
}

// sideBySide reports whether positions follow each other.
func sideBySide(at []int) bool {
	for i, x := range at {
		if x != at[0]+i {
			return false
		}
	}
	return true
}

// turn packs rows, each of which has its terms side by side in src, from its own
// position + at on.
func (p *panels) turn(dst, src []float32, own []int, at, width int) {
	whole := p.deep / asm.TurnRows
	for i := 0; i < len(own); i += asm.TurnRows {
		var rows [asm.TurnRows]int
		n := min(len(rows), len(own)-i)
		for j := range rows {
			rows[j] = own[i+min(j, n-1)] + at
		}
		if whole > 0 {
			p.set.Turn(whole, &dst[i], width*word, &src[0], &rows)
		}
		for t := whole * asm.TurnRows; t < p.deep; t++ {
			d := dst[t*width+i:][:n]
			for j := range d {
				d[j] = src[rows[j]+t]
			}
		}
	}
}

// at returns where a tile of some rows of the piece reads its operand, and the
// bytes from row to row and from term to term.
func (p *panels) at(row, n, width int) (first *float32, rowStep, termStep int) {
	if s := p.side; s.inPlace && n == width {
		return &p.src[p.base+row*s.own[0]+p.start*s.terms[0]], s.own[0] * word, s.terms[0] * word
	}
	return (*float32)(unsafe.Pointer(&p.words[(row-p.packed)*p.deep])), word, width * word
}

// run is a part of a line: elements whose positions and coordinates grow in
// equal steps.
type run struct{ from, n int }

// packBounded packs rows that may lie outside the operand in part.
func (p *panels) packBounded(dst []float32, row, n, width int) {
	s := p.side
	own, terms := p.rows.inner(), p.steps.inner()
	if p.set.Turn == nil || own >= terms {
		p.cut(p.first+row, n, own)
		for t := range p.deep {
			p.fill(dst[t*width:][:n], s.own, func(b *sideBound) int { return last(b.own) }, p.own[row:], p.terms[t], func(c *coords, i int) int { return c.own[row+i] + c.terms[t] })
		}
	} else {
		p.cut(p.start, p.deep, terms)
		p.line = grow(p.line, asm.TurnRows*p.deep)
		for i := 0; i < n; i += asm.TurnRows {
			m := min(asm.TurnRows, n-i)
			var rows [asm.TurnRows]int
			for j := range m {
				r := row + i + j
				rows[j] = j * p.deep
				p.fill(p.line[rows[j]:][:p.deep], s.terms, func(b *sideBound) int { return last(b.terms) }, p.terms, p.own[r], func(c *coords, i int) int { return c.own[r] + c.terms[i] })
			}
			p.turn(dst[i:], p.line, rows[:m], 0, width)
		}
	}
}

func last(steps []int) int { return steps[len(steps)-1] }

// inner returns the extent of the innermost axis.
func (g *grid) inner() int { return last(g.extents) }

// cut finds the runs in n elements of a grid from the given one on.
func (p *panels) cut(from, n, inner int) {
	p.runs = p.runs[:0]
	for i := 0; i < n; {
		m := min(inner-(from+i)%inner, n-i)
		p.runs = append(p.runs, run{i, m})
		i += m
	}
}

// fill copies a line, of which element i lies at positions[i] + at, and puts
// zeros for what lies outside the operand.
func (p *panels) fill(dst []float32, strides []int, step func(*sideBound) int, positions []int, at int, coord func(c *coords, i int) int) {
	stride := last(strides)
	for _, r := range p.runs {
		lo, hi := 0, r.n
		for i := range p.side.bounds {
			b := &p.side.bounds[i]
			l, h := within(coord(&p.coords[i], r.from), step(b), b.extent, r.n)
			lo, hi = max(lo, l), min(hi, h)
		}
		d := dst[r.from:][:r.n]
		if lo > 0 || hi < r.n {
			p.absent = true
			clear(d)
		}
		if lo < hi {
			strided(d[lo:hi], p.src, positions[r.from]+at+lo*stride, stride)
		}
	}
}

// within returns for which i of 0…n−1 a coordinate c + i·step lies in
// 0…extent−1.
func within(c, step, extent, n int) (lo, hi int) {
	switch end := extent - 1 - c; { // steps left before the end, and c before the start
	case step == 0:
		if c < 0 || end < 0 {
			return 0, 0
		}
		return 0, n
	case step > 0:
		return ceilDiv(-c, step), min(n, ceilDiv(end+1, step))
	default:
		return ceilDiv(-end, -step), min(n, ceilDiv(c+1, -step))
	}
}

// magnitude orders float32 values by size: zeros last, then upwards from the
// least subnormal.
func magnitude(x float32) uint32 { return math.Float32bits(x)<<1 - 1 }

// A floor bounds the exponents of values from below: no value other than zero
// has a lesser biased exponent.
type floor uint32

const noFloor floor = 255

func floorOf(leastMagnitude uint32) floor { return floor(leastMagnitude >> 24) }

// productsKept is the least sum of two floors with which no product rounds to
// zero: products are multiples of 2^(a+b−300), here of the least subnormal,
// 2⁻¹⁴⁹.
const productsKept = 300 - 149
