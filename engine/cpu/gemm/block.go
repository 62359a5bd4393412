package gemm

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// block is mc rows and nc columns of a contraction's output in the making, and the memory
// for it. Operands are packed into panels, kc terms at a time, unless they are read in
// place, and tiles of accumulators are advanced in the output itself or, where that
// cannot hold them, in a buffer.
//
// An accumulator is one chain of fused multiply-adds from +0, over tensor.KBlock terms
// at most; the sums of K-blocks are added by a tree. No size of a block changes that.
type block struct {
	*contraction
	worker              *kernel.Worker
	batchAt, row, line  int // where it begins
	rowCount, colCount  int
	lineCount           int
	aPacker, bPacker    packer
	acc                 []float32 // accumulators: C[i][j] lies at i·ldc + j
	ldc                 int
	accBuffer           []float32      // memory of those that are not in the output
	kBlockSums          kernel.KBlocks // of finished ones
	edgeTile            []float32      // a tile whose last vector is not full
	columnSums, rowSums []int32        // of integers of 8 bits
	outRows             []int          // where rows begin in the output
	columnRuns          []columnRun
}

// place sets the block of rows rows and lines lines, or as many as are left, that begins
// at a row and a line of a batch.
func (p *block) place(k *contraction, w *kernel.Worker, batch, row, line, rows, lines int) {
	p.contraction, p.worker, p.batchAt, p.row, p.line = k, w, batch, row, line
	p.rowCount, p.lineCount = min(rows, k.rows.N-row), min(lines, k.lines.n-line)
	p.colCount = (p.lineCount-1)*k.lines.pitch + k.lines.span
	p.aPacker.worker, p.bPacker.worker = w, w
	p.aPacker.place(&k.a, k, &k.rows, w.Round, batch, row, p.rowCount)
	p.bPacker.place(&k.b, k, &k.cols, w.Round, batch, line, p.colCount)
	p.edgeTile = mem.Grow(p.edgeTile, k.mr*k.nr)
}

// compute advances all accumulators by all terms, in out if they are kept there. It
// reports whether it came to the end.
func (p *block) compute(args []*tensor.Tensor, out []float32) (done bool) {
	if p.direct {
		p.ldc = p.out.rows[0]
		p.acc = out[p.batch.Offset(p.out.at, p.out.batch, p.batchAt)+p.row*p.ldc+p.line*p.out.cols[0]:]
	} else {
		p.ldc = mem.RoundUp(p.colCount, p.set.Lanes)
		p.accBuffer = mem.Grow(p.accBuffer, p.rowCount*p.ldc)
		p.acc = p.accBuffer
	}
	p.kBlockSums = p.kBlockSums[:0]
	a, b := p.aPacker.fillInput(p.elements(&p.a, args), 0), p.bPacker.fillInput(p.elements(&p.b, args), p.line)
	for t := 0; t < p.terms.N; {
		if t > 0 && t%tensor.KBlock == 0 && p.int8 == nil {
			p.kBlockSums.End(p.acc, t/tensor.KBlock) // accumulators begin anew
		}
		n := p.nextTerms(t)
		if !p.advance(a, b, t, n) {
			return false
		}
		t += n
	}
	if len(p.kBlockSums) == 0 {
		return true
	}
	for i := len(p.kBlockSums) - 1; i >= 0; i-- {
		kernel.AddTo(p.acc, p.kBlockSums[i])
	}
	for i, x := range p.acc {
		p.acc[i] = eltwise.Canonical(x)
	}
	return true
}

// nextTerms returns how many terms from t on are packed together.
func (k *contraction) nextTerms(t int) int {
	n := min(k.kc*k.wordTerms(), k.terms.N-t)
	if n > k.kUnit {
		n -= n % k.kUnit
	}
	return n
}

// advance advances every accumulator by n terms from t on, unless the worker is stopped.
func (p *block) advance(a, b elements, t, n int) (done bool) {
	p.bPacker.seek(b, t, n)
	p.bPacker.locateInPlace()
	p.aPacker.seek(a, t, n)
	p.aPacker.locateInPlace()
	axpyCols := p.axpyColumns(n)
	if p.bPacker.pack(axpyCols, p.colCount-axpyCols, p.nr, p.set.Lanes); p.worker.Stopped() {
		return false
	}
	add := t%tensor.KBlock != 0
	var columns []int32
	biased := p.int8 != nil && p.int8.biasA|p.int8.biasB != 0
	if p.int8 != nil {
		add = t > 0 || biased
	}
	if biased {
		columns = p.sumColumns()
	}
	for i, packed := 0, 0; i < p.rowCount; i += packed {
		switch packed = min(tuning.MaxPackRows, p.rowCount-i); {
		case p.a.lineRows > 0:
			packed = p.rowCount
		case p.a.prepacked != nil:
			packed = min(packed, p.mc-i%p.mc)
		}
		if p.aPacker.pack(i, packed, p.mr, 1); p.worker.Stopped() {
			return false
		}
		if biased {
			p.unbias(i, packed, columns, t == 0)
		}
		if axpyCols > 0 {
			p.axpy(axpyCols, n, add)
		}
		for c := axpyCols; c < p.colCount; {
			if p.worker.Stopped() {
				return false
			}
			cols, tiles := p.tilesInL1(p.columnsLeft(c))
			for r := i; r < i+packed; {
				rows := mem.EvenPart(p.rowsInLine(r, i+packed-r), p.mr, 1)
				p.runTiles(r, rows, c, cols, tiles, add)
				r += rows
			}
			c += cols * tiles
		}
	}
	return true
}

