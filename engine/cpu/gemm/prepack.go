package gemm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
	"github.com/tally-network/tally/engine/cpu/weights"
)

// weight is a constant operand that a contraction would read from panels made once. Its
// packed form is one line of the cache with what was found in it, then all its panels:
// batch by batch, kc words by kc words, row by row.
type weight struct {
	k      *contraction
	s      *operandLayout
	grid   *affine.Grid // of its rows, or columns
	block  int          // of which a block has so many,
	most   int          // a tile so many,
	vector int          // and a register so many

	instead *contraction // what becomes k once the weight is packed, nil if that is so already
}

// layoutVersion changes when the same layout gives other bytes.
const layoutVersion = 2

// notes are the words at the head of a packed form: the least exponent of all values, and
// whether some value is padding.
const notes = mem.CacheLine / mem.Word

// packedOperand is a packed form as blocks read it.
type packedOperand struct {
	weight
	held        *weights.Packed
	words       []float32
	minExponent kernel.MinExponent
	hasPadding  bool
	plain       func() (*tensor.Tensor, error) // the constant, made again when it is first needed
}

// Weights implements kernel.Prepacker.
func (k *contraction) Weights(isConstant func(operand int) bool) (out []kernel.Weight) {
	if k.b.dotForm && isConstant(k.b.arg) {
		x := k.withoutDotForm()
		return []kernel.Weight{&weight{x, &x.b, &x.cols, x.nc, x.nr, x.set.Lanes, k}}
	}
	for _, w := range []*weight{{k, &k.a, &k.rows, k.mc, k.mr, 1, nil}, {k, &k.b, &k.cols, k.nc, k.nr, k.set.Lanes, nil}} {
		if isConstant(w.s.arg) && w.pays() {
			out = append(out, w)
		}
	}
	return out
}

// withoutDotForm returns k with panels of operand b in place of its columns: one long stream,
// where dot form reads sixteen.
func (k *contraction) withoutDotForm() *contraction {
	x := *k
	x.b.dotForm, x.b.inPlace = false, false
	x.kUnit, x.kc, x.mr, x.nr = 1, tuning.MaxKC, k.set.MR(), k.set.NRVectors()*k.set.Lanes
	return &x
}

// pays reports whether packing once saves packing in every run, or makes what tiles would
// read in place faster to read.
func (w *weight) pays() bool {
	k, s := w.k, w.s
	betterPacked := s == &k.b && !s.dotForm && !s.axpyForm && mem.CeilDiv(k.rows.N, k.mr) > tuning.MaxInPlaceTiles
	varies := slices.ContainsFunc(s.batch, func(step int) bool { return step != 0 })
	return s.input == nil && (!s.inPlace || betterPacked) && !(varies && slices.Contains(s.batch, 0))
}

// batches returns how many batches differ in the operand.
func (w *weight) batches() int {
	if slices.ContainsFunc(w.s.batch, func(step int) bool { return step != 0 }) {
		return w.k.batch.N
	}
	return 1
}

// width returns the rows in whole vectors.
func (w *weight) width() int { return mem.RoundUp(w.grid.N, w.vector) }

// Operand implements kernel.Weight.
func (w *weight) Operand() int { return w.s.arg }

// Bytes implements kernel.Weight.
func (w *weight) Bytes() int {
	return mem.Word * (notes + w.batches()*w.width()*mem.CeilDiv(w.k.terms.N, w.k.wordTerms()) + mem.MaxLanes)
}

// Layout implements kernel.Weight.
func (w *weight) Layout() string {
	k, s := w.k, w.s
	form := "words"
	if k.int8 != nil {
		form = fmt.Sprintf("groups of %d, biases %d and %d, %v", k.int8.Group, k.int8.biasA, k.int8.biasB, s == &k.a)
	}
	return fmt.Sprintf("gemm %d: %v %v as %s; from %d, batch %v %v, own %v %v, terms %v %v, bounds %v; kc %d, unit %d, block %d, tile %d, vector %d, padded %v",
		layoutVersion, k.p.Args[s.arg].Type, k.p.Args[s.arg].Shape, form, s.base, k.batch.Extents, s.batch, w.grid.Extents, s.own, k.terms.Extents, s.terms, s.bounds,
		k.kc, k.kUnit, w.block, w.most, w.vector, k.padded)
}

