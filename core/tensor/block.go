package tensor

// MaxBlock is the largest number of terms of a fold block.
const MaxBlock = 32

// openBytes bounds the operand tiles that one fold block may touch, so that
// opening them fits a transaction.
const openBytes = 40 << 10

// BlockTerms returns how many consecutive terms form a fold block of p: as many
// as keep the tiles they touch within openBytes, at most MaxBlock. Blocks never
// cross the end of the innermost folded axis.
func (p *Primitive) BlockTerms() int {
	inner := p.innerAxis()
	for b := MaxBlock; b > 1; b /= 2 {
		bytes := 0
		for i := range p.Args {
			bytes += p.tilesTouched(i, inner, b) * TileSide * TileSide * p.Args[i].Type.Size()
		}
		if bytes <= openBytes {
			return b
		}
	}
	return 1
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
