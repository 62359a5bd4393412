package spatial

import (
	"slices"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// pooling folds each window. The taps are rows of a window buffer, and an elementwise
// chain folds row after row: in the order of the definition, where that matters.
type pooling struct {
	*window
	verticalFirst *verticalPass // nil if there is none
	padding       float32
	fn            int // of an elementwise chain
	passes        []rowPass
}

// rowPass folds rows into one: number 0 is the output's, others are made for later passes,
// and have more elements than that.
type rowPass struct {
	number, more int
	from         []rowAt
}

// rowAt is a row from an element on: of one that a pass has made, or of the window buffer.
type rowAt struct{ number, at int }

// inBuffer is the number of the window buffer.
const inBuffer = -1

// NewPooling returns the kernel of a sum, a maximum or a minimum of windows, nil if p is
// none.
func NewPooling(p *tensor.Primitive, set *asm.KernelSet) kernel.Kernel {
	fns := map[tensor.Fn]int{tensor.FoldSum: asm.OpAdd, tensor.FoldMax: asm.OpMax, tensor.FoldMin: asm.OpMin}
	fn, ok := fns[p.Fn]
	if !ok || p.Args[0].Type != tensor.Float32 || p.Type != tensor.Float32 {
		return nil
	}
	w := newWindow(p, 0, set)
	if w == nil {
		return nil
	}
	k := &pooling{window: w, padding: tensor.AsF32(eltwise.FoldIdentity(p)), fn: fn}
	if p.Fn == tensor.FoldSum {
		k.planSum(0, 1)
	} else {
		k.planExtreme()
	}
	return k
}

// planExtreme finds passes for an extreme, to which the order of terms makes no difference.
func (k *pooling) planExtreme() {
	if k.phases() == 1 && k.separable() {
		return
	}
	if k.verticalFirst = newVerticalPass(k.window, k.fn, k.padding); k.verticalFirst != nil {
		k.window = k.verticalFirst.horizontalWindow(k.window)
	}
	var all rowPass
	for _, tap := range k.taps {
		all.from = append(all.from, rowAt{inBuffer, tap})
	}
	k.passes = []rowPass{all}
}

// separable plans a pass along lines, and one across them, and reports whether there are
// several terms of both.
func (k *pooling) separable() bool {
	line, below := rowPass{number: 1}, rowPass{}
	for _, tap := range k.taps {
		column := tap % k.horizontal.length
		if tap == column {
			line.from = append(line.from, rowAt{inBuffer, tap})
		}
		if at := (rowAt{1, tap - column}); !slices.Contains(below.from, at) {
			below.from = append(below.from, at)
		}
		line.more = max(line.more, tap-column)
	}
	k.passes = []rowPass{line, below}
	return len(line.from) > 1 && len(below.from) > 1
}

// planSum appends passes that add the lanes l, l + apart, …, by the tree of a sum, and
// returns the row that holds the result.
func (k *pooling) planSum(l, apart int) rowAt {
	terms := k.p.Terms()
	var f rowPass
	for t := l; t < terms; t += tensor.Lanes {
		f.from = append(f.from, rowAt{inBuffer, k.taps[t]})
	}
	for half := tensor.Lanes / 2; half >= apart; half /= 2 {
		if l+half < terms {
			f.from = append(f.from, k.planSum(l+half, 2*half))
		}
	}
	if len(f.from) == 1 {
		return f.from[0]
	}
	if apart > 1 {
		f.number = len(k.passes) + 1
	}
	k.passes = append(k.passes, f)
	return rowAt{f.number, 0}
}

// Run implements kernel.Kernel.
func (k *pooling) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	return kernel.Produce(k, w, out, args, lo, hi, nil)
}

// zero is added to every sum, which begins at +0: a sum of −0 alone is +0.
var zero float32

// Next implements kernel.Producer.
func (k *pooling) Next(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, block, _ int, do kernel.Epilogue) (done int, err error) {
	s, operand := kernel.Scratch[windowBuffer](w), tensor.Of[float32](args[k.arg])
	k.place(s, block)
	if k.verticalFirst != nil {
		operand = k.verticalFirst.run(s, k.set, operand)
	}
	k.fill(s, operand, k.padding)
	n := k.rowLength(s.to - s.from)
	source := func(x rowAt) unsafe.Pointer {
		if x.number == inBuffer {
			return unsafe.Pointer(&s.values[x.at])
		}
		return unsafe.Pointer(&s.rows[x.number][x.at])
	}
	for i := range k.passes {
		f := &k.passes[i]
		s.steps = s.steps[:0]
		for _, from := range f.from[1:] {
			s.steps = append(s.steps, asm.EltwiseOp{Fn: k.fn + 1, At: source(from)})
		}
		if f.number == 0 && k.fn == asm.OpAdd {
			s.steps = append(s.steps, asm.EltwiseOp{Fn: k.fn, At: unsafe.Pointer(&zero)})
		}
		row := s.row(f.number, n+f.more)
		k.set.EltwiseChain(1, 1, len(row)-overread, 0, 0, 0, &row[0], (*float32)(source(f.from[0])), (*byte)(mem.First(s.steps)), len(s.steps))
	}
	clear(s.steps)
	k.store(s, out, s.row(0, n))
	return 1, k.emit(s, do, nil)
}
