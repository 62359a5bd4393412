package kernel

import "github.com/tally-network/tally/core/tensor"

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

// Prepacker is a kernel that can pack constant operands once, when a plan is made.
type Prepacker interface {
	Kernel

	// Prepack packs operands; one that is nil is no constant. It takes no more than
	// budget bytes and returns how many are left. Nobody may run the kernel meanwhile.
	Prepack(consts []*tensor.Tensor, budget int) (left int)
}

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
