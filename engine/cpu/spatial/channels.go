package spatial

import (
	"fmt"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// channelTiles is a depthwise convolution in blocks of channels (NCHWc): as many planes as a
// register has lanes are turned so that their channels lie side by side. Then a term of one
// position is one vector, whatever the width of lines, the stride and the dilation. The
// result is turned back.
//
// A block is some lines of such planes. Terms outside the lines of an operand are left out,
// as the definition has it. Only columns are padded.
type channelTiles struct {
	*window
	kernelTerms
	pitch        int   // columns of a line of the input, with padding
	first, end   int   // of them that are no padding
	lines        int   // of the output, in a block
	bands        int   // blocks of the same planes
	across, down int   // terms of a line, and of a column
	tapOffsets   []int // bytes to the tap of each term
	turnedLines  bool  // lines follow each other in the operand, and are turned all at once
}

// channelBuffer is the memory of a block.
type channelBuffer struct {
	input, whole, terms, result, row []float32 // by position, then lane; whole has lines without padding
	inputPlanes, termPlanes          []int
}

// newChannelTiles returns the kernel, or nil if w is not for it: planes must fill lanes, and
// their lines be contiguous.
func newChannelTiles(w *window, x kernelTerms) *channelTiles {
	h, v := &w.horizontal, &w.vertical
	if w.set.Depthwise == nil || h.stride != 1 || 2*w.planes.N < w.set.Lanes || v.fold != noAxis && h.fold != noAxis && v.fold > h.fold {
		return nil
	}
	k := &channelTiles{window: w, kernelTerms: x, across: 1}
	if h.fold != noAxis {
		k.across = w.p.Fold[h.fold-len(w.p.Shape)]
	}
	k.down = w.p.Terms() / k.across
	k.pitch = (h.n-1)*h.step + (k.across-1)*h.dilation + 1
	k.first, k.end = affine.Clip(h.offset, 1, h.extent, k.pitch)
	if k.first >= k.end {
		return nil
	}
	k.padded = k.end-k.first < k.pitch
	k.turnedLines = v.stride == k.end-k.first && (!k.padded || k.end-k.first <= tuning.MaxTurnedLine)
	for t := range w.p.Terms() {
		k.tapOffsets = append(k.tapOffsets, (t/k.across*v.dilation*k.pitch+t%k.across*h.dilation)*w.set.Lanes*mem.Word)
	}
	most := max((tuning.MaxChannelBuffer/(k.pitch*w.set.Lanes)-(k.down-1)*v.dilation)/v.step, 1)
	k.bands = mem.CeilDiv(v.n, most)
	k.lines = mem.CeilDiv(v.n, k.bands)
	k.bands = mem.CeilDiv(v.n, k.lines)
	return k
}

// Blocks implements kernel.Kernel.
func (k *channelTiles) Blocks() int { return mem.CeilDiv(k.planes.N, k.set.Lanes) * k.bands }

// Describe implements kernel.Kernel.
func (k *channelTiles) Describe() kernel.Description {
	packing := "turned to blocks of channels"
	if k.padded {
		packing += ", columns padded"
	}
	return kernel.Description{
		Kernel: "depthwise", Packing: packing, Handover: kernel.FromAccumulators,
		Blocking: fmt.Sprintf("%d planes of %d × %d, %d × %d lines a block, %d taps", k.planes.N, k.vertical.n, k.horizontal.n, k.set.Lanes, k.lines, len(k.tapOffsets)),
	}
}

// Run implements kernel.Kernel.
func (k *channelTiles) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	return kernel.Produce(k, w, out, args, lo, hi, nil)
}

// Next implements kernel.Producer.
func (k *channelTiles) Next(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, block, _ int, do kernel.Epilogue) (done int, err error) {
	s, lanes := kernel.Scratch[channelBuffer](w), k.set.Lanes
	from, line := block/k.bands*lanes, block%k.bands*k.lines
	planes, lines := min(lanes, k.planes.N-from), min(k.lines, k.vertical.n-line)
	k.place(s, from, planes)
	k.packTerms(s, tensor.Of[float32](args[k.other]))
	top, deep := k.fill(s, tensor.Of[float32](args[k.arg]), line, lines)
	doubtful := k.compute(s, line, lines, top, deep)

	n, plane := lines*k.horizontal.n, k.vertical.n*k.horizontal.n
	at, pitch := from*plane+line*k.horizontal.n, max(n, asm.TransposeRows)
	values := tensor.Of[float32](out)
	if do == nil && planes == lanes && n == pitch {
		k.turnBack(s, values[at:], n, plane)
	} else {
		s.row = mem.Grow(s.row, lanes*pitch)
		k.turnBack(s, s.row, pitch, pitch)
		source := kernel.Source{Data: s.row, RowPitch: pitch, Lines: 1, LinePitch: n}
		if do != nil && !doubtful {
			return 1, do(at, n, planes, plane, source)
		}
		source.CopyTo(values, at, n, planes, plane)
	}
	if doubtful {
		vanished := k.vanished(s, deep)
		for i := range planes {
			if err := k.correctPadding(out, args, at+i*plane, n, vanished); err != nil {
				return 0, err
			}
		}
	}
	if do == nil {
		return 1, nil
	}
	return 1, do(at, n, planes, plane, kernel.Source{})
}

