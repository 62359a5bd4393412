package engine

import (
	"fmt"
	"math/bits"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Bounded returns an executor that refuses programs whose values together take
// more than limit bytes. Who buys computation writes the program, so it must be
// refused before any of its memory is taken.
func Bounded(e Executor, limit uint64) Executor { return bounded{e, limit} }

type bounded struct {
	Executor
	limit uint64
}

// Prepare implements Executor.
func (b bounded) Prepare(p *graph.Program) (Runner, error) {
	if need := Memory(p); need > b.limit {
		return nil, &LargeError{need, b.limit}
	}
	return b.Executor.Prepare(p)
}

// LargeError is about a program that needs more memory than an executor may take, in bytes.
type LargeError struct{ Need, Limit uint64 }

// Error implements error.
func (e *LargeError) Error() string {
	return fmt.Sprintf("the program takes up to %d MB of memory, the limit here is %d MB", e.Need>>20+1, e.Limit>>20)
}

// Patient returns an executor that refuses programs of more than limit steps,
// so that a hostile one cannot keep it busy.
func Patient(e Executor, limit uint64) Executor { return patient{e, limit} }

type patient struct {
	Executor
	limit uint64
}

// Prepare implements Executor.
func (x patient) Prepare(p *graph.Program) (Runner, error) {
	if need := Steps(p); need > x.limit {
		return nil, &LongError{x.Name(), need, x.limit}
	}
	return x.Executor.Prepare(p)
}

// LongError is about a program that an executor would take too long for.
type LongError struct {
	Executor    string
	Need, Limit uint64
}

// Error implements error.
func (e *LongError) Error() string {
	return fmt.Sprintf("the program takes %d steps, the limit of executor %s is %d", e.Need, e.Executor, e.Limit)
}

// Steps returns the terms and elements that a run computes.
func Steps(p *graph.Program) (total uint64) {
	for i := range p.Nodes {
		n := p.Nodes[i].Primitive
		// Neither has more than 2⁴⁰ elements.
		high, low := bits.Mul64(uint64(n.Shape.Elements()), uint64(max(n.Terms(), 1)))
		if high > 0 {
			low = 1 << 62
		}
		total = min(total+min(low, 1<<62), 1<<62)
	}
	return total
}

// Memory returns the bytes of all values of a run: what it reads and makes, and
// every value between, all of which are kept where the run has to be answered
// for. What an executor needs besides, such as packed constants, it bounds itself.
func Memory(p *graph.Program) uint64 {
	total := uint64(0)
	add := func(t tensor.DType, s tensor.Shape, times int) {
		// No shape has more than 2⁴⁰ elements, so one value cannot overflow.
		total = min(total+uint64(s.Elements())*uint64(t.Size())*uint64(times), 1<<62)
	}
	if p.Mixed {
		for _, r := range p.SlotsRead() {
			add(p.Slots[r.Index].Type, p.Slots[r.Index].Shape, 1)
		}
	} else {
		for _, s := range p.Slots {
			add(s.Type, s.Shape, p.Groups)
		}
	}
	for _, s := range p.Gives() {
		add(s.Type, s.Shape, 1)
	}
	for _, c := range p.Consts {
		add(c.Type, c.Shape, 1)
	}
	for i := range p.Nodes {
		add(p.Nodes[i].Type, p.Nodes[i].Shape, 1)
	}
	return total
}
