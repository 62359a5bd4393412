package gemm

import (
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Operands that are rows of blocks of quantised weights. They are packed into panels of float32 from their blocks, in each
// run. Where a product has few rows, a panel is one tile's, and some
// blocks long, so that it stays in the first-level cache.

// blockFormat is how an operand's rows are stored.
type blockFormat struct {
	of             quant.Type
	elements, size int // of a block; size in bytes
	pitch          int // bytes from row to row
	unpack         asm.UnpackKernel
}

// servesBlocks reports whether operand b is all of a matrix, by rows of terms.
func (k *contraction) servesBlocks(row int) bool {
	b := &k.b
	rows := k.cols.OneAxis() && (b.own[0] == row || k.cols.N == 1)
	return !k.padded && k.batch.N == 1 && b.base == 0 && rows && k.terms.OneAxis() && k.terms.N == row && (b.terms[0] == 1 || row == 1)
}

// NewOfBlocks returns the kernel of a contraction p of which an operand is rows of blocks of quantised weights: Run is given
// the blocks, uint8, in its place. It returns nil if it does not serve p. p is checked, and the operand float32 in it.
func NewOfBlocks(p *tensor.Primitive, arg int, of quant.Type, set *asm.KernelSet) kernel.Kernel {
	floats := p.Type == tensor.Float32 && p.Args[0].Type == tensor.Float32 && p.Args[1].Type == tensor.Float32
	if of == quant.F32 || !floats || p.Fn != tensor.Dot || p.Band != nil || p.Terms() == 0 || p.Shape.Elements() == 0 {
		return nil
	}
	k := &contraction{p: p, whole: p, set: set, isFloat32: true}
	k.blocking = blocking{microKernels: set.GEMM, kc: tuning.MaxKC, kUnit: 1, mr: set.MR(), nr: set.NRVectors() * set.Lanes}
	var batch, rows, cols []int
	for axis := range p.Shape {
		switch a, b := affine.DependsOn(p, 1-arg, axis), affine.DependsOn(p, arg, axis); {
		case a && b:
			batch = append(batch, axis)
		case b:
			cols = append(cols, axis)
		default:
			rows = append(rows, axis)
		}
	}
	k.setGrids(1-arg, arg, batch, rows, cols, affine.Axes(len(p.Shape), len(p.Shape)+len(p.Fold)), neither)
	row := p.Args[arg].Shape.Elements() / k.cols.N
	if !k.servesBlocks(row) {
		return nil
	}
	k.b.blocks = newBlockFormat(of, row, set)
	k.lines = lineLayout{k.cols.N, 1, 1, 1, tensor.Shape(k.cols.Extents).Strides()}
	k.chooseBlocking(tuning.FineBlocks)
	k.chooseA()
	if k.rows.N <= tuning.BlockRows { // every block of rows would unpack again
		k.a.inPlace, k.a.rowMajor = k.isRegular(&k.rows), false
		tiles := mem.CeilDiv(mem.CeilDiv(k.cols.N, k.nr), tuning.FineBlocks)
		k.mc, k.nc = k.rows.N, min(tiles*k.nr, k.cols.N)
		k.mBlocks, k.nBlocks = 1, mem.CeilDiv(k.cols.N, k.nc)
	}
	return k
}

// newBlockFormat returns that of rows of so many elements.
func newBlockFormat(of quant.Type, row int, set *asm.KernelSet) *blockFormat {
	elements, size := of.Block()
	f := &blockFormat{of, elements, size, row / elements * size, set.Unpack[of]}
	switch {
	case elements > 1:
	case row%asm.UnpackHalves == 0:
		f.elements, f.size = asm.UnpackHalves, asm.UnpackHalves*size
	default:
		f.unpack = nil
	}
	return f
}

// computeTiles computes a block of few rows tile by tile: blocks are read in the order in which they are stored, and a panel
// is what one tile needs next. It reports whether it came to the end.
func (p *block) computeTiles(a, b elements) (done bool) {
	unit := max(tuning.BlockKC, p.b.blocks.elements)
	for c := 0; c < p.colCount; {
		cols := mem.EvenPart(p.colCount-c, p.nr, p.set.Lanes)
		for t := 0; t < p.terms.N; t += unit {
			n := min(unit, p.terms.N-t)
			p.bPacker.seek(b, t, n)
			p.b.blocks.pack(&p.bPacker, c, cols, p.nr, p.set.Lanes)
			p.bPacker.panel, p.bPacker.packedFrom = p.bPacker.panelBuffer, c
			p.aPacker.seek(a, t, n)
			p.aPacker.locateInPlace()
			p.aPacker.pack(0, p.rowCount, p.mr, 1)
			if p.worker.Stopped() {
				return false
			}
			for r := 0; r < p.rowCount; {
				rows := mem.EvenPart(p.rowCount-r, p.mr, 1)
				p.runTiles(r, rows, c, cols, 1, t > 0)
				r += rows
			}
		}
		c += cols
	}
	return true
}

// pack packs n rows from one of p's on, as packRemaining does.
func (f *blockFormat) pack(p *packer, from, n, most, vector int) {
	p.panelBuffer = mem.Grow(p.panelBuffer, (mem.RoundUp(n, vector)+1)*p.kWords+mem.MaxLanes)
	for row, end := from, from+n; row < end && !p.worker.Stopped(); {
		size := mem.EvenPart(end-row, most, vector)
		width, dst, done := mem.RoundUp(size, vector), p.panelBuffer[(row-from)*p.kWords:], 0
		if width > size {
			clear(dst[:width*p.kWords])
		}
		src := p.src.bytes[(p.firstRow+row)*f.pitch+p.firstTerm/f.elements*f.size:]
		if f.unpack != nil {
			ahead := p.set.Lanes*f.pitch + (p.set.Lanes-1)*(p.firstTerm/f.elements*f.size) // the same part of the rows that follow
			for ; done+p.set.Lanes <= size; done += p.set.Lanes {
				f.unpack(p.termCount/f.elements, &dst[done], width*mem.Word, &src[done*f.pitch], f.pitch, ahead)
			}
		}
		if done < size {
			f.decode(p, dst[done:], src[done*f.pitch:], size-done, width)
		}
		row += size
	}
}

// decode packs n rows of blocks by the definition of their type.
func (f *blockFormat) decode(p *packer, dst []float32, src []byte, n, width int) {
	for i, line := range p.newRowBuffer(n) {
		f.of.Decode(p.rowBuffer[line:][:p.kWords], src[i*f.pitch:][:p.kWords/f.elements*f.size])
	}
	p.transpose(dst, p.rowBuffer, p.rowStarts, 0, p.kWords, width)
}
