package cpu

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// plan says which buffer each node's output lives in. A buffer is free for
// another tensor of its size once the last reader of the first has run.
type plan struct {
	buffer []int // by node; none for parts of the new state, which outlive a run
	sizes  []int // bytes of each buffer
}

const none = -1

func newPlan(p *graph.Program) *plan {
	last := make([]int, len(p.Nodes)) // the node that reads it last, or itself
	for i := range p.Nodes {
		last[i] = i
		for _, r := range p.Nodes[i].From {
			if r.Kind == graph.RefNode {
				last[r.Index] = i
			}
		}
	}
	pl := &plan{buffer: make([]int, len(p.Nodes))}
	for _, r := range p.Outputs {
		if r.Kind == graph.RefNode {
			pl.buffer[r.Index] = none
		}
	}
	dying := make([][]int, len(p.Nodes)) // buffers that are free after a node
	free := map[int][]int{}              // by size
	for i := range p.Nodes {
		if pl.buffer[i] != none {
			n := &p.Nodes[i]
			size := n.Shape.Elements() * n.Type.Size()
			b := len(pl.sizes)
			if f := free[size]; len(f) > 0 {
				b = f[len(f)-1]
				free[size] = f[:len(f)-1]
			} else {
				pl.sizes = append(pl.sizes, size)
			}
			pl.buffer[i] = b
			dying[last[i]] = append(dying[last[i]], b)
		}
		for _, b := range dying[i] {
			free[pl.sizes[b]] = append(free[pl.sizes[b]], b)
		}
	}
	return pl
}

// kept reports whether node i's output becomes part of the new state.
func (pl *plan) kept(i int) bool { return pl.buffer[i] == none }

// allocate returns a tensor for each node that is not kept.
func (pl *plan) allocate(p *graph.Program) ([]tensor.Tensor, error) {
	buffers := make([]*tensor.Tensor, len(pl.sizes))
	for b, size := range pl.sizes {
		var err error
		if buffers[b], err = tensor.New(tensor.Bool, tensor.Shape{size}); err != nil {
			return nil, fmt.Errorf("memory for a program: %w", err)
		}
	}
	out := make([]tensor.Tensor, len(p.Nodes))
	for i, b := range pl.buffer {
		if b != none {
			out[i] = *buffers[b]
			out[i].Type, out[i].Shape = p.Nodes[i].Type, p.Nodes[i].Shape
		}
	}
	return out, nil
}
