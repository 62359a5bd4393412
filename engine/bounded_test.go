package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// A program is measured by its values, and refused before anything else is done
// with it.
func TestBounded(t *testing.T) {
	node := func(shape ...int) graph.Opcode {
		return graph.Opcode{Primitive: &tensor.Primitive{Type: tensor.Float32, Shape: shape}}
	}
	p := &graph.Program{
		Groups: 2,
		Slots:  []graph.Slot{{Name: "x", Type: tensor.Int64, Shape: tensor.Shape{10}}}, // twice read, once made
		Consts: []*tensor.Tensor{tensor.Must(tensor.New(tensor.Float32, tensor.Shape{5}))},
		Nodes:  []graph.Opcode{node(100), node(3, 1<<20)},
	}
	const want = 3*80 + 20 + 400 + 12<<20
	if got := Memory(p); got != want {
		t.Fatalf("%d bytes, want %d", got, want)
	}
	if _, err := Bounded(Reference{}, want-1).Prepare(p); err == nil || !strings.Contains(err.Error(), "13 MB") {
		t.Fatal(err)
	}
	empty := &graph.Program{Groups: 1}
	_, plain := Reference{}.Prepare(empty)
	if _, err := Bounded(Reference{}, 0).Prepare(empty); (err == nil) != (plain == nil) {
		t.Fatalf("%v, without a bound %v", err, plain)
	}
	for range 1 << 16 {
		p.Nodes = append(p.Nodes, node(1<<20, 1<<20))
	}
	if got := Memory(p); got < 1<<56 || got > 1<<62 {
		t.Fatalf("%d bytes", got)
	}
}

// Steps are the terms of folds and the elements of all else.
func TestPatient(t *testing.T) {
	node := func(fn tensor.Fn, fold []int, shape ...int) graph.Opcode {
		return graph.Opcode{Primitive: &tensor.Primitive{Fn: fn, Type: tensor.Float32, Shape: shape, Fold: fold}}
	}
	p := &graph.Program{Nodes: []graph.Opcode{node(tensor.Copy, nil, 10), node(tensor.FoldSum, []int{7, 2}, 3)}}
	if got := Steps(p); got != 10+3*14 {
		t.Fatalf("%d steps", got)
	}
	var long *LongError
	if _, err := Patient(Reference{}, 51).Prepare(p); !errors.As(err, &long) || long.Need != 52 || long.Limit != 51 || long.Executor != "reference" {
		t.Fatal(err)
	}
	if _, err := Patient(Reference{}, 52).Prepare(p); errors.As(err, &long) {
		t.Fatal(err)
	}
	for range 100 {
		p.Nodes = append(p.Nodes, node(tensor.FoldSum, []int{1 << 40}, 1<<40))
	}
	if got := Steps(p); got != 1<<62 {
		t.Fatalf("%d steps", got)
	}
}
