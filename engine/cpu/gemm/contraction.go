package gemm

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// contraction is a contraction of floats to float32, or of integers of 8 bits to int32:
// C = A·B. Its axes fall into four grids: batch (both operands and the output have
// them), rows (M: operand a and the output), columns (N: operand b and the output) and
// terms (K: both operands). A block is mc rows and nc columns of the output within one
// batch.
type contraction struct {
	p, whole                 *tensor.Primitive // p is a phase of whole, or the same
	set                      *asm.KernelSet
	batch, rows, cols, terms affine.Grid
	out                      struct {
		at                int   // element at which p begins
		batch, rows, cols []int // strides
	}
	a, b      operandLayout
	isFloat32 bool         // operands are float32
	widen     eltwise.Func // makes them so
	int8      *int8Format  // if they are integers of 8 bits
	padded    bool         // some terms may be padding
	lines     lineLayout
	blocking
}

// blocking is the sizes of a contraction's blocks, panels and tiles.
type blocking struct {
	microKernels     [][]asm.MicroKernel // by rows − 1 and vectors − 1
	kc               int                 // words of a panel packed at a time; divides tensor.KBlock
	kUnit            int                 // terms that a micro-kernel takes together
	direct           bool                // C accumulates in the output, else in a buffer of the block
	mc, nc           int                 // rows and lines of a block
	mr, nr           int                 // rows and columns of the greatest tile
	mBlocks, nBlocks int                 // blocks in one batch
}

// lineLayout is how the columns of the output lie in a block. Where operand b is a padded
// input, a line of the output and what follows it up to the next line are one row of
// the input. Else every column is a line of its own.
type lineLayout struct {
	n       int   // lines of the output
	columns int   // of the output, in each line
	pitch   int   // columns of a block from line to line
	span    int   // columns of a block from the first to the last of a line
	strides []int // of a column's place in a block
}

const neither = -1 // of the operands

// operandLayout is one operand as a linear form over the grids, and how micro-kernels
// come to it. "Rows" are rows of operand a, and columns of operand b.
type operandLayout struct {
	arg, base         int
	batch, own, terms []int // strides
	bounds            []boundCheck
	ownRun, termRun   affine.Run
	isMatrix          bool           // rows or terms are contiguous
	inPlace           bool           // not packed: rows have one stride
	lineRows          int            // how many rows have it, if lines of a padded input are rows
	rowMajor          bool           // packed with the terms of a row contiguous
	dotForm           bool           // in place, terms contiguous: tiles of asm.DotKernel
	axpyForm          bool           // in place, columns contiguous: sweeps of asm.AxpyKernel
	offsets           []int          // indirection table of all terms, in bytes; nil if there are too many
	input             *paddedInput   // what is read instead of the operand
	prepacked         *packedOperand // if it was packed once
}

// boundCheck is a coordinate that may lie outside the operand.
type boundCheck struct {
	offset, extent    int
	batch, own, terms []int
}

// New returns the kernel of a contraction p, or nil for types that only the definition
// takes. p is checked.
func New(p *tensor.Primitive, set *asm.KernelSet) kernel.Kernel {
	if k := newPolyphase(p, set); k != nil {
		return k
	}
	return newContraction(p, p, 0, set)
}

// newContraction returns the contraction of a phase p of all, whose output begins at an
// element of the whole output and has its strides.
func newContraction(p, all *tensor.Primitive, at int, set *asm.KernelSet) kernel.Kernel {
	narrow := p.Args[0].Type.Size() == 1
	switch {
	case p.Terms() == 0 || p.Shape.Elements() == 0:
		return nil
	case narrow && set.Int8.GEMM == nil, !narrow && p.Type != tensor.Float32:
		return newPlain(p)
	}
	k := &contraction{p: p, whole: all, set: set, isFloat32: p.Args[0].Type == tensor.Float32}
	k.blocking = blocking{microKernels: set.GEMM, kc: tuning.MaxKC, kUnit: 1, mr: set.MR(), nr: set.NRVectors() * set.Lanes}
	k.out.at = at
	if !k.isFloat32 && !narrow {
		k.widen = eltwise.Cast(set, p.Args[0].Type, tensor.Float32)
	}
	var batch, rows, cols []int
	for axis := range p.Shape {
		a, b := affine.DependsOn(p, 0, axis), affine.DependsOn(p, 1, axis)
		switch {
		case a && b:
			batch = append(batch, axis)
		case b:
			cols = append(cols, axis)
		default:
			rows = append(rows, axis)
		}
	}
	terms := affine.Axes(len(p.Shape), len(p.Shape)+len(p.Fold))
	k.chooseOperands(batch, rows, cols, terms)
	k.a.listOffsets(&k.terms)
	k.b.listOffsets(&k.terms)
	return k
}

