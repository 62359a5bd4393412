package cpu

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// dot is a contraction of floats to float32, or of integers of 8 bits to int32.
// Its axes fall into four grids: batch (both
// operands and the output have them), rows (operand a and the output), columns
// (operand b and the output) and terms. A piece is a block of the output within
// one batch.
type dot struct {
	p, all                   *tensor.Primitive // all of which p is a part
	set                      *asm.Set
	batch, rows, cols, terms affine.Grid
	out                      struct {
		at                int   // where p begins
		batch, rows, cols []int // strides
	}
	a, b               side
	tiles              [][]asm.Tile
	plain              bool         // operands are float32
	widen              eltwise.Func // makes them so
	bytes              *bytes       // if they are integers of 8 bits
	bounded            bool         // some terms may be absent
	lines              lines
	deep               int  // words packed at a time; divides tensor.KBlock
	whole              int  // of which this many are taken together
	direct             bool // chains can be kept in the output
	high, wide         int  // rows and lines of a whole piece
	tileRows, tileCols int  // of the greatest tile
	down, beside       int  // pieces in one batch
}

// lines are the columns as pieces see them. Without an image of operand b every
// column is a line.
type lines struct {
	n       int   // lines of the output
	columns int   // of the output, in each
	pitch   int   // columns of a piece from line to line
	span    int   // columns of a piece from the first to the last of a line
	strides []int // position of a column in a piece
}

const neither = -1 // of the operands

// side is one operand as a linear form over the grids.
type side struct {
	arg, base         int
	batch, own, terms []int // strides
	bounds            []sideBound
	ownRun, termRun   affine.Run
	matrix            bool  // rows or terms lie side by side
	inPlace           bool  // tiles read it where it lies: rows have one stride
	line              int   // rows that have it, if it is an image of rows
	lined             bool  // packed with the terms of a row side by side
	turned            bool  // and turn it, as terms lie side by side
	swept             bool  // and sweep over whole vectors of columns
	offsets           []int // of all terms, in bytes, if they are not too many
	image             *image
	kept              *kept // if it is packed once
}

// sideBound is a coordinate that may lie outside the operand.
type sideBound struct {
	offset, extent    int
	batch, own, terms []int
}

// Sizes that keep panels in the caches and leave enough pieces for several
// threads. They change no bit.
const (
	maxHigh     = 1024    // rows of a piece
	maxWide     = 3072    // columns of a piece
	maxStored   = 1 << 17 // elements of a piece that is not made in the output
	maxDeep     = 1024    // words packed at a time; divides tensor.KBlock
	maxStrip    = 1 << 15 // elements of operand b that a row of tiles reads
	thinRows    = 2       // rows for which reading operand b takes all the time
	sweptWide   = 2048    // columns of b that are read side by side, if there are as many
	turnedDeep  = 4096    // terms that are turned, one column after the other; divides tensor.KBlock
	turnedTiles = 2       // tiles of rows for which to turn them
	maxNear     = 1 << 17 // elements of operand b that stay in the second-level cache
	nearRows    = 4       // columns for each row beside which it is best to keep them whole
	maxRows     = 192     // rows packed at a time
	minWork     = 1 << 18 // multiply-adds of a piece that is split off
	minPieces   = 8       // pieces that need no more splitting
	fewPieces   = 4       // if neighbours share lines of an image
	finePieces  = 32      // the same of pieces that pack no more, taken together, than one would
	packingRows = 12      // rows that take as long to compute as a column to pack
	packingCols = 8       // columns that take as long to compute as a row to pack
	minSorted   = 64      // columns of a line for which sorting an image is worth while
	minLine     = 3       // rows of a line that tiles read in place
	maxLine     = 32      // of which so many leave little in vain if they are columns,
	manyTerms   = 512     // unless there are so many, beside which turning the sums takes no time
	minColumns  = 32      // beside them
	maxSlid     = 1 << 20 // elements of an image that is read by the line
	maxPlanes   = 1 << 22 // the same, if lines run along its planes
	imagePieces = 16      // which share an image and pack nothing
	maxListed   = 1 << 16 // terms of which a list is made once
	fewTiles    = 4       // tiles that share too little of an operand to pack it
)

func newDot(p *tensor.Primitive, set *asm.Set) kernel.Kernel {
	if k := newPhased(p, set); k != nil {
		return k
	}
	return newPart(p, p, 0, set)
}

