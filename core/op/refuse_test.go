package op_test

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// A refusal is an application of an operator that is refused, in these words. Each
// file of a family adds its own.
type refusal struct {
	want  string
	op    string
	attrs []graph.Attr
	in    []arg
	outs  int
}

var refusals []refusal

func refuse(r ...refusal) bool {
	refusals = append(refusals, r...)
	return true
}

var _ = refuse(
	refusal{"not supported; write the model without it", "Convolve", nil, []arg{f(1, 1, 3, 3), f(1, 1, 2, 2)}, 1},
)

// What cannot be done exactly is refused by the name of its node, with words
// that say what to do.
func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		s := sample{name: "bad", op: c.op, attrs: c.attrs, in: c.in, outs: c.outs}
		_, tensors := s.draw()
		b, _, outputs := s.build(tensors)
		b.Output(outputs[0], 0, nil)
		_, err := op.Infer(b.Graph(), lower.FP32)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `node "y" (`+c.op+`)`) {
			t.Errorf("%s: want %q with the node's name, got: %v", c.op, c.want, err)
		}
	}
}

// A model whose cost cannot be counted, or that holds too much, is refused
// before anything is allocated.
func TestCostIsBounded(t *testing.T) {
	b := graph.NewBuilder("big")
	x := b.Input("x", tensor.Float32, tensor.Shape{500_000, 500_000})
	y := x
	for range 6 {
		y = b.Op("MatMul", y, x)
	}
	b.Output(y, 0, nil)
	if _, err := op.Infer(b.Graph(), lower.FP32); err == nil || !strings.Contains(err.Error(), "more than is allowed") {
		t.Fatal(err)
	}
	b = graph.NewBuilder("constant")
	c := b.Const(tensor.Scalar[float32](1))
	big := b.Op("Neg", b.Op("Expand", c, b.Ints(1<<38)))
	b.Output(b.Op("Shape", big), 0, nil)
	typed, err := op.Infer(b.Graph(), lower.FP32) // not computed, only typed
	if err != nil {
		t.Fatal(err)
	}
	if got := evaluate(t, typed, nil, nil)[0]; got.At(0) != 1<<38 {
		t.Fatal(got)
	}
}
