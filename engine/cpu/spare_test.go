package cpu_test

import (
	"context"
	"strings"
	"testing"
	"unsafe"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// fibonacci is a program that hands a slot on: a, b, sum := a+b, a, sum+a.
func fibonacci(n int) (*graph.Program, *graph.State) {
	s := tensor.Shape{n}
	full := tensor.Access{Type: tensor.Float32, Shape: s, Dims: kerneltest.Dims(0)}
	sum := &tensor.Primitive{Fn: tensor.Add, Type: tensor.Float32, Shape: s, Args: []tensor.Access{full, full}}
	p := &graph.Program{
		Groups: 1,
		Nodes: []graph.Opcode{
			{Primitive: sum, From: []graph.Ref{{Kind: graph.RefSlot}, {Kind: graph.RefSlot, Index: 1}}},
			{Primitive: sum, From: []graph.Ref{{Kind: graph.RefSlot, Index: 2}, {Kind: graph.RefSlot}}},
		},
		Outputs: []graph.Ref{{Kind: graph.RefNode}, {Kind: graph.RefSlot}, {Kind: graph.RefNode, Index: 1}},
	}
	for _, name := range []string{"a", "b", "sum"} {
		p.Slots = append(p.Slots, graph.Slot{Name: name, Type: tensor.Float32, Shape: s})
	}
	start := &graph.State{Slots: p.Slots}
	for range p.Slots {
		x := tensor.Must(tensor.New(tensor.Float32, s))
		for i := range tensor.Of[float32](x) {
			tensor.Of[float32](x)[i] = 1
		}
		start.Tensors = append(start.Tensors, x)
	}
	return p, start
}

// A new state goes into the memory of the spare one, but never into that of an
// input.
func TestSpareState(t *testing.T) {
	p, now := fibonacci(1000)
	run, err := cpu.New(2).Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	var before *graph.State
	for step, want := range [][]float32{{2, 1, 2}, {3, 2, 4}, {5, 3, 7}, {8, 5, 12}, {13, 8, 20}} {
		var free *byte
		if before != nil {
			free = unsafe.SliceData(before.Tensors[2].Bytes())
		}
		next, err := run.Run(context.Background(), graph.Inputs{States: []*graph.State{now}, Spare: before}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for slot, x := range next.Tensors {
			for i, got := range tensor.Of[float32](x) {
				if got != want[slot] {
					t.Fatalf("step %d: element %d of %s is %v, want %v", step, i, p.Slots[slot].Name, got, want[slot])
				}
			}
		}
		if before != nil && (before.Tensors != nil || free != unsafe.SliceData(next.Tensors[2].Bytes())) {
			t.Fatalf("step %d: the spare memory is not used", step)
		}
		before, now = now, next
	}
}

func TestSpareStateMustFit(t *testing.T) {
	p, now := fibonacci(10)
	_, other := fibonacci(11)
	run, err := cpu.New(1).Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.Run(context.Background(), graph.Inputs{States: []*graph.State{now}, Spare: other}, nil)
	if err == nil || !strings.Contains(err.Error(), "spare state") {
		t.Errorf("a spare state of another shape: %v", err)
	}
}
