package cpu

import (
	"slices"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// pool folds what lies in each window. A term is a row of a sheet, and rows flow
// into each other: in the order of the definition, if that makes a difference.
type pool struct {
	*window
	down   *descent // that is done first, if it is not nil
	border float32
	fn     int // of a step
	flows  []poolFlow
}

// poolFlow makes a row, the output's if its number is 0, of others in turn. It may
// have some elements more than the output's.
type poolFlow struct {
	number, more int
	from         []rowAt
}

// rowAt is a row: from an element on of one that has been made, or of the sheet if
// the number is −1.
type rowAt struct{ number, at int }

// newPool returns nil if p does not fold windows.
func newPool(p *tensor.Primitive, set *asm.Set) kernel.Kernel {
	fns := map[tensor.Fn]int{tensor.FoldSum: asm.FlowAdd, tensor.FoldMax: asm.FlowMax, tensor.FoldMin: asm.FlowMin}
	fn, ok := fns[p.Fn]
	if !ok || p.Args[0].Type != tensor.Float32 || p.Type != tensor.Float32 {
		return nil
	}
	w := newWindow(p, 0, set)
	if w == nil {
		return nil
	}
	k := &pool{window: w, border: tensor.AsF32(eltwise.FoldIdentity(p)), fn: fn}
	if p.Fn == tensor.FoldSum {
		k.sum(0, 1)
	} else {
		k.extreme()
	}
	return k
}

// extreme finds flows for an extreme, to which the order of terms makes no difference.
func (k *pool) extreme() {
	if k.phases() == 1 && k.along() {
		return
	}
	if k.down = newDescent(k.window, k.fn, k.border); k.down != nil {
		k.window = k.down.across(k.window)
	}
	var all poolFlow
	for _, tap := range k.taps {
		all.from = append(all.from, rowAt{none, tap})
	}
	k.flows = []poolFlow{all}
}

// along finds the extreme along each line, of all lines at once, and then that of
// lines below each other, if there are several of both.
func (k *pool) along() bool {
	line, below := poolFlow{number: 1}, poolFlow{}
	for _, tap := range k.taps {
		column := tap % k.wide.length
		if tap == column {
			line.from = append(line.from, rowAt{none, tap})
		}
		if at := (rowAt{1, tap - column}); !slices.Contains(below.from, at) {
			below.from = append(below.from, at)
		}
		line.more = max(line.more, tap-column)
	}
	k.flows = []poolFlow{line, below}
	return len(line.from) > 1 && len(below.from) > 1
}

// sum appends flows that add the lanes l, l + apart, …, as a sum joins them, and
// returns the row that holds the result.
func (k *pool) sum(l, apart int) rowAt {
	terms := k.p.Terms()
	var f poolFlow
	for t := l; t < terms; t += tensor.Lanes {
		f.from = append(f.from, rowAt{none, k.taps[t]})
	}
	for half := tensor.Lanes / 2; half >= apart; half /= 2 {
		if l+half < terms {
			f.from = append(f.from, k.sum(l+half, 2*half))
		}
	}
	if len(f.from) == 1 {
		return f.from[0]
	}
	if apart > 1 {
		f.number = len(k.flows) + 1
	}
	k.flows = append(k.flows, f)
	return rowAt{f.number, 0}
}

func (k *pool) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	return kernel.Produce(k, w, out, args, lo, hi, nil)
}

// zero turns a sum of zeros, which begins at +0, into +0.
var zero float32

// Next implements maker.
func (k *pool) Next(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, piece, _ int, do kernel.Epilogue) (done int, err error) {
	s, operand := kernel.Scratch[sheet](w), tensor.Of[float32](args[k.arg])
	k.place(s, piece)
	if k.down != nil {
		operand = k.down.run(s, k.set, operand)
	}
	k.draw(s, operand, k.border)
	n := k.length(s.to - s.from)
	source := func(x rowAt) unsafe.Pointer {
		if x.number == none {
			return unsafe.Pointer(&s.values[x.at])
		}
		return unsafe.Pointer(&s.rows[x.number][x.at])
	}
	for i := range k.flows {
		f := &k.flows[i]
		s.steps = s.steps[:0]
		for _, from := range f.from[1:] {
			s.steps = append(s.steps, asm.Step{Fn: k.fn + 1, At: source(from)})
		}
		if f.number == 0 && k.fn == asm.FlowAdd {
			s.steps = append(s.steps, asm.Step{Fn: k.fn, At: unsafe.Pointer(&zero)})
		}
		row := s.row(f.number, n+f.more)
		k.set.Flow(1, 1, len(row)-maxBehind, 0, 0, 0, &row[0], (*float32)(source(f.from[0])), (*byte)(mem.First(s.steps)), len(s.steps))
	}
	clear(s.steps)
	k.spread(s, out, s.row(0, n))
	return 1, k.finished(s, do, nil)
}
