package cpu_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/engine/cpu/weights"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// madeWeights is a program that multiplies its state, rows by n, with weights of n by n that
// it makes of constants, twice negated. With broadcast they are made of one row.
func madeWeights(rows, n int, broadcast bool) (*graph.Program, graph.Inputs) {
	p, in := layers(1, rows, n)
	shape := p.Consts[0].Shape
	read := tensor.Access{Type: tensor.Float32, Shape: shape, Dims: kerneltest.Dims(0, 1)}
	first := read
	if broadcast {
		p.Consts[0] = kerneltest.Normal(tensor.Float32, tensor.Shape{n})
		first = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{n}, Dims: kerneltest.Dims(1)}
	}
	negated := func(a tensor.Access, from graph.Ref) graph.Opcode {
		return graph.Opcode{Primitive: &tensor.Primitive{Fn: tensor.Neg, Type: tensor.Float32, Shape: shape, Args: []tensor.Access{a}}, From: []graph.Ref{from}}
	}
	product := p.Nodes[0]
	product.From = []graph.Ref{product.From[0], {Kind: graph.RefNode, Index: 1}}
	p.Nodes = []graph.Opcode{negated(first, graph.Ref{Kind: graph.RefConst}), negated(read, graph.Ref{Kind: graph.RefNode}), product}
	p.Outputs = []graph.Ref{{Kind: graph.RefNode, Index: 2}}
	return p, in
}

// What follows from constants alone is computed once, and packed as constants are. All runs
// give the bits of the definition, and observed ones every node.
func TestConstantsAreFolded(t *testing.T) {
	for _, c := range []struct {
		name      string
		broadcast bool
		tasks     int
	}{{"weights that are made of others", false, 1}, {"weights greater than what they are made of", true, 2}} {
		p, in := madeWeights(40, 96, c.broadcast)
		want, err := engine.Run(t.Context(), engine.Reference{}, p, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := prepared(t, cpu.Options{Threads: 2, Weights: newStore(t, weights.Options{Bytes: 1 << 20})}, p)
		_, tasks, err := r.Explain(t.Context(), in)
		if err != nil || len(tasks) != c.tasks {
			t.Fatalf("%s: %d tasks, want %d: %v", c.name, len(tasks), c.tasks, err)
		}
		if got := packedOnce(t, r, in); got != 2-c.tasks {
			t.Errorf("%s: %d weights are packed once", c.name, got)
		}
		for run, observed := range []int{0, len(p.Nodes), 0} {
			seen := 0
			var observe graph.Observer
			if observed > 0 {
				observe = func(int, *tensor.Tensor) error { seen++; return nil }
			}
			if got, err := r.Run(t.Context(), in, observe); err != nil || !got.Tensors[0].Equal(want.Tensors[0]) || seen != observed {
				t.Errorf("%s, run %d: another result, or %d nodes in place of %d: %v", c.name, run, seen, observed, err)
			}
		}
	}
}

// A runner for other rows folds as the first did, and shares what that has packed.
func TestResizedRunnersFold(t *testing.T) {
	s := newStore(t, weights.Options{Bytes: 1 << 20})
	p, in := madeWeights(40, 96, false)
	first := prepared(t, cpu.Options{Threads: 1, Weights: s}, p)
	if _, err := first.Run(t.Context(), in, nil); err != nil {
		t.Fatal(err)
	}
	taken := s.Bytes()
	q, in := madeWeights(7, 96, false)
	want, err := engine.Run(t.Context(), engine.Reference{}, q, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := first.(engine.Resizer).Resize(q)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Run(t.Context(), in, nil); err != nil || !got.Tensors[0].Equal(want.Tensors[0]) || s.Bytes() != taken {
		t.Errorf("another result, or %d bytes packed in place of %d: %v", s.Bytes(), taken, err)
	}
}

// Folding that is given up is done in the next run.
func TestFoldingCanBeGivenUp(t *testing.T) {
	p, in := madeWeights(40, 96, false)
	r := prepared(t, cpu.Options{Threads: 1}, p)
	if _, err := r.Run(&endsAfter{t.Context(), 0}, in, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("not given up: %v", err)
	}
	if _, tasks, err := r.Explain(t.Context(), in); err != nil || len(tasks) != 1 {
		t.Errorf("%d tasks: %v", len(tasks), err)
	}
}
