package cpu

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// number is an element type that can be folded.
type number interface{ float32 | int32 | int64 }

// folding is what all folds share. A fold runs along rows where the terms of
// one output element lie closer together than neighbouring elements do; else
// along columns: a term of many elements, then the next. Either order meets the
// terms of an element in turn.
type folding struct {
	n, terms int
	columns  bool
	view     *view // output axes, then folded ones; the other way for columns
}

func (k *folding) pieces() int { return k.n }

// columnChunk is the number of output elements that a fold along columns takes
// at a time, so that the lanes of a sum stay in the first-level cache.
const columnChunk = 256

// rowTerms is the least number of terms for which rows are worth their start.
const rowTerms = 32

func newFolding(p *tensor.Primitive) folding {
	r, all := len(p.Shape), len(p.Shape)+len(p.Fold)
	f := folding{n: p.Shape.Elements(), terms: p.Terms()}
	_, strides, _ := linear(p, 0)
	across, along := innermost(p.Shape, strides[:r]), innermost(p.Fold, strides[r:])
	f.columns = f.n >= 8 && (f.terms < rowTerms || across < along)
	if f.columns {
		f.view = newView(p, 0, append(axes(r, all), axes(0, r)...))
	} else {
		f.view = newView(p, 0, axes(0, all))
	}
	return f
}

// innermost returns how far the last axis of more than one element steps.
func innermost(shape, strides []int) int {
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] > 1 {
			return max(strides[i], -strides[i])
		}
	}
	return 0
}

func newFold(p *tensor.Primitive) kernel {
	switch p.Args[0].Type {
	case tensor.Float32:
		inf := float32(math.Inf(1))
		switch p.Fn {
		case tensor.FoldSum:
			return &sum[float32]{newFolding(p), addFloats, canonical}
		case tensor.FoldMax:
			return &extremum[float32]{newFolding(p), -inf, maxFloats, maxOfFloats}
		case tensor.FoldMin:
			return &extremum[float32]{newFolding(p), inf, minFloats, minOfFloats}
		}
		return newArgMax(p, -inf, inf)
	case tensor.Int32:
		return newIntegerFold[int32](p, math.MinInt32, math.MaxInt32)
	case tensor.Int64:
		return newIntegerFold[int64](p, math.MinInt64, math.MaxInt64)
	}
	return nil
}

func newIntegerFold[T integer](p *tensor.Primitive, least, greatest T) kernel {
	switch p.Fn {
	case tensor.FoldSum:
		return &sum[T]{newFolding(p), addIntegers[T], func(x T) T { return x }}
	case tensor.FoldMax:
		return &extremum[T]{newFolding(p), least, maxIntegers[T], maxOfIntegers[T]}
	case tensor.FoldMin:
		return &extremum[T]{newFolding(p), greatest, minIntegers[T], minOfIntegers[T]}
	}
	return newArgMax(p, least, greatest)
}

// extremum is the greatest or the least of the terms, in any order.
type extremum[T number] struct {
	folding
	identity T
	column   func(dst, x, y []T)
	row      func(acc T, x []T) T
}

func (k *extremum[T]) run(w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	dst := tensor.Of[T](out)[lo:hi]
	fill(dst, k.identity)
	buf := row[T](w, 0, args[0].Type)
	if k.columns {
		for o := lo; o < hi; o += columnChunk {
			acc := dst[o-lo : min(o-lo+columnChunk, hi-lo)]
			for t := range k.terms {
				k.column(acc, acc, load(k.view, args, buf, t*k.n+o, len(acc), k.identity))
			}
		}
		return nil
	}
	for i := range dst {
		for t := 0; t < k.terms; t += chunk {
			x := load(k.view, args, buf, (lo+i)*k.terms+t, min(chunk, k.terms-t), k.identity)
			dst[i] = k.row(dst[i], x)
		}
	}
	return nil
}

// Four chains at a time hide the latency of one.

func maxOfFloats(acc float32, x []float32) float32 {
	a, b, c, d := acc, acc, acc, acc
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = max(a, x[0]), max(b, x[1]), max(c, x[2]), max(d, x[3])
	}
	for _, v := range x {
		a = max(a, v)
	}
	return canonical(max(a, b, c, d))
}

func minOfFloats(acc float32, x []float32) float32 {
	a, b, c, d := acc, acc, acc, acc
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = min(a, x[0]), min(b, x[1]), min(c, x[2]), min(d, x[3])
	}
	for _, v := range x {
		a = min(a, v)
	}
	return canonical(min(a, b, c, d))
}

func maxOfIntegers[T integer](acc T, x []T) T {
	for _, v := range x {
		acc = max(acc, v)
	}
	return acc
}

func minOfIntegers[T integer](acc T, x []T) T {
	for _, v := range x {
		acc = min(acc, v)
	}
	return acc
}

// argMax is the position of the greatest term, the first or the last of equals.
type argMax[T number] struct {
	folding
	least, greatest T
	last            bool
}

func newArgMax[T number](p *tensor.Primitive, least, greatest T) kernel {
	return &argMax[T]{newFolding(p), least, greatest, p.Imm[0] != 0}
}

func (k *argMax[T]) run(w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	dst := tensor.Of[int64](out)[lo:hi]
	clear(dst)
	if k.columns {
		best := row[T](w, 2, args[0].Type)
		for o := 0; o < len(dst); o += columnChunk {
			at := dst[o:min(o+columnChunk, len(dst))]
			fill(best[:len(at)], k.least)
			for t := range k.terms {
				x, y := k.present(w, args, t*k.n+lo+o, len(at))
				for i := range at {
					k.take(&best[i], &at[i], x[i], y[i], t)
				}
			}
		}
		return nil
	}
	for i := range dst {
		best := k.least
		for t := 0; t < k.terms; t += chunk {
			x, y := k.present(w, args, (lo+i)*k.terms+t, min(chunk, k.terms-t))
			for j := range x {
				k.take(&best, &dst[i], x[j], y[j], t+j)
			}
		}
	}
	return nil
}

// present returns terms twice: those that are absent as the least value, and as
// the greatest.
func (k *argMax[T]) present(w *worker, args []*tensor.Tensor, at, n int) (x, y []T) {
	x = load(k.view, args, row[T](w, 0, args[0].Type), at, n, k.least)
	if len(k.view.bounds) == 0 {
		return x, x
	}
	return x, load(k.view, args, row[T](w, 1, args[0].Type), at, n, k.greatest)
}

// take moves to term t if its value x is present, which is when y is the same,
// and goes before the best.
func (k *argMax[T]) take(best *T, at *int64, x, y T, t int) {
	switch {
	case x != y && x == k.least: // absent
	case x > *best, t == 0, k.last && x == *best, x != x && (k.last || *best == *best):
		*best, *at = x, int64(t)
	}
}
