package spatial

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// depthwise is a contraction of windows of one plane for each plane of the output: a
// convolution whose groups have one channel. Every plane has terms of its own in the
// other operand.
//
// This one runs tiles of one row over a window buffer, plane by plane. It is for planes that
// channelTiles does not take, and for sets without a depthwise micro-kernel.
type depthwise struct {
	*window
	kernelTerms
	termOffsets []int // bytes to each term
	tapOffsets  []int // bytes to the tap of each, in a window buffer
}

// kernelTerms is how the terms of planes lie in the operand that has no windows: the kernels of
// a convolution.
type kernelTerms struct {
	other int   // operand
	start int   // of its first term
	own   []int // strides from plane to plane
	step  int   // from term to term
}

// NewDepthwise returns the kernel of a depthwise convolution, nil if p is none.
func NewDepthwise(p *tensor.Primitive, set *asm.KernelSet) kernel.Kernel {
	for x := range p.Args {
		if k := depthwiseOf(p, x, 1-x, set); k != nil {
			return k
		}
	}
	return nil
}

func depthwiseOf(p *tensor.Primitive, arg, other int, set *asm.KernelSet) kernel.Kernel {
	r := len(p.Shape)
	if p.Type != tensor.Float32 || p.Args[0].Type != tensor.Float32 || r < 2 || p.Args[other].Flat || len(affine.BoundsOf(p, other)) > 0 {
		return nil
	}
	base, strides, _ := affine.Linear(p, other)
	terms, _ := affine.Merge(append(p.Shape.Clone(), p.Fold...), affine.Axes(r, len(strides)), []affine.Strides{strides})
	if len(terms) != 1 || terms[0] < 0 || !affine.Constant(strides[r-2:r], p.Shape[r-2:]) {
		return nil
	}
	x := kernelTerms{other: other, start: base, step: strides[terms[0]]}
	if w := readWindow(p, arg, set, strides); w != nil {
		x.own = affine.Strides(strides).Pick(w.axes)
		if k := newChannelTiles(w, x); k != nil {
			return k
		}
	}
	w := newWindow(p, arg, set, strides)
	if w == nil {
		return nil
	}
	k := &depthwise{window: w, kernelTerms: x}
	for i, t := range w.taps {
		k.termOffsets, k.tapOffsets = append(k.termOffsets, i*k.step*mem.Word), append(k.tapOffsets, t*mem.Word)
	}
	return k
}

// Run implements kernel.Kernel.
func (k *depthwise) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	return kernel.Produce(k, w, out, args, lo, hi, nil)
}

// Next implements kernel.Producer. Planes are computed side by side, without what lies
// between lines in a window buffer, and go from there to the epilogue.
func (k *depthwise) Next(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, block, _ int, do kernel.Epilogue) (done int, err error) {
	s := kernel.Scratch[windowBuffer](w)
	k.place(s, block)
	k.fill(s, tensor.Of[float32](args[k.arg]), 0)
	k.planes.Offsets(s.planeOffsets, k.start, k.own, s.from)
	terms, plane := tensor.Of[float32](args[k.other]), k.vertical.n*k.horizontal.n
	all := (s.to - s.from) * plane
	row := s.row(0, all)
	clear(row[all:])
	for i, at := range s.planeOffsets {
		k.plane(row[i*plane:], s.values[i*k.phaseSize():], terms[at:])
	}
	doubtful, vanished := k.inDoubt(s, args, row[:mem.RoundUp(all, k.set.Lanes)])
	from := kernel.Source{Data: row, RowPitch: plane, Lines: 1, LinePitch: plane}
	if doubtful || do == nil {
		from.CopyTo(tensor.Of[float32](out), s.from*plane, plane, s.to-s.from, plane)
		from = kernel.Source{}
	}
	if doubtful {
		if err := k.correctPadding(out, args, s.from*plane, all, vanished); err != nil {
			return 0, err
		}
	}
	if do == nil {
		return 1, nil
	}
	return 1, do(s.from*plane, plane, s.to-s.from, plane, from)
}

// plane computes the lines of a plane, in whole vectors: what a line has beyond its end is
// written over by the next.
func (k *depthwise) plane(dst, values, terms []float32) {
	lanes, n, pitch := k.set.Lanes, k.horizontal.n, k.horizontal.length
	for l := range k.vertical.n {
		for j := 0; j < n; j += lanes {
			k.set.GEMM[0][0](1, len(k.tapOffsets), &terms[0], 0, &k.termOffsets[0], &values[l*pitch+j], 0, &k.tapOffsets[0], &dst[l*n+j], 0, false)
		}
	}
}

// inDoubt reports whether padding may have changed some element, and whether some product
// may have rounded to zero; see kernel.MinExponent.
func (k *depthwise) inDoubt(s *windowBuffer, args []*tensor.Tensor, row []float32) (doubtful, vanished bool) {
	if !k.padded {
		return false, false
	}
	least := k.leastTerm(s, tensor.Of[float32](args[k.other]))
	lanes := k.set.Lanes
	vanished = kernel.MinExponentOf(least)+kernel.MinExponentOf(k.set.MinMagnitude(len(s.values)/lanes, &s.values[0])) < kernel.ProductsKept
	return vanished || k.set.MaxSize(len(row)/lanes, &row[0]) > asm.InfiniteSize, vanished
}

// leastTerm returns the least magnitude of the terms of the planes.
func (k *depthwise) leastTerm(s *windowBuffer, terms []float32) uint32 {
	least, n := uint32(math.MaxUint32), len(k.tapOffsets)
	if len(k.own) == 1 && k.own[0] == n && k.step == 1 { // contiguous
		terms = terms[s.planeOffsets[0]:][:len(s.planeOffsets)*n]
		if whole := len(terms) / k.set.Lanes; whole > 0 {
			least = k.set.MinMagnitude(whole, &terms[0])
		}
		for _, x := range terms[len(terms)/k.set.Lanes*k.set.Lanes:] {
			least = min(least, asm.Magnitude(x))
		}
		return least
	}
	for _, at := range s.planeOffsets {
		for t := range n {
			least = min(least, asm.Magnitude(terms[at+t*k.step]))
		}
	}
	return least
}

// correctPadding evaluates by definition what padding may have changed among n elements.
func (w *window) correctPadding(out *tensor.Tensor, args []*tensor.Tensor, at, n int, vanished bool) error {
	cell := kernel.NewCell(w.p, args)
	for i, x := range tensor.Of[float32](out)[at : at+n] {
		if x != x || vanished && math.Float32bits(x) == 0 {
			if err := kernel.Evaluate(cell, out, at+i); err != nil {
				return err
			}
		}
	}
	return nil
}
