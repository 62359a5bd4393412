package cpu

import (
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// effort estimates what a contraction costs for each term with operand x as a, in
// multiply-adds. Columns fill whole vectors, and are best side by side in the
// output.
func (k *dot) effort(x, y int, batch, rows, cols, terms []int) int {
	k.arrange(x, y, batch, rows, cols, terms, neither)
	e := (k.rows.N + 1) * mem.RoundUp(k.cols.N, k.set.Lanes)
	if affine.Last(k.a.terms) != 1 { // a is read across its lines
		e += k.rows.N
	}
	if k.cols.N > 1 && affine.Last(k.out.cols) != 1 {
		each := scattered
		if k.rows.N >= asm.TurnRows && affine.Last(k.out.rows) == 1 {
			each = turnedOut
		}
		e += each * k.rows.N * k.cols.N / k.terms.N
	}
	return e + k.a.effort(k.rows.N, false) + k.b.effort(k.cols.N, true)
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
	run := max(s.termRun.Length(), 1)
	if turn && s.ownRun.Length() >= run {
		return rows * (segment/s.ownRun.Length() + word)
	}
	if turn {
		return rows * (segment/run + word + turned)
	}
	return rows * (segment/run + word)
}
