package tokens

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Unknown returns the share of tokens that stand for a character that has none.
func Unknown(data *tensor.Tensor) float64 {
	ids, n := tensor.Of[int32](data), 0
	for _, id := range ids {
		if id == 0 {
			n++
		}
	}
	return float64(n) / float64(max(len(ids), 1))
}

// Shape returns the context and the vocabulary of a language model: its
// input is [batch, context] tokens, its output [batch, context, vocabulary].
func Shape(g *graph.Graph, batch int) (context, vocabulary int, err error) {
	if len(g.Inputs) != 1 || len(g.Outputs) != 1 {
		return 0, 0, fmt.Errorf("the model has %d inputs and %d outputs; a language model has one of each", len(g.Inputs), len(g.Outputs))
	}
	in, out := g.Inputs[0], g.Outputs[0]
	if len(in.Shape) != 2 || !in.Type.Integer() || len(out.Shape) != 3 || out.Shape[1] != in.Shape[1] {
		return 0, 0, fmt.Errorf("the model maps %v%v to %v%v; a language model maps integers [batch context] to [batch context vocabulary]", in.Type, in.Shape, out.Type, out.Shape)
	}
	if in.Shape[0] != batch {
		return 0, 0, fmt.Errorf("the model reads batches of %d, the order's batch is %d: export the model for that batch, or with a symbolic one and set problem.dims", in.Shape[0], batch)
	}
	return in.Shape[1], out.Shape[2], nil
}
