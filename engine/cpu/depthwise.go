package cpu

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// depthwise is a contraction of windows of one plane for each plane of the output,
// as of a convolution whose groups have one channel. Every plane has terms of its
// own in the other operand.
type depthwise struct {
	*window
	other  int   // operand
	base   int   // of its first term
	own    []int // steps from plane to plane
	step   int   // from term to term
	there  []int // bytes to each
	places []int // of terms in the sheet, in bytes
}

// newDepthwise returns nil if p is nothing of the kind.
func newDepthwise(p *tensor.Primitive, set *asm.Set) kernel.Kernel {
	for x := range p.Args {
		if k := depthwiseOf(p, x, 1-x, set); k != nil {
			return k
		}
	}
	return nil
}

func depthwiseOf(p *tensor.Primitive, arg, other int, set *asm.Set) *depthwise {
	r := len(p.Shape)
	if p.Type != tensor.Float32 || p.Args[0].Type != tensor.Float32 || r < 2 || p.Args[other].Flat || len(affine.BoundsOf(p, other)) > 0 {
		return nil
	}
	base, strides, _ := affine.Linear(p, other)
	terms, _ := affine.Merge(append(p.Shape.Clone(), p.Fold...), affine.Axes(r, len(strides)), []affine.Strides{strides})
	if len(terms) != 1 || terms[0] < 0 || !affine.Constant(strides[r-2:r], p.Shape[r-2:]) {
		return nil
	}
	w := newWindow(p, arg, set, strides)
	if w == nil {
		return nil
	}
	k := &depthwise{window: w, other: other, base: base, own: affine.Strides(strides).Pick(w.axes), step: strides[terms[0]]}
	for i, t := range w.taps {
		k.there, k.places = append(k.there, i*k.step*mem.Word), append(k.places, t*mem.Word)
	}
	return k
}

func (k *depthwise) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	return kernel.Produce(k, w, out, args, lo, hi, nil)
}

// Next implements maker: tiles of one row, which read the sheet in place.
func (k *depthwise) Next(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, piece, _ int, do kernel.Epilogue) (done int, err error) {
	s := kernel.Scratch[sheet](w)
	k.place(s, piece)
	k.draw(s, tensor.Of[float32](args[k.arg]), 0)
	k.planes.Offsets(s.planes, k.base, k.own, s.from)
	terms, lanes := tensor.Of[float32](args[k.other]), k.set.Lanes
	row, n := s.row(0, k.length(s.to-s.from)), k.length(1)
	most := len(k.set.Tiles[0])
	for i, at := range s.planes {
		for j := 0; j < n; {
			vectors := min(mem.CeilDiv(n-j, lanes), most)
			tiles := max((n-j)/(vectors*lanes), 1)
			from := i*k.size() + j
			k.set.Tiles[0][vectors-1](tiles, len(k.places), &terms[at], 0, &k.there[0], &s.values[from], vectors*lanes*mem.Word, &k.places[0], &row[from], 0, false)
			j += tiles * vectors * lanes
		}
	}
	doubtful, vanishing := k.doubtful(s, args, row)
	if !doubtful && do != nil {
		return 1, k.finished(s, do, row)
	}
	k.spread(s, out, row)
	if doubtful {
		if err := k.correct(s, out, args, vanishing); err != nil {
			return 0, err
		}
	}
	return 1, k.finished(s, do, nil)
}

// doubtful reports whether absent terms may have changed some element, and whether
// some product may have become zero; see piece.correct.
func (k *depthwise) doubtful(s *sheet, args []*tensor.Tensor, row []float32) (doubtful, vanishing bool) {
	if !k.border {
		return false, false
	}
	least := k.leastTerm(s, tensor.Of[float32](args[k.other]))
	lanes := k.set.Lanes
	vanishing = kernel.MinExponentOf(least)+kernel.MinExponentOf(k.set.Least(len(s.values)/lanes, &s.values[0])) < kernel.ProductsKept
	return vanishing || k.set.Greatest(len(row)/lanes, &row[0]) > asm.InfiniteSize, vanishing
}

// leastTerm returns the least magnitude of the terms of the planes.
func (k *depthwise) leastTerm(s *sheet, terms []float32) uint32 {
	least, n := uint32(math.MaxUint32), len(k.places)
	if len(k.own) == 1 && k.own[0] == n && k.step == 1 { // side by side
		terms = terms[s.planes[0]:][:len(s.planes)*n]
		if whole := len(terms) / k.set.Lanes; whole > 0 {
			least = k.set.Least(whole, &terms[0])
		}
		for _, x := range terms[len(terms)/k.set.Lanes*k.set.Lanes:] {
			least = min(least, asm.Magnitude(x))
		}
		return least
	}
	for _, at := range s.planes {
		for t := range n {
			least = min(least, asm.Magnitude(terms[at+t*k.step]))
		}
	}
	return least
}

// correct evaluates by definition what absent terms may have changed.
func (k *depthwise) correct(s *sheet, out *tensor.Tensor, args []*tensor.Tensor, vanishing bool) error {
	cell, plane := kernel.NewCell(k.p, args), k.high.n*k.wide.n
	for i, x := range tensor.Of[float32](out)[s.from*plane : s.to*plane] {
		if x != x || vanishing && math.Float32bits(x) == 0 {
			if err := kernel.Evaluate(cell, out, s.from*plane+i); err != nil {
				return err
			}
		}
	}
	return nil
}
