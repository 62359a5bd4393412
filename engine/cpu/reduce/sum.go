package reduce

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// laneSum adds the terms in tensor.Lanes lanes and joins them by a tree.
type laneSum[T mem.Ordered] struct {
	folding
	add    eltwise.Func
	take   func(lanes *[tensor.Lanes]T, x []T)
	finish func(T) T
}

func (k *laneSum[T]) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	dst := tensor.Of[T](out)
	if k.columns {
		for ; lo < hi; lo += columnChunk {
			if w.Stopped() {
				return kernel.ErrStopped
			}
			k.column(w, dst[lo:min(lo+columnChunk, hi)], args, lo)
		}
		return nil
	}
	buf := kernel.Row[T](w, 0)
	for o := lo; o < hi; o++ {
		if w.Stopped() {
			return kernel.ErrStopped
		}
		var lanes [tensor.Lanes]T
		for t := 0; t < k.terms; t += kernel.Chunk {
			k.take(&lanes, affine.Load(k.view, args, buf, o*k.terms+t, min(kernel.Chunk, k.terms-t), 0))
		}
		dst[o] = k.finish(eltwise.JoinLanes(&lanes))
	}
	return nil
}

// column sums the elements from o on. Lane l of element i lies at l·len(dst)+i.
func (k *laneSum[T]) column(w *kernel.Worker, dst []T, args []*tensor.Tensor, o int) {
	n := len(dst)
	buf := kernel.Row[T](w, 0)
	half := startHalf(k.terms)
	lanes := mem.As[T](w.Lanes, max(2*half, 1)*n)
	clear(lanes)
	add := func(dst, x []T) { k.add(mem.First(dst), mem.First(dst), mem.First(x), nil, 1, len(dst)) }
	for t := range k.terms {
		add(lanes[t%tensor.Lanes*n:][:n], affine.Load(k.view, args, buf, t*k.n+o, n, 0))
	}
	for ; half > 0; half /= 2 {
		add(lanes[:half*n], lanes[half*n:2*half*n])
	}
	copy(dst, lanes) // which add has finished
}

// startHalf returns half the lanes that the tree starts with: those without
// terms can be left out.
func startHalf(terms int) int {
	half := tensor.Lanes / 2
	for half > 0 && terms <= half {
		half /= 2
	}
	return half
}
