package kernel

import (
	"errors"
	"sync/atomic"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Chunk is the number of elements that loops take at a time: few enough for some
// operands and the result to stay in the first-level cache. It is a multiple of
// tensor.Lanes.
const Chunk = tuning.Chunk

// Worker is the memory that one thread computes in, for kernels of every kind.
type Worker struct {
	// Round counts the tasks of a plan. What a kernel has packed in this round is good
	// for its next block.
	Round int

	// Stop is set once the run is given up; nil if it cannot be.
	Stop *atomic.Bool

	Rows  [2][]uint64 // Chunk elements of any type each
	Lanes []uint64    // tensor.Lanes lanes of Chunk elements of any type

	scratch []any // pointers of different types
}

// ErrStopped is returned by a kernel whose run was given up. Its output is worth nothing.
var ErrStopped = errors.New("the run was given up")

// Stopped reports whether the run was given up. Kernels ask between blocks, and within
// long ones. BenchmarkStop of engine/cpu measures how long a stop takes.
func (w *Worker) Stopped() bool { return w.Stop != nil && w.Stop.Load() }

// Scratch returns the worker's memory of type T, which is zero at first and then as its
// last user left it. Each package keeps its own type, of which others know nothing.
func Scratch[T any](w *Worker) *T {
	for _, s := range w.scratch {
		if s, ok := s.(*T); ok {
			return s
		}
	}
	s := new(T)
	w.scratch = append(w.scratch, s)
	return s
}

// NewWorker returns a worker that has run nothing.
func NewWorker() *Worker {
	w := &Worker{Lanes: make([]uint64, tensor.Lanes*Chunk)}
	for i := range w.Rows {
		w.Rows[i] = make([]uint64, Chunk)
	}
	return w
}

// Row returns row i of the worker as Chunk elements.
func Row[T any](w *Worker, i int) []T { return mem.As[T](w.Rows[i], Chunk) }