// chooseOperands says which operand is a, and how micro-kernels come to both.
func (k *contraction) chooseOperands(batch, rows, cols, terms []int) {
	narrow := k.p.Args[0].Type.Size() == 1
	if !narrow && (k.implicitByRows(0, 1, batch, rows, cols, terms) || k.implicitByRows(1, 0, batch, cols, rows, terms)) {
		return
	}
	x, y := 0, 1
	if k.cost(x, y, batch, rows, cols, terms) > k.cost(y, x, batch, cols, rows, terms) {
		rows, cols, x, y = cols, rows, 1, 0
	}
	if narrow {
		k.int8 = newInt8Format(k.p, k.set, x, y)
		k.microKernels = k.set.Int8.GEMM
	} else if k.implicitByColumns(x, y, batch, rows, cols, terms) {
		return
	}
	if narrow || !k.readPaddedRows(x, y, batch, rows, cols, terms) {
		k.setGrids(x, y, batch, rows, cols, terms, neither)
	}
	k.lines = lineLayout{k.cols.N, 1, 1, 1, tensor.Shape(k.cols.Extents).Strides()}
	if k.a.input == nil && k.rows.N <= tuning.MaxMC {
		k.chooseBlocking(tuning.FineBlocks)
	} else {
		k.chooseBlocking(tuning.MinBlocks)
	}
	k.chooseA()
	k.b.inPlace = k.isRegular(&k.cols) && k.b.own[0] == 1 && (mem.CeilDiv(k.mc, k.mr) <= tuning.MaxInPlaceTiles || k.b.spreads(k.terms.N))
	if !k.b.inPlace && k.rows.N <= tuning.GEMVRows { // packing takes all the time, and little is read back soon
		k.nc = min(k.nc, 2*k.nr)
		k.nBlocks = mem.CeilDiv(k.lines.n, k.nc)
	}
	k.chooseSkinny()
}

// isRegular reports whether values along a grid need no widening and no padding, and have
// one stride.
func (k *contraction) isRegular(g *affine.Grid) bool { return k.isFloat32 && !k.padded && g.OneAxis() }

// bStaysInL2 reports whether all of operand b stays in the second-level cache beside
// many rows, and tiles can read it in place. Then blocks are best split between rows.
func (k *contraction) bStaysInL2() bool {
	return k.cols.N <= tuning.MaxColsPerRow*k.rows.N && k.direct && k.lines.columns == 1 && k.isRegular(&k.cols) && k.b.own[0] == 1 && k.cols.N*k.terms.N <= tuning.MaxBInL2
}

// spreads reports whether so many terms of an operand find room in the sets of the caches.
// Then what tiles read in place stays cached for the next ones. The lower bits of an
// address number its set.
func (s *operandLayout) spreads(terms int) bool {
	return terms <= tuning.CrowdedTerms || affine.Last(s.terms)*mem.Word%tuning.CrowdedBytes != 0
}

// chooseA chooses how tiles read operand a: in place, if it is regular and few tiles
// share it, or packed. What is no matrix is packed row-major where terms are contiguous
// in the operand.
func (k *contraction) chooseA() {
	a := &k.a
	columns := k.nc * k.lines.pitch
	if !a.spreads(k.terms.N) {
		columns = k.cols.N // every tile fetches all lines again
	}
	a.inPlace = k.isRegular(&k.rows) && k.terms.OneAxis() && mem.CeilDiv(columns, k.nr) <= tuning.MaxInPlaceTiles
	a.rowMajor = !a.inPlace && k.int8 == nil && !a.isMatrix && a.termRun.Length() >= min(a.ownRun.Length(), k.mr)
}

