package cpu

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// piece is a block of a contraction's output in the making, and the memory for
// it. Operands are packed into panels, block by block of the terms, unless they
// are read in place, and tiles of chains are advanced in the output itself or,
// where it cannot hold them, in memory of the piece.
type piece struct {
	*dot
	batchAt, row, line  int // where it begins
	tall, broad         int // rows and columns
	lineCount           int
	left, top           panels
	chains              []float32 // c[i][j] lies at i·pitch + j
	pitch               int
	own                 []float32   // chains that are not kept in the output
	done                [][]float32 // sums of finished K-blocks, as in a binary counter
	edge                []float32   // a tile whose last vector is not full
	columnSums, rowSums []int32     // of bytes
	rowsOut             []int       // where rows begin in the output
	stretches           []stretch
}

// place sets the piece of so many rows and lines, or those that are left, that
// begins at a row and a line of a batch, in a round of the worker.
func (p *piece) place(k *dot, round, batch, row, line, rows, lines int) {
	p.dot, p.batchAt, p.row, p.line = k, batch, row, line
	p.tall, p.lineCount = min(rows, k.rows.N-row), min(lines, k.lines.n-line)
	p.broad = (p.lineCount-1)*k.lines.pitch + k.lines.span
	p.left.place(&k.a, k, &k.rows, round, batch, row, p.tall)
	p.top.place(&k.b, k, &k.cols, round, batch, line, p.broad)
	p.edge = mem.Grow(p.edge, k.tileRows*k.tileCols)
}

// compute runs all chains, in the output if they are kept there.
func (p *piece) compute(args []*tensor.Tensor, out []float32) {
	if p.direct {
		p.pitch = p.out.rows[0]
		p.chains = out[p.batch.Offset(p.out.at, p.out.batch, p.batchAt)+p.row*p.pitch+p.line*p.out.cols[0]:]
	} else {
		p.pitch = mem.RoundUp(p.broad, p.set.Lanes)
		p.own = mem.Grow(p.own, p.tall*p.pitch)
		p.chains = p.own
	}
	p.done = p.done[:0]
	a, b := p.left.draw(p.operand(&p.a, args), 0), p.top.draw(p.operand(&p.b, args), p.line)
	for t := 0; t < p.terms.N; {
		if t > 0 && t%tensor.KBlock == 0 && p.bytes == nil {
			p.endChain(t / tensor.KBlock)
		}
		n := p.take(t)
		p.advance(a, b, t, n)
		t += n
	}
	if len(p.done) == 0 {
		return
	}
	for i := len(p.done) - 1; i >= 0; i-- {
		addTo(p.chains, p.done[i])
	}
	for i, x := range p.chains {
		p.chains[i] = eltwise.Canonical(x)
	}
}

// take returns how many terms from t on are taken together.
func (k *dot) take(t int) int {
	n := min(k.deep*k.group(), k.terms.N-t)
	if n > k.whole {
		n -= n % k.whole
	}
	return n
}

// advance takes n terms from t on into every chain.
func (p *piece) advance(a, b operand, t, n int) {
	p.top.reach(b, t, n)
	p.top.locate()
	p.left.reach(a, t, n)
	p.left.locate()
	swept := p.sweptBy(n)
	p.top.pack(swept, p.broad-swept, p.tileCols, p.set.Lanes)
	add := t%tensor.KBlock != 0
	var columns []int32
	biased := p.bytes != nil && p.bytes.biasA|p.bytes.biasB != 0
	if p.bytes != nil {
		add = t > 0 || biased
	}
	if biased {
		columns = p.sumColumns()
	}
	for i, high := 0, 0; i < p.tall; i += high {
		switch high = min(maxRows, p.tall-i); {
		case p.a.line > 0:
			high = p.tall
		case p.a.kept != nil:
			high = min(high, p.high-i%p.high)
		}
		p.left.pack(i, high, p.tileRows, 1)
		if biased {
			p.unbias(i, high, columns, t == 0)
		}
		if swept > 0 {
			p.sweep(swept, n, add)
		}
		for c := swept; c < p.broad; {
			left := p.broad - c
			if p.b.kept != nil {
				left = min(left, p.wide-c%p.wide)
			}
			cols, tiles := p.strip(left)
			for r := i; r < i+high; {
				rows := nextPart(p.inLine(r, i+high-r), p.tileRows, 1)
				p.advanceTiles(r, rows, c, cols, tiles, add)
				r += rows
			}
			c += cols * tiles
		}
	}
}

