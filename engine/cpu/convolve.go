package cpu

import (
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Contractions of which an operand is read through windows, or has terms outside, from
// an image of it.

// pad prepares k to read rows from an image of operand x, if some terms lie
// outside the operand: then all rows look alike.
func (k *dot) pad(x, y int, batch, rows, cols, terms []int) bool {
	if len(affine.BoundsOf(k.p, x)) == 0 {
		return false
	}
	batch, rows, _, terms = k.arrange(x, y, batch, rows, cols, terms, x)
	m := newImage(k, x, &k.rows, batch, rows, terms, k.rows.Extents[0], false)
	if m == nil || m.size > maxImage || m.size > k.rows.N*k.terms.N {
		return false
	}
	k.a = side{arg: x, base: m.base, batch: make([]int, len(batch)), own: m.own, terms: m.terms, image: m}
	k.a.runs(&k.rows, &k.terms)
	return true
}

// slide prepares k to read rows where they lie in an image of operand x, if that
// suits it: if windows of x move with the rows, along short lines or with many terms.
// There is nothing to pack for them, and columns, those of the weights, fill whole vectors.
func (k *dot) slide(x, y int, batch, rows, cols, terms []int) bool {
	if len(batch) > 0 || len(rows) == 0 || !affine.Windowed(k.p, x, affine.Last(rows)) || len(affine.BoundsOf(k.p, y)) > 0 {
		return false
	}
	most := maxSlid
	if k.alongPlanes(x, rows) {
		rows, most = append(slices.Clone(rows[1:]), rows[0]), maxPlanes
	}
	batch, rows, _, terms = k.arrange(x, y, batch, rows, cols, terms, x)
	line := affine.Last(k.rows.Extents)
	m := newImage(k, x, &k.rows, batch, rows, terms, k.rows.Extents[0], false)
	if line < minLine || line > maxLine && k.terms.N < manyTerms || k.cols.N < minColumns || m == nil || m.size > most {
		return false
	}
	k.a = side{arg: x, base: m.base, batch: make([]int, len(batch)), own: m.own, terms: m.terms, image: m, inPlace: true, line: line}
	k.lines = lines{k.cols.N, 1, 1, 1, tensor.Shape(k.cols.Extents).Strides()}
	parts := mem.CeilDiv(k.cols.N, k.tileCols)
	if mem.CeilDiv(k.cols.N, k.set.Lanes)%k.set.Vectors() == 1 {
		parts = mem.CeilDiv(parts, 2) // or the last tile had one vector
	}
	k.wide = mem.RoundUp(mem.CeilDiv(k.cols.N, parts), k.set.Lanes)
	k.beside = mem.CeilDiv(k.cols.N, k.wide)
	k.cut(fewPieces)
	return true
}

// alongPlanes reports whether lines had better run along the first axis of rows, the
// planes of operand x, than along the last: windows have too few positions for the
// rows of a tile, as those of a gradient by weights, or of small maps.
func (k *dot) alongPlanes(x int, rows []int) bool {
	return k.p.Shape[affine.Last(rows)] < k.tileRows && k.p.Shape[rows[0]] >= k.tileRows && !affine.Windowed(k.p, x, rows[0])
}

// cut divides rows that are read by the line into so many pieces, together with those
// beside them.
func (k *dot) cut(pieces int) {
	unit := k.a.line
	if unit%k.tileRows == 0 || unit > maxHigh {
		unit = k.tileRows
	}
	k.high = min(mem.RoundUp(mem.CeilDiv(k.rows.N, mem.CeilDiv(pieces, k.beside)), unit), maxHigh/unit*unit)
	k.down = mem.CeilDiv(k.rows.N, k.high)
}

// convolve prepares k to read an image of operand y, if that suits it: if y is
// read through windows, which move with the last of the columns. Other columns
// become part of the batch.
func (k *dot) convolve(x, y int, batch, rows, cols, terms []int) bool {
	for len(cols) > 0 && !affine.Windowed(k.p, y, cols[0]) {
		batch, cols = append(batch[:len(batch):len(batch)], cols[0]), cols[1:]
	}
	if len(cols) == 0 || k.p.Args[y].Flat || len(affine.BoundsOf(k.p, x)) > 0 {
		return false
	}
	batch, _, cols, terms = k.arrange(x, y, batch, rows, cols, terms, y)
	sorted := affine.Last(k.cols.Extents) >= minSorted
	m := newImage(k, y, &k.cols, batch, cols, terms, k.cols.Extents[0], sorted)
	if m == nil || !m.oneRow(k.cols.Extents) {
		return false
	}
	k.lines = lines{k.cols.Extents[0], k.cols.N / k.cols.Extents[0], m.own[0], m.span(k.cols.Extents), m.own}
	// What is computed in vain, and packing rows for every image, must cost less than
	// packing every column.
	vain := ((k.lines.n-1)*k.lines.pitch + k.lines.span - k.cols.N) * k.rows.N
	if k.batch.N > 1 {
		vain += k.rows.N*packingCols + k.a.effort(k.rows.N, false)
	}
	if vain > k.cols.N*packingRows {
		return false
	}
	k.divide(fewPieces)
	for m = newImage(k, y, &k.cols, batch, cols, terms, k.wide, sorted); m.size > maxImage && k.wide > 1; {
		k.wide = mem.CeilDiv(k.wide, 2)
		k.beside = mem.CeilDiv(k.lines.n, k.wide)
		m = newImage(k, y, &k.cols, batch, cols, terms, k.wide, sorted)
	}
	k.b = side{arg: y, base: m.base, batch: make([]int, len(batch)), own: m.own, terms: m.terms, inPlace: true, image: m}
	k.readA()
	return true
}
