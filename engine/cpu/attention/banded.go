// Package attention multiplies matrices of which each row has a band of the terms (tensor.Band): attention's weights and values. [New]
// returns the kernel of such a tensor.Dot.
//
// A block is some rows of a batch by all columns (banded.go). Its tiles take the terms that all their rows have together, and row by
// row what is left at both ends. What is no float32, or lies apart, is packed first.
//
// [NewCached] is all of attention for tokens that look at a cache, without a program (cached.go). It scales some keys at a time where they
// are, and goes from products to weights and to values in the cache of one core.
//
// Invariants: those of gemm. No size of a block or tile changes a bit, and no term is read that a row does not have.
package attention

import (
	"fmt"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// banded is a product of matrices in which each row has a band of the terms.
type banded struct {
	p       *tensor.Primitive
	set     *asm.KernelSet
	batch   tensor.Shape // leading axes
	rows    int
	cols    int
	terms   int
	pitch   int // columns of accumulators: whole vectors
	a, b    operand
	blockMC int // rows of a block
}

// operand is one operand as a linear form, and how tiles come to it.
type operand struct {
	base    int
	batch   []int        // strides
	own     int          // from row to row, or from column to column
	term    int          // from term to term
	inPlace bool         // else some terms are copied to the worker as float32
	widen   eltwise.Func // of a run of elements; nil if they are float32
	offsets []int        // bytes to each of KC terms
}

// New returns the kernel of a contraction p that has a band; nil for what only the definition takes. p is checked.
func New(p *tensor.Primitive, set *asm.KernelSet) kernel.Kernel {
	row := len(p.Shape) - 2
	if row < 0 || p.Type != tensor.Float32 || p.Shape.Elements() == 0 || p.Terms() == 0 {
		return nil
	}
	k := &banded{p: p, set: set, batch: p.Shape[:row], rows: p.Shape[row], cols: p.Shape[row+1], terms: p.Fold[0]}
	for _, d := range []tensor.Dim{p.Band.From, p.Band.To} {
		for _, t := range d.Terms {
			if t.Axis != row {
				return nil
			}
		}
	}
	k.pitch = mem.RoundUp(k.cols, set.Lanes)
	k.blockMC = min(k.rows, tuning.BandedMC)
	for i, o := range []*operand{&k.a, &k.b} {
		base, strides, inside := affine.Linear(p, i)
		if !inside || strides[row+1-i] != 0 { // columns of a, or rows of b
			return nil
		}
		t := p.Args[i].Type
		*o = operand{base: base, batch: strides[:row], own: strides[row+i], term: strides[row+2], inPlace: t == tensor.Float32, offsets: make([]int, min(k.terms, tuning.BandedKC))}
		if !o.inPlace {
			o.widen = eltwise.Cast(set, t, tensor.Float32)
		}
	}
	k.a.inPlace = k.a.inPlace && (k.rows == 1 || k.a.own*mem.Word%tuning.CrowdedBytes != 0)
	k.b.inPlace = k.b.inPlace && k.b.own == 1 && k.pitch == k.cols
	aTerm, bTerm := k.a.term, k.b.term
	if !k.a.inPlace {
		aTerm = 1
	}
	if !k.b.inPlace {
		bTerm = k.pitch
	}
	for t := range k.a.offsets {
		k.a.offsets[t], k.b.offsets[t] = t*aTerm*mem.Word, t*bTerm*mem.Word
	}
	return k
}

func (k *banded) blocksOfBatch() int { return mem.CeilDiv(k.rows, k.blockMC) }

// Blocks implements kernel.Kernel.
func (k *banded) Blocks() int { return k.batch.Elements() * k.blocksOfBatch() }

// Run implements kernel.Kernel.
func (k *banded) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	b := kernel.Scratch[block](w)
	for i := lo; i < hi; i++ {
		batch, first := i/k.blocksOfBatch(), i%k.blocksOfBatch()*k.blockMC
		b.place(k, w, args, batch, first)
		if !b.compute(tensor.Of[float32](out)[(batch*k.rows+first)*k.cols:]) {
			return kernel.ErrStopped
		}
	}
	return nil
}

