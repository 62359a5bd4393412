package cpu

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Which operand of a contraction had better be rows, and which columns.

// windowed reports whether some coordinate of operand arg moves along an output
// axis and a folded one.
func windowed(p *tensor.Primitive, arg, axis int) bool {
	for d := range p.Args[arg].Dims {
		b, _ := newBound(p, arg, d)
		for i, step := range b.steps[len(p.Shape):] {
			if b.steps[axis] != 0 && step != 0 && p.Fold[i] > 1 {
				return true
			}
		}
	}
	return false
}

// effort estimates what a contraction costs for each term with operand x as a, in
// multiply-adds. Columns fill whole vectors, and are best side by side in the
// output.
func (k *dot) effort(x, y int, batch, rows, cols, terms []int) int {
	k.arrange(x, y, batch, rows, cols, terms, neither)
	e := (k.rows.n + 1) * mem.RoundUp(k.cols.n, k.set.Lanes)
	if last(k.a.terms) != 1 { // a is read across its lines
		e += k.rows.n
	}
	if k.cols.n > 1 && last(k.out.cols) != 1 {
		each := scattered
		if k.rows.n >= asm.TurnRows && last(k.out.rows) == 1 {
			each = turnedOut
		}
		e += each * k.rows.n * k.cols.n / k.terms.n
	}
	return e + k.a.effort(k.rows.n, false) + k.b.effort(k.cols.n, true)
}

// What it takes to write an element alone, or turned with its neighbours, in
// multiply-adds.
const scattered, turnedOut = 128, 8

// effort estimates what it takes to pack so many rows of what is no matrix.
func (s *side) effort(rows int, turn bool) int {
	const segment, word, turned = 128, 8, 16
	if s.matrix {
		return 0
	}
	run := max(s.termRun.length(), 1)
	if turn && s.ownRun.length() >= run {
		return rows * (segment/s.ownRun.length() + word)
	}
	if turn {
		return rows * (segment/run + word + turned)
	}
	return rows * (segment/run + word)
}
