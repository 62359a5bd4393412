package cpu

import (
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// farTiles are the tiles of rows that take less time than it takes to read operand b,
// which lies outside the caches.
const farTiles = 8

// kept is all of an operand in panels: for each batch, block by block of the
// terms, and row by row.
type kept struct {
	words   []float32
	rows    int // in whole vectors
	batches int
	least   kernel.MinExponent
	absent  bool // some value lay outside the operand
}

// Prepack implements prepacker.
func (k *dot) Prepack(consts []*tensor.Tensor, left int) int {
	if k.bytes != nil {
		return left
	}
	left = k.keep(&k.a, &k.rows, k.high, k.tileRows, 1, consts, left)
	left = k.keep(&k.b, &k.cols, k.wide, k.tileCols, k.set.Lanes, consts, left)
	if k.b.kept != nil && k.a.line > 0 {
		k.cut(imagePieces)
	}
	if k.b.kept != nil && k.set.Far != nil && k.rows.N <= farTiles*k.tileRows {
		k.tiles = k.set.Far
	}
	return left
}

// better reports whether tiles that read a side in place had better read it packed,
// if that costs nothing: if there are many.
func (k *dot) better(s *side) bool {
	return s == &k.b && !s.turned && !s.swept && mem.CeilDiv(k.rows.N, k.tileRows) > fewTiles
}

// keep packs an operand of which pieces have so many rows, or columns.
func (k *dot) keep(s *side, g *affine.Grid, piece, most, vector int, args []*tensor.Tensor, left int) int {
	if args[s.arg] == nil || s.image != nil || s.inPlace && !k.better(s) {
		return left
	}
	m := &kept{rows: mem.RoundUp(g.N, vector), batches: 1, least: kernel.NoExponent}
	if slices.ContainsFunc(s.batch, func(step int) bool { return step != 0 }) {
		if m.batches = k.batch.N; slices.Contains(s.batch, 0) {
			return left
		}
	}
	size := m.batches * m.rows * k.terms.N
	if size > left/mem.Word {
		return left
	}
	s.lined, s.inPlace = false, false
	m.words = make([]float32, size+mem.MaxLanes)
	mem.HugePages(mem.Slice[byte](mem.First(m.words), len(m.words)*mem.Word))
	var p panels
	src := k.operand(s, args)
	for batch := range m.batches {
		p.place(s, k, g, 0, batch, 0, g.N)
		for t := 0; t < k.terms.N; {
			n := k.take(t)
			p.reach(src, t, n)
			for i := 0; i < g.N; {
				rows := min(piece-i%piece, g.N-i)
				if vector == 1 {
					rows = min(rows, maxRows)
				}
				p.pack(i, rows, most, vector)
				copy(m.at(batch, k.terms.N, t, n, i), p.words[:mem.RoundUp(rows, vector)*p.deep])
				i += rows
			}
			t += n
		}
		m.least, m.absent = min(m.least, p.least), m.absent || p.absent
	}
	s.kept = m
	return left - size*mem.Word
}

// at returns the words from a row on, of a block of n terms from t on.
func (m *kept) at(batch, terms, t, n, row int) []float32 {
	return m.words[m.rows*(batch%m.batches*terms+t)+row*n:]
}