// Describe implements kernel.Kernel.
func (k *banded) Describe() kernel.Description {
	where := func(o *operand) string {
		if o.inPlace {
			return "in place"
		}
		return "packed"
	}
	return kernel.Description{
		Kernel:   "gemm, banded",
		Blocking: fmt.Sprintf("%d × (M %d N %d K ≤ %d), MC %d KC %d, MR %d NR %d, accumulators in a buffer", k.batch.Elements(), k.rows, k.cols, k.terms, k.blockMC, len(k.a.offsets), k.set.MR(), k.set.NRVectors()*k.set.Lanes),
		Packing:  "A " + where(&k.a) + ", B " + where(&k.b),
	}
}

// block is a block in the making.
type block struct {
	*banded
	worker         *kernel.Worker
	args           []*tensor.Tensor
	batchA, batchB int            // elements at which the operands of the batch begin
	row, count     int            // first row, and how many
	at             []int          // coordinates of a row
	from, to       []int          // terms of each row
	acc            []float32      // of the K-block under way, count × pitch
	sums           kernel.KBlocks // of finished ones; rows that are finished take part, and nobody reads theirs
	packedA        []float32
	packedB        []float32
	aAt, bAt       *float32 // row 0, and column 0, of the terms under way
	aRow           int      // bytes from row to row
}

func (b *block) place(k *banded, w *kernel.Worker, args []*tensor.Tensor, batch, row int) {
	b.banded, b.worker, b.args, b.row, b.count = k, w, args, row, min(k.blockMC, k.rows-row)
	b.at = mem.Grow(b.at, len(k.p.Shape))
	k.batch.Coords(batch, b.at[:len(k.batch)])
	b.batchA, b.batchB = k.a.base, k.b.base
	for i := range k.batch {
		b.batchA += b.at[i] * k.a.batch[i]
		b.batchB += b.at[i] * k.b.batch[i]
	}
	b.from, b.to = mem.Grow(b.from, b.count), mem.Grow(b.to, b.count)
	for i := range b.count {
		b.at[len(k.batch)] = row + i
		b.from[i], b.to[i] = k.p.Range(b.at)
	}
	b.acc = mem.Grow(b.acc, b.count*k.pitch)
}

// compute computes all rows into out. It reports whether it came to the end.
func (b *block) compute(out []float32) (done bool) {
	first, last := b.terms, 0
	for i := range b.count {
		first, last = min(first, b.from[i]), max(last, b.to[i])
	}
	b.sums = b.sums[:0]
	for i := range b.count {
		if b.to[i] == 0 {
			clear(out[i*b.cols:][:b.cols])
		}
	}
	for n := 0; n*tensor.KBlock < last; n++ {
		start := n * tensor.KBlock
		end := min(start+tensor.KBlock, last)
		clear(b.acc)
		for t := max(start, first); t < end; t += len(b.a.offsets) {
			if !b.advance(t, min(t+len(b.a.offsets), end)) {
				return false
			}
		}
		for i, to := range b.to[:b.count] {
			if to > start && to < start+tensor.KBlock {
				b.finish(out, i, b.acc, len(b.sums))
			}
		}
		b.sums.End(b.acc, n+1)
		for i, to := range b.to[:b.count] {
			if to == start+tensor.KBlock {
				b.finish(out, i, b.sums[len(b.sums)-1], len(b.sums)-1)
			}
		}
	}
	return true
}

// finish writes row i: what its last chain gave, and the sums of the K-blocks before.
func (b *block) finish(out []float32, i int, last []float32, before int) {
	at := i * b.pitch
	row := out[i*b.cols:][:b.cols]
	copy(row, last[at:])
	for s := before - 1; s >= 0; s-- {
		kernel.AddTo(row, b.sums[s][at:])
	}
	for j, x := range row {
		row[j] = eltwise.Canonical(x)
	}
}

