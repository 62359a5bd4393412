package cpu

import (
	"slices"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// panels are the rows (or columns) of one operand that a piece needs, and what
// of them is packed: for each tile, terms one after the other, and side by side
// the values of its rows.
type panels struct {
	side     *side
	set      *asm.Set
	round    int          // of the worker
	rows     *affine.Grid // of all pieces
	steps    *affine.Grid // terms
	batch    *affine.Grid
	at       int     // batch
	first    int     // row of the grid at which the piece begins
	base     int     // position of that row, in place
	own      []int   // position of each row
	terms    []int   // and what each term adds
	straight bool    // terms lie side by side
	offsets  []int   // the same in bytes
	located  []int   // memory of those, if the side has no list
	even     [][]int // offsets of packed terms, by width
	coords   []coords
	src      operand
	start    int   // first term that is taken
	taken    int   // and how many are
	group    int   // terms in a word
	bytewise bool  // elements are bytes
	bias     uint8 // of bytes
	signed   bool  // bytes are signed
	deep     int   // packed words for each row
	moved    []int // terms of bytes, from the first row
	packed   int   // row of the piece at which panel begins
	panel    []float32
	words    []float32         // memory of panels
	packing  packing           // what it holds
	drawn    []float32         // the image
	drawing  drawing           // what it is
	elements elements          // of which it is made
	lines    []float32         // rows before they are transposed
	places   []int             // where each of those begins
	eight    [asm.TurnRows]int // rows that are being transposed
	runs     []run
	segments []asm.Segment
	bounded  bool               // values of either operand may be absent
	absent   bool               // some value lay outside the operand
	least    kernel.MinExponent // of all values, if some may be absent
}

// operand is the elements of an operand, which are float32 or widened to that.
type operand struct {
	floats []float32
	bytes  []uint8
	narrow unsafe.Pointer
	size   int
	widen  eltwise.Func
}

func (k *dot) operand(s *side, args []*tensor.Tensor) operand {
	x := args[s.arg]
	switch {
	case k.plain:
		return operand{floats: tensor.Of[float32](x)}
	case k.bytes != nil:
		return operand{bytes: x.Bytes()}
	}
	return operand{narrow: unsafe.Pointer(unsafe.SliceData(x.Bytes())), size: x.Type.Size(), widen: k.widen}
}

// read copies elements side by side.
func (o *operand) read(dst []float32, at int) {
	if o.widen == nil {
		copy(dst, o.floats[at:])
		return
	}
	o.widen(unsafe.Pointer(&dst[0]), unsafe.Add(o.narrow, at*o.size), nil, nil, 1, len(dst))
}

// coords are the coordinates of one bound: of each row, and what a term adds.
type coords struct{ own, terms []int }

// batched reports whether batches read different elements.
func (s *side) batched() bool {
	moves := func(steps []int) bool { return slices.ContainsFunc(steps, func(step int) bool { return step != 0 }) }
	return moves(s.batch) || slices.ContainsFunc(s.bounds, func(b sideBound) bool { return moves(b.batch) }) ||
		s.image != nil && slices.ContainsFunc(s.image.dims, func(x imageDim) bool { return moves(x.batch) })
}

// place sets the rows from, from+1, …, in a round of the worker.
func (p *panels) place(s *side, k *dot, g *affine.Grid, round, batch, from, n int) {
	if !s.batched() {
		batch = 0 // so that what is there for one batch serves them all
	}
	p.round, p.side, p.set, p.batch, p.rows, p.steps, p.at, p.first = round, s, k.set, &k.batch, g, &k.terms, batch, from
	p.bounded, p.absent, p.least = k.bounded && k.bytes == nil, false, kernel.NoExponent
	p.group, p.bias, p.signed = k.group(), 0, k.p.Args[s.arg].Type.Signed()
	if p.bytewise = k.bytes != nil; p.bytewise {
		p.bias = uint8(k.bytes.biasA)
		if s == &k.b {
			p.bias = uint8(k.bytes.biasB)
		}
	}
	p.base = k.batch.Offset(s.base, s.batch, batch)
	p.coords = p.coords[:0]
	switch {
	case s.image != nil && s.inPlace && s.line == 0:
		p.base = s.base
		return
	case s.inPlace:
		p.base += from * s.own[0]
	}
	p.own = mem.Grow(p.own, n)
	g.Offsets(p.own, k.batch.Offset(s.base, s.batch, batch), s.own, from)
	p.coords = mem.Grow(p.coords, len(s.bounds))
	for i := range s.bounds {
		b, c := &s.bounds[i], &p.coords[i]
		c.own = mem.Grow(c.own, n)
		g.Offsets(c.own, k.batch.Offset(b.offset, b.batch, batch), b.own, from)
	}
}

// drawing says of what an image was drawn, and what was found there.
type drawing struct {
	image              *image
	round, batch, line int
	absent             bool
	least              kernel.MinExponent
}

// draw returns the side's image of src for a line, or src itself. What was
// drawn last in this round is not drawn again.
func (p *panels) draw(src operand, line int) operand {
	m := p.side.image
	if m == nil {
		return src
	}
	if d := (drawing{m, p.round, p.at, line, p.drawing.absent, p.drawing.least}); d != p.drawing {
		p.drawn = mem.Grow(p.drawn, m.size+mem.MaxLanes)
		p.elements.operand, p.elements.set = src, p.set
		absent := m.draw(p.drawn, &p.elements, p.batch, p.at, line)
		d.absent, d.least = p.bounded && absent, p.leastOf(p.drawn, m.size)
		p.drawing = d
	}
	p.absent, p.least = p.drawing.absent, p.drawing.least
	return operand{floats: p.drawn}
}

// leastOf returns the floor of the first n words, and writes some zeros behind
// them.
func (p *panels) leastOf(words []float32, n int) kernel.MinExponent {
	clear(words[n:][:mem.MaxLanes])
	if !p.bounded {
		return kernel.NoExponent
	}
	return kernel.MinExponentOf(p.set.Least(mem.CeilDiv(n, p.set.Lanes), &words[0]))
}

// reach moves to terms t … t+n−1.
func (p *panels) reach(src operand, t, n int) {
	p.src, p.start, p.taken, p.deep = src, t, n, mem.CeilDiv(n, p.group)
}

// spread finds the positions of the terms, for what is packed.
func (p *panels) spread() {
	p.terms = mem.Grow(p.terms, p.taken)
	p.steps.Offsets(p.terms, 0, p.side.terms, p.start)
	p.straight = affine.Contiguous(p.terms)
	for i := range p.coords {
		c := &p.coords[i]
		c.terms = mem.Grow(c.terms, p.taken)
		p.steps.Offsets(c.terms, 0, p.side.bounds[i].terms, p.start)
	}
}

// list finds where the terms of a side lie that tiles read in place, in bytes.
func (s *side) list(terms *affine.Grid) {
	switch m := s.image; {
	case !s.inPlace || s.turned:
		return
	case m != nil && m.table != nil:
		s.offsets = slices.Clone(m.table)
	case terms.N <= maxListed:
		s.offsets = make([]int, terms.N)
		terms.Offsets(s.offsets, 0, s.terms, 0)
	}
	scale(s.offsets)
}

// scale makes bytes of positions.
func scale(at []int) {
	for i := range at {
		at[i] *= mem.Word
	}
}

// locate finds where the terms lie, in bytes, for tiles that read them in place.
func (p *panels) locate() {
	switch s := p.side; {
	case !s.inPlace || s.turned:
		return
	case s.offsets != nil:
		p.offsets = s.offsets[p.start:]
	default:
		p.located = mem.Grow(p.located, p.taken)
		p.steps.Offsets(p.located, 0, s.terms, p.start)
		scale(p.located)
		p.offsets = p.located
	}
}

// packing says which rows and terms are packed, and what was found in them.
type packing struct {
	side                  *side
	round, at, first      int
	from, n, start, taken int
	absent                bool
	least                 kernel.MinExponent
}

// pack packs n rows from a row of the piece on, for tiles of at most so many,
// in whole vectors. What is read in place needs it only for the vector that is
// not full. What was packed last in this round is not packed again.
func (p *panels) pack(from, n, most, vector int) {
	if p.side.image != nil && p.side.inPlace {
		return
	}
	if m := p.side.kept; m != nil {
		p.panel, p.packed = m.at(p.at, p.steps.N, p.start, p.taken, p.first), 0
		p.least, p.absent = m.least, m.absent
		return
	}
	end := from + n
	row := from
	for row < end && p.ready(nextPart(end-row, most, vector), vector) {
		row += nextPart(end-row, most, vector)
	}
	if row == end {
		return
	}
	x := packing{p.side, p.round, p.at, p.first, row, end - row, p.start, p.taken, p.packing.absent, p.packing.least}
	if x != p.packing {
		x.absent, x.least = p.packRest(row, end-row, most, vector)
		p.packing = x
	}
	p.panel, p.packed = p.words, row
	p.absent, p.least = p.absent || x.absent, min(p.least, x.least)
}

// packRest packs n rows, and returns whether any value lay outside the operand, and
// the floor of all.
func (p *panels) packRest(from, n, most, vector int) (absent bool, least kernel.MinExponent) {
	before := p.absent
	p.absent = false
	p.spread()
	p.words = mem.Grow(p.words, (mem.RoundUp(n, vector)+1)*p.deep+mem.MaxLanes)
	if p.side.lined {
		p.packRows(p.words, from, n)
	} else {
		for row, end := from, from+n; row < end; {
			size := nextPart(end-row, most, vector)
			p.packTile(p.words[(row-from)*p.deep:], row, size, mem.RoundUp(size, vector))
			row += size
		}
	}
	absent, p.absent = p.absent, before
	if p.bounded && p.side.image == nil {
		return absent, p.leastOf(p.words, mem.RoundUp(n, vector)*p.deep)
	}
	return absent, kernel.NoExponent
}

// ready reports whether a tile of so many rows reads them in place.
func (p *panels) ready(size, vector int) bool {
	if p.side.turned {
		return p.turns(size)
	}
	return p.side.inPlace && size%vector == 0
}

// turns reports whether a tile of so many columns turns them.
func (p *panels) turns(size int) bool {
	return p.side.turned && size == asm.TurnedColumns && p.deep%asm.TurnedTerms == 0
}

// packTile packs n rows for one tile, so many values for each term.
func (p *panels) packTile(dst []float32, row, n, width int) {
	if width > n {
		clear(dst[:width*p.deep])
	}
	switch own := p.own[row:][:n]; {
	case p.bytewise:
		p.packBytes(dst, row, n, width)
	case len(p.side.bounds) == 0 && affine.Contiguous(own):
		for t, at := range p.terms {
			p.src.read(dst[t*width:][:n], own[0]+at)
		}
	case len(p.side.bounds) == 0 && p.straight:
		if p.src.widen == nil {
			p.turn(dst, p.src.floats, own, p.terms[0], p.deep, width)
			break
		}
		for i, line := range p.newLines(n) {
			p.src.read(p.lines[line:][:p.deep], own[i]+p.terms[0])
		}
		p.turn(dst, p.lines, p.places, 0, p.deep, width)
	default:
		p.packRuns(dst, row, n, width)
	}
}

// turn packs rows, each of which has so many words side by side in src, from its
// own position + at on.
func (p *panels) turn(dst, src []float32, own []int, at, deep, width int) {
	whole := deep / asm.TurnRows
	for i := 0; i < len(own); i += asm.TurnRows {
		rows := &p.eight
		n := min(len(rows), len(own)-i)
		for j := range rows {
			rows[j] = own[i+min(j, n-1)] + at
		}
		if whole > 0 {
			p.set.Turn(whole, &dst[i], width*mem.Word, &src[0], rows)
		}
		for t := whole * asm.TurnRows; t < deep; t++ {
			d := dst[t*width+i:][:n]
			for j := range d {
				d[j] = src[rows[j]+t]
			}
		}
	}
}

// rowsAt returns where a tile of n rows from a row of the piece on reads its
// operand, the bytes from row to row, and those to each term.
func (p *panels) rowsAt(row, n int) (first *float32, step int, terms *int) {
	switch s := p.side; {
	case s.line > 0:
		return &p.src.floats[p.own[row]], affine.Last(s.own) * mem.Word, &p.offsets[0]
	case s.inPlace:
		return &p.src.floats[p.base+row*s.own[0]], s.own[0] * mem.Word, &p.offsets[0]
	case s.lined:
		return &p.panel[(row-p.packed)*p.deep], p.deep * mem.Word, p.evenly(1)
	}
	return &p.panel[(row-p.packed)*p.deep], mem.Word, p.evenly(n)
}

// columnsAt returns where a tile of n columns, packed to so many, reads its
// operand, the bytes from there to the next tile, and those to each term.
func (p *panels) columnsAt(column, n, width int) (first *float32, next int, terms *int) {
	if p.side.image != nil || p.ready(n, width) {
		return &p.src.floats[p.base+column], n * mem.Word, &p.offsets[0]
	}
	return &p.panel[(column-p.packed)*p.deep], n * p.deep * mem.Word, p.evenly(width)
}

// termAt returns where the first row reads a term of those reached, in place, and
// the bytes from row to row and from term to term.
func (p *panels) termAt(t int) (first *float32, rowStep, termStep int) {
	own, each := p.side.own[0], p.side.terms[0]
	return &p.src.floats[p.base+(p.start+t)*each], own * mem.Word, each * mem.Word
}

// turnedAt returns where a tile that turns its columns begins, and the bytes from
// column to column.
func (p *panels) turnedAt(column int) (first *float32, step int) {
	own := p.side.own[0]
	return &p.src.floats[p.base+column*own+p.start], own * mem.Word
}

// evenly returns the distances of packed terms.
func (p *panels) evenly(width int) *int {
	if len(p.even) <= width {
		p.even = append(p.even, make([][]int, width+1-len(p.even))...)
	}
	if len(p.even[width]) < p.deep {
		p.even[width] = make([]int, max(maxDeep, p.deep))
		for t := range p.even[width] {
			p.even[width][t] = t * width * mem.Word
		}
	}
	return &p.even[width][0]
}

// newLines makes room for n rows that are to be transposed, and returns where
// each begins.
func (p *panels) newLines(n int) []int {
	p.lines = mem.Grow(p.lines, n*p.deep+mem.MaxLanes)
	p.places = mem.Grow(p.places, n)
	for i := range p.places {
		p.places[i] = i * p.deep
	}
	return p.places
}
