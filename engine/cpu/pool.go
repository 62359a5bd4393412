package cpu

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
)

// pool folds what lies in each window. A term is a row of a sheet, and rows flow
// into each other in the order of the definition.
type pool struct {
	*window
	border float32
	fn     int // of a step
	flows  []poolFlow
}

// poolFlow makes a row: the output's, if its number is 0. Sources from 0 on are
// terms, those below are rows that have been made, as ^number.
type poolFlow struct {
	number, first int
	rest          []int
}

// newPool returns nil if p does not fold windows.
func newPool(p *tensor.Primitive, set *asm.Set) kernel {
	fns := map[tensor.Fn]int{tensor.FoldSum: asm.FlowAdd, tensor.FoldMax: asm.FlowMax, tensor.FoldMin: asm.FlowMin}
	fn, ok := fns[p.Fn]
	if !ok || p.Args[0].Type != tensor.Float32 || p.Type != tensor.Float32 {
		return nil
	}
	w := newWindow(p, 0, set)
	if w == nil {
		return nil
	}
	k := &pool{window: w, border: tensor.AsF32(identity(p)), fn: fn}
	if p.Fn == tensor.FoldSum {
		k.sum(0, 1)
	} else {
		k.flows = []poolFlow{{0, 0, axes(1, p.Terms())}}
	}
	return k
}

// sum appends flows that add the lanes l, l + apart, …, as a sum joins them, and
// returns the source that holds the result.
func (k *pool) sum(l, apart int) int {
	f, terms := poolFlow{first: l}, k.p.Terms()
	for t := l + tensor.Lanes; t < terms; t += tensor.Lanes {
		f.rest = append(f.rest, t)
	}
	for half := tensor.Lanes / 2; half >= apart; half /= 2 {
		if l+half < terms {
			f.rest = append(f.rest, k.sum(l+half, 2*half))
		}
	}
	if len(f.rest) == 0 {
		return l
	}
	if apart > 1 {
		f.number = len(k.flows) + 1
	}
	k.flows = append(k.flows, f)
	return ^f.number
}

func (k *pool) run(w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	return produce(k, w, out, args, lo, hi, nil)
}

// zero turns a sum of zeros, which begins at +0, into +0.
var zero float32

// next implements maker.
func (k *pool) next(w *worker, out *tensor.Tensor, args []*tensor.Tensor, piece, _ int, do then) (done int, err error) {
	s := &w.sheet
	k.draw(s, args, piece, k.border)
	n := k.length(s.to - s.from)
	source := func(i int) unsafe.Pointer {
		if i < 0 {
			return first(s.row(^i, n))
		}
		return unsafe.Pointer(&s.values[k.taps[i]])
	}
	for i := range k.flows {
		f := &k.flows[i]
		w.steps = w.steps[:0]
		for _, from := range f.rest {
			w.steps = append(w.steps, asm.Step{Fn: k.fn + 1, At: source(from)})
		}
		if f.number == 0 && k.fn == asm.FlowAdd {
			w.steps = append(w.steps, asm.Step{Fn: k.fn, At: unsafe.Pointer(&zero)})
		}
		k.set.Flow(1, 1, n, 0, 0, 0, (*float32)(source(^f.number)), (*float32)(source(f.first)), (*byte)(first(w.steps)), len(w.steps))
	}
	clear(w.steps)
	k.spread(s, out, s.row(0, n))
	return 1, k.finished(s, do)
}
