package plan_test

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/plan"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// Folding takes what others read, and no more memory than the constants do.
func TestConstantPart(t *testing.T) {
	s := tensor.Shape{8}
	node := func(from ...graph.Ref) graph.Opcode {
		fn, args := tensor.Neg, []tensor.Access{{Type: tensor.Float32, Shape: s, Dims: kerneltest.Dims(0)}}
		if len(from) == 2 {
			fn, args = tensor.Add, append(args, args[0])
		}
		return graph.Opcode{Primitive: &tensor.Primitive{Fn: fn, Type: tensor.Float32, Shape: s, Args: args}, From: from}
	}
	slot, constant := graph.Ref{Kind: graph.RefSlot}, graph.Ref{Kind: graph.RefConst}
	ref := func(i int) graph.Ref { return graph.Ref{Kind: graph.RefNode, Index: i} }
	for name, c := range map[string]struct {
		nodes []graph.Opcode
		want  []int
	}{
		"nothing but constants":     {[]graph.Opcode{node(constant), node(ref(0))}, nil},
		"nothing constant":          {[]graph.Opcode{node(slot), node(ref(0))}, nil},
		"the last of a chain":       {[]graph.Opcode{node(constant), node(ref(0)), node(ref(1), slot)}, []int{1}},
		"read twice":                {[]graph.Opcode{node(constant), node(ref(0), slot), node(ref(0), ref(1))}, []int{0}},
		"more than there is room":   {[]graph.Opcode{node(constant), node(ref(0)), node(ref(0), slot), node(ref(1), ref(2))}, []int{0}},
		"what no output depends on": {[]graph.Opcode{node(constant), node(ref(0), slot), node(slot)}, nil},
	} {
		p := &graph.Program{Groups: 1, Slots: []graph.Slot{{Name: "x", Type: tensor.Float32, Shape: s}}, Consts: []*tensor.Tensor{kerneltest.Normal(tensor.Float32, s)}, Nodes: c.nodes, Outputs: []graph.Ref{ref(len(c.nodes) - 1)}}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if _, got := plan.ConstantPart(p); !slices.Equal(got, c.want) {
			t.Errorf("%s: folds %v, want %v", name, got, c.want)
		}
	}
}
