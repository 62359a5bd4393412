package affine

import (
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Clip returns the range lo…hi−1 of i in 0…n−1 for which the coordinate c + i·step
// lies in 0…extent−1. 0 ≤ lo ≤ hi ≤ n, also where there is no such i.
func Clip(c, step, extent, n int) (lo, hi int) {
	switch end := extent - 1 - c; { // steps left before the end, and c before the start
	case step == 0 && (c < 0 || end < 0):
		return 0, 0
	case step == 0:
		return 0, n
	case step == 1:
		lo, hi = max(-c, 0), end+1
	case step > 0:
		lo, hi = mem.CeilDiv(-c, step), mem.CeilDiv(end+1, step)
	default:
		lo, hi = mem.CeilDiv(-end, -step), mem.CeilDiv(c+1, -step)
	}
	lo = min(lo, n)
	return lo, max(lo, min(hi, n))
}

// Run is a contiguous run: N elements of a grid, from the innermost axis on, that lie
// Step from each other, as do all coordinates that are checked.
type Run struct{ N, Step int }

// NewRun returns the longest run of a grid of extents along the given strides; checked
// are those of the coordinates that are checked.
func NewRun(extents, strides []int, checked ...[]int) Run {
	inner := len(extents) - 1
	r := Run{extents[inner], strides[inner]}
	for axis := inner - 1; axis >= 0; axis-- {
		for _, s := range append(checked, strides) {
			if s[axis] != s[axis+1]*extents[axis+1] {
				return r
			}
		}
		r.N *= extents[axis]
	}
	return r
}

// Length is how many elements of the run kernels copy together: neighbours, every
// second one, or neighbours backwards. It is 1 for other steps, and 0 where all
// elements are one.
func (r Run) Length() int {
	switch r.Step {
	case 0:
		return 0
	case 1, 2:
		return r.N / r.Step
	case -1:
		return r.N
	}
	return 1
}

// DeinterleaveSegments appends the segments by which [asm.DeinterleaveKernel] splits a line of 2·n
// elements into its even and its odd ones. The line begins at an offset; elements
// outside 0…extent−1 are padding.
func DeinterleaveSegments(to []asm.MaskedSegment, offset, extent, n, lanes int) []asm.MaskedSegment {
	for j := 0; j < n; j += lanes {
		mask, from := 0, offset+2*j
		if l, h := max(-from, 0), min(extent-from, 2*(n-j), 2*lanes); l < h {
			mask = 1<<h - 1<<l
		}
		to = append(to, asm.MaskedSegment{from, j, mask})
	}
	return to
}
