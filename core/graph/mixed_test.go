package graph

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
)

// difference is a program of one state that gives left − right + left.
func difference() *Program {
	four := tensor.Shape{4}
	node := func(fn tensor.Fn, from ...Ref) Opcode {
		p := &tensor.Primitive{Fn: fn, Type: tensor.Float32, Shape: four}
		for range from {
			p.Args = append(p.Args, tensor.Access{Type: tensor.Float32, Shape: four, Dims: []tensor.Dim{{Terms: []tensor.Term{{Axis: 0, Step: 1}}}}})
		}
		return Opcode{Primitive: p, From: from}
	}
	left, right := Ref{Kind: RefSlot}, Ref{Kind: RefSlot, Index: 1}
	return &Program{
		Groups: 1, Slots: []Slot{{"0/x", tensor.Float32, four}, {"1/x", tensor.Float32, four}}, Results: []Slot{{"y", tensor.Float32, four}},
		Nodes: []Opcode{node(tensor.Sub, left, right), node(tensor.Add, Ref{Kind: RefNode}, left)}, Outputs: []Ref{{Kind: RefNode, Index: 1}},
	}
}

// byPrefix puts a slot called N/name as name into state N.
func byPrefix(slot string) (int, string) {
	n, name, _ := strings.Cut(slot, "/")
	return int(n[0] - '0'), name
}

func filled(name string, x float32, more ...string) *State {
	s := &State{}
	for _, name := range append(more, name) {
		t := tensor.Must(tensor.From(tensor.Shape{4}, []float32{x, x, x, x}))
		s.Slots, s.Tensors = append(s.Slots, Slot{name, t.Type, t.Shape}), append(s.Tensors, t)
	}
	return s
}

// A program of mixed states computes what that of one state does, finds slots by their names, and opens them by the union.
func TestMixedStates(t *testing.T) {
	p, err := difference().Mix(2, byPrefix)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Slots) != 1 || p.Slots[0].Name != "x" || len(p.SlotsRead()) != 2 || p.Groups != 2 {
		t.Fatalf("%d states of %v", p.Groups, p.Slots)
	}
	out, err := p.Run(Inputs{States: []*State{filled("x", 5), filled("x", 2, "a", "b")}}, Reference, nil)
	if err != nil || out.Find("y").At(3) != tensor.F32(8) {
		t.Fatalf("%v, %v", out, err)
	}
	if other := difference().Commit(); p.Commit().Root() == other.Root() || p.Commit().Cost != other.Cost || p.Commit().Refute() != nil {
		t.Error("it has the root of another, or another cost, or is refuted")
	}
}

func TestMixedStatesThatDoNotFit(t *testing.T) {
	p, err := difference().Mix(2, byPrefix)
	if err != nil {
		t.Fatal(err)
	}
	small := &State{Slots: []Slot{{"x", tensor.Float32, tensor.Shape{1}}}, Tensors: []*tensor.Tensor{tensor.Must(tensor.New(tensor.Float32, tensor.Shape{1}))}}
	for says, states := range map[string][]*State{
		"got 1": {filled("x", 1)}, `state 1 has no "x"`: {filled("x", 1), filled("y", 1)}, `state 0 has no "x"`: {small, filled("x", 1)},
	} {
		if _, err := p.Run(Inputs{States: states}, Reference, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	wide := difference()
	wide.Slots[1].Shape = tensor.Shape{5}
	wide.Nodes[0].Args[1].Shape = tensor.Shape{5}
	if _, err := wide.Mix(2, byPrefix); err == nil || !strings.Contains(err.Error(), `slot "x" comes after "x"`) {
		t.Errorf("two slots of one name: %v", err)
	}
	if _, err := p.Mix(3, byPrefix); err == nil {
		t.Error("what is mixed is mixed again")
	}
}