// place finds planes. The last stands for those that lanes are left over for.
func (k *channelTiles) place(s *channelBuffer, from, planes int) {
	lanes := k.set.Lanes
	s.inputPlanes, s.termPlanes = mem.Grow(s.inputPlanes, lanes), mem.Grow(s.termPlanes, lanes)
	k.planes.Offsets(s.inputPlanes[:planes], k.base, k.steps, from)
	k.planes.Offsets(s.termPlanes[:planes], k.start, k.own, from)
	for i := planes; i < lanes; i++ {
		s.inputPlanes[i], s.termPlanes[i] = s.inputPlanes[planes-1], s.termPlanes[planes-1]
	}
}

// packTerms turns the terms of the planes.
func (k *channelTiles) packTerms(s *channelBuffer, src []float32) {
	n := len(k.tapOffsets)
	s.terms = mem.Grow(s.terms, n*k.set.Lanes)
	k.turn(s.terms, src, s.termPlanes, 0, k.step, n)
}

// turn writes n elements of each plane, step apart, as vectors of channels. at is of the
// first, from where a plane begins.
func (k *channelTiles) turn(dst, src []float32, planes []int, at, step, n int) {
	lanes := k.set.Lanes
	if step != 1 || n < asm.TransposeRows {
		for i, plane := range planes {
			mem.CopyStrided(dst[i:], lanes, src, plane+at, step, n)
		}
		return
	}
	for i := 0; i < lanes; i += asm.TransposeRows {
		rows := (*[asm.TransposeRows]int)(planes[i:])
		k.set.Transpose8(n/asm.TransposeRows, &dst[i], lanes*mem.Word, &src[at], rows)
		if n%asm.TransposeRows != 0 { // whose last eight are turned once more
			last := n - asm.TransposeRows
			k.set.Transpose8(1, &dst[last*lanes+i], lanes*mem.Word, &src[at+last], rows)
		}
	}
}

// fill turns the lines of the input that so many lines of the output reach. It returns the
// first, and their number.
func (k *channelTiles) fill(s *channelBuffer, src []float32, line, lines int) (top, deep int) {
	v, lanes, width := &k.vertical, k.set.Lanes, k.end-k.first
	top = max(v.offset+line*v.step, 0)
	deep = max(min(v.offset+(line+lines-1)*v.step+(k.down-1)*v.dilation+1, v.extent)-top, 0)
	at := top*v.stride + k.horizontal.offset + k.first
	s.input = mem.Grow(s.input, deep*k.pitch*lanes)
	switch {
	case deep == 0:
	case k.turnedLines && !k.padded:
		k.turn(s.input, src, s.inputPlanes, at, 1, deep*width)
	case k.turnedLines:
		s.whole = mem.Grow(s.whole, deep*width*lanes)
		k.turn(s.whole, src, s.inputPlanes, at, 1, deep*width)
		for i := range deep {
			dst := s.input[i*k.pitch*lanes:][:k.pitch*lanes]
			clear(dst[:k.first*lanes])
			copy(dst[k.first*lanes:], s.whole[i*width*lanes:][:width*lanes])
			clear(dst[k.end*lanes:])
		}
	default:
		for i := range deep {
			dst := s.input[i*k.pitch*lanes:][:k.pitch*lanes]
			clear(dst[:k.first*lanes])
			k.turn(dst[k.first*lanes:], src, s.inputPlanes, at+i*v.stride, 1, width)
			clear(dst[k.end*lanes:])
		}
	}
	return top, deep
}

// compute computes lines of the output from those of the input, and reports whether padding
// may have changed some element.
func (k *channelTiles) compute(s *channelBuffer, line, lines, top, deep int) (doubtful bool) {
	v, lanes, n := &k.vertical, k.set.Lanes, k.horizontal.n
	s.result = mem.Grow(s.result, max(lines*n, asm.TransposeRows)*lanes)
	clear(s.result[lines*n*lanes:])
	found := 0
	for l := range lines {
		dst, at := s.result[l*n*lanes:][:n*lanes], v.offset+(line+l)*v.step-top
		lo, hi := affine.Clip(at, v.dilation, deep, k.down) // of the terms of a column
		if lo >= hi {
			clear(dst)
			continue
		}
		x := (at + lo*v.dilation) * k.pitch * lanes
		found |= k.set.Depthwise(n, (hi-lo)*k.across, &s.terms[lo*k.across*lanes], &s.input[x], k.horizontal.step*lanes*mem.Word, &k.tapOffsets[0], &dst[0])
	}
	return k.padded && found != 0 && (k.vanished(s, deep) || k.set.MaxSize(lines*n, &s.result[0]) > asm.InfiniteSize)
}

// vanished reports whether some product may have rounded to zero; see kernel.MinExponent.
func (k *channelTiles) vanished(s *channelBuffer, deep int) bool {
	least := kernel.MinExponentOf(k.set.MinMagnitude(len(k.tapOffsets), &s.terms[0]))
	return least+kernel.MinExponentOf(k.set.MinMagnitude(deep*k.pitch, &s.input[0])) < kernel.ProductsKept
}

// turnBack writes n positions of the result plane by plane, pitch apart.
func (k *channelTiles) turnBack(s *channelBuffer, dst []float32, n, pitch int) {
	lanes := k.set.Lanes
	var rows [asm.TransposeRows]int
	for i := range rows {
		rows[i] = i * lanes
	}
	for at := 0; at < n; at += asm.TransposeRows {
		at = min(at, n-asm.TransposeRows)
		k.set.Transpose8(lanes/asm.TransposeRows, &dst[at], pitch*mem.Word, &s.result[at*lanes], &rows)
	}
}
