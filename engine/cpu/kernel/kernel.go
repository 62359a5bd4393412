package kernel

import (
	"context"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/weights"
)

// Kernel computes one primitive. It holds no state, so that several runs can share it.
type Kernel interface {
	// Blocks returns the number of independent blocks into which the output falls.
	Blocks() int

	// Run computes blocks lo…hi−1. Operands and output have the types and shapes of
	// the primitive, and the output overlaps no operand. They are those of the
	// worker's last run, unless another round has begun. It ends with ErrStopped soon
	// after the worker is stopped.
	Run(w *Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error

	// Describe says how it computes.
	Describe() Description
}

// Work computes some outputs, in independent blocks: a kernel's, those of several nodes
// that run as one, or those of many steps.
type Work interface {
	// Blocks returns their number.
	Blocks() int

	// Run computes blocks lo…hi−1, as Kernel's Run does.
	Run(w *Worker, outs, args []*tensor.Tensor, lo, hi int) error

	// Describe says how it computes them.
	Describe() Description
}

// Producer is a kernel whose blocks are runs of contiguous elements of the output, so
// that an epilogue can follow each.
type Producer interface {
	Kernel

	// Next computes block i and, perhaps, some of the n − 1 next as one with it; it
	// returns how many. It calls do, unless that is nil, for every run, in some order,
	// as soon as the run is computed.
	Next(w *Worker, out *tensor.Tensor, args []*tensor.Tensor, i, n int, do Epilogue) (done int, err error)

	// LongRuns reports whether runs are long enough to be worth an epilogue.
	LongRuns() bool
}

// Prepacker is a kernel that would rather read constant operands in a form of its own, made
// once, than pack them in every run.
type Prepacker interface {
	Kernel

	// Weights returns those of its constant operands, by operand, that it would read packed.
	Weights(isConstant func(operand int) bool) []Weight
}

// Resizer is a kernel that serves a range of extents, rows and terms among them, such as
// batches and key lengths: what it has chosen and packed for one primitive serves others.
type Resizer interface {
	Kernel

	// Resize returns the kernel of a primitive that differs from this one's in extents
	// alone, with the same blocks, packed weights included; nil if it does not serve it.
	// Both kernels can run at once.
	Resize(p *tensor.Primitive) Kernel
}

// Weight is a constant operand that its kernel would read packed.
type Weight interface {
	// Operand is its number.
	Operand() int

	// Layout says how it is packed: all that the bytes depend on, besides the constant.
	Layout() string

	// Bytes returns the size of the packed form.
	Bytes() int

	// Pack packs the constant x. It stops with an error soon after ctx is done.
	Pack(ctx context.Context, dst []byte, x *tensor.Tensor) error

	// Whole reports whether the packed form holds all of the constant, so that it can stand
	// for it.
	Whole() bool

	// Unpack makes the constant again, from a form that is whole.
	Unpack(packed []byte) (*tensor.Tensor, error)

	// Use lets the kernel read the packed form from now on. Then the operand that it is
	// given may be hollow. Nobody may run the kernel meanwhile.
	Use(p *weights.Packed)
}

// Hollow returns a tensor of x's type and shape that has no elements: it stands for a
// constant of which only the packed form is kept.
func Hollow(x *tensor.Tensor) *tensor.Tensor { return &tensor.Tensor{Type: x.Type, Shape: x.Shape} }

// IsHollow reports whether x stands for a constant that is kept elsewhere.
func IsHollow(x *tensor.Tensor) bool { return x.Bytes() == nil && x.Shape.Elements() > 0 }

// Produce computes blocks lo…hi−1 of a producer; do is its epilogue, or nil.
func Produce(k Producer, w *Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int, do Epilogue) error {
	for lo < hi {
		if w.Stopped() {
			return ErrStopped
		}
		done, err := k.Next(w, out, args, lo, hi-lo, do)
		if err != nil {
			return err
		}
		lo += done
	}
	return nil
}
