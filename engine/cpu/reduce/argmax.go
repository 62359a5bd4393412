package reduce

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// argMax is the position of the greatest term, the first or the last of equals.
type argMax[T mem.Ordered] struct {
	folding
	least, greatest T
	last            bool
	keeps           eltwise.Func // whether the best stays the best, before another term
	best, choose    eltwise.Func // of two values, and of two positions
}

func newArgMax[T mem.Ordered](p *tensor.Primitive, set *asm.KernelSet, least, greatest T) kernel.Kernel {
	k := &argMax[T]{folding: newFolding(p), least: least, greatest: greatest, last: p.Imm[0] != 0}
	t, keeps := p.Args[0].Type, tensor.Le
	if k.last {
		keeps = tensor.Lt
	}
	k.keeps, k.best = eltwise.Map(set, keeps, t, tensor.Bool), eltwise.Map(set, tensor.Max, t, t)
	k.choose = eltwise.Map(set, tensor.Where, tensor.Int32, tensor.Int32)
	return k
}

func (k *argMax[T]) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	dst := tensor.Of[int64](out)[lo:hi]
	if k.columns {
		for o := 0; o < len(dst); o += columnChunk {
			if w.Stopped() {
				return kernel.ErrStopped
			}
			k.column(w, args, dst[o:min(o+columnChunk, len(dst))], lo+o)
		}
		return nil
	}
	clear(dst)
	for i := range dst {
		if w.Stopped() {
			return kernel.ErrStopped
		}
		best := k.least
		for t := 0; t < k.terms; t += kernel.Chunk {
			x, y := k.present(w, args, (lo+i)*k.terms+t, min(kernel.Chunk, k.terms-t))
			for j := range x {
				k.take(&best, &dst[i], x[j], y[j], t+j)
			}
		}
	}
	return nil
}

// column finds the positions for the elements from o on.
func (k *argMax[T]) column(w *kernel.Worker, args []*tensor.Tensor, at []int64, o int) {
	best := mem.As[T](w.Lanes, columnChunk)[:len(at)]
	if len(k.view.Bounds) == 0 && k.terms <= math.MaxInt32 && k.numbers(w, args, best, at, o) {
		return
	}
	clear(at)
	mem.Fill(best, k.least)
	for t := range k.terms {
		x, y := k.present(w, args, t*k.n+o, len(at))
		for i := range at {
			k.take(&best[i], &at[i], x[i], y[i], t)
		}
	}
}

// numbers is column of elements without padding and NaNs; it reports whether there are
// none. Which of two is greater cannot be predicted, so it does without branches.
func (k *argMax[T]) numbers(w *kernel.Worker, args []*tensor.Tensor, best []T, at []int64, o int) bool {
	n := len(at)
	more := w.Lanes[columnChunk:]
	keeps, found, now := mem.As[uint8](more, n), mem.As[int32](more[columnChunk:], n), mem.As[int32](more[2*columnChunk:], n)
	clear(found)
	for t := range k.terms {
		x := affine.Load(k.view, args, kernel.Row[T](w, 0), t*k.n+o, n, k.least)
		if t == 0 {
			copy(best, x)
			continue
		}
		mem.Fill(now, int32(t))
		k.keeps(mem.First(keeps), mem.First(x), mem.First(best), nil, 1, n)
		k.choose(mem.First(found), mem.First(keeps), mem.First(found), mem.First(now), 1, n)
		k.best(mem.First(best), mem.First(best), mem.First(x), nil, 1, n)
	}
	for i, b := range best {
		if b != b {
			return false
		}
		at[i] = int64(found[i])
	}
	return true
}

// present returns terms twice: with padding as the least value, and as the greatest. So a
// term is padding where the two differ.
func (k *argMax[T]) present(w *kernel.Worker, args []*tensor.Tensor, at, n int) (x, y []T) {
	x = affine.Load(k.view, args, kernel.Row[T](w, 0), at, n, k.least)
	if len(k.view.Bounds) == 0 {
		return x, x
	}
	return x, affine.Load(k.view, args, kernel.Row[T](w, 1), at, n, k.greatest)
}

// take moves to term t if its value x is no padding, which is when y is the same, and goes
// before the best.
func (k *argMax[T]) take(best *T, at *int64, x, y T, t int) {
	switch {
	case x != y && x == k.least: // padding
	case x > *best, t == 0, k.last && x == *best, x != x && (k.last || *best == *best):
		*best, *at = x, int64(t)
	}
}
