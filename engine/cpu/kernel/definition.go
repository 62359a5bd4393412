package kernel

import "github.com/tally-network/tally/core/tensor"

// definition evaluates every element by its definition. Its blocks are elements.
type definition struct{ p *tensor.Primitive }

// ByDefinition returns the kernel that takes every primitive, slowly.
func ByDefinition(p *tensor.Primitive) Kernel { return &definition{p} }

func (k *definition) Blocks() int { return k.p.Shape.Elements() }

func (k *definition) Run(w *Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	c := NewCell(k.p, args)
	for o := lo; o < hi; o++ {
		if w.Stopped() {
			return ErrStopped
		}
		if err := Evaluate(c, out, o); err != nil {
			return err
		}
	}
	return nil
}

// NewCell returns the definition of p's elements, of the given operands.
func NewCell(p *tensor.Primitive, args []*tensor.Tensor) *tensor.Cell {
	return tensor.NewCell(p, func(arg, i int) (tensor.Word, error) { return args[arg].At(i), nil })
}

// Evaluate sets element o of the output to what its definition says.
func Evaluate(c *tensor.Cell, out *tensor.Tensor, o int) error {
	if err := c.Seek(o); err != nil {
		return err
	}
	w, err := c.Value()
	if err == nil {
		out.Set(o, w)
	}
	return err
}
