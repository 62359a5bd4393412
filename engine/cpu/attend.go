package cpu

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/attention"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// attender is attention of one shape, and the memory that it is computed in.
type attender struct {
	*attention.Cached // nil: only programs compute it
	workers           []*kernel.Worker
	sequences         []attention.Sequence
	ends              []int // by sequence, the parts of it and of those before
}

var _ engine.Attender = (*Executor)(nil)

// Attend implements engine.Attender.
func (e *Executor) Attend(ctx context.Context, a engine.Attention, of []engine.Attended) (served bool, err error) {
	if e.err != nil {
		return false, e.err
	}
	x := e.attender(attention.Shape(a))
	defer e.giveBack(x, attention.Shape(a))
	if x.Cached == nil || len(of) == 0 {
		return false, nil
	}
	work, err := x.place(a, of)
	if err != nil {
		return false, err
	}
	units := x.ends[len(x.ends)-1]
	do := func(worker, lo, hi int) error {
		s := 0
		for unit := lo; unit < hi; unit++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			for unit >= x.ends[s] {
				s++
			}
			first := x.ends[s] - x.Units(&x.sequences[s])
			x.Run(x.workers[worker], &x.sequences[s], unit-first)
		}
		return nil
	}
	if e.options.Threads == 1 || work/tuning.FLOPsPerNs < 2*e.options.GrainNs {
		return true, do(0, 0, units)
	}
	pool := e.pools.take()
	defer e.pools.give(pool)
	return true, pool.run(units, 1, do)
}

// attender returns one that nobody uses.
func (e *Executor) attender(s attention.Shape) *attender {
	e.mu.Lock()
	defer e.mu.Unlock()
	if free := e.attenders[s]; len(free) > 0 {
		e.attenders[s] = free[:len(free)-1]
		return free[len(free)-1]
	}
	x := &attender{Cached: attention.NewCached(s, e.options.Kernels)}
	for range e.options.Threads {
		if x.Cached == nil {
			break
		}
		x.workers = append(x.workers, kernel.NewWorker())
	}
	return x
}

func (e *Executor) giveBack(x *attender, s attention.Shape) {
	clear(x.sequences)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.attenders == nil {
		e.attenders = map[attention.Shape][]*attender{}
	}
	e.attenders[s] = append(e.attenders[s], x)
}

// place checks the sequences. It returns the multiply-adds and additions that they take.
func (x *attender) place(a engine.Attention, of []engine.Attended) (work int, err error) {
	x.sequences, x.ends = x.sequences[:0], x.ends[:0]
	units := 0
	for _, y := range of {
		s := attention.Sequence{}
		for _, t := range []*tensor.Tensor{y.Queries, y.Keys, y.Values, y.Out} {
			if t == nil || t.Type != tensor.Float32 || t.Shape.Elements() == 0 {
				return 0, fmt.Errorf("attention takes tensors of float32")
			}
		}
		s.Queries, s.Keys, s.Values, s.Out = tensor.Of[float32](y.Queries), tensor.Of[float32](y.Keys), tensor.Of[float32](y.Values), tensor.Of[float32](y.Out)
		s.Rows, s.Total = len(s.Queries)/(a.Heads*a.Size), len(s.Keys)/(a.Shared*a.Size)
		if !x.Fits(&s) {
			return 0, fmt.Errorf("attention of %d heads by %d of %d elements does not go with tensors of %v, %v, %v and %v", a.Heads, a.Shared, a.Size, y.Queries.Shape, y.Keys.Shape, y.Values.Shape, y.Out.Shape)
		}
		units += x.Units(&s)
		work += 4 * s.Rows * s.Total * a.Heads * a.Size
		x.sequences, x.ends = append(x.sequences, s), append(x.ends, units)
	}
	return work, nil
}
