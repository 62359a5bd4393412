package cpu

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// kernel computes one primitive. It holds no state, so that several runs can
// share it. Its output falls into independent pieces.
type kernel interface {
	pieces() int

	// run computes pieces lo…hi−1. Operands and output have the types and
	// shapes of the primitive, and the output overlaps no operand. They are
	// those of the worker's last run, unless it has begun another round.
	run(w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error
}

// worker is the memory that one goroutine computes in.
type worker struct {
	round   int              // counts tasks
	scratch []byte           // of a fusion
	at      []unsafe.Pointer // where the values of a fusion are
	steps   []asm.Step       // of a flow
	rows    [2][]uint64      // room for chunk elements of any type
	lanes   []uint64         // room for the lanes of columnChunk elements
	piece   piece            // of a contraction
	sheet   sheet            // of a primitive with windows
}

func newWorker() *worker {
	w := &worker{lanes: make([]uint64, tensor.Lanes*columnChunk)}
	for i := range w.rows {
		w.rows[i] = make([]uint64, chunk)
	}
	return w
}

// row returns memory for chunk elements.
func row[T any](w *worker, i int) []T { return mem.As[T](w.rows[i], chunk) }

// compile returns the fastest kernel for a checked primitive that is not a link
// of a fusion.
func compile(p *tensor.Primitive, set *asm.Set) kernel {
	var k kernel
	switch {
	case p.Fn.Scatters():
		k = newScatter(p)
	case p.Fn.Kind() == tensor.KindFold:
		if k = newPool(p, set); k == nil {
			k = newFold(p, set)
		}
	case p.Fn == tensor.Dot:
		if k = newDepthwise(p, set); k == nil {
			k = newDot(p, set)
		}
	case p.Fn == tensor.Before:
		k = newRanker(p)
	}
	if k == nil {
		k = &cells{p}
	}
	return k
}

// cells evaluates every element by its definition. It runs what no other
// kernel takes.
type cells struct{ p *tensor.Primitive }

func (k *cells) pieces() int { return k.p.Shape.Elements() }

func (k *cells) run(_ *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	c := newCell(k.p, args)
	for o := lo; o < hi; o++ {
		if err := evaluate(c, out, o); err != nil {
			return err
		}
	}
	return nil
}

func newCell(p *tensor.Primitive, args []*tensor.Tensor) *tensor.Cell {
	return tensor.NewCell(p, func(arg, i int) (tensor.Word, error) { return args[arg].At(i), nil })
}

// evaluate computes element o of the output by its definition.
func evaluate(c *tensor.Cell, out *tensor.Tensor, o int) error {
	if err := c.Seek(o); err != nil {
		return err
	}
	w, err := c.Value()
	if err == nil {
		out.Set(o, w)
	}
	return err
}