// inLine returns how many of the next rows, of so many from row r on, a tile can have.
func (p *piece) inLine(r, left int) int {
	if line := p.a.line; line > 0 {
		return min(line-(p.row+r)%line, left)
	}
	return left
}

// sweptBy returns how many columns are swept over by n terms.
func (p *piece) sweptBy(n int) int {
	if !p.b.swept || n%asm.SweptTerms != 0 {
		return 0
	}
	return p.broad - p.broad%p.set.Lanes
}

// sweep advances the chains of the first columns, and all rows, by n terms.
func (p *piece) sweep(columns, n int, add bool) {
	for i := 0; !add && i < p.tall; i++ {
		clear(p.chains[i*p.pitch:][:columns])
	}
	run := p.set.Swept[p.tall-1]
	for t := 0; t < n; t += asm.SweptTerms {
		a, aRow, aStep := p.left.termAt(t)
		b, _, bRow := p.top.termAt(t)
		run(columns/p.set.Lanes, a, aRow, aStep, b, bRow, &p.chains[0], p.pitch*mem.Word)
	}
}

// strip returns the columns of the next tile of those that are left, and how many
// like it are advanced in one call: operand b shall stay in the cache for the next
// rows.
func (p *piece) strip(left int) (cols, tiles int) {
	cols = nextPart(left, p.tileCols, p.set.Lanes)
	most := maxStrip / (cols * p.top.deep)
	for tiles = 1; tiles < most && nextPart(left-tiles*cols, p.tileCols, p.set.Lanes) == cols; {
		tiles++
	}
	return cols, tiles
}

// advanceTiles advances the chains of rows r… and columns c… by tiles side by side.
func (p *piece) advanceTiles(r, rows, c, cols, tiles int, add bool) {
	lanes := p.set.Lanes
	vectors := mem.CeilDiv(cols, lanes)
	a, aRow, aAt := p.left.rowsAt(r, rows)
	at := p.chains[r*p.pitch+c:]
	deep := p.top.deep
	if p.top.turns(cols) {
		for i := range tiles {
			b, column := p.top.turnedAt(c + i*cols)
			p.set.Turned[rows-1](deep, (*float32)(unsafe.Add(unsafe.Pointer(a), *aAt)), b, column, &at[i*cols], p.pitch*mem.Word, add)
		}
		return
	}
	b, next, bAt := p.top.columnsAt(c, cols, vectors*lanes)
	run := p.tiles[rows-1][vectors-1]
	if !p.direct || cols == vectors*lanes {
		run(tiles, deep, a, aRow, aAt, b, next, bAt, &at[0], p.pitch*mem.Word, add)
		return
	}
	for i := 0; add && i < rows; i++ {
		copy(p.edge[i*vectors*lanes:][:cols], at[i*p.pitch:])
	}
	run(1, deep, a, aRow, aAt, b, next, bAt, &p.edge[0], vectors*lanes*mem.Word, add)
	for i := range rows {
		copy(at[i*p.pitch:][:cols], p.edge[i*vectors*lanes:])
	}
}

// nextPart returns the size of the next part when n rows or columns are cut into
// as few parts of at most so many as possible, nearly equal, all but the last
// multiples of a unit.
func nextPart(n, most, unit int) int {
	return min(mem.RoundUp(mem.CeilDiv(n, mem.CeilDiv(n, most)), unit), n)
}

// endChain puts the chains of the nth K-block away; new ones begin.
func (p *piece) endChain(n int) {
	for ; n%2 == 0; n /= 2 {
		last := len(p.done) - 1
		addTo(p.chains, p.done[last])
		p.done = p.done[:last]
	}
	if len(p.done) < cap(p.done) {
		p.done = p.done[:len(p.done)+1]
	} else {
		p.done = append(p.done, nil)
	}
	top := &p.done[len(p.done)-1]
	*top = append((*top)[:0], p.chains...)
}

func addTo(sums, x []float32) {
	for i := range sums {
		sums[i] = x[i] + sums[i]
	}
}
