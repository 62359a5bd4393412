package spatial

import (
	mathbits "math/bits"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// window is how a primitive reads planes through windows that move along the last
// two axes of its output. Every plane of the output has one plane of the operand.
//
// The planes of a block are copied to a window buffer, with padding around them, and split
// into phases where windows move by a stride. So the elements that one term reads for all
// windows, and all planes, are one contiguous row: its tap. Between lines a row has some
// elements that stand for no output.
type window struct {
	p                    *tensor.Primitive
	set                  *asm.KernelSet
	arg                  int   // operand that is read through windows
	axes                 []int // of planes
	planes               affine.Grid
	base                 int
	steps                []int // strides of planes in the operand
	vertical, horizontal windowAxis
	blockPlanes          int   // planes of a block
	taps                 []int // where each term begins in a window buffer
	padded               bool  // some terms may be padding
}

// windowAxis is one axis along which windows move. Position o of the output and
// term k read coordinate offset + o·step + k·dilation of the operand, which is number
// o + k·dilation/step of phase k·dilation mod step.
type windowAxis struct {
	offset, extent, stride int // of the operand
	n                      int // of the output
	fold                   int // axis of the terms, −1 if there is one term
	step, dilation         int
	phases                 []int // that terms use
	length                 int   // of each in a window buffer
}

// noAxis stands for an axis that there is not.
const noAxis = -1

// newWindow returns how p reads operand arg through windows, nil if it does not, or if
// window buffers would be far greater than the output. Planes are merged where the strides
// of others allow it, too.
func newWindow(p *tensor.Primitive, arg int, set *asm.KernelSet, others ...affine.Strides) *window {
	w := readWindow(p, arg, set, others...)
	if w == nil || w.phaseSize() > tuning.MaxWindowWaste*w.vertical.n*w.horizontal.n {
		return nil
	}
	w.blockPlanes = min(max(tuning.MaxWindowBuffer/(w.phaseSize()*w.phases()), 1), w.planes.N)
	w.findTaps()
	return w
}

// readWindow returns the same without the layout of a window buffer.
func readWindow(p *tensor.Primitive, arg int, set *asm.KernelSet, others ...affine.Strides) *window {
	r, rank := len(p.Shape), len(p.Args[arg].Shape)
	if p.Args[arg].Flat || r < 2 || rank < 2 || p.Shape.Elements() == 0 || p.Terms() < 2 || p.Terms() > tuning.MaxTaps || set.EltwiseChain == nil {
		return nil
	}
	w := &window{p: p, set: set, arg: arg, padded: len(affine.BoundsOf(p, arg)) > 0}
	folds := map[int]bool{}
	for d := range rank - 2 {
		b, mayMiss := affine.NewBound(p, arg, d)
		if mayMiss || !affine.Constant(b.Steps[r-2:], p.Shape[r-2:], p.Fold) {
			return nil
		}
	}
	for i, x := range []*windowAxis{&w.vertical, &w.horizontal} {
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
	w.base = base - w.vertical.offset*w.vertical.stride - w.horizontal.offset*w.horizontal.stride
	keep, extents := affine.Merge(p.Shape, outer, append(others, strides))
	w.axes, w.planes, w.steps = keep, affine.Grid{Extents: extents, N: tensor.Shape(extents).Elements()}, affine.Strides(strides).Pick(keep)
	return w
}

// read sets x to dimension d of operand arg, if windows move along it with an axis
// of the output alone.
func (x *windowAxis) read(p *tensor.Primitive, arg, d, axis int) bool {
	b, _ := affine.NewBound(p, arg, d)
	if b.Index != nil {
		return false
	}
	*x = windowAxis{offset: b.Offset, extent: b.Extent, stride: b.Stride, n: p.Shape[axis], fold: noAxis, step: max(b.Steps[axis], 1), dilation: 1}
	terms := 1
	for a, step := range b.Steps {
		switch n := append(p.Shape.Clone(), p.Fold...)[a]; {
		case n == 1 || step == 0:
		case step < 0 || a < len(p.Shape) && a != axis || a > len(p.Shape) && x.fold != noAxis:
			return false
		case a >= len(p.Shape):
			x.fold, x.dilation, terms = a, step, n
		}
	}
	if x.n > 1 && b.Steps[axis] == 0 {
		return false
	}
	for k := range terms {
		if q := k * x.dilation % x.step; !slices.Contains(x.phases, q) {
			x.phases = append(x.phases, q)
		}
	}
	x.length = x.n + (terms-1)*x.dilation/x.step
	return true
}

func (w *window) phases() int { return len(w.vertical.phases) * len(w.horizontal.phases) }

// findTaps finds where each term begins in a window buffer.
func (w *window) findTaps() {
	r := len(w.p.Shape)
	at := make([]int, len(w.p.Fold))
	locate := func(x *windowAxis) (phase, number int) {
		k := 0
		if x.fold != noAxis {
			k = at[x.fold-r] * x.dilation
		}
		return slices.Index(x.phases, k%x.step), k / x.step
	}
	for t := range w.p.Terms() {
		tensor.Shape(w.p.Fold).Coords(t, at)
		highPhase, line := locate(&w.vertical)
		widePhase, column := locate(&w.horizontal)
		phase := highPhase*len(w.horizontal.phases) + widePhase
		w.taps = append(w.taps, phase*w.pitch()+line*w.horizontal.length+column)
	}
}

// phaseSize returns the elements of a plane of one phase.
func (w *window) phaseSize() int { return w.vertical.length * w.horizontal.length }

// pitch returns the elements of a phase in a window buffer, and what its last line may write
// behind them.
func (w *window) pitch() int { return w.blockPlanes*w.phaseSize() + mem.MaxLanes }

// rowLength returns the elements of a row, for so many planes.
func (w *window) rowLength(planes int) int {
	return (planes-1)*w.phaseSize() + (w.vertical.n-1)*w.horizontal.length + w.horizontal.n
}

func (w *window) Blocks() int { return mem.CeilDiv(w.planes.N, w.blockPlanes) }

// windowBuffer is the memory of a block.
type windowBuffer struct {
	values       []float32
	rows         [][]float32
	segments     []asm.MaskedSegment
	lineOffsets  []int // offsets in a plane
	planeOffsets []int
	from, to     int       // planes of the block
	extremes     []float32 // lines that a vertical pass made
	steps        []asm.EltwiseOp
}

// place finds the planes of a block.
func (w *window) place(s *windowBuffer, block int) {
	s.from, s.to = block*w.blockPlanes, min((block+1)*w.blockPlanes, w.planes.N)
	s.planeOffsets = mem.Grow(s.planeOffsets, s.to-s.from)
	w.planes.Offsets(s.planeOffsets, w.base, w.steps, s.from)
}

// fill copies the planes of the block to the window buffer.
func (w *window) fill(s *windowBuffer, src []float32, padding float32) {
	size := w.phaseSize()
	s.values = mem.Grow(s.values, w.phases()*w.pitch()+overread)
	for i, high := range w.vertical.phases {
		lo, hi := affine.Clip(w.vertical.offset+high, w.vertical.step, w.vertical.extent, w.vertical.length)
		s.lineOffsets = mem.Grow(s.lineOffsets, hi-lo+1)
		for j := range s.lineOffsets {
			s.lineOffsets[j] = (w.vertical.offset + high + (lo+j)*w.vertical.step) * w.vertical.stride
		}
		for j, wide := range w.horizontal.phases {
			first, end := w.lineSegments(s, wide)
			at := (i*len(w.horizontal.phases) + j) * w.pitch()
			for _, plane := range s.planeOffsets {
				dst := s.values[at:]
				mem.Fill(dst[:lo*w.horizontal.length], padding)
				if hi > lo && (j == 0 || !w.deinterleaves()) {
					w.copyLines(s, dst[lo*w.horizontal.length:], src, plane, hi-lo)
				}
				if padding != 0 {
					w.fillColumns(dst, lo, hi, 0, first, padding)
					w.fillColumns(dst, lo, hi, end, w.horizontal.length, padding)
				}
				mem.Fill(dst[hi*w.horizontal.length:size], padding)
				at += size
			}
			clear(s.values[at:][:mem.MaxLanes]) // which the last line may have written
		}
	}
	clear(s.values[len(s.values)-overread:])
}

// fillColumns sets the columns k…end−1 of lines lo…hi−1.
func (w *window) fillColumns(dst []float32, lo, hi, k, end int, x float32) {
	for ; k < end; k++ {
		for l := lo; l < hi; l++ {
			dst[l*w.horizontal.length+k] = x
		}
	}
}

// overread is what tiles may read behind the last row.
const overread = 4 * mem.MaxLanes

// deinterleaves reports whether lines have two phases, which one micro-kernel splits.
func (w *window) deinterleaves() bool {
	x := &w.horizontal
	return w.set.Deinterleave != nil && x.step == 2 && x.stride == 1 && slices.Equal(x.phases, []int{0, 1})
}

// lineSegments finds the segments of the lines of a phase, or of both from the first on, and
// which elements of the phase lie inside.
func (w *window) lineSegments(s *windowBuffer, phase int) (first, end int) {
	x, lanes := &w.horizontal, w.set.Lanes
	first, end = affine.Clip(x.offset+phase, x.step, x.extent, x.length)
	if s.segments = s.segments[:0]; w.deinterleaves() {
		s.segments = affine.DeinterleaveSegments(s.segments, x.offset, x.extent, x.length, lanes)
		return first, end
	}
	for j := 0; j < x.length; j += lanes {
		mask := 0
		if l, h := max(first-j, 0), min(end-j, lanes); l < h {
			mask = 1<<h - 1<<l
		}
		s.segments = append(s.segments, asm.MaskedSegment{(x.offset + phase + j*x.step) * x.stride, j, mask})
	}
	return first, end
}

// copyLines copies so many lines of a plane, and their other phase with them.
func (w *window) copyLines(s *windowBuffer, dst, src []float32, plane, lines int) {
	if w.deinterleaves() {
		w.set.Deinterleave(lines, &dst[0], w.horizontal.length*mem.Word, w.pitch()*mem.Word, &src[plane], &s.lineOffsets[0], mem.IntSize, &s.segments[0], len(s.segments))
		return
	}
	copies, pitch, step := asm.GatherKernel(nil), w.horizontal.length, w.horizontal.step*w.horizontal.stride
	switch step {
	case 1:
		copies = w.set.Gather
	case 2:
		copies = w.set.GatherStride2
	}
	if copies != nil {
		copies(lines, &dst[0], pitch*mem.Word, &src[plane], &s.lineOffsets[0], mem.IntSize, &s.segments[0], len(s.segments))
		return
	}
	for l, at := range s.lineOffsets[:lines] {
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

// store copies the planes of a block from a row to the output, line by line, and
// leaves out what lies between.
func (w *window) store(s *windowBuffer, out *tensor.Tensor, row []float32) {
	n, planes := w.horizontal.n, s.to-s.from
	dst := tensor.Of[float32](out)[s.from*w.vertical.n*n : s.to*w.vertical.n*n]
	if w.horizontal.length == n && w.vertical.length == w.vertical.n {
		copy(dst, row)
		return
	}
	s.lineOffsets = mem.Grow(s.lineOffsets, planes*w.vertical.n)
	for i := range s.lineOffsets {
		s.lineOffsets[i] = i/w.vertical.n*w.phaseSize() + i%w.vertical.n*w.horizontal.length
	}
	lines := len(s.lineOffsets) - 1
	if s.segments = s.segments[:0]; lines > 0 {
		for j := 0; j < n; j += w.set.Lanes {
			s.segments = append(s.segments, asm.MaskedSegment{j, j, 1<<min(n-j, w.set.Lanes) - 1})
		}
		lines -= mem.CeilDiv(w.set.Lanes, n) - 1 // whose last segments stay in the block
		lines = max(lines, 0)
		if lines > 0 {
			w.set.Gather(lines, &dst[0], n*mem.Word, &row[0], &s.lineOffsets[0], mem.IntSize, &s.segments[0], len(s.segments))
		}
	}
	for ; lines < len(s.lineOffsets); lines++ {
		copy(dst[lines*n:][:n], row[s.lineOffsets[lines]:])
	}
}

// row returns memory for a row, of which several are numbered.
func (s *windowBuffer) row(number, n int) []float32 {
	for len(s.rows) <= number {
		s.rows = append(s.rows, nil)
	}
	s.rows[number] = mem.Grow(s.rows[number], n+overread)
	return s.rows[number]
}

func (w *window) LongRuns() bool { return true }

// emit calls do for the planes that have been computed, which may be in a row yet.
func (w *window) emit(s *windowBuffer, do kernel.Epilogue, row []float32) error {
	if do == nil {
		return nil
	}
	plane := w.vertical.n * w.horizontal.n
	return do(s.from*plane, plane, s.to-s.from, plane, kernel.Source{Data: row, RowPitch: w.phaseSize(), Lines: w.vertical.n, LinePitch: w.horizontal.length})
}
