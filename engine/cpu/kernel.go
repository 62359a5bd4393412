package cpu

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
)

// kernel computes one primitive. It holds no state, so that several runs can
// share it. Its output falls into independent pieces.
type kernel interface {
	pieces() int

	// run computes pieces lo…hi−1. Operands and output have the types and
	// shapes of the primitive, and the output overlaps no operand.
	run(w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error
}

// worker is the memory that one goroutine computes in.
type worker struct {
	rows  [3]*tensor.Tensor // room for chunk elements of any type
	lanes *tensor.Tensor    // room for the lanes of columnChunk elements
	piece piece             // of a contraction
}

// chunk is the number of elements that kernels handle at a time: few enough
// for three rows to stay in the first-level cache. It is a multiple of
// tensor.Lanes.
const chunk = 1024

func newWorker() *worker {
	w := &worker{}
	for i := range w.rows {
		w.rows[i] = tensor.Must(tensor.New(tensor.Int64, tensor.Shape{chunk}))
	}
	w.lanes = tensor.Must(tensor.New(tensor.Int64, tensor.Shape{tensor.Lanes, columnChunk}))
	return w
}

// row returns memory for chunk elements, of type t.
func row[T tensor.Element](w *worker, i int, t tensor.DType) []T {
	return tensor.Of[T](as(*w.rows[i], t))[:chunk]
}

// laneRows returns memory for tensor.Lanes rows of columnChunk elements.
func laneRows[T tensor.Element](w *worker, t tensor.DType) []T { return tensor.Of[T](as(*w.lanes, t)) }

// as returns x as memory for another type.
func as(x tensor.Tensor, t tensor.DType) *tensor.Tensor {
	x.Type = t
	return &x
}

// compile returns the fastest kernel for a checked primitive.
func compile(p *tensor.Primitive, set *asm.Set) kernel {
	var k kernel
	switch kind := p.Fn.Kind(); {
	case !native(p):
	case kind == tensor.KindMap:
		k = newMap(p)
	case kind == tensor.KindIndex:
		k = newIndex(p)
	case p.Fn.Scatters():
		k = newScatter(p)
	case kind == tensor.KindFold && p.Fn != tensor.FoldProd:
		k = newFold(p)
	case p.Fn == tensor.Dot:
		k = newDot(p, set)
	case p.Fn == tensor.Before:
		k = newRanker(p)
	}
	if k == nil {
		k = &cells{p}
	}
	return k
}

// native reports whether kernels take the types of a primitive.
func native(p *tensor.Primitive) bool {
	is := func(t tensor.DType) bool {
		return t == tensor.Float32 || t == tensor.Int32 || t == tensor.Int64 || t == tensor.Bool
	}
	for i := range p.Args {
		if !is(p.Args[i].Type) {
			return false
		}
	}
	return is(p.Type)
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

// axes returns the numbers lo…hi−1.
func axes(lo, hi int) []int {
	out := make([]int, hi-lo)
	for i := range out {
		out[i] = lo + i
	}
	return out
}
