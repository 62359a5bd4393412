package cpu

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
)

// dot is a contraction of float32. Its axes fall into four grids: batch (both
// operands and the output have them), rows (the first operand and the output),
// columns (the second and the output) and terms. A piece is a block of the
// output within one batch: operands are packed into panels, block by block of
// the terms, and micro-kernels advance tiles of chains.
type dot struct {
	p                        *tensor.Primitive
	batch, rows, cols, terms grid
	out                      struct{ batch, rows, cols []int } // strides
	a, b                     side
	bounded                  bool
	high, wide               int // rows and columns of a whole piece
	down, beside             int // pieces in one batch
}

// side is one operand as a linear form over the grids.
type side struct {
	arg, base         int
	batch, own, terms []int // strides
	bounds            []sideBound
}

// sideBound is a coordinate that may lie outside the operand.
type sideBound struct {
	offset, extent    int
	batch, own, terms []int
}

// Sizes that keep the panels of a piece in the second-level cache and enough
// pieces for several threads. They change no bit.
const (
	maxHigh   = 128     // rows of a piece
	maxWide   = 256     // columns of a piece
	maxDeep   = 256     // terms packed at a time; divides tensor.KBlock
	minWork   = 1 << 16 // multiply-adds of a piece that is split off
	minPieces = 8       // pieces that need no more splitting
)

func newDot(p *tensor.Primitive, set *asm.Set) kernel {
	switch p.Type {
	case tensor.Int32:
		return newIntegerDot[int32](p)
	case tensor.Int64:
		return newIntegerDot[int64](p)
	}
	k := &dot{p: p}
	shape := append(p.Shape.Clone(), p.Fold...)
	var batch, rows, cols []int
	for axis := range p.Shape {
		a, b := depends(p, 0, axis), depends(p, 1, axis)
		switch {
		case a && b:
			batch = append(batch, axis)
		case b:
			cols = append(cols, axis)
		default:
			rows = append(rows, axis)
		}
	}
	x, y := 0, 1
	if m, n := newGrid(shape, rows).n, newGrid(shape, cols).n; waste(m, n) > waste(n, m) {
		rows, cols, x, y = cols, rows, 1, 0
	}
	terms := axes(len(p.Shape), len(shape))
	k.batch, k.rows, k.cols, k.terms = newGrid(shape, batch), newGrid(shape, rows), newGrid(shape, cols), newGrid(shape, terms)
	k.a, k.b = newSide(p, x, batch, rows, terms), newSide(p, y, batch, cols, terms)
	k.bounded = len(k.a.bounds)+len(k.b.bounds) > 0
	out := steps(p.Shape.Strides())
	k.out.batch, k.out.rows, k.out.cols = out.pick(batch), out.pick(rows), out.pick(cols)
	k.divide()
	return k
}

// waste returns the tile elements that m×n outputs take up.
func waste(m, n int) int {
	return roundUp(m, tileRows) * roundUp(n, tileCols)
}

// depends reports whether what operand arg reads changes along an axis.
func depends(p *tensor.Primitive, arg, axis int) bool {
	if p.Shape[axis] == 1 {
		return false
	}
	if p.Args[arg].Flat {
		return true
	}
	for d := range p.Args[arg].Dims {
		if b, _ := newBound(p, arg, d); b.steps[axis] != 0 {
			return true
		}
	}
	return false
}

func newSide(p *tensor.Primitive, arg int, batch, own, terms []int) side {
	base, strides, inside := linear(p, arg)
	pick := steps(strides).pick
	s := side{arg: arg, base: base, batch: pick(batch), own: pick(own), terms: pick(terms)}
	if !inside {
		for d := range p.Args[arg].Dims {
			if b, mayMiss := newBound(p, arg, d); mayMiss {
				pick := steps(b.steps).pick
				s.bounds = append(s.bounds, sideBound{b.offset, b.extent, pick(batch), pick(own), pick(terms)})
			}
		}
	}
	return s
}

// divide chooses the size of pieces: large ones pack less, but several threads
// need a few each.
func (k *dot) divide() {
	k.high, k.wide = max(min(k.rows.n, maxHigh), 1), max(min(k.cols.n, maxWide), 1)
	for {
		k.down, k.beside = ceilDiv(k.rows.n, k.high), ceilDiv(k.cols.n, k.wide)
		switch {
		case k.pieces() >= minPieces || k.high*k.wide*k.terms.n < 2*minWork:
			return
		case k.high > max(k.wide, tileRows) || k.wide <= tileCols && k.high > tileRows:
			k.high = roundUp(k.high/2, tileRows)
		case k.wide > tileCols:
			k.wide = roundUp(k.wide/2, tileCols)
		default:
			return
		}
	}
}

func roundUp(x, to int) int { return (x + to - 1) / to * to }

func (k *dot) pieces() int { return k.batch.n * k.down * k.beside }

func (k *dot) run(w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	for i := lo; i < hi; i++ {
		b, r, c := i/(k.down*k.beside), i/k.beside%k.down, i%k.beside
		p := &w.piece
		p.place(k, b, r*k.high, c*k.wide)
		if p.compute(k, args) {
			p.store(k, tensor.Of[float32](out))
		} else if err := p.evaluate(k, out, args); err != nil {
			return err
		}
	}
	return nil
}

// grid is a list of axes as one flat index, row-major.
type grid struct {
	extents []int
	n       int
}

func newGrid(shape, axes []int) grid {
	g := grid{extents: steps(shape).pick(axes)}
	g.n = tensor.Shape(g.extents).Elements()
	return g
}

// table fills dst with the values of a linear form at from, from+1, …
func (g *grid) table(dst []int, base int, steps []int, from int) {
	var coord [tensor.MaxRank]int
	v := base
	for a := len(g.extents) - 1; a >= 0; a-- {
		coord[a] = from % g.extents[a]
		from /= g.extents[a]
		v += coord[a] * steps[a]
	}
	for i := range dst {
		dst[i] = v
		for a := len(g.extents) - 1; a >= 0; a-- {
			coord[a]++
			v += steps[a]
			if coord[a] < g.extents[a] {
				break
			}
			coord[a] = 0
			v -= g.extents[a] * steps[a]
		}
	}
}

// at returns the value of a linear form at one index.
func (g *grid) at(base int, steps []int, i int) int {
	var one [1]int
	g.table(one[:], base, steps, i)
	return one[0]
}
