package gemm

import (
	"slices"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// packer brings the rows (or columns) of one operand that a block needs into panels: for
// each tile, term after term, the values of its rows contiguous (BLIS's micro-panels).
// What micro-kernels read in place it only locates.
type packer struct {
	layout *operandLayout
	set    *asm.KernelSet
	round  int // of the worker
	packerRows
	packerTerms
	packerMemory

	worker      *kernel.Worker // who may be stopped
	src         elements
	isInt8      bool               // elements are integers of 8 bits
	bias        uint8              // of those
	signed      bool               // they are signed
	padded      bool               // either operand may have padding
	hasPadding  bool               // some value is padding
	minExponent kernel.MinExponent // of all values, if there may be padding
}

// packerRows is where the rows of a block are in the operand.
type packerRows struct {
	grid       *affine.Grid // of all rows
	batchGrid  *affine.Grid
	batchAt    int   // batch of the block
	firstRow   int   // of the block, in the grid
	base       int   // offset of that row, in place
	rowOffsets []int // of each row of the block
	coords     []boundOffsets
}

// packerTerms is the terms that are packed or read in place, and where they are.
type packerTerms struct {
	termGrid          *affine.Grid
	firstTerm         int
	termCount         int
	wordTerms         int     // terms in a word of a panel
	kWords            int     // packed words for each row
	termOffsets       []int   // what each term adds to a row's offset
	termsContiguous   bool    // terms follow each other
	movedTerms        []int   // offsets of terms of 8 bits, from the first row
	indirection       []int   // where micro-kernels find each term, in bytes, in place
	indirectionBuffer []int   // memory of that, if the layout has no table
	packedOffsets     [][]int // the same of packed terms, by tile width
}

// packerMemory is the memory of a packer, and what it holds.
type packerMemory struct {
	panel         []float32
	packedFrom    int // row of the block at which panel begins
	panelBuffer   []float32
	packKey       packKey // what panelBuffer holds
	inputBuffer   []float32
	inputKey      inputKey               // what inputBuffer holds
	reader        inputReader            // what fills that
	rowBuffer     []float32              // rows before they are transposed
	tileRows      []int                  // of each tile that is packed
	rowStarts     []int                  // where each of those begins
	transposeRows [asm.TransposeRows]int // rows that are being transposed
	runs          []runPart
	segments      []asm.MaskedSegment
}

// elements are those of an operand: float32, or narrower and widened as they are read, or
// integers of 8 bits.
type elements struct {
	floats []float32
	bytes  []uint8
	narrow unsafe.Pointer
	size   int
	widen  eltwise.Func
}

// elements returns those of an operand.
func (k *contraction) elements(s *operandLayout, args []*tensor.Tensor) elements {
	x := args[s.arg]
	switch {
	case k.isFloat32:
		return elements{floats: tensor.Of[float32](x)}
	case k.int8 != nil:
		return elements{bytes: x.Bytes()}
	}
	return elements{narrow: unsafe.Pointer(unsafe.SliceData(x.Bytes())), size: x.Type.Size(), widen: k.widen}
}

// read fills dst with the elements from an offset on, widened to float32.
func (o *elements) read(dst []float32, at int) {
	if o.widen == nil {
		copy(dst, o.floats[at:])
		return
	}
	o.widen(unsafe.Pointer(&dst[0]), unsafe.Add(o.narrow, at*o.size), nil, nil, 1, len(dst))
}

// boundOffsets are the values of one checked coordinate: of each row, and what a term
// adds.
type boundOffsets struct{ own, terms []int }

// variesByBatch reports whether batches read different elements.
func (s *operandLayout) variesByBatch() bool {
	moves := func(steps []int) bool { return slices.ContainsFunc(steps, func(step int) bool { return step != 0 }) }
	return moves(s.batch) || slices.ContainsFunc(s.bounds, func(b boundCheck) bool { return moves(b.batch) }) ||
		s.input != nil && slices.ContainsFunc(s.input.dims, func(x paddedAxis) bool { return moves(x.batch) })
}

// place sets the n rows from one on, in a round of the worker.
func (p *packer) place(s *operandLayout, k *contraction, g *affine.Grid, round, batch, from, n int) {
	if !s.variesByBatch() {
		batch = 0 // so that what is packed for one batch serves them all
	}
	p.round, p.layout, p.set, p.batchGrid, p.grid, p.termGrid, p.batchAt, p.firstRow = round, s, k.set, &k.batch, g, &k.terms, batch, from
	p.padded, p.hasPadding, p.minExponent = k.padded && k.int8 == nil, false, kernel.NoExponent
	p.wordTerms, p.bias, p.signed = k.wordTerms(), 0, k.p.Args[s.arg].Type.Signed()
	if p.isInt8 = k.int8 != nil; p.isInt8 {
		p.bias = uint8(k.int8Bias(s))
	}
	p.base = k.batch.Offset(s.base, s.batch, batch)
	p.coords = p.coords[:0]
	switch {
	case s.input != nil && s.inPlace && s.lineRows == 0:
		p.base = s.base
		return
	case s.inPlace:
		p.base += from * s.own[0]
	}
	p.rowOffsets = mem.Grow(p.rowOffsets, n)
	g.Offsets(p.rowOffsets, k.batch.Offset(s.base, s.batch, batch), s.own, from)
	p.coords = mem.Grow(p.coords, len(s.bounds))
	for i := range s.bounds {
		b, c := &s.bounds[i], &p.coords[i]
		c.own = mem.Grow(c.own, n)
		g.Offsets(c.own, k.batch.Offset(b.offset, b.batch, batch), b.own, from)
	}
}

// inputKey says what a padded input was filled with, and what was found in it.
type inputKey struct {
	input              *paddedInput
	round, batch, line int
	hasPadding         bool
	minExponent        kernel.MinExponent
}

// fillInput returns the padded input of src for a line, or src itself if the layout has
// none. What was filled last in this round is not filled again.
func (p *packer) fillInput(src elements, line int) elements {
	m := p.layout.input
	if m == nil {
		return src
	}
	if d := (inputKey{m, p.round, p.batchAt, line, p.inputKey.hasPadding, p.inputKey.minExponent}); d != p.inputKey {
		p.inputBuffer = mem.Grow(p.inputBuffer, m.size+mem.MaxLanes)
		p.reader.elements, p.reader.set = src, p.set
		padding := m.fill(p.inputBuffer, &p.reader, p.batchGrid, p.batchAt, line)
		d.hasPadding, d.minExponent = p.padded && padding, p.minExponentOf(p.inputBuffer, m.size)
		p.inputKey = d
	}
	p.hasPadding, p.minExponent = p.inputKey.hasPadding, p.inputKey.minExponent
	return elements{floats: p.inputBuffer}
}

// minExponentOf returns the least exponent of the first n words, and writes MaxLanes zeros
// behind them.
func (p *packer) minExponentOf(words []float32, n int) kernel.MinExponent {
	clear(words[n:][:mem.MaxLanes])
	if !p.padded {
		return kernel.NoExponent
	}
	return kernel.MinExponentOf(p.set.MinMagnitude(mem.CeilDiv(n, p.set.Lanes), &words[0]))
}

// seek moves to terms t…t+n−1 of src.
func (p *packer) seek(src elements, t, n int) {
	p.src, p.firstTerm, p.termCount, p.kWords = src, t, n, mem.CeilDiv(n, p.wordTerms)
}

// locateTerms finds the offsets of the terms, for what is packed.
func (p *packer) locateTerms() {
	p.termOffsets = mem.Grow(p.termOffsets, p.termCount)
	p.termGrid.Offsets(p.termOffsets, 0, p.layout.terms, p.firstTerm)
	p.termsContiguous = affine.Contiguous(p.termOffsets)
	for i := range p.coords {
		c := &p.coords[i]
		c.terms = mem.Grow(c.terms, p.termCount)
		p.termGrid.Offsets(c.terms, 0, p.layout.bounds[i].terms, p.firstTerm)
	}
}

// listOffsets makes the indirection table of an operand that tiles read in place.
func (s *operandLayout) listOffsets(terms *affine.Grid) {
	switch m := s.input; {
	case !s.inPlace || s.dotForm:
		return
	case m != nil && m.table != nil:
		s.offsets = slices.Clone(m.table)
	case terms.N <= tuning.MaxIndirection:
		s.offsets = make([]int, terms.N)
		terms.Offsets(s.offsets, 0, s.terms, 0)
	}
	toBytes(s.offsets)
}

// toBytes turns offsets in elements into bytes.
func toBytes(at []int) {
	for i := range at {
		at[i] *= mem.Word
	}
}

// locateInPlace finds the indirection of the terms, for tiles that read them in place.
func (p *packer) locateInPlace() {
	switch s := p.layout; {
	case !s.inPlace || s.dotForm:
		return
	case s.offsets != nil:
		p.indirection = s.offsets[p.firstTerm:]
	default:
		p.indirectionBuffer = mem.Grow(p.indirectionBuffer, p.termCount)
		p.termGrid.Offsets(p.indirectionBuffer, 0, s.terms, p.firstTerm)
		toBytes(p.indirectionBuffer)
		p.indirection = p.indirectionBuffer
	}
}

// packKey says which rows and terms are packed, and what was found in them.
type packKey struct {
	side                  *operandLayout
	round, at, first      int
	from, n, start, taken int
	hasPadding            bool
	minExponent           kernel.MinExponent
}

// pack packs n rows from a row of the block on, for tiles of at most so many, in multiples
// of vector. What is read in place is packed only where a vector is not full. What was
// packed last in this round is not packed again.
func (p *packer) pack(from, n, most, vector int) {
	if p.layout.input != nil && p.layout.inPlace {
		return
	}
	if m := p.layout.prepacked; m != nil {
		p.panel, p.packedFrom = m.at(p.batchAt, p.firstTerm, p.termCount, p.firstRow), 0
		p.minExponent, p.hasPadding = m.minExponent, m.hasPadding
		return
	}
	end := from + n
	row := from
	for row < end && p.isInPlace(mem.EvenPart(end-row, most, vector), vector) {
		row += mem.EvenPart(end-row, most, vector)
	}
	if row == end {
		return
	}
	x := packKey{p.layout, p.round, p.batchAt, p.firstRow, row, end - row, p.firstTerm, p.termCount, p.packKey.hasPadding, p.packKey.minExponent}
	if x != p.packKey {
		p.packKey = packKey{}
		x.hasPadding, x.minExponent = p.packRemaining(row, end-row, most, vector)
		if p.worker.Stopped() {
			return // whoever asks next ends the block
		}
		p.packKey = x
	}
	p.panel, p.packedFrom = p.panelBuffer, row
	p.hasPadding, p.minExponent = p.hasPadding || x.hasPadding, min(p.minExponent, x.minExponent)
}

// packRemaining packs n rows, and returns whether any value is padding, and the least
// exponent of all.
func (p *packer) packRemaining(from, n, most, vector int) (padding bool, least kernel.MinExponent) {
	before := p.hasPadding
	p.hasPadding = false
	p.locateTerms()
	p.panelBuffer = mem.Grow(p.panelBuffer, (mem.RoundUp(n, vector)+1)*p.kWords+mem.MaxLanes)
	own := p.rowOffsets[from:][:n]
	switch {
	case p.layout.rowMajor:
		p.packRowMajor(p.panelBuffer, from, n)
	case len(p.layout.bounds) == 0 && !p.isInt8 && p.src.widen == nil && affine.Contiguous(own):
		p.tileRows = cutEvenly(p.tileRows[:0], n, most, vector)
		packContiguous(p.panelBuffer, p.src.floats, own[0], p.termOffsets, p.tileRows, vector)
	default:
		for row, end := from, from+n; row < end && !p.worker.Stopped(); {
			size := mem.EvenPart(end-row, most, vector)
			p.packTile(p.panelBuffer[(row-from)*p.kWords:], row, size, mem.RoundUp(size, vector))
			row += size
		}
	}
	padding, p.hasPadding = p.hasPadding, before
	if p.padded && p.layout.input == nil {
		return padding, p.minExponentOf(p.panelBuffer, mem.RoundUp(n, vector)*p.kWords)
	}
	return padding, kernel.NoExponent
}

// isInPlace reports whether a tile of size rows reads them in place.
func (p *packer) isInPlace(size, vector int) bool {
	if p.layout.dotForm {
		return p.isDotTile(size)
	}
	return p.layout.inPlace && size%vector == 0
}

// isDotTile reports whether a tile of size columns is computed in dot form.
func (p *packer) isDotTile(size int) bool {
	return p.layout.dotForm && size == asm.DotColumns && p.kWords%asm.DotTerms == 0
}

// packTile packs n rows for one tile, width values for each term.
func (p *packer) packTile(dst []float32, row, n, width int) {
	if width > n {
		clear(dst[:width*p.kWords])
	}
	switch own := p.rowOffsets[row:][:n]; {
	case p.isInt8:
		p.packInt8(dst, row, n, width)
	case len(p.layout.bounds) == 0 && affine.Contiguous(own):
		for t, at := range p.termOffsets {
			p.src.read(dst[t*width:][:n], own[0]+at)
		}
	case len(p.layout.bounds) == 0 && p.termsContiguous:
		if p.src.widen == nil {
			p.transpose(dst, p.src.floats, own, p.termOffsets[0], p.kWords, width)
			break
		}
		for i, line := range p.newRowBuffer(n) {
			p.src.read(p.rowBuffer[line:][:p.kWords], own[i]+p.termOffsets[0])
		}
		p.transpose(dst, p.rowBuffer, p.rowStarts, 0, p.kWords, width)
	default:
		p.packRuns(dst, row, n, width)
	}
}

// packContiguous packs rows that are contiguous in src from base on, for each of the terms,
// for tiles of so many: a few terms of all of them before the next ones, so that every
// line of the cache is read once.
func packContiguous(dst, src []float32, base int, terms, tileRows []int, vector int) {
	for first := 0; first < len(terms); first += tuning.PackTerms {
		some, row := terms[first:min(first+tuning.PackTerms, len(terms))], 0
		for _, n := range tileRows {
			width := mem.RoundUp(n, vector)
			copyTerms(dst[row*len(terms)+first*width:][:len(some)*width], src, base+row, some, width, n)
			row += n
		}
	}
}

// copyTerms copies n elements of src, for each of the terms from base on, to width elements
// of dst, in turn, and zeros behind them.
func copyTerms(dst, src []float32, base int, terms []int, width, n int) {
	type group = [4]uint64 // words that are copied without a call
	const size = int(unsafe.Sizeof(group{}))
	bytes := n * mem.Word / size * size
	whole, to := bytes/mem.Word, unsafe.Pointer(unsafe.SliceData(dst))
	for t, at := range terms {
		from := unsafe.Pointer(unsafe.SliceData(src[base+at:][:n]))
		for i := 0; i < bytes; i += size {
			d, s := (*group)(unsafe.Add(to, i)), (*group)(unsafe.Add(from, i))
			d[0], d[1], d[2], d[3] = s[0], s[1], s[2], s[3]
		}
		if whole < width {
			rest := dst[t*width+whole:][:width-whole]
			clear(rest[copy(rest, src[base+at:][whole:n]):])
		}
		to = unsafe.Add(to, min(width, (len(terms)-1-t)*width)*mem.Word) // never behind the end
	}
}

// transpose packs rows that have kWords contiguous words in src each, from own + at on.
func (p *packer) transpose(dst, src []float32, own []int, at, kWords, width int) {
	whole := kWords / asm.TransposeRows
	for i := 0; i < len(own); i += asm.TransposeRows {
		rows := &p.transposeRows
		n := min(len(rows), len(own)-i)
		for j := range rows {
			rows[j] = own[i+min(j, n-1)] + at
		}
		if whole > 0 {
			p.set.Transpose8(whole, &dst[i], width*mem.Word, &src[0], rows)
		}
		for t := whole * asm.TransposeRows; t < kWords; t++ {
			d := dst[t*width+i:][:n]
			for j := range d {
				d[j] = src[rows[j]+t]
			}
		}
	}
}

// aTile returns where a tile of n rows from a row of the block on reads operand a, the
// bytes from row to row, and those to each term.
func (p *packer) aTile(row, n int) (first *float32, step int, terms *int) {
	switch s := p.layout; {
	case s.lineRows > 0:
		return &p.src.floats[p.rowOffsets[row]], affine.Last(s.own) * mem.Word, &p.indirection[0]
	case s.inPlace:
		return &p.src.floats[p.base+row*s.own[0]], s.own[0] * mem.Word, &p.indirection[0]
	case s.rowMajor:
		return &p.panel[(row-p.packedFrom)*p.kWords], p.kWords * mem.Word, p.packedStrides(1)
	}
	return &p.panel[(row-p.packedFrom)*p.kWords], mem.Word, p.packedStrides(n)
}

// bTile returns where a tile of n columns, packed to width, reads operand b, the bytes to
// the next tile, and those to each term.
func (p *packer) bTile(column, n, width int) (first *float32, next int, terms *int) {
	if p.layout.input != nil || p.isInPlace(n, width) {
		return &p.src.floats[p.base+column], n * mem.Word, &p.indirection[0]
	}
	return &p.panel[(column-p.packedFrom)*p.kWords], n * p.kWords * mem.Word, p.packedStrides(width)
}

// axpyTerm returns where the first row reads term t of those sought, in place, and the
// bytes from row to row and from term to term.
func (p *packer) axpyTerm(t int) (first *float32, rowStep, termStep int) {
	own, each := p.layout.own[0], p.layout.terms[0]
	return &p.src.floats[p.base+(p.firstTerm+t)*each], own * mem.Word, each * mem.Word
}

// dotColumns returns where a tile in dot form begins, and the bytes from column to
// column.
func (p *packer) dotColumns(column int) (first *float32, step int) {
	own := p.layout.own[0]
	return &p.src.floats[p.base+column*own+p.firstTerm], own * mem.Word
}

// packedStrides returns the indirection of packed terms for a tile width: they follow each
// other.
func (p *packer) packedStrides(width int) *int {
	if len(p.packedOffsets) <= width {
		p.packedOffsets = append(p.packedOffsets, make([][]int, width+1-len(p.packedOffsets))...)
	}
	if len(p.packedOffsets[width]) < p.kWords {
		p.packedOffsets[width] = make([]int, max(tuning.MaxKC, p.kWords))
		for t := range p.packedOffsets[width] {
			p.packedOffsets[width][t] = t * width * mem.Word
		}
	}
	return &p.packedOffsets[width][0]
}

// newRowBuffer makes room for n rows that are to be transposed, and returns where
// each begins.
func (p *packer) newRowBuffer(n int) []int {
	p.rowBuffer = mem.Grow(p.rowBuffer, n*p.kWords+mem.MaxLanes)
	p.rowStarts = mem.Grow(p.rowStarts, n)
	for i := range p.rowStarts {
		p.rowStarts[i] = i * p.kWords
	}
	return p.rowStarts
}
