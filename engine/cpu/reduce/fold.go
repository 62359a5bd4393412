package reduce

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// folding is what all folds share. They run along rows, all terms of an element, then the
// next element, or along columns: one term of many elements, then the next term, where
// terms are further apart than neighbouring output elements. Either order meets the terms
// of an element in turn.
type folding struct {
	n, terms int
	columns  bool
	view     *affine.View // output axes, then folded ones; the other way for columns
}

func (k *folding) Blocks() int { return k.n }

// columnChunk is the output elements that a fold along columns takes at a time: the lanes
// of a sum stay in the second-level cache, and operands are read in long runs.
const columnChunk = kernel.Chunk

func newFolding(p *tensor.Primitive) folding {
	r, all := len(p.Shape), len(p.Shape)+len(p.Fold)
	f := folding{n: p.Shape.Elements(), terms: p.Terms()}
	_, strides, _ := affine.Linear(p, 0)
	across, along := innermost(p.Shape, strides[:r]), innermost(p.Fold, strides[r:])
	f.columns = f.n >= 8 && (f.terms < tuning.RowTerms || across < along)
	if f.columns {
		f.view = affine.NewView(p, 0, append(affine.Axes(r, all), affine.Axes(0, r)...))
	} else {
		f.view = affine.NewView(p, 0, affine.Axes(0, all))
	}
	return f
}

// ByColumns reports whether the fold p should run along columns, which only the kernels
// of this package do.
func ByColumns(p *tensor.Primitive) bool { return newFolding(p).columns }

// innermost returns how far the last axis of more than one element steps.
func innermost(shape, strides []int) int {
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] > 1 {
			return max(strides[i], -strides[i])
		}
	}
	return 0
}

// New returns the kernel of a fold: a sum, product, extreme or argmax. It is nil for the
// half types.
func New(p *tensor.Primitive, set *asm.KernelSet) kernel.Kernel {
	switch t := p.Args[0].Type; t {
	case tensor.Float32:
		return foldOf(p, set, float32(math.Inf(-1)), float32(math.Inf(1)), eltwise.Canonical[float32])
	case tensor.Float64:
		return foldOf(p, set, math.Inf(-1), math.Inf(1), eltwise.Canonical[float64])
	case tensor.Int8:
		return foldOf[int8](p, set, math.MinInt8, math.MaxInt8, eltwise.Same)
	case tensor.Int16:
		return foldOf[int16](p, set, math.MinInt16, math.MaxInt16, eltwise.Same)
	case tensor.Int32:
		return foldOf[int32](p, set, math.MinInt32, math.MaxInt32, eltwise.Same)
	case tensor.Int64:
		return foldOf[int64](p, set, math.MinInt64, math.MaxInt64, eltwise.Same)
	case tensor.Uint8:
		return foldOf[uint8](p, set, 0, math.MaxUint8, eltwise.Same)
	case tensor.Uint16:
		return foldOf[uint16](p, set, 0, math.MaxUint16, eltwise.Same)
	case tensor.Uint32:
		return foldOf[uint32](p, set, 0, math.MaxUint32, eltwise.Same)
	case tensor.Uint64:
		return foldOf[uint64](p, set, 0, math.MaxUint64, eltwise.Same)
	}
	return nil
}

func foldOf[T mem.Ordered](p *tensor.Primitive, set *asm.KernelSet, least, greatest T, finish func(T) T) kernel.Kernel {
	t := p.Args[0].Type
	switch p.Fn {
	case tensor.FoldSum:
		return &laneSum[T]{newFolding(p), eltwise.Map(set, tensor.Add, t, t), eltwise.SumLanes[T](set), finish}
	case tensor.FoldMax:
		return &fold[T]{newFolding(p), least, eltwise.Map(set, tensor.Max, t, t), rowFolder(set, p.Fn, t, finish, eltwise.MaxOf[T])}
	case tensor.FoldMin:
		return &fold[T]{newFolding(p), greatest, eltwise.Map(set, tensor.Min, t, t), rowFolder(set, p.Fn, t, finish, eltwise.MinOf[T])}
	case tensor.FoldProd:
		return &fold[T]{newFolding(p), 1, eltwise.Map(set, tensor.Mul, t, t), func(acc T, x []T) T { return eltwise.ProductOf(acc, x, finish) }}
	}
	return newArgMax(p, set, least, greatest)
}

// rowFolder returns what folds a part of a row into the accumulator of those before, with
// the machine's micro-kernel if there is one. join folds in plain Go.
func rowFolder[T mem.Ordered](set *asm.KernelSet, fn tensor.Fn, t tensor.DType, finish func(T) T, join func(acc T, x []T) T) func(acc T, x []T) T {
	if set.Folds[fn] == nil || t != tensor.Float32 {
		return func(acc T, x []T) T { return finish(join(acc, x)) }
	}
	whole := eltwise.FoldRows(set, fn, t)
	return func(acc T, x []T) T {
		var part [1]T
		whole(mem.First(part[:]), mem.First(x), nil, nil, 1, len(x))
		return finish(join(acc, part[:]))
	}
}

// fold folds terms one after the other into one value.
type fold[T mem.Ordered] struct {
	folding
	identity T
	column   eltwise.Func // of two rows of many elements
	row      func(acc T, x []T) T
}

func (k *fold[T]) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	dst := tensor.Of[T](out)[lo:hi]
	mem.Fill(dst, k.identity)
	buf := kernel.Row[T](w, 0)
	if !k.columns {
		for i := range dst {
			if w.Stopped() {
				return kernel.ErrStopped
			}
			for t := 0; t < k.terms; t += kernel.Chunk {
				dst[i] = k.row(dst[i], affine.Load(k.view, args, buf, (lo+i)*k.terms+t, min(kernel.Chunk, k.terms-t), k.identity))
			}
		}
		return nil
	}
	for o := lo; o < hi; o += columnChunk {
		if w.Stopped() {
			return kernel.ErrStopped
		}
		acc := dst[o-lo : min(o-lo+columnChunk, hi-lo)]
		for t := range k.terms {
			x := affine.Load(k.view, args, buf, t*k.n+o, len(acc), k.identity)
			k.column(mem.First(acc), mem.First(acc), mem.First(x), nil, 1, len(acc))
		}
	}
	return nil
}
