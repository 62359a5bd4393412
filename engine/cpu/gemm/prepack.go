package gemm

import (
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// packedOperand is all of a constant operand in panels: batch by batch, kc terms by kc
// terms, row by row.
type packedOperand struct {
	words       []float32
	rows        int // in whole vectors
	batches     int
	minExponent kernel.MinExponent
	hasPadding  bool // some value is padding
}

// Prepack implements kernel.Prepacker.
func (k *contraction) Prepack(consts []*tensor.Tensor, budget int) (left int) {
	if k.int8 != nil {
		return budget
	}
	left = k.prepackOperand(&k.a, &k.rows, k.mc, k.mr, 1, consts, budget)
	left = k.prepackOperand(&k.b, &k.cols, k.nc, k.nr, k.set.Lanes, consts, left)
	if k.b.prepacked != nil && k.a.lineRows > 0 {
		k.divideLines(inputBlocks)
	}
	if k.b.prepacked != nil && k.set.PrefetchGEMM != nil && k.rows.N <= maxPrefetchTiles*k.mr {
		k.microKernels = k.set.PrefetchGEMM
	}
	return left
}

// betterPacked reports whether tiles had better read packed what they would read in place,
// if packing costs nothing: if there are many.
func (k *contraction) betterPacked(s *operandLayout) bool {
	return s == &k.b && !s.dotForm && !s.axpyForm && mem.CeilDiv(k.rows.N, k.mr) > maxInPlaceTiles
}

// prepackOperand packs an operand of which blocks have so many rows, or columns, if it is
// constant and would be packed in every run.
func (k *contraction) prepackOperand(s *operandLayout, g *affine.Grid, block, most, vector int, args []*tensor.Tensor, left int) int {
	if args[s.arg] == nil || s.input != nil || s.inPlace && !k.betterPacked(s) {
		return left
	}
	m := &packedOperand{rows: mem.RoundUp(g.N, vector), batches: 1, minExponent: kernel.NoExponent}
	if slices.ContainsFunc(s.batch, func(step int) bool { return step != 0 }) {
		if m.batches = k.batch.N; slices.Contains(s.batch, 0) {
			return left
		}
	}
	size := m.batches * m.rows * k.terms.N
	if size > left/mem.Word {
		return left
	}
	s.rowMajor, s.inPlace = false, false
	m.words = make([]float32, size+mem.MaxLanes)
	mem.HugePages(mem.Slice[byte](mem.First(m.words), len(m.words)*mem.Word))
	var p packer
	src := k.elements(s, args)
	for batch := range m.batches {
		p.place(s, k, g, 0, batch, 0, g.N)
		for t := 0; t < k.terms.N; {
			n := k.nextTerms(t)
			p.seek(src, t, n)
			for i := 0; i < g.N; {
				rows := min(block-i%block, g.N-i)
				if vector == 1 {
					rows = min(rows, maxPackRows)
				}
				p.pack(i, rows, most, vector)
				copy(m.at(batch, k.terms.N, t, n, i), p.panelBuffer[:mem.RoundUp(rows, vector)*p.kWords])
				i += rows
			}
			t += n
		}
		m.minExponent, m.hasPadding = min(m.minExponent, p.minExponent), m.hasPadding || p.hasPadding
	}
	s.prepacked = m
	return left - size*mem.Word
}

// at returns the panels from a row on, of the n terms from t on.
func (m *packedOperand) at(batch, terms, t, n, row int) []float32 {
	return m.words[m.rows*(batch%m.batches*terms+t)+row*n:]
}