// advance advances all rows by their terms from lo to hi, tile by tile.
func (b *block) advance(lo, hi int) (done bool) {
	b.locate(lo, hi)
	for i := 0; i < b.count; {
		if b.worker.Stopped() {
			return false
		}
		rows := mem.EvenPart(b.count-i, b.set.MR(), 1)
		together, until := lo, hi // terms that all rows of the tile have
		for r := i; r < i+rows; r++ {
			together, until = max(together, b.from[r]), min(until, b.to[r])
		}
		if together >= until {
			together, until = hi, hi
		}
		for r := i; r < i+rows; r++ {
			b.run(r, 1, lo, max(lo, b.from[r]), min(together, b.to[r]))
		}
		b.run(i, rows, lo, together, until)
		for r := i; r < i+rows; r++ {
			b.run(r, 1, lo, max(until, b.from[r]), min(hi, b.to[r]))
		}
		i += rows
	}
	return true
}

// run advances rows from i on by terms from…to−1, of those that begin at lo.
func (b *block) run(i, rows, lo, from, to int) {
	if from >= to {
		return
	}
	lanes, most := b.set.Lanes, b.set.NRVectors()
	aAt, bAt := &b.a.offsets[0], &b.b.offsets[0]
	x := (*float32)(unsafe.Add(unsafe.Pointer(b.aAt), i*b.aRow+b.a.offsets[from-lo]))
	y := unsafe.Add(unsafe.Pointer(b.bAt), b.b.offsets[from-lo])
	acc := b.acc[i*b.pitch:]
	for c, left := 0, b.pitch/lanes; left > 0; {
		vectors := min(left, most)
		tiles := left / vectors
		width := vectors * lanes
		b.set.GEMM[rows-1][vectors-1](tiles, to-from, x, b.aRow, aAt, (*float32)(unsafe.Add(y, c*mem.Word)), width*mem.Word, bAt, &acc[c], b.pitch*mem.Word, true)
		c, left = c+tiles*width, left-tiles*vectors
	}
}

// locate finds the terms from lo to hi of both operands, and packs those that are not read in place.
func (b *block) locate(lo, hi int) {
	if at := b.batchA + b.row*b.a.own + lo*b.a.term; b.a.inPlace {
		b.aAt, b.aRow = &tensor.Of[float32](b.args[0])[at], b.a.own*mem.Word
	} else {
		pitch := len(b.a.offsets) + b.set.Lanes // rows spread over the cache
		b.packedA = mem.Grow(b.packedA, b.count*pitch)
		for i := range b.count {
			b.a.load(b.packedA[i*pitch:][:hi-lo], b.args[0], at+i*b.a.own, b.a.term)
		}
		b.aAt, b.aRow = &b.packedA[0], pitch*mem.Word
	}
	if at := b.batchB + lo*b.b.term; b.b.inPlace {
		b.bAt = &tensor.Of[float32](b.args[1])[at]
	} else {
		b.packedB = mem.Grow(b.packedB, (hi-lo)*b.pitch)
		for t := range hi - lo {
			row := b.packedB[t*b.pitch:][:b.pitch]
			b.b.load(row[:b.cols], b.args[1], at+t*b.b.term, b.b.own)
			clear(row[b.cols:])
		}
		b.bAt = &b.packedB[0]
	}
}

// load copies elements of x as float32, from one on, at a step.
func (o *operand) load(dst []float32, x *tensor.Tensor, at, step int) {
	switch {
	case step == 1 && o.widen != nil:
		o.widen(unsafe.Pointer(&dst[0]), unsafe.Pointer(&x.Bytes()[at*x.Type.Size()]), nil, nil, 1, len(dst))
	case step == 1:
		copy(dst, tensor.Of[float32](x)[at:])
	default:
		for i := range dst {
			dst[i] = float32(tensor.FloatOf(x.Type, x.At(at+i*step)))
		}
	}
}
