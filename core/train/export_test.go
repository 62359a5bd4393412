package train

import (
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// Drop drops a share of n ones, and returns how many are zero and what the others are.
func Drop(t *testing.T, share float32, n int) (zeros int, others float32) {
	t.Helper()
	b := graph.NewBuilder("drop")
	step, x := b.Input("step", tensor.Int64, nil), b.Input("x", tensor.Float32, tensor.Shape{n})
	dropped(b, step, x, 77, share)
	made := b.Graph().Nodes
	b.Output(made[len(made)-1].Outputs[0], tensor.Float32, nil)
	typed, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	in := []graph.Slot{{Name: "step", Type: tensor.Int64}, {Name: "x", Type: tensor.Float32, Shape: tensor.Shape{n}}}
	p, err := typed.Program(lower.Binding{
		Groups: 1, Slots: in, Inputs: []graph.Ref{{Kind: graph.RefSlot}, {Kind: graph.RefSlot, Index: 1}},
		Results: []graph.Slot{{Name: "y", Type: tensor.Float32, Shape: tensor.Shape{n}}}, Outputs: []int{0},
	})
	if err != nil {
		t.Fatal(err)
	}
	ones := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{n}))
	for i := range n {
		ones.Set(i, tensor.F32(1))
	}
	s, err := p.Run(graph.Inputs{States: []*graph.State{{Slots: in, Tensors: []*tensor.Tensor{tensor.Scalar(int64(3)), ones}}}}, graph.Reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range tensor.Of[float32](s.Tensors[0]) {
		if v == 0 {
			zeros++
		} else {
			others = v
		}
	}
	return zeros, others
}