// chooseSkinny chooses the forms for few rows, where reading operand b takes all the
// time: it is read once, in place, in long streams. In axpy form a row of b is scaled
// and added to the accumulators; in dot form columns are transposed in registers. For
// more rows tiles go along some terms of b, as many as there may be streams.
func (k *contraction) chooseSkinny() {
	even := k.isRegular(&k.rows) && k.isRegular(&k.cols) && k.terms.OneAxis()
	switch {
	case even && k.b.own[0] == 1 && k.rows.N <= len(k.set.AxpyGEMM):
		k.a.inPlace, k.b.inPlace, k.b.axpyForm = true, true, true
		k.kUnit = asm.AxpyTerms
		k.nc = min(max(k.nc, tuning.AxpyNC), k.lines.n)
		k.nBlocks = mem.CeilDiv(k.lines.n, k.nc)
	case even && k.b.inPlace && k.a.input == nil && k.cols.N*k.terms.N > tuning.MaxBInL2 && mem.CeilDiv(k.rows.N, k.mr) <= tuning.MaxInPlaceTiles:
		k.a.inPlace, k.kc = false, tuning.StreamKC // rows of a lie as far apart as those of b
	case even && k.b.terms[0] == 1 && k.rows.N <= tuning.MaxDotTiles*len(k.set.DotGEMM) && k.cols.N >= asm.DotColumns:
		k.a.inPlace, k.a.rowMajor = k.rows.N == 1 && k.a.terms[0] == 1, false
		k.b.inPlace, k.b.dotForm = true, true
		k.kUnit, k.kc = asm.DotTerms, tuning.DotKC
		k.mr, k.nr = len(k.set.DotGEMM), asm.DotColumns
	}
}

// wordTerms returns the terms in a word of a panel.
func (k *contraction) wordTerms() int {
	if k.int8 != nil {
		return k.int8.Group
	}
	return 1
}

// setGrids sets the grids and the linear forms over them, with operand x as a and y as b.
// It returns the axes that are left when neighbours are merged where nothing tells them
// apart: no coordinate that is checked, and none of operand apart.
func (k *contraction) setGrids(x, y int, batch, rows, cols, terms []int, apart int) (_, _, _, _ []int) {
	p := k.p
	shape := append(p.Shape.Clone(), p.Fold...)
	out := append(affine.Strides(k.whole.Shape.Strides()), make(affine.Strides, len(p.Fold))...)
	all := []affine.Strides{out}
	for arg := range p.Args {
		_, strides, _ := affine.Linear(p, arg)
		all = append(all, strides)
		for d := range p.Args[arg].Dims {
			if b, mayMiss := affine.NewBound(p, arg, d); mayMiss || arg == apart {
				all = append(all, b.Steps)
			}
		}
	}
	merged := func(g *affine.Grid, axes []int) []int {
		axes, g.Extents = affine.Merge(shape, axes, all)
		g.N = tensor.Shape(g.Extents).Elements()
		return axes
	}
	batch, rows, cols, terms = merged(&k.batch, batch), merged(&k.rows, rows), merged(&k.cols, cols), merged(&k.terms, terms)
	k.a, k.b = newOperandLayout(p, x, batch, rows, terms), newOperandLayout(p, y, batch, cols, terms)
	k.a.findRuns(&k.rows, &k.terms)
	k.b.findRuns(&k.cols, &k.terms)
	k.padded = len(k.a.bounds)+len(k.b.bounds) > 0
	k.out.batch, k.out.rows, k.out.cols = out.Pick(batch), out.Pick(rows), out.Pick(cols)
	k.direct = apart != y && (k.int8 != nil || k.terms.N <= tensor.KBlock) && k.rows.OneAxis() && k.cols.OneAxis() && (k.out.cols[0] == 1 || k.cols.N == 1)
	return batch, rows, cols, terms
}

// newOperandLayout returns an operand over the axes of three grids.
func newOperandLayout(p *tensor.Primitive, arg int, batch, own, terms []int) operandLayout {
	base, strides, _ := affine.Linear(p, arg)
	pick := affine.Strides(strides).Pick
	s := operandLayout{arg: arg, base: base, batch: pick(batch), own: pick(own), terms: pick(terms)}
	for _, b := range affine.BoundsOf(p, arg) {
		pick := affine.Strides(b.Steps).Pick
		s.bounds = append(s.bounds, boundCheck{b.Offset, b.Extent, pick(batch), pick(own), pick(terms)})
	}
	return s
}

