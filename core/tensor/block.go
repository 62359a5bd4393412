package tensor

import (
	"math/bits"

	"github.com/tally-network/tally/core/canon"
)

// MaxBlock is the largest number of terms of a fold block.
const MaxBlock = 32

// openBytes bounds what a dispute brings to judge one fold block: the operand
// tiles that it touches, the paths beside them, and where each operand comes
// from. It fits a transaction.
const openBytes = 58 << 10

// sourceBytes bounds the proof of an operand's root: two names and two paths.
const sourceBytes = 2560

// BlockTerms returns how many consecutive terms form a fold block of p: as many
// as can be opened within openBytes, at most MaxBlock. Blocks never cross the
// end of the innermost folded axis.
func (p *Primitive) BlockTerms() int {
	b := MaxBlock
	for b > 1 && p.opening(b) > openBytes {
		b /= 2
	}
	return b
}

// opening bounds the bytes that open what b consecutive terms read.
func (p *Primitive) opening(b int) int {
	total := 0
	for i := range p.Args {
		l := LayoutOf(p.Args[i].Type, p.Args[i].Shape)
		tile := min(TileSide, l.Rows) * min(TileSide, l.Cols) * l.Type.Size()
		path := canon.HashSize * bits.Len(uint(max(l.Tiles(), 1)-1))
		bytes := sourceBytes + p.tilesTouched(i, p.innerAxis(), b)*(tile+path)
		if p.Fn == Join { // reads one of them
			total = max(total, bytes)
		} else {
			total += bytes
		}
	}
	return total
}

// innerAxis returns the last folded axis, as an axis of the primitive.
func (p *Primitive) innerAxis() int { return len(p.Shape) + len(p.Fold) - 1 }

// tilesTouched bounds the tiles of operand i that b consecutive steps along an
// axis read: each crossing of a tile's border adds one.
func (p *Primitive) tilesTouched(i, axis, b int) int {
	a := &p.Args[i]
	down, along, rows := 0, 0, 1
	for d := len(a.Dims) - 1; d >= 0; d-- {
		step := 0
		for _, t := range a.Dims[d].Terms {
			if t.Axis == axis {
				step += t.Step
			}
		}
		step = max(step, -step)
		if d == len(a.Dims)-1 {
			along = step
		} else {
			down += step * rows
			rows *= a.Shape[d]
		}
	}
	cross := func(step int) int { return ((b-1)*min(step, TileSide) + TileSide - 1) / TileSide }
	return min(b, 1+cross(down)+cross(along))
}

// Blocks returns the number of fold blocks of each output element; 0 for map
// and index primitives, and for folds without terms.
func (p *Primitive) Blocks() int {
	if p.Terms() == 0 {
		return 0
	}
	inner, b := p.runLength(), p.BlockTerms()
	return p.Terms() / inner * ((inner + b - 1) / b)
}

// Block returns the terms lo…hi−1 of fold block j.
func (p *Primitive) Block(j int) (lo, hi int) {
	inner, b := p.runLength(), p.BlockTerms()
	perRun := (inner + b - 1) / b
	run := j / perRun * inner
	lo = run + j%perRun*b
	return lo, min(lo+b, run+inner)
}

// runLength returns the terms along the innermost folded axis.
func (p *Primitive) runLength() int {
	if len(p.Fold) == 0 {
		return 1
	}
	return p.Fold[len(p.Fold)-1]
}
