package quantized

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// block is some rows and columns of a product in the making.
type block struct {
	*product
	worker             *kernel.Worker
	row, col           int // where it begins
	rowCount, colCount int
	x                  []float32 // rows of terms, from the first on
	xRow               int       // from row to row
	acc                []float32 // accumulators, of whole panels: in the output, or in buffer
	ldc                int
	inOutput           bool
	sums               kernel.KBlocks // of finished K-blocks
	buffer, packedX    []float32
	unpacked           []float32 // some terms of a tile's columns
	panels             []byte    // from the block's first column on
	packedPanels       []byte    // memory of those that are packed in this run
	one                []byte    // a block of one column
	decoded            []float32 // its elements
}

func (b *block) place(k *product, w *kernel.Worker, row, rows, col, cols int) {
	b.product, b.worker, b.row, b.rowCount, b.col, b.colCount = k, w, row, rows, col, cols
}

// compute computes all accumulators. It reports whether it came to the end.
func (b *block) compute(args []*tensor.Tensor, out []float32) (done bool) {
	b.locate(args, out)
	b.sums = b.sums[:0]
	for t := 0; t < b.terms; t += tensor.KBlock {
		if t > 0 {
			b.sums.End(b.acc, t/tensor.KBlock)
		}
		n := min(tensor.KBlock, b.terms-t)
		direct := 0
		if b.direct() {
			direct = n - n%b.format.elements
		}
		if direct > 0 && !b.advance(t, direct) || direct < n && !b.advanceUnpacked(t, direct, n) {
			return false
		}
	}
	if len(b.sums) == 0 {
		return true
	}
	for i := len(b.sums) - 1; i >= 0; i-- {
		kernel.AddTo(b.acc, b.sums[i])
	}
	for i, x := range b.acc {
		b.acc[i] = eltwise.Canonical(x)
	}
	return true
}

// locate finds operands and accumulators.
func (b *block) locate(args []*tensor.Tensor, out []float32) {
	x := tensor.Of[float32](args[1-b.arg])
	if at := b.rows.Offset(b.operand.base, b.operand.rows, b.row); b.rows.OneAxis() && (b.operand.terms[0] == 1 || b.terms == 1) {
		b.x, b.xRow = x[at:], b.operand.rows[0]
	} else {
		b.packedX, b.xRow = mem.Grow(b.packedX, b.rowCount*b.terms), b.terms
		for i := range b.rowCount {
			mem.CopyStrided(b.packedX[i*b.terms:], 1, x, b.rows.Offset(b.operand.base, b.operand.rows, b.row+i), b.operand.terms[0], b.terms)
		}
		b.x = b.packedX
	}
	b.inOutput = b.terms <= tensor.KBlock && b.rows.OneAxis() && b.LongRuns() && b.cols.OneAxis() && b.colCount%columns == 0
	if b.inOutput {
		b.ldc = b.out.rows[0]
		b.acc = out[b.row*b.ldc+b.col:]
	} else {
		b.ldc = mem.RoundUp(b.colCount, columns)
		b.buffer = mem.Grow(b.buffer, b.rowCount*b.ldc)
		b.acc = b.buffer
	}
	first, n := b.col/columns, mem.CeilDiv(b.colCount, columns)
	if b.packed != nil {
		b.panels = b.packed.Bytes()[first*b.panelBytes():]
		return
	}
	b.packedPanels = mem.Grow(b.packedPanels, n*b.panelBytes())
	for i := range n {
		b.pack(b.packedPanels[i*b.panelBytes():][:b.panelBytes()], args[b.arg].Bytes(), first+i)
	}
	b.panels = b.packedPanels
}

// panelAt is where a panel has a term, with which a block begins.
func (b *block) panelAt(panel, term int) *byte {
	return &b.panels[panel*b.panelBytes()+term/b.format.elements*b.format.panelSize]
}

// advance advances all accumulators by n terms from t on, whole blocks of them, which are unpacked in registers. Some panels stay in
// the cache for the next rows.
func (b *block) advance(t, n int) (done bool) {
	panels := mem.CeilDiv(b.colCount, columns)
	for first, some := 0, 0; first < panels; first += some {
		if b.worker.Stopped() {
			return false
		}
		some = min(panels-first, tuning.DirectColumns/columns)
		for row, rows := 0, 0; row < b.rowCount; row += rows {
			for p := first; p < first+some; {
				tile := b.tileFor(b.rowCount-row, first+some-p)
				rows = tile.Rows
				at := (*float32)(unsafe.Pointer(&b.acc[row*b.ldc+p*columns]))
				tile.Run(n/b.format.elements, b.panelAt(p, t), b.panelBytes(), &b.x[row*b.xRow+t], b.xRow*mem.Word, at, b.ldc*mem.Word, t%tensor.KBlock > 0)
				p += tile.Panels
			}
		}
	}
	return true
}

