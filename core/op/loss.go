package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Losses.

var _ = define(
	Def{Name: "SoftmaxCrossEntropyLoss", Min: 2, Max: 3, Outputs: 2, Expand: expandCrossEntropy, Attrs: []graph.Attr{
		graph.String("reduction", "mean"), graph.Int("ignore_index", 0),
	}},
)

// expandCrossEntropy writes −log softmax(scores) at each label. A label counts
// with its class's weight; one that is to be ignored counts nothing (and stands
// for class 0 until then). The mean divides by the sum of what counts.
func expandCrossEntropy(c *Call, b *graph.Builder) ([]string, error) {
	scores, labels := c.In[0], c.In[1]
	if len(scores.Shape) < 2 || !labels.Type.Integer() {
		return nil, fmt.Errorf("scores are %v%v and labels %v%v, but should be float32 [N C …] and integers [N …]", scores.Type, scores.Shape, labels.Type, labels.Shape)
	}
	if want := slices.Delete(scores.Shape.Clone(), 1, 2); !labels.Shape.Equal(want) {
		return nil, fmt.Errorf("labels have shape %v, but should have %v", labels.Shape, want)
	}
	label, weight, counts := c.Inputs[1], "", ""
	if c.Node.Attr("ignore_index") != nil {
		ignored := b.Const(number(labels.Type, c.int("ignore_index")))
		counts = b.Op("Not", b.Op("Equal", label, ignored))
		label = b.Op("Where", counts, label, b.Const(number(labels.Type, 0)))
	}
	switch {
	case c.has(2):
		weight = b.With(graph.Int("axis", 0)).Op("Gather", c.Inputs[2], label)
		if counts != "" {
			weight = b.Op("Where", counts, weight, b.Scalar(0))
		}
	case counts != "":
		weight = castTo(b, counts, tensor.Float32)
	}
	logs := b.With(graph.Int("axis", 1)).Op("LogSoftmax", c.Inputs[0])
	picked := b.With(graph.Int("axis", 1)).Op("GatherElements", logs, b.Op("Unsqueeze", label, b.Ints(1)))
	loss := b.Op("Neg", b.Op("Squeeze", picked, b.Ints(1)))
	if weight != "" {
		loss = b.Op("Mul", loss, weight)
	}
	total := func(x string) string { return b.With(graph.Int("keepdims", 0)).Op("ReduceSum", x) }
	switch r := c.text("reduction"); {
	case r == "none":
	case r == "sum":
		loss = total(loss)
	case r != "mean":
		return nil, fmt.Errorf("reduction %q is not supported; use none, sum or mean", r)
	case weight == "":
		loss = b.With(graph.Int("keepdims", 0)).Op("ReduceMean", loss)
	default:
		loss = b.Op("Div", total(loss), total(weight))
	}
	return []string{loss, logs}, nil
}