// rowsInLine returns how many of the left rows from r on one tile can have: those of one
// line of a padded input.
func (p *block) rowsInLine(r, left int) int {
	if line := p.a.lineRows; line > 0 {
		return min(line-(p.row+r)%line, left)
	}
	return left
}

// axpyColumns returns how many columns n terms advance in axpy form.
func (p *block) axpyColumns(n int) int {
	if !p.b.axpyForm || n%asm.AxpyTerms != 0 {
		return 0
	}
	return p.colCount - p.colCount%p.set.Lanes
}

// axpy advances the first columns of all rows by n terms: C += a[t]·B[t], row by row of B.
func (p *block) axpy(columns, n int, add bool) {
	for i := 0; !add && i < p.rowCount; i++ {
		clear(p.acc[i*p.ldc:][:columns])
	}
	run := p.set.AxpyGEMM[p.rowCount-1]
	for t := 0; t < n; t += asm.AxpyTerms {
		a, aRow, aStep := p.aPacker.axpyTerm(t)
		b, _, bRow := p.bPacker.axpyTerm(t)
		run(columns/p.set.Lanes, a, aRow, aStep, b, bRow, &p.acc[0], p.ldc*mem.Word)
	}
}

// columnsLeft returns how many columns from one on lie together: panels that were made once
// end where a block of nc does.
func (p *block) columnsLeft(c int) int {
	if p.b.prepacked != nil {
		return min(p.colCount-c, p.nc-c%p.nc)
	}
	return p.colCount - c
}

// tilesInL1 returns the columns of the next tile of those that are left, and how many
// tiles like it are advanced in one call: their strip of operand b shall stay in the
// cache for the next rows.
func (p *block) tilesInL1(left int) (cols, tiles int) {
	cols = mem.EvenPart(left, p.nr, p.set.Lanes)
	most := tuning.MaxBStrip / (cols * p.bPacker.kWords)
	for tiles = 1; tiles < most && mem.EvenPart(left-tiles*cols, p.nr, p.set.Lanes) == cols; {
		tiles++
	}
	return cols, tiles
}

// runTiles runs the micro-kernel for some tiles of rows from r and columns from c on.
func (p *block) runTiles(r, rows, c, cols, tiles int, add bool) {
	lanes := p.set.Lanes
	vectors := mem.CeilDiv(cols, lanes)
	a, aRow, aAt := p.aPacker.aTile(r, rows)
	at := p.acc[r*p.ldc+c:]
	deep := p.bPacker.kWords
	if p.bPacker.isDotTile(cols) {
		for i := range tiles {
			b, column := p.bPacker.dotColumns(c + i*cols)
			p.set.DotGEMM[rows-1](deep, (*float32)(unsafe.Add(unsafe.Pointer(a), *aAt)), b, column, &at[i*cols], p.ldc*mem.Word, add)
		}
		return
	}
	b, next, bAt := p.bPacker.bTile(c, cols, vectors*lanes)
	run := p.microKernels[rows-1][vectors-1]
	if !p.direct || cols == vectors*lanes {
		run(tiles, deep, a, aRow, aAt, b, next, bAt, &at[0], p.ldc*mem.Word, add)
		return
	}
	for i := 0; add && i < rows; i++ {
		copy(p.edgeTile[i*vectors*lanes:][:cols], at[i*p.ldc:])
	}
	run(1, deep, a, aRow, aAt, b, next, bAt, &p.edgeTile[0], vectors*lanes*mem.Word, add)
	for i := range rows {
		copy(at[i*p.ldc:][:cols], p.edgeTile[i*vectors*lanes:])
	}
}

// cutEvenly appends the sizes of all those parts to sizes.
func cutEvenly(sizes []int, n, most, unit int) []int {
	for n > 0 {
		size := mem.EvenPart(n, most, unit)
		sizes, n = append(sizes, size), n-size
	}
	return sizes
}
