package gemm

import (
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Which operand should be a, whose rows tiles broadcast, and which b, whose columns fill
// vectors.

// cost estimates what a contraction costs for each term with operand x as a, in
// multiply-adds. Columns fill whole vectors, and are best contiguous in the output.
func (k *contraction) cost(x, y int, batch, rows, cols, terms []int) int {
	k.setGrids(x, y, batch, rows, cols, terms, neither)
	e := (k.rows.N + 1) * mem.RoundUp(k.cols.N, k.set.Lanes)
	if affine.Last(k.a.terms) != 1 { // rows of a are not contiguous
		e += k.rows.N
	}
	if k.cols.N > 1 && affine.Last(k.out.cols) != 1 {
		each := tuning.ScatterCost
		if k.rows.N >= asm.TransposeRows && affine.Last(k.out.rows) == 1 {
			each = tuning.TransposeCost
		}
		e += each * k.rows.N * k.cols.N / k.terms.N
	}
	return e + k.a.packCost(k.rows.N, false) + k.b.packCost(k.cols.N, true)
}

// packCost estimates, in multiply-adds, what it takes to pack so many rows of what is no
// matrix, for each term; columns (transposed) are packed across runs of terms.
func (s *operandLayout) packCost(rows int, transposed bool) int {
	if s.isMatrix {
		return 0
	}
	run := max(s.termRun.Length(), 1)
	if transposed && s.ownRun.Length() >= run {
		return rows * (tuning.SegmentCost/s.ownRun.Length() + tuning.WordCost)
	}
	if transposed {
		return rows * (tuning.SegmentCost/run + tuning.WordCost + tuning.GatherTransposeCost)
	}
	return rows * (tuning.SegmentCost/run + tuning.WordCost)
}