// findRuns finds the contiguous runs of rows and of terms.
func (s *operandLayout) findRuns(own, terms *affine.Grid) {
	var ownChecks, termChecks [][]int
	for _, b := range s.bounds {
		ownChecks, termChecks = append(ownChecks, b.own), append(termChecks, b.terms)
	}
	s.ownRun, s.termRun = affine.NewRun(own.Extents, s.own, ownChecks...), affine.NewRun(terms.Extents, s.terms, termChecks...)
	s.isMatrix = len(s.bounds) == 0 && (s.ownRun == affine.Run{N: own.N, Step: 1} || s.termRun == affine.Run{N: terms.N, Step: 1})
}

// chooseBlocking chooses mc and nc: large blocks pack less, but several threads need a few
// each; so many blocks are enough.
func (k *contraction) chooseBlocking(enough int) {
	tileRows, tileCols := k.mr, mem.CeilDiv(k.nr, k.lines.pitch)
	k.mc, k.nc = min(k.rows.N, tuning.MaxMC), min(k.lines.n, mem.CeilDiv(tuning.MaxNC, k.lines.pitch))
	for {
		k.mBlocks, k.nBlocks = mem.CeilDiv(k.rows.N, k.mc), mem.CeilDiv(k.lines.n, k.nc)
		width := k.nc * k.lines.pitch
		large := !k.direct && k.mc*width > tuning.MaxAccumulators
		switch {
		case !large && (k.Blocks() >= enough || k.mc*width*k.terms.N < 2*tuning.MinBlockWork):
			return
		case k.mc > tileRows && (k.mc > width || k.bStaysInL2()) || k.nc <= tileCols && k.mc > tileRows:
			k.mc = mem.RoundUp(mem.CeilDiv(k.mc, 2), tileRows)
		case k.nc > tileCols:
			k.nc = mem.RoundUp(mem.CeilDiv(k.nc, 2), tileCols)
		default:
			return
		}
	}
}

// Blocks implements kernel.Kernel.
func (k *contraction) Blocks() int { return k.batch.N * k.mBlocks * k.nBlocks }

// Run implements kernel.Kernel.
func (k *contraction) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	return kernel.Produce(k, w, out, args, lo, hi, nil)
}

// Next implements kernel.Producer: neighbouring blocks pack less when they are computed as
// one.
func (k *contraction) Next(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, i, n int, do kernel.Epilogue) (done int, err error) {
	p, words := kernel.Scratch[block](w), mem.Words(out)
	b, c, r := i/(k.mBlocks*k.nBlocks), i/k.mBlocks%k.nBlocks, i%k.mBlocks
	higher, wider := min(n, k.mBlocks-r, max(k.blockLimit(tuning.MaxMC, k.nc)/k.mc, 1)), 1
	if higher == k.mBlocks && k.b.input == nil {
		wider = min(n/k.mBlocks, k.nBlocks-c, max(k.blockLimit(tuning.MaxNC, higher*k.mc)/k.nc, 1))
	}
	rows, step := min(higher*k.mc, k.rows.N-r*k.mc), higher*k.mc
	if do != nil {
		step = k.epilogueRows(step, wider*k.nc)
	}
	for at := 0; at < rows; at += step {
		p.place(k, w, b, r*k.mc+at, c*k.nc, min(step, rows-at), wider*k.nc)
		if !p.compute(args, words) {
			return 0, kernel.ErrStopped
		}
		if err := p.finish(out, words, args, do); err != nil {
			return 0, err
		}
	}
	return wider * higher, nil
}

// epilogueRows returns how many rows of a block are computed before an epilogue takes them:
// as many as stay in the cache, if that packs no more, and operand b stays there too.
func (k *contraction) epilogueRows(rows, lines int) int {
	fixed := k.a.input != nil || k.b.input != nil || k.a.prepacked != nil || k.int8 != nil
	if fixed || !k.direct || k.terms.N > k.kc || lines*k.terms.N > tuning.MaxEpilogueB {
		return rows
	}
	return min(rows, mem.RoundUp(mem.CeilDiv(tuning.EpilogueElements, lines), k.mr))
}

// blockLimit returns the rows or lines, at most so many, of a block with so many of the
// others, whose accumulators must fit their buffer.
func (k *contraction) blockLimit(most, others int) int {
	if k.direct {
		return most
	}
	return min(most, tuning.MaxAccumulators/(others*k.lines.pitch))
}
