package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/plan"
	"github.com/tally-network/tally/internal/testkit/conform"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// Contractions with what follows them, element by element: numbers for each
// channel, row or column, whole tensors, outputs of other contractions, with
// values between that are kept or read twice, or not.
func TestEpilogues(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	heads := []*tensor.Primitive{
		kerneltest.MatMul(3, 5, 70), kerneltest.MatMul(40, 3, 9), kerneltest.MatMul(1, 9, 50), kerneltest.MatMul(70, 4, 1),
		convolution{1, 3, 9, 20, 3, 1, 1, 1}.primitive(), convolution{2, 3, 7, 5, 3, 2, 1, 1}.primitive(), convolution{1, 20, 5, 40, 1, 1, 0, 1}.primitive(),
		convolution{1, 8, 7, 40, 3, 1, 1, 1}.primitive(), convolution{2, 6, 8, 6, 3, 1, 1, 6}.primitive(), convolution{1, 2, 40, 3, 1, 1, 0, 1}.primitive(),
		convolution{2, 3, 40, 6, 3, 1, 1, 1}.primitive(), convolution{1, 3, 70, 5, 3, 1, 0, 2}.primitive(),
	}
	var executors []engine.Executor
	for _, set := range asm.Sets() {
		executors = append(executors, kerneltest.Eager(set)(1), kerneltest.Eager(set)(2))
	}
	headed, straight, rounds := 0, 0, 200
	if testing.Short() {
		rounds = 40
	}
	for round := range rounds {
		head := heads[round%len(heads)]
		p, in := tailed(r, head)
		if err := conform.Compare(executors, p, in); err != nil {
			t.Fatalf("round %d, %v: %v", round, head.Shape, err)
		}
		h, s := plan.Epilogues(p, asm.Sets()[0])
		headed, straight = headed+h, straight+s
	}
	if headed < rounds/3 {
		t.Errorf("only %d contractions have epilogues", headed)
	}
	if straight < rounds/20 {
		t.Errorf("only %d are read where they are computed", straight)
	}
}

// tailed draws a program of a contraction, perhaps two, and maps that follow.
func tailed(r *rand.Rand, head *tensor.Primitive) (*graph.Program, graph.Inputs) {
	p, state := &graph.Program{Groups: 1}, &graph.State{}
	constant := func(s tensor.Shape) graph.Ref {
		p.Consts = append(p.Consts, kerneltest.Drawn(r, tensor.Float32, s, 0, kerneltest.NegativeZero, 1, -1, 2.5, -0.75, 3, 0x1p-80, 1e30))
		return graph.Ref{Kind: graph.RefConst, Index: len(p.Consts) - 1}
	}
	node := func(n *tensor.Primitive, from ...graph.Ref) graph.Ref {
		p.Nodes = append(p.Nodes, graph.Opcode{Primitive: n, From: from})
		return graph.Ref{Kind: graph.RefNode, Index: len(p.Nodes) - 1}
	}
	contract := func() graph.Ref { return node(head, constant(head.Args[0].Shape), constant(head.Args[1].Shape)) }
	shape := head.Shape
	whole := tensor.Access{Type: tensor.Float32, Shape: shape, Flat: true}
	values := []graph.Ref{contract()}
	// operand draws what a map takes beside its main operand.
	operand := func() (graph.Ref, tensor.Access) {
		switch axis := r.IntN(len(shape) + 3); {
		case axis < len(shape):
			return constant(tensor.Shape{shape[axis]}), tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{shape[axis]}, Dims: kerneltest.Dims(axis)}
		case axis == len(shape):
			return constant(tensor.Shape{1}), tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{1}, Dims: []tensor.Dim{{}}}
		case axis == len(shape)+1:
			return constant(shape), whole
		}
		if r.IntN(3) == 0 {
			return contract(), whole
		}
		return values[r.IntN(len(values))], whole
	}
	for range 1 + r.IntN(6) {
		fns := []tensor.Fn{tensor.Add, tensor.Sub, tensor.Mul, tensor.Div, tensor.Max, tensor.Min, tensor.Lt, tensor.ExpF}
		n := &tensor.Primitive{Fn: fns[r.IntN(len(fns))], Type: tensor.Float32, Shape: shape, Args: []tensor.Access{whole}}
		main := values[len(values)-1]
		if n.Fn == tensor.ExpF {
			values = append(values, node(n, main))
			continue
		}
		other, access := operand()
		from := []graph.Ref{main, other}
		if n.Args = append(n.Args, access); r.IntN(2) == 0 {
			n.Args[0], n.Args[1], from[0], from[1] = n.Args[1], n.Args[0], from[1], from[0]
		}
		if n.Fn == tensor.Lt { // a choice by a comparison
			n.Type = tensor.Bool
			test := node(n, from...)
			choice := &tensor.Primitive{Fn: tensor.Where, Type: tensor.Float32, Shape: shape, Args: []tensor.Access{{Type: tensor.Bool, Shape: shape, Flat: true}, n.Args[0], n.Args[1]}}
			values = append(values, node(choice, test, from[0], from[1]))
			continue
		}
		values = append(values, node(n, from...))
	}
	kept := []graph.Ref{values[len(values)-1]}
	if r.IntN(3) == 0 {
		kept = append(kept, values[r.IntN(len(values))])
	}
	for i, ref := range kept {
		slot := graph.Slot{Name: fmt.Sprint(i), Type: tensor.Float32, Shape: shape}
		p.Slots, p.Outputs = append(p.Slots, slot), append(p.Outputs, ref)
		state.Tensors = append(state.Tensors, tensor.Must(tensor.New(slot.Type, shape)))
	}
	state.Slots = p.Slots
	return p, graph.Inputs{States: []*graph.State{state}}
}

// convolution is one of two spatial axes, in groups.
type convolution kerneltest.Convolution

func (c convolution) primitive() *tensor.Primitive { return kerneltest.Convolution(c).Primitive() }
