package gemm

import (
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// polyphase is a contraction along whose output some axes count phases: each phase has
// terms of its own inside the operands, as each position of a transposed convolution with
// a stride has taps of its own. A phase is contracted without the terms that are padding
// for all of it.
type polyphase struct{ phases []phase }

// phase is the elements of the output at one position of those axes. They have the whole
// output's strides, from an element on.
type phase struct {
	p   *tensor.Primitive
	at  int
	dot kernel.Kernel // nil if there are no terms

	lines   affine.Grid // of the elements: all axes but the innermost
	strides []int       // in the whole output
	inner   affine.Loop
}

// newPolyphase returns nil if p has no phases, or no padding that they would save.
func newPolyphase(p *tensor.Primitive, set *asm.KernelSet) kernel.Kernel {
	if p.Type != tensor.Float32 || p.Terms() > tensor.KBlock || p.Shape.Elements() == 0 || p.Terms() == 0 {
		return nil
	}
	k := &polyphase{phases: phasesOf(phase{p: p}, p.Shape.Strides())}
	if len(k.phases) == 1 {
		return nil
	}
	for i := range k.phases {
		x := &k.phases[i]
		x.lay(p.Shape.Strides())
		if x.p.Terms() > 0 {
			x.dot = newContraction(x.p, p, x.at, set)
		}
	}
	return k
}

// lay finds the lines in which the elements lie.
func (x *phase) lay(strides []int) {
	keep, extents := affine.Merge(x.p.Shape, affine.Axes(0, len(strides)), []affine.Strides{strides})
	picked, last := affine.Strides(strides).Pick(keep), len(keep)-1
	x.inner = affine.Loop{Extent: extents[last], Stride: picked[last]}
	x.lines, x.strides = affine.Grid{Extents: append(extents[:last:last], 1), N: tensor.Shape(extents[:last]).Elements()}, append(picked[:last:last], 0)
}

// phasesOf splits x along every axis that counts phases.
func phasesOf(x phase, strides []int) []phase {
	if x.p.Terms() == 0 {
		return []phase{x}
	}
	for arg := range x.p.Args {
		for d, dim := range x.p.Args[arg].Dims {
			axis, fold := phaseAxis(x.p, dim)
			if b, mayMiss := affine.NewBound(x.p, arg, d); axis.Axis != fold.Axis && mayMiss {
				var out []phase
				for v := range x.p.Shape[axis.Axis] {
					lo, hi := affine.Clip(b.Offset+v*axis.Step, fold.Step, b.Extent, x.p.Fold[fold.Axis-len(x.p.Shape)])
					part := phase{p: restricted(x.p, axis.Axis, v, fold.Axis, lo, hi), at: x.at + v*strides[axis.Axis]}
					out = append(out, phasesOf(part, strides)...)
				}
				return out
			}
		}
	}
	return []phase{x}
}

// phaseAxis returns the terms of a coordinate that steps along one output axis and
// over the whole of it along one folded axis; two of the same axis if it does not.
func phaseAxis(p *tensor.Primitive, dim tensor.Dim) (axis, fold tensor.Term) {
	if len(dim.Terms) != 2 || dim.Via != 0 {
		return axis, fold
	}
	x, y := dim.Terms[0], dim.Terms[1]
	r := len(p.Shape)
	if x.Axis < r && y.Axis >= r && x.Step > 0 && p.Shape[x.Axis] > 1 && p.Shape[x.Axis] <= tuning.MaxPhases && p.Shape[x.Axis]*x.Step <= y.Step {
		return x, y
	}
	return axis, fold
}

// restricted returns the part of p at position v of an output axis, with the terms
// lo…hi−1 of a folded axis.
func restricted(p *tensor.Primitive, axis, v, fold, lo, hi int) *tensor.Primitive {
	q := *p
	q.Shape, q.Fold, q.Args = q.Shape.Clone(), slices.Clone(q.Fold), slices.Clone(q.Args)
	q.Shape[axis], q.Fold[fold-len(q.Shape)] = 1, max(hi-lo, 0)
	for i := range q.Args {
		q.Args[i].Dims = slices.Clone(q.Args[i].Dims)
		for d := range q.Args[i].Dims {
			dim := &q.Args[i].Dims[d]
			for _, t := range dim.Terms {
				switch t.Axis {
				case axis:
					dim.Offset += t.Step * v
				case fold:
					dim.Offset += t.Step * lo
				}
			}
			dim.Terms = slices.DeleteFunc(slices.Clone(dim.Terms), func(t tensor.Term) bool { return t.Axis == axis })
		}
	}
	return &q
}

// blocks of a phase without terms are its lines.
func (x *phase) blocks() int {
	if x.dot == nil {
		return x.lines.N
	}
	return x.dot.Blocks()
}

func (k *polyphase) Blocks() (n int) {
	for i := range k.phases {
		n += k.phases[i].blocks()
	}
	return n
}

func (k *polyphase) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	for i := range k.phases {
		x := &k.phases[i]
		n := x.blocks()
		if w.Stopped() {
			return kernel.ErrStopped
		}
		if from, to := max(lo, 0), min(hi, n); from < to {
			if x.dot == nil {
				x.clear(w, out, from, to)
			} else if err := x.dot.Run(w, out, args, from, to); err != nil {
				return err
			}
		}
		lo, hi = lo-n, hi-n
	}
	return nil
}

// clear makes the elements of some lines zero: so are sums without terms.
func (x *phase) clear(w *kernel.Worker, out *tensor.Tensor, lo, hi int) {
	dst, starts := tensor.Of[float32](out), mem.As[int](w.Rows[0], kernel.Chunk)
	for ; lo < hi; lo += kernel.Chunk {
		starts := starts[:min(kernel.Chunk, hi-lo)]
		x.lines.Offsets(starts, x.at, x.strides, lo)
		for _, at := range starts {
			if x.inner.Stride == 1 {
				clear(dst[at:][:x.inner.Extent])
				continue
			}
			for i := range x.inner.Extent {
				dst[at+i*x.inner.Stride] = 0
			}
		}
	}
}