// Pack implements kernel.Weight.
func (w *weight) Pack(ctx context.Context, dst []byte, x *tensor.Tensor) error {
	args := make([]*tensor.Tensor, len(w.k.p.Args))
	args[w.s.arg] = x
	layout := *w.s // not as it is read today
	layout.rowMajor, layout.inPlace, layout.prepacked = false, false, nil
	p := packer{worker: &kernel.Worker{}}
	src, m := w.k.elements(&layout, args), w.operand(dst)
	m.minExponent = kernel.NoExponent
	for batch := range w.batches() {
		p.place(&layout, w.k, w.grid, 0, batch, 0, w.grid.N)
		err := w.each(func(t, n, row, rows int) error {
			p.seek(src, t, n)
			p.pack(row, rows, w.most, w.vector)
			copy(m.at(batch, t, n, row), p.panelBuffer[:mem.RoundUp(rows, w.vector)*p.kWords])
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		m.minExponent, m.hasPadding = min(m.minExponent, p.minExponent), m.hasPadding || p.hasPadding
	}
	head := mem.Slice[uint32](unsafe.Pointer(&dst[0]), notes)
	head[0], head[1] = uint32(m.minExponent), 0
	if m.hasPadding {
		head[1] = 1
	}
	return nil
}

// each calls do for the rows that are packed together, and n terms from t on.
func (w *weight) each(do func(t, n, row, rows int) error) error {
	for t := 0; t < w.k.terms.N; {
		n := w.k.nextTerms(t)
		for row := 0; row < w.grid.N; {
			rows := min(w.block-row%w.block, w.grid.N-row)
			if w.vector == 1 {
				rows = min(rows, tuning.MaxPackRows)
			}
			if err := do(t, n, row, rows); err != nil {
				return err
			}
			row += rows
		}
		t += n
	}
	return nil
}

// operand returns the packed form in some bytes.
func (w *weight) operand(packed []byte) *packedOperand {
	head := mem.Slice[uint32](unsafe.Pointer(&packed[0]), notes)
	words := mem.Slice[float32](unsafe.Pointer(&packed[0]), len(packed)/mem.Word)[notes:]
	return &packedOperand{weight: *w, words: words, minExponent: kernel.MinExponent(head[0]), hasPadding: head[1] != 0}
}

// at returns the panels from a row on, of the n terms from t on.
func (m *packedOperand) at(batch, t, n, row int) []float32 {
	words := func(terms int) int { return mem.CeilDiv(terms, m.k.wordTerms()) }
	return m.words[m.width()*(batch%m.batches()*words(m.k.terms.N)+words(t))+row*words(n):]
}

// Use implements kernel.Weight.
func (w *weight) Use(p *weights.Packed) {
	k, s := w.k, w.s
	s.rowMajor, s.inPlace = false, false
	s.prepacked = w.operand(p.Bytes())
	s.prepacked.held = p
	s.prepacked.plain = sync.OnceValues(func() (*tensor.Tensor, error) { return w.Unpack(p.Bytes()) })
	if s == &k.b && k.a.lineRows > 0 {
		k.divideLines(tuning.InputBlocks)
	}
	if s == &k.b && k.int8 == nil && k.set.PrefetchGEMM != nil && k.rows.N <= tuning.MaxPrefetchTiles*k.mr {
		k.microKernels = k.set.PrefetchGEMM
	}
	if w.instead != nil {
		*w.instead = *k
	}
}

// Whole implements kernel.Weight: rows, terms and batches number the elements, each once.
func (w *weight) Whole() bool {
	type axis struct{ stride, extent int }
	var all []axis
	for _, g := range []struct {
		extents, strides []int
	}{{w.k.batch.Extents, w.s.batch}, {w.grid.Extents, w.s.own}, {w.k.terms.Extents, w.s.terms}} {
		for i, step := range g.strides {
			if step != 0 && g.extents[i] > 1 {
				all = append(all, axis{max(step, -step), g.extents[i]})
			}
		}
	}
	slices.SortFunc(all, func(a, b axis) int { return a.stride - b.stride })
	dense := 1
	for _, x := range all {
		if x.stride != dense {
			return false
		}
		dense *= x.extent
	}
	return len(w.s.bounds) == 0 && dense == w.k.p.Args[w.s.arg].Shape.Elements()
}

// Unpack implements kernel.Weight.
func (w *weight) Unpack(packed []byte) (*tensor.Tensor, error) {
	k, s := w.k, w.s
	access := &k.p.Args[s.arg]
	x, err := tensor.New(access.Type, access.Shape)
	if err != nil {
		return nil, err
	}
	m, narrow := w.operand(packed), k.widen
	if narrow != nil {
		narrow = eltwise.Cast(k.set, tensor.Float32, access.Type)
	}
	rows, terms := make([]int, w.grid.N), make([]int, k.terms.N)
	k.terms.Offsets(terms, 0, s.terms, 0)
	size := access.Type.Size()
	for batch := range w.batches() {
		w.grid.Offsets(rows, k.batch.Offset(s.base, s.batch, batch), s.own, 0)
		_ = w.each(func(t, n, row, count int) error {
			for end := row + count; row < end; {
				tile := mem.EvenPart(end-row, w.most, w.vector)
				width := mem.RoundUp(tile, w.vector)
				for i := range tile {
					for j := range n {
						from, to := m.at(batch, t, n, row), x.Bytes()[(rows[row+i]+terms[t+j])*size:]
						switch {
						case k.int8 != nil:
							to[0] = w.unpackByte(from, j, i, width)
						case narrow != nil:
							narrow(unsafe.Pointer(&to[0]), unsafe.Pointer(&from[j*width+i]), nil, nil, 1, 1)
						default:
							*(*float32)(unsafe.Pointer(&to[0])) = from[j*width+i]
						}
					}
				}
				row += tile
			}
			return nil
		})
	}
	return x, nil
}

// unpackByte returns an integer of 8 bits from a panel of so many rows.
func (w *weight) unpackByte(panel []float32, term, row, width int) byte {
	group := w.k.wordTerms()
	at := ((term/group*width+row)*group + term%group) * mem.Word / group
	return mem.Slice[byte](mem.First(panel), at+1)[at] ^ byte(w.k.int8Bias(w.s))
}

// plainArgs returns the operands as the definition reads them: those that are hollow are
// made again.
func (k *contraction) plainArgs(args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	args = slices.Clone(args)
	for _, s := range []*operandLayout{&k.a, &k.b} {
		if s.prepacked != nil && kernel.IsHollow(args[s.arg]) {
			x, err := s.prepacked.plain()
			if err != nil {
				return nil, err
			}
			args[s.arg] = x
		}
	}
	return args, nil
}

var _ kernel.Prepacker = (*contraction)(nil)