// newPart returns the contraction of a part of all elements, which lie as in the
// whole output, from one on.
func newPart(p, all *tensor.Primitive, at int, set *asm.Set) kernel.Kernel {
	narrow := p.Args[0].Type.Size() == 1
	switch {
	case p.Terms() == 0 || p.Shape.Elements() == 0:
		return nil
	case narrow && set.Bytes.Tiles == nil, !narrow && p.Type != tensor.Float32:
		return newPlainDot(p)
	}
	k := &dot{
		p: p, all: all, set: set, deep: maxDeep, tiles: set.Tiles, plain: p.Args[0].Type == tensor.Float32,
		whole: 1, tileRows: set.Rows(), tileCols: set.Vectors() * set.Lanes,
	}
	k.out.at = at
	if !k.plain && !narrow {
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
	k.choose(batch, rows, cols, terms)
	k.a.list(&k.terms)
	k.b.list(&k.terms)
	return k
}

// choose says which operand is a, and how tiles come to both.
func (k *dot) choose(batch, rows, cols, terms []int) {
	narrow := k.p.Args[0].Type.Size() == 1
	if !narrow && (k.slide(0, 1, batch, rows, cols, terms) || k.slide(1, 0, batch, cols, rows, terms)) {
		return
	}
	x, y := 0, 1
	if k.effort(x, y, batch, rows, cols, terms) > k.effort(y, x, batch, cols, rows, terms) {
		rows, cols, x, y = cols, rows, 1, 0
	}
	if narrow {
		k.bytes = newBytes(k.p, k.set, x, y)
		k.tiles = k.set.Bytes.Tiles
	} else if k.convolve(x, y, batch, rows, cols, terms) {
		return
	}
	if narrow || !k.pad(x, y, batch, rows, cols, terms) {
		k.arrange(x, y, batch, rows, cols, terms, neither)
	}
	k.lines = lines{k.cols.N, 1, 1, 1, tensor.Shape(k.cols.Extents).Strides()}
	if k.a.image == nil && k.rows.N <= maxHigh {
		k.divide(finePieces)
	} else {
		k.divide(minPieces)
	}
	k.readA()
	k.b.inPlace = k.regular(&k.cols) && k.b.own[0] == 1 && (mem.CeilDiv(k.high, k.tileRows) <= fewTiles || k.spread())
	if !k.b.inPlace && k.rows.N <= thinRows { // packing takes all the time, and little is read back soon
		k.wide = min(k.wide, 2*k.tileCols)
		k.beside = mem.CeilDiv(k.lines.n, k.wide)
	}
	k.stream()
}

// regular reports whether values need no more than reading, and lie in even
// distances along a grid.
func (k *dot) regular(g *affine.Grid) bool { return k.plain && !k.bounded && g.OneAxis() }

// nearB reports whether all of operand b stays in the second-level cache beside rows
// that are not few, and tiles can read it in place. Then pieces are best split between rows.
func (k *dot) nearB() bool {
	return k.cols.N <= nearRows*k.rows.N && k.direct && k.lines.columns == 1 && k.regular(&k.cols) && k.b.own[0] == 1 && k.cols.N*k.terms.N <= maxNear
}

// spread reports whether the terms of operand b lie in many places of the caches,
// which are numbered by the lower bits of addresses, so that a strip of columns stays
// there while tiles read it in place.
func (k *dot) spread() bool {
	const crowded = 512
	return affine.Last(k.b.terms)*mem.Word%crowded != 0
}

// readA chooses how tiles read operand a: where it lies, if it is regular and
// shared by few tiles, or packed. What is no matrix is packed with its terms side
// by side, if they lie so in the operand.
func (k *dot) readA() {
	a := &k.a
	a.inPlace = k.regular(&k.rows) && k.terms.OneAxis() && mem.CeilDiv(k.wide*k.lines.pitch, k.tileCols) <= fewTiles
	a.lined = !a.inPlace && k.bytes == nil && !a.matrix && a.termRun.Length() >= min(a.ownRun.Length(), k.tileRows)
}

// stream suits k to few rows, for which operand b had better be read once, in
// long lines, than be packed.
func (k *dot) stream() {
	even := k.regular(&k.rows) && k.regular(&k.cols) && k.terms.OneAxis()
	switch {
	case even && k.b.own[0] == 1 && k.rows.N <= len(k.set.Swept):
		k.a.inPlace, k.b.inPlace, k.b.swept = true, true, true
		k.whole = asm.SweptTerms
		k.wide = min(max(k.wide, sweptWide), k.lines.n)
		k.beside = mem.CeilDiv(k.lines.n, k.wide)
	case even && k.b.terms[0] == 1 && k.rows.N <= turnedTiles*len(k.set.Turned) && k.cols.N >= asm.TurnedColumns:
		k.a.inPlace, k.a.lined = k.rows.N == 1 && k.a.terms[0] == 1, false
		k.b.inPlace, k.b.turned = true, true
		k.whole, k.deep = asm.TurnedTerms, turnedDeep
		k.tileRows, k.tileCols = len(k.set.Turned), asm.TurnedColumns
	}
}

// group returns the terms in a word of a panel.
func (k *dot) group() int {
	if k.bytes != nil {
		return k.bytes.Group
	}
	return 1
}

// arrange sets the grids and the linear forms over them, with operand x as a,
// and returns the axes that are left when neighbours are merged where nothing
// tells them apart: no coordinate that is watched, and none of operand apart.
func (k *dot) arrange(x, y int, batch, rows, cols, terms []int, apart int) (_, _, _, _ []int) {
	p := k.p
	shape := append(p.Shape.Clone(), p.Fold...)
	out := append(affine.Strides(k.all.Shape.Strides()), make(affine.Strides, len(p.Fold))...)
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
	k.a, k.b = newSide(p, x, batch, rows, terms), newSide(p, y, batch, cols, terms)
	k.a.runs(&k.rows, &k.terms)
	k.b.runs(&k.cols, &k.terms)
	k.bounded = len(k.a.bounds)+len(k.b.bounds) > 0
	k.out.batch, k.out.rows, k.out.cols = out.Pick(batch), out.Pick(rows), out.Pick(cols)
	k.direct = apart != y && (k.bytes != nil || k.terms.N <= tensor.KBlock) && k.rows.OneAxis() && k.cols.OneAxis() && (k.out.cols[0] == 1 || k.cols.N == 1)
	return batch, rows, cols, terms
}

func newSide(p *tensor.Primitive, arg int, batch, own, terms []int) side {
	base, strides, _ := affine.Linear(p, arg)
	pick := affine.Strides(strides).Pick
	s := side{arg: arg, base: base, batch: pick(batch), own: pick(own), terms: pick(terms)}
	for _, b := range affine.BoundsOf(p, arg) {
		pick := affine.Strides(b.Steps).Pick
		s.bounds = append(s.bounds, sideBound{b.Offset, b.Extent, pick(batch), pick(own), pick(terms)})
	}
	return s
}

// runs finds the runs of rows and of terms.
func (s *side) runs(own, terms *affine.Grid) {
	var watchedOwn, watchedTerms [][]int
	for _, b := range s.bounds {
		watchedOwn, watchedTerms = append(watchedOwn, b.own), append(watchedTerms, b.terms)
	}
	s.ownRun, s.termRun = affine.NewRun(own.Extents, s.own, watchedOwn...), affine.NewRun(terms.Extents, s.terms, watchedTerms...)
	s.matrix = len(s.bounds) == 0 && (s.ownRun == affine.Run{N: own.N, Step: 1} || s.termRun == affine.Run{N: terms.N, Step: 1})
}

// divide chooses the size of pieces: large ones pack less, but several threads
// need a few each. So many are enough.
func (k *dot) divide(enough int) {
	tileRows, tileCols := k.tileRows, mem.CeilDiv(k.tileCols, k.lines.pitch)
	k.high, k.wide = min(k.rows.N, maxHigh), min(k.lines.n, mem.CeilDiv(maxWide, k.lines.pitch))
	for {
		k.down, k.beside = mem.CeilDiv(k.rows.N, k.high), mem.CeilDiv(k.lines.n, k.wide)
		broad := k.wide * k.lines.pitch
		large := !k.direct && k.high*broad > maxStored
		switch {
		case !large && (k.Blocks() >= enough || k.high*broad*k.terms.N < 2*minWork):
			return
		case k.high > tileRows && (k.high > broad || k.nearB()) || k.wide <= tileCols && k.high > tileRows:
			k.high = mem.RoundUp(mem.CeilDiv(k.high, 2), tileRows)
		case k.wide > tileCols:
			k.wide = mem.RoundUp(mem.CeilDiv(k.wide, 2), tileCols)
		default:
			return
		}
	}
}

func (k *dot) Blocks() int { return k.batch.N * k.down * k.beside }

func (k *dot) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	return kernel.Produce(k, w, out, args, lo, hi, nil)
}

// Next implements maker: several pieces pack less together.
func (k *dot) Next(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, i, n int, do kernel.Epilogue) (done int, err error) {
	p, words := kernel.Scratch[piece](w), mem.Words(out)
	b, c, r := i/(k.down*k.beside), i/k.down%k.beside, i%k.down
	higher, wider := min(n, k.down-r, max(k.room(maxHigh, k.wide)/k.high, 1)), 1
	if higher == k.down && k.b.image == nil {
		wider = min(n/k.down, k.beside-c, max(k.room(maxWide, higher*k.high)/k.wide, 1))
	}
	p.place(k, w.Round, b, r*k.high, c*k.wide, higher*k.high, wider*k.wide)
	p.compute(args, words)
	return wider * higher, p.finish(out, words, args, do)
}

// room returns the rows or lines, at most so many, of a piece that has so many of
// the others.
func (k *dot) room(most, others int) int {
	if k.direct {
		return most
	}
	return min(most, maxStored/(others*k.lines.pitch))
}
