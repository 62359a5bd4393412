package gemm

import (
	"slices"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// paddedInput is a copy of the part of an operand that a block of a convolution reads, with
// zeros for padding. Whatever the term, the columns of the block are one row in it: each
// line of the output, then some positions that stand for no output, up to the next line.
// So tiles read it in place. Where columns move by a stride, an axis is split into its
// phases, one after the other, so that columns are still contiguous.
type paddedInput struct {
	dims       []paddedAxis
	size       int
	base       int   // offset of the first column's first term
	own, terms []int // strides
	table      []int // offsets of the terms, if phases leave them no strides
}

// paddedAxis is one axis of a padded input. It begins at coordinate start + Σ batch +
// line · (line at which the block begins) of the operand.
type paddedAxis struct {
	start, line    int
	batch          []int // steps
	extent, stride int   // of the operand
	n, pitch       int   // extent and stride in the padded input
	phases         int   // coordinates of one phase are so many apart; 1 if it is not split
	phasePitch     int
}

// newPaddedInput returns the padded input of operand arg for blocks of so many lines along
// the first axis of its rows or columns, perhaps split into phases. It is nil if it is
// too large.
func newPaddedInput(k *contraction, arg int, grid *affine.Grid, batch, own, terms []int, lines int, split bool) *paddedInput {
	m := &paddedInput{size: 1, own: make([]int, len(own)), terms: make([]int, len(terms))}
	m.dims = make([]paddedAxis, len(k.p.Args[arg].Shape))
	extents := append([]int{lines}, grid.Extents[1:]...)
	termSteps := make([][]int, len(m.dims))
	for d := len(m.dims) - 1; d >= 0; d-- {
		b, _ := affine.NewBound(k.p, arg, d)
		x := paddedAxis{start: b.Offset, batch: affine.Strides(b.Steps).Pick(batch), extent: b.Extent, stride: b.Stride, n: 1, pitch: m.size, phases: 1}
		ownSteps := affine.Strides(b.Steps).Pick(own)
		termSteps[d] = affine.Strides(b.Steps).Pick(terms)
		if split {
			x.phases = phasesAlong(ownSteps, extents, termSteps[d])
		}
		spread := func(steps, extents, strides []int) {
			for i, step := range steps {
				strides[i] += step / x.phases * x.pitch
				far := step * (extents[i] - 1)
				x.start += min(far, 0)
				m.base -= min(far, 0) * x.pitch
				x.n += max(far, -far)
			}
		}
		spread(termSteps[d], k.terms.Extents, m.terms)
		spread(ownSteps, extents, m.own)
		x.n = mem.CeilDiv(x.n, x.phases)
		x.line = ownSteps[0]
		m.dims[d] = x
		if m.size *= x.n; m.size > tensor.MaxDim {
			return nil
		}
	}
	for d := range m.dims {
		x := &m.dims[d]
		if x.phases > 1 {
			m.size += mem.MaxLanes // which the last line of a phase may write
		}
		x.phasePitch = m.size
		if m.size *= x.phases; m.size > tensor.MaxDim {
			return nil
		}
	}
	m.locateTerms(k, termSteps)
	return m
}

// phasesAlong returns the stride by which columns move along an axis, 1 if splitting it
// into phases does not help.
func phasesAlong(own, extents, terms []int) int {
	stride, moving := 1, 0
	for i, step := range own {
		if step < 0 {
			return 1
		}
		if step > 0 && extents[i] > 1 {
			stride, moving = step, moving+1
		}
	}
	if moving != 1 || stride > tuning.MaxPhases || slices.ContainsFunc(terms, func(step int) bool { return step < 0 }) {
		return 1
	}
	return stride
}

// locateTerms makes the table of the terms, if some axis is split into phases.
func (m *paddedInput) locateTerms(k *contraction, steps [][]int) {
	if !slices.ContainsFunc(m.dims, func(x paddedAxis) bool { return x.phases > 1 }) {
		return
	}
	m.table = make([]int, k.terms.N)
	along := make([]int, k.terms.N)
	for d, x := range m.dims {
		k.terms.Offsets(along, 0, steps[d], 0)
		for t, c := range along {
			m.table[t] += c%x.phases*x.phasePitch + c/x.phases*x.pitch
		}
	}
}

// oneRow reports whether columns of the given extents can be one row.
func (m *paddedInput) oneRow(extents []int) bool {
	next := 1 // the least step that passes over a whole inner axis
	for i := len(m.own) - 1; i >= 0; i-- {
		if m.own[i] < next || i == len(m.own)-1 && m.own[i] != 1 {
			return false
		}
		next = m.own[i] * extents[i]
	}
	return true
}

// span returns the positions from the first to the last column of a line.
func (m *paddedInput) span(extents []int) int {
	n := 1
	for i, stride := range m.own[1:] {
		n += (extents[i+1] - 1) * stride
	}
	return n
}

// fill fills dst with the part of src that belongs to a line of a batch. It reports
// whether there is padding.
func (m *paddedInput) fill(dst []float32, src *inputReader, batch *affine.Grid, at, line int) (padding bool) {
	var from [tensor.MaxRank]int
	for d := range m.dims {
		x := &m.dims[d]
		from[d] = batch.Offset(x.start, x.batch, at) + line*x.line
	}
	if m.table != nil {
		clear(dst[:m.size])
	}
	return m.fillAxis(dst, src, from[:len(m.dims)], 0, 0)
}

func (m *paddedInput) fillAxis(dst []float32, src *inputReader, from []int, d, at int) (padding bool) {
	if len(m.dims) == 0 {
		src.read(dst[:1], 0)
		return false
	}
	for phase := range m.dims[d].phases {
		outside := m.fillPhase(dst[phase*m.dims[d].phasePitch:], src, from, d, at, phase)
		padding = padding || outside
	}
	return padding
}

// fillPhase fills one phase of an axis, and of the axes inside.
func (m *paddedInput) fillPhase(dst []float32, src *inputReader, from []int, d, at, phase int) (padding bool) {
	x := &m.dims[d]
	lo, hi := affine.Clip(from[d]+phase, x.phases, x.extent, x.n)
	if lo >= hi {
		m.clearRange(dst, d, 0, x.n)
		return true
	}
	m.clearRange(dst, d, 0, lo)
	m.clearRange(dst, d, hi, x.n)
	padding = lo > 0 || hi < x.n
	at += (from[d] + phase + lo*x.phases) * x.stride
	if d == len(m.dims)-1 {
		src.readStrided(dst[lo:hi], at, x.phases*x.stride)
		return padding
	}
	if d == len(m.dims)-2 && src.widen == nil {
		if outside, ok := src.copyLines(dst[lo*x.pitch:], hi-lo, at, x.phases*x.stride, &m.dims[d+1], from[d+1]); ok {
			return padding || outside
		}
	}
	for i := lo; i < hi; i++ {
		inner := m.fillAxis(dst[i*x.pitch:], src, from, d+1, at)
		padding = padding || inner
		at += x.phases * x.stride
	}
	return padding
}

// clearRange clears the elements lo…hi−1 of an axis. An input that is split into phases is
// cleared as a whole, beforehand.
func (m *paddedInput) clearRange(dst []float32, d, lo, hi int) {
	if m.table == nil {
		clear(dst[lo*m.dims[d].pitch : hi*m.dims[d].pitch])
	}
}

// inputReader reads the elements of an operand for a padded input, and is the memory for
// that.
type inputReader struct {
	elements
	set        *asm.KernelSet
	at         int
	lineStarts []int
	segments   [16]asm.MaskedSegment
}

// copyLines copies lines of an axis, the first at an offset and each apart elements after
// the one before, in whole registers: it writes zeros behind the last. ok is false if
// there is no room for the segments of a line, or no micro-kernel for its phases.
func (e *inputReader) copyLines(dst []float32, lines, at, apart int, x *paddedAxis, from int) (padding, ok bool) {
	lanes := e.set.Lanes
	n := mem.CeilDiv(x.n, lanes)
	if n > len(e.segments) || x.stride != 1 || x.phases > 2 || x.phases == 2 && e.set.Deinterleave == nil {
		return false, false
	}
	e.lineStarts = mem.Grow(e.lineStarts, lines)
	for i := range e.lineStarts {
		e.lineStarts[i] = at + i*apart
	}
	if x.phases == 2 {
		affine.DeinterleaveSegments(e.segments[:0], from, x.extent, x.n, lanes)
		e.set.Deinterleave(lines, &dst[0], x.n*mem.Word, x.phasePitch*mem.Word, unsafe.SliceData(e.floats), &e.lineStarts[0], mem.IntSize, &e.segments[0], n)
		return from < 0 || from+2*x.n > x.extent, true
	}
	lo, hi := affine.Clip(from, 1, x.extent, x.n)
	for i := range e.segments[:n] {
		mask, j := 0, i*lanes
		if l, h := max(lo-j, 0), min(hi-j, lanes); l < h {
			mask = 1<<h - 1<<l
		}
		e.segments[i] = asm.MaskedSegment{from + j, j, mask}
	}
	e.set.Gather(lines, &dst[0], x.n*mem.Word, unsafe.SliceData(e.floats), &e.lineStarts[0], mem.IntSize, &e.segments[0], n)
	return lo > 0 || hi < x.n, true
}

// readStrided copies elements step apart.
func (e *inputReader) readStrided(dst []float32, at, step int) {
	switch {
	case step == 1:
		e.read(dst, at)
	case e.widen != nil:
		for i := range dst {
			e.read(dst[i:i+1], at+i*step)
		}
	case step == 2 && e.set.GatherStride2 != nil:
		e.readEven(dst, at)
	default:
		mem.ReadStrided(dst, e.floats, at, step)
	}
}

// readEven copies every second element, in whole registers and then the remainder.
func (e *inputReader) readEven(dst []float32, at int) {
	lanes := e.set.Lanes
	for e.at = at; len(dst) >= lanes; {
		n := min(len(dst)/lanes, len(e.segments))
		for i := range n {
			e.segments[i] = asm.MaskedSegment{2 * i * lanes, i * lanes, 1<<lanes - 1}
		}
		e.set.GatherStride2(1, &dst[0], 0, &e.floats[0], &e.at, 0, &e.segments[0], n)
		dst, e.at = dst[n*lanes:], e.at+2*n*lanes
	}
	mem.ReadStrided(dst, e.floats, e.at, 2)
}
