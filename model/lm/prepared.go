package lm

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// prepared is a graph that an executor has prepared.
type prepared struct {
	program *graph.Program
	runner  engine.Runner
}

// lowered is a graph as a program.
func lowered(g *graph.Graph) (*graph.Program, error) {
	typed, err := op.Infer(g, lower.FP32)
	if err != nil {
		return nil, err
	}
	return typed.Function()
}

// prepare prepares a graph.
func prepare(e engine.Executor, g *graph.Graph) (*prepared, error) {
	p, err := lowered(g)
	if err != nil {
		return nil, err
	}
	r, err := e.Prepare(p)
	if err != nil {
		return nil, err
	}
	return &prepared{p, r}, nil
}

// resize returns f of other extents. A plan serves them all, where the executor can.
func (f *prepared) resize(e engine.Executor, g *graph.Graph) (*prepared, error) {
	p, err := lowered(g)
	if err != nil {
		return nil, err
	}
	if r, ok := f.runner.(engine.Resizer); ok {
		if r, err := r.Resize(p); err == nil {
			return &prepared{p, r}, nil
		}
	}
	return prepare(e, g)
}

// call runs f on inputs by name. What f does not read is left out.
func (f *prepared) call(ctx context.Context, in map[string]*tensor.Tensor) (*graph.State, error) {
	start := &graph.State{Slots: f.program.Slots, Tensors: make([]*tensor.Tensor, len(f.program.Slots))}
	for i, slot := range f.program.Slots {
		x := in[slot.Name]
		switch {
		case x == nil:
			return nil, fmt.Errorf("%s is missing", slot.Name)
		case x.Type != slot.Type || !x.Shape.Equal(slot.Shape):
			return nil, fmt.Errorf("%s is %v%v: want %v%v", slot.Name, x.Type, x.Shape, slot.Type, slot.Shape)
		}
		start.Tensors[i] = x
	}
	return f.runner.Run(ctx, graph.Inputs{States: []*graph.State{start}}, nil)
}
