package cpu

import (
	mathbits "math/bits"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// window is how a primitive reads planes through windows that move along the last
// two axes of its output. Every plane of the output has one plane of the operand.
//
// The planes of a piece are copied to a sheet, with a border for what lies
// outside, and sorted by phases where windows move by a stride: so the elements
// that one term reads for all windows, and all planes, are one row. It has some
// elements in vain, between the lines.
type window struct {
	p          *tensor.Primitive
	set        *asm.Set
	arg        int
	axes       []int // of planes
	planes     affine.Grid
	base       int
	steps      []int // positions of planes in the operand
	high, wide windowAxis
	each       int   // planes of a piece
	taps       []int // where terms begin in a sheet
	border     bool  // some terms may be absent
}

// windowAxis is one axis along which windows move. Position o of the output and
// term k read coordinate offset + o·step + k·apart of the operand, which is number
// o + k·apart/step of phase k·apart mod step.
type windowAxis struct {
	offset, extent, stride int // of the operand
	n                      int // of the output
	fold                   int // axis of the terms, −1 if there is one term
	step, apart            int
	phases                 []int // that terms use
	length                 int   // of each in a sheet
}

// Sizes of sheets: they stay in the first or second cache.
const (
	maxTaps  = 64
	maxSheet = 6 << 10 // elements, unless a plane has more
	maxVain  = 3       // elements of a sheet for one of the output
)

// newWindow returns nil if p does not read operand arg through windows. Planes lie
// at one distance from each other where they do so for others, too.
func newWindow(p *tensor.Primitive, arg int, set *asm.Set, others ...affine.Strides) *window {
	r, rank := len(p.Shape), len(p.Args[arg].Shape)
	if p.Args[arg].Flat || r < 2 || rank < 2 || p.Shape.Elements() == 0 || p.Terms() < 2 || p.Terms() > maxTaps || set.Flow == nil {
		return nil
	}
	w := &window{p: p, set: set, arg: arg, border: len(affine.BoundsOf(p, arg)) > 0}
	folds := map[int]bool{}
	for d := range rank - 2 {
		b, mayMiss := affine.NewBound(p, arg, d)
		if mayMiss || !affine.Constant(b.Steps[r-2:], p.Shape[r-2:], p.Fold) {
			return nil
		}
	}
	for i, x := range []*windowAxis{&w.high, &w.wide} {
		if !x.read(p, arg, rank-2+i, r-2+i) {
			return nil
		}
		folds[x.fold] = true
	}
	for a, n := range p.Fold {
		if n > 1 && !folds[r+a] {
			return nil
		}
	}
	base, strides, _ := affine.Linear(p, arg)
	outer := affine.Axes(0, r-2)
	for _, a := range outer {
		if p.Shape[a] > 1 && strides[a] == 0 {
			return nil
		}
	}
	w.base = base - w.high.offset*w.high.stride - w.wide.offset*w.wide.stride
	keep, extents := affine.Merge(p.Shape, outer, append(others, strides))
	w.axes, w.planes, w.steps = keep, affine.Grid{Extents: extents, N: tensor.Shape(extents).Elements()}, affine.Strides(strides).Pick(keep)
	size := w.high.length * w.wide.length
	if size > maxVain*w.high.n*w.wide.n {
		return nil
	}
	w.each = min(max(maxSheet/(size*w.phases()), 1), w.planes.N)
	w.findTaps()
	return w
}

// read sets x to dimension d of operand arg, if windows move along it with an axis
// of the output alone.
func (x *windowAxis) read(p *tensor.Primitive, arg, d, axis int) bool {
	b, _ := affine.NewBound(p, arg, d)
	if b.Index != nil {
		return false
	}
	*x = windowAxis{offset: b.Offset, extent: b.Extent, stride: b.Stride, n: p.Shape[axis], fold: none, step: max(b.Steps[axis], 1), apart: 1}
	terms := 1
	for a, step := range b.Steps {
		switch n := append(p.Shape.Clone(), p.Fold...)[a]; {
		case n == 1 || step == 0:
		case step < 0 || a < len(p.Shape) && a != axis || a > len(p.Shape) && x.fold != none:
			return false
		case a >= len(p.Shape):
			x.fold, x.apart, terms = a, step, n
		}
	}
	if x.n > 1 && b.Steps[axis] == 0 {
		return false
	}
	for k := range terms {
		if q := k * x.apart % x.step; !slices.Contains(x.phases, q) {
			x.phases = append(x.phases, q)
		}
	}
	x.length = x.n + (terms-1)*x.apart/x.step
	return true
}

func (w *window) phases() int { return len(w.high.phases) * len(w.wide.phases) }

// findTaps finds where each term begins in a sheet.
func (w *window) findTaps() {
	r := len(w.p.Shape)
	at := make([]int, len(w.p.Fold))
	locate := func(x *windowAxis) (phase, number int) {
		k := 0
		if x.fold != none {
			k = at[x.fold-r] * x.apart
		}
		return slices.Index(x.phases, k%x.step), k / x.step
	}
	for t := range w.p.Terms() {
		tensor.Shape(w.p.Fold).Coords(t, at)
		highPhase, line := locate(&w.high)
		widePhase, column := locate(&w.wide)
		phase := highPhase*len(w.wide.phases) + widePhase
		w.taps = append(w.taps, phase*w.pitch()+line*w.wide.length+column)
	}
}

// size returns the elements of a plane of one phase.
func (w *window) size() int { return w.high.length * w.wide.length }

// pitch returns the elements of a phase in a sheet, and what its last line may write
// behind them.
func (w *window) pitch() int { return w.each*w.size() + mem.MaxLanes }

// length returns the elements of a row, for so many planes.
func (w *window) length(planes int) int {
	return (planes-1)*w.size() + (w.high.n-1)*w.wide.length + w.wide.n
}

func (w *window) Blocks() int { return mem.CeilDiv(w.planes.N, w.each) }

// sheet is the memory of a piece.
type sheet struct {
	values   []float32
	rows     [][]float32
	segments []asm.Segment
	lines    []int // positions
	planes   []int
	from, to int       // planes that have been placed
	down     []float32 // what a descent made
	steps    []asm.Step
}

// place finds the planes of a piece.
func (w *window) place(s *sheet, piece int) {
	s.from, s.to = piece*w.each, min((piece+1)*w.each, w.planes.N)
	s.planes = mem.Grow(s.planes, s.to-s.from)
	w.planes.Offsets(s.planes, w.base, w.steps, s.from)
}

// draw copies the planes that have been placed to the sheet.
func (w *window) draw(s *sheet, src []float32, border float32) {
	size := w.size()
	s.values = mem.Grow(s.values, w.phases()*w.pitch()+maxBehind)
	for i, high := range w.high.phases {
		lo, hi := affine.Clip(w.high.offset+high, w.high.step, w.high.extent, w.high.length)
		hi = max(lo, hi)
		s.lines = mem.Grow(s.lines, hi-lo+1)
		for j := range s.lines {
			s.lines[j] = (w.high.offset + high + (lo+j)*w.high.step) * w.high.stride
		}
		for j, wide := range w.wide.phases {
			first, end := w.cut(s, wide)
			at := (i*len(w.wide.phases) + j) * w.pitch()
			for _, plane := range s.planes {
				dst := s.values[at:]
				mem.Fill(dst[:lo*w.wide.length], border)
				if hi > lo && (j == 0 || !w.zipped()) {
					w.copyLines(s, dst[lo*w.wide.length:], src, plane, hi-lo)
				}
				if border != 0 {
					w.fillColumns(dst, lo, hi, 0, first, border)
					w.fillColumns(dst, lo, hi, end, w.wide.length, border)
				}
				mem.Fill(dst[hi*w.wide.length:size], border)
				at += size
			}
			clear(s.values[at:][:mem.MaxLanes]) // which the last line may have written
		}
	}
	clear(s.values[len(s.values)-maxBehind:])
}

// fillColumns sets the columns k…end−1 of lines lo…hi−1.
func (w *window) fillColumns(dst []float32, lo, hi, k, end int, x float32) {
	for ; k < end; k++ {
		for l := lo; l < hi; l++ {
			dst[l*w.wide.length+k] = x
		}
	}
}

// maxBehind is what tiles may read behind the last row.
const maxBehind = 4 * mem.MaxLanes

// zipped reports whether lines have two phases, which are copied at once.
func (w *window) zipped() bool {
	x := &w.wide
	return w.set.Unzip != nil && x.step == 2 && x.stride == 1 && slices.Equal(x.phases, []int{0, 1})
}

// cut finds the segments of the lines of a phase, or of both from the first on, and
// which elements of the phase lie inside.
func (w *window) cut(s *sheet, phase int) (first, end int) {
	x, lanes := &w.wide, w.set.Lanes
	first, end = affine.Clip(x.offset+phase, x.step, x.extent, x.length)
	if s.segments = s.segments[:0]; w.zipped() {
		s.segments = affine.DeinterleaveSegments(s.segments, x.offset, x.extent, x.length, lanes)
		return first, end
	}
	for j := 0; j < x.length; j += lanes {
		mask := 0
		if l, h := max(first-j, 0), min(end-j, lanes); l < h {
			mask = 1<<h - 1<<l
		}
		s.segments = append(s.segments, asm.Segment{(x.offset + phase + j*x.step) * x.stride, j, mask})
	}
	return first, end
}

// copyLines copies so many lines of a plane, and their other phase with them.
func (w *window) copyLines(s *sheet, dst, src []float32, plane, lines int) {
	if w.zipped() {
		w.set.Unzip(lines, &dst[0], w.wide.length*mem.Word, w.pitch()*mem.Word, &src[plane], &s.lines[0], mem.IntSize, &s.segments[0], len(s.segments))
		return
	}
	copies, pitch, step := asm.Patch(nil), w.wide.length, w.wide.step*w.wide.stride
	switch step {
	case 1:
		copies = w.set.Patch
	case 2:
		copies = w.set.Sift
	}
	if copies != nil {
		copies(lines, &dst[0], pitch*mem.Word, &src[plane], &s.lines[0], mem.IntSize, &s.segments[0], len(s.segments))
		return
	}
	for l, at := range s.lines[:lines] {
		for _, x := range s.segments {
			readLanes(dst[l*pitch+x[1]:], src, plane+at+x[0], step, x[2], w.set.Lanes)
		}
	}
}

// readLanes reads the lanes of a mask, so many steps apart, with zeros for others.
func readLanes(dst, src []float32, at, step, mask, lanes int) {
	clear(dst[:lanes])
	if mask != 0 {
		lane, n := mathbits.TrailingZeros(uint(mask)), mathbits.OnesCount(uint(mask))
		mem.ReadStrided(dst[lane:][:n], src, at+lane*step, step)
	}
}

// spread copies the planes of a piece from a row to the output, line by line, and
// leaves out what lies between.
func (w *window) spread(s *sheet, out *tensor.Tensor, row []float32) {
	n, planes := w.wide.n, s.to-s.from
	dst := tensor.Of[float32](out)[s.from*w.high.n*n : s.to*w.high.n*n]
	if w.wide.length == n && w.high.length == w.high.n {
		copy(dst, row)
		return
	}
	s.lines = mem.Grow(s.lines, planes*w.high.n)
	for i := range s.lines {
		s.lines[i] = i/w.high.n*w.size() + i%w.high.n*w.wide.length
	}
	lines := len(s.lines) - 1
	if s.segments = s.segments[:0]; lines > 0 {
		for j := 0; j < n; j += w.set.Lanes {
			s.segments = append(s.segments, asm.Segment{j, j, 1<<min(n-j, w.set.Lanes) - 1})
		}
		lines -= mem.CeilDiv(w.set.Lanes, n) - 1 // whose last segments stay in the piece
		lines = max(lines, 0)
		if lines > 0 {
			w.set.Patch(lines, &dst[0], n*mem.Word, &row[0], &s.lines[0], mem.IntSize, &s.segments[0], len(s.segments))
		}
	}
	for ; lines < len(s.lines); lines++ {
		copy(dst[lines*n:][:n], row[s.lines[lines]:])
	}
}

// row returns memory for a row, of which several are numbered.
func (s *sheet) row(number, n int) []float32 {
	for len(s.rows) <= number {
		s.rows = append(s.rows, nil)
	}
	s.rows[number] = mem.Grow(s.rows[number], n+maxBehind)
	return s.rows[number]
}

func (w *window) LongRuns() bool { return true }

// finished calls do for the planes that have been computed, which may be in a row yet.
func (w *window) finished(s *sheet, do kernel.Epilogue, row []float32) error {
	if do == nil {
		return nil
	}
	plane := w.high.n * w.wide.n
	return do(s.from*plane, plane, s.to-s.from, plane, kernel.Source{Data: row, RowPitch: w.size(), Lines: w.high.n, LinePitch: w.wide.length})
}
