package reduce

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// scatter writes updates where indexes say, term by term in order. The definition asks of
// every output element which terms it takes; here the terms of one element are met in the
// same order.
type scatter[T any] struct {
	n       int
	merge   func(old, update T) T // nil: the update replaces the element
	base    *affine.View
	loops   []int // extents: folded axes, then the output axes that no index selects
	row     int   // of the last loop, where no index changes along it; else 1
	out     affine.Form
	update  affine.Form
	targets []scatterTarget
}

// scatterTarget is an axis of the output on which an index selects the coordinate.
type scatterTarget struct {
	arg    int
	index  affine.Form
	extent int
	again  bool // an earlier target selects on the same axis: they must agree
	axis   int
	out    int // stride of the axis in the output
	update int // and in the update
}

// NewScatter returns the kernel of a scatter p, nil if an index depends on where it points.
func NewScatter(p *tensor.Primitive) kernel.Kernel {
	fn, merges := p.Fn.Merge()
	t := p.Type
	switch {
	case !merges && t.Size() == 1:
		return scatterOf[uint8](p, nil)
	case !merges && t.Size() == 2:
		return scatterOf[uint16](p, nil)
	case !merges && t.Size() == 4:
		return scatterOf[uint32](p, nil)
	case !merges:
		return scatterOf[uint64](p, nil)
	case t.Half():
		of := func(x uint16) float32 { return float32(tensor.FloatOf(t, tensor.Word(x))) }
		return scatterOf(p, func(x, y uint16) uint16 { return uint16(tensor.FloatWord(t, float64(fn.Float(of(x), of(y))))) })
	}
	switch t {
	case tensor.Float32:
		if fn == tensor.Add {
			return scatterOf(p, func(x, y float32) float32 { return eltwise.Canonical(x + y) })
		}
		return scatterOf(p, func(x, y float32) float32 { return eltwise.Canonical(fn.Float(x, y)) })
	case tensor.Float64:
		return scatterOf(p, func(x, y float64) float64 { return eltwise.Canonical(fn.Double(x, y)) })
	case tensor.Int8:
		return scatterOf(p, merged[int8](fn))
	case tensor.Int16:
		return scatterOf(p, merged[int16](fn))
	case tensor.Int32:
		return scatterOf(p, merged[int32](fn))
	case tensor.Int64:
		return scatterOf(p, merged[int64](fn))
	case tensor.Uint8:
		return scatterOf(p, merged[uint8](fn))
	case tensor.Uint16:
		return scatterOf(p, merged[uint16](fn))
	case tensor.Uint32:
		return scatterOf(p, merged[uint32](fn))
	}
	return scatterOf(p, merged[uint64](fn))
}

// merged is a map function of two integers.
func merged[T mem.Integer](fn tensor.Fn) func(x, y T) T {
	switch fn {
	case tensor.Add:
		return func(x, y T) T { return x + y }
	case tensor.Mul:
		return func(x, y T) T { return x * y }
	case tensor.Max:
		return func(x, y T) T { return max(x, y) }
	}
	return func(x, y T) T { return min(x, y) }
}

func scatterOf[T any](p *tensor.Primitive, merge func(old, update T) T) kernel.Kernel {
	r := len(p.Shape)
	k := &scatter[T]{n: p.Shape.Elements(), merge: merge, base: affine.NewView(p, 0, affine.Axes(0, r)), row: 1}
	var selected [tensor.MaxRank]bool
	for j, imm := range p.Imm {
		t := scatterTarget{arg: 2 + j, axis: int(imm), extent: p.Shape[imm], again: selected[imm]}
		selected[imm] = true
		k.targets = append(k.targets, t)
	}
	over := affine.Axes(r, r+len(p.Fold))
	for a := range r {
		if !selected[a] {
			over = append(over, a)
		}
	}
	shape := append(p.Shape.Clone(), p.Fold...)
	for _, a := range over {
		k.loops = append(k.loops, shape[a])
	}
	strides := append(p.Shape.Strides(), make([]int, len(p.Fold))...)
	k.out = affine.Form{Base: 0, Steps: affine.Strides(strides).Pick(over)}
	base, update, _ := affine.Linear(p, 1) // Check keeps scatter's operands inside
	k.update = affine.Form{Base: base, Steps: affine.Strides(update).Pick(over)}
	last := len(over) - 1
	still := last >= 0 // no index changes along the last loop
	for j := range k.targets {
		t := &k.targets[j]
		t.out, t.update = strides[t.axis], update[t.axis]
		base, index, _ := affine.Linear(p, t.arg)
		t.index = affine.Form{Base: base, Steps: affine.Strides(index).Pick(over)}
		still = still && t.index.Steps[last] == 0
		for a := range r {
			if selected[a] && index[a] != 0 && shape[a] > 1 {
				return nil // the index depends on where it points
			}
		}
	}
	if still {
		k.row, k.loops = k.loops[last], k.loops[:last]
	}
	return k
}

// Blocks is one: terms are taken in order.
func (k *scatter[T]) Blocks() int { return min(k.n, 1) }

func (k *scatter[T]) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, _, _ int) error {
	dst, src := mem.Slice[T](mem.Data(out), out.Len()), mem.Slice[T](mem.Data(args[1]), args[1].Len())
	var none T
	if base := affine.Load(k.base, args, dst, 0, k.n, none); mem.First(base) != mem.First(dst) {
		copy(dst, base)
	}
	outStep, srcStep := 0, 0
	if k.row > 1 {
		outStep, srcStep = k.out.Steps[len(k.loops)], k.update.Steps[len(k.loops)]
	}
	var coords [tensor.MaxAxes]int
	coord := coords[:len(k.loops)]
	for i := range tensor.Shape(k.loops).Elements() {
		if i%kernel.Chunk == 0 && w.Stopped() {
			return kernel.ErrStopped
		}
		if o, u, ok := k.find(args, coord); ok {
			for range k.row {
				if k.merge == nil {
					dst[o] = src[u]
				} else {
					dst[o] = k.merge(dst[o], src[u])
				}
				o, u = o+outStep, u+srcStep
			}
		}
		for l := len(coord) - 1; l >= 0; l-- {
			if coord[l]++; coord[l] < k.loops[l] {
				break
			}
			coord[l] = 0
		}
	}
	return nil
}

// find returns where the terms at coord go, and the positions of their updates.
func (k *scatter[T]) find(args []*tensor.Tensor, coord []int) (out, update int, ok bool) {
	out, update = k.out.At(coord), k.update.At(coord)
	var at [tensor.MaxRank]int
	for j := range k.targets {
		t := &k.targets[j]
		x := int(int64(args[t.arg].At(t.index.At(coord))))
		if x < 0 {
			x += t.extent
		}
		if x < 0 || x >= t.extent || t.again && x != at[t.axis] {
			return 0, 0, false
		}
		if !t.again {
			at[t.axis] = x
			out += x * t.out
			update += x * t.update
		}
	}
	return out, update, true
}
