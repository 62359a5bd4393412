package gemm

import (
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Implicit GEMM (XNNPACK's igemm): an operand that is read through windows, or has padding,
// is not packed but read in place from a padded copy of its input, through an indirection
// of terms.

// readPaddedRows lets k pack rows from a padded input of operand x, if some terms are
// padding: then all rows are alike.
func (k *contraction) readPaddedRows(x, y int, batch, rows, cols, terms []int) bool {
	if len(affine.BoundsOf(k.p, x)) == 0 {
		return false
	}
	batch, rows, _, terms = k.setGrids(x, y, batch, rows, cols, terms, x)
	m := newPaddedInput(k, x, &k.rows, batch, rows, terms, k.rows.Extents[0], false)
	if m == nil || m.size > tuning.MaxInput || m.size > k.rows.N*k.terms.N {
		return false
	}
	k.a = operandLayout{arg: x, base: m.base, batch: make([]int, len(batch)), own: m.own, terms: m.terms, input: m}
	k.a.findRuns(&k.rows, &k.terms)
	return true
}

// implicitByRows lets k read rows in place from a padded input of operand x, where windows
// of x move with the rows, along short lines or with many terms. Nothing is packed for
// them, and columns, those of the weights, fill whole vectors. It reports whether that
// suits k.
func (k *contraction) implicitByRows(x, y int, batch, rows, cols, terms []int) bool {
	if len(batch) > 0 || len(rows) == 0 || !affine.Windowed(k.p, x, affine.Last(rows)) || len(affine.BoundsOf(k.p, y)) > 0 {
		return false
	}
	most := tuning.MaxLineInput
	if k.alongPlanes(x, rows) {
		rows, most = append(slices.Clone(rows[1:]), rows[0]), tuning.MaxPlaneInput
	}
	batch, rows, _, terms = k.setGrids(x, y, batch, rows, cols, terms, x)
	line := affine.Last(k.rows.Extents)
	m := newPaddedInput(k, x, &k.rows, batch, rows, terms, k.rows.Extents[0], false)
	if line < tuning.MinLineRows || line > tuning.MaxLineRows && k.terms.N < tuning.ManyTerms || k.cols.N < tuning.MinLineColumns || m == nil || m.size > most {
		return false
	}
	k.a = operandLayout{arg: x, base: m.base, batch: make([]int, len(batch)), own: m.own, terms: m.terms, input: m, inPlace: true, lineRows: line}
	k.lines = lineLayout{k.cols.N, 1, 1, 1, tensor.Shape(k.cols.Extents).Strides()}
	parts := mem.CeilDiv(k.cols.N, k.nr)
	if mem.CeilDiv(k.cols.N, k.set.Lanes)%k.set.NRVectors() == 1 {
		parts = mem.CeilDiv(parts, 2) // or the last tile had one vector
	}
	k.nc = mem.RoundUp(mem.CeilDiv(k.cols.N, parts), k.set.Lanes)
	k.nBlocks = mem.CeilDiv(k.cols.N, k.nc)
	k.divideLines(tuning.FewBlocks)
	return true
}

// alongPlanes reports whether lines of rows should run along the first axis, the planes
// of operand x, rather than along the last: windows have fewer positions than a tile rows, as
// those of a gradient by weights, or of small maps.
func (k *contraction) alongPlanes(x int, rows []int) bool {
	return k.p.Shape[affine.Last(rows)] < k.mr && k.p.Shape[rows[0]] >= k.mr && !affine.Windowed(k.p, x, rows[0])
}

// divideLines chooses mc for rows that are read by the line, such that there are enough
// blocks, those beside each other included.
func (k *contraction) divideLines(enough int) {
	unit := k.a.lineRows
	if unit%k.mr == 0 || unit > tuning.MaxMC {
		unit = k.mr
	}
	k.mc = min(mem.RoundUp(mem.CeilDiv(k.rows.N, mem.CeilDiv(enough, k.nBlocks)), unit), tuning.MaxMC/unit*unit)
	k.mBlocks = mem.CeilDiv(k.rows.N, k.mc)
}

// implicitByColumns lets k read columns in place from a padded input of operand y, where
// windows of y move with the last of the columns. Other columns become part of the batch.
// It reports whether that suits k.
func (k *contraction) implicitByColumns(x, y int, batch, rows, cols, terms []int) bool {
	for len(cols) > 0 && !affine.Windowed(k.p, y, cols[0]) {
		batch, cols = append(batch[:len(batch):len(batch)], cols[0]), cols[1:]
	}
	if len(cols) == 0 || k.p.Args[y].Flat || len(affine.BoundsOf(k.p, x)) > 0 {
		return false
	}
	batch, _, cols, terms = k.setGrids(x, y, batch, rows, cols, terms, y)
	split := affine.Last(k.cols.Extents) >= tuning.MinPhaseColumns
	m := newPaddedInput(k, y, &k.cols, batch, cols, terms, k.cols.Extents[0], split)
	if m == nil || !m.oneRow(k.cols.Extents) {
		return false
	}
	k.lines = lineLayout{k.cols.Extents[0], k.cols.N / k.cols.Extents[0], m.own[0], m.span(k.cols.Extents), m.own}
	// Columns between lines, which are computed for nothing, and packing rows for every
	// padded input must cost less than packing every column.
	waste := ((k.lines.n-1)*k.lines.pitch + k.lines.span - k.cols.N) * k.rows.N
	if k.batch.N > 1 {
		waste += k.rows.N*tuning.RowPackCost + k.a.packCost(k.rows.N, false)
	}
	if waste > k.cols.N*tuning.ColumnPackCost {
		return false
	}
	k.chooseBlocking(tuning.FewBlocks)
	for m = newPaddedInput(k, y, &k.cols, batch, cols, terms, k.nc, split); m.size > tuning.MaxInput && k.nc > 1; {
		k.nc = mem.CeilDiv(k.nc, 2)
		k.nBlocks = mem.CeilDiv(k.lines.n, k.nc)
		m = newPaddedInput(k, y, &k.cols, batch, cols, terms, k.nc, split)
	}
	k.b = operandLayout{arg: y, base: m.base, batch: make([]int, len(batch)), own: m.own, terms: m.terms, inPlace: true, input: m}
	k.chooseA()
	return true
}