// tileFor returns the greatest tile of the rows and panels that are left.
func (b *block) tileFor(rows, panels int) *asm.BlockTile {
	for i := range b.kernels.Tiles {
		if t := &b.kernels.Tiles[i]; t.Rows <= rows && t.Panels <= panels {
			return t
		}
	}
	return nil
}

// advanceUnpacked advances all accumulators by terms t+from…t+to−1, as tiles of gemm do: those of a tile are unpacked first.
func (b *block) advanceUnpacked(t, from, to int) (done bool) {
	b.unpacked = mem.Grow(b.unpacked, len(b.xOffsets)*b.tile)
	for c := 0; c < b.colCount; c += b.tile {
		panels := mem.CeilDiv(min(b.tile, b.colCount-c), columns)
		for at := from; at < to; at += len(b.xOffsets) {
			if b.worker.Stopped() {
				return false
			}
			n := min(len(b.xOffsets), to-at)
			for p := range panels {
				b.unpack(b.unpacked[p*columns:], c/columns+p, t+at, mem.CeilDiv(n, b.format.elements))
			}
			for row, rows := 0, 0; row < b.rowCount; row += rows {
				rows = mem.EvenPart(b.rowCount-row, b.set.MR(), 1)
				b.runTiles(row, rows, c, panels, t+at, n)
			}
		}
	}
	return true
}

// runTiles advances rows of some panels by n terms from t on, which are unpacked.
func (b *block) runTiles(row, rows, col, panels, t, n int) {
	lanes := b.set.Lanes
	for c, left := 0, panels*columns/lanes; left > 0; {
		vectors := min(left, b.set.NRVectors())
		tiles := left / vectors
		width := vectors * lanes
		b.set.GEMM[rows-1][vectors-1](tiles, n, &b.x[row*b.xRow+t], b.xRow*mem.Word, &b.xOffsets[0], &b.unpacked[c], width*mem.Word, &b.wOffsets[0],
			&b.acc[row*b.ldc+col+c], b.ldc*mem.Word, t%tensor.KBlock > 0)
		c, left = c+tiles*width, left-tiles*vectors
	}
}

// unpack unpacks some blocks of a panel, from one on, to columns of dst.
func (b *block) unpack(dst []float32, panel, term, blocks int) {
	if b.kernels.Unpack != nil {
		b.kernels.Unpack(blocks, b.panelAt(panel, term), &dst[0], b.tile*mem.Word)
		return
	}
	f := b.format
	b.one, b.decoded = mem.Grow(b.one, f.size), mem.Grow(b.decoded, f.elements)
	for i := range blocks {
		from := mem.Slice[byte](unsafe.Pointer(b.panelAt(panel, term+i*f.elements)), f.panelSize)
		for column := range columns {
			clear(b.one)
			f.move(view{panel: from, column: column, block: b.one, restore: true})
			f.of.Decode(b.decoded, b.one)
			for t, x := range b.decoded {
				dst[(i*f.elements+t)*b.tile+column] = x
			}
		}
	}
}

// store brings accumulators to the output, and calls do for rows of it.
func (b *block) store(out []float32, do kernel.Epilogue) error {
	long := b.LongRuns() && b.cols.OneAxis()
	for i := 0; !b.inOutput && i < b.rowCount; i++ {
		at, from := b.rows.Offset(0, b.out.rows, b.row+i), b.acc[i*b.ldc:][:b.colCount]
		for j, x := range from {
			if long {
				copy(out[at+b.col:], from)
				break
			}
			out[at+b.cols.Offset(0, b.out.terms, b.col+j)] = x
		}
	}
	if do == nil {
		return nil
	}
	if b.inOutput {
		return do(b.row*b.ldc+b.col, b.colCount, b.rowCount, b.ldc, kernel.Source{})
	}
	for i := range b.rowCount {
		at, n := b.rows.Offset(0, b.out.rows, b.row+i), b.colCount
		if !long {
			n = 1
		}
		for j := 0; j < b.colCount; j += n {
			if err := do(at+b.cols.Offset(0, b.out.terms, b.col+j), n, 1, n, kernel.Source{}); err != nil {
				return err
			}
		}
	}
	return nil
}
