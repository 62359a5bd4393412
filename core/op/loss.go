package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

// Losses.

var _ = define(
	lower.Operator{Name: "NegativeLogLikelihoodLoss", Min: 2, Max: 3, Outputs: 1, Expand: inFloat32(expandLikelihood), Attrs: lossAttrs, Settings: []int{2}},
	// The same of LogSoftmax, which is the second output.
	lower.Operator{Name: "SoftmaxCrossEntropyLoss", Min: 2, Max: 3, Outputs: 2, Attrs: lossAttrs, Settings: []int{2},
		Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
			if err := checkLabels(c); err != nil {
				return nil, err
			}
			logs := b.With(graph.Int("axis", 1)).Op("LogSoftmax", c.Inputs[0])
			loss := b.With(c.Attrs...).Op("NegativeLogLikelihoodLoss", append([]string{logs}, c.Inputs[1:]...)...)
			return []string{loss, logs}, nil
		})},
)

var lossAttrs = []graph.Attr{graph.Int("ignore_index", 0), graph.String("reduction", "mean")}

// checkLabels returns an error unless there is a label for each row of scores by
// class, and a weight for each class, if any.
func checkLabels(c *lower.Call) error {
	scores, labels := c.In[0], c.In[1]
	if len(scores.Shape) < 2 || !scores.Type.Float() || !labels.Type.Integer() {
		return fmt.Errorf("scores are %v%v and labels %v%v, but should be floats [N C …] and integers [N …]", scores.Type, scores.Shape, labels.Type, labels.Shape)
	}
	if want := slices.Delete(scores.Shape.Clone(), 1, 2); !labels.Shape.Equal(want) {
		return fmt.Errorf("labels have shape %v, but should have %v", labels.Shape, want)
	}
	if want := scores.Shape[1:2]; c.Has(2) && (!c.In[2].Shape.Equal(want) || c.In[2].Type != scores.Type) {
		return fmt.Errorf("weights are %v%v, but should be %v%v", c.In[2].Type, c.In[2].Shape, scores.Type, want)
	}
	return nil
}

// expandLikelihood writes minus the score at each label. A label counts with its
// class's weight; one that is to be ignored counts nothing (and stands for class
// 0 until then). The mean divides by the sum of what counts.
func expandLikelihood(c *lower.Call, b *graph.Builder) ([]string, error) {
	if err := checkLabels(c); err != nil {
		return nil, err
	}
	labels := c.In[1]
	label, weight, counts := c.Inputs[1], "", ""
	if i := c.Int("ignore_index"); c.Node.Attr("ignore_index") != nil && fits(labels.Type, i) {
		ignored := b.Const(scalarOf(labels.Type, i))
		counts = b.Op("Not", b.Op("Equal", label, ignored))
		label = b.Op("Where", counts, label, b.Const(scalarOf(labels.Type, 0)))
	}
	picked := b.With(graph.Int("axis", 1)).Op("GatherElements", c.Inputs[0], b.Op("Unsqueeze", label, b.Ints(1)))
	loss := b.Op("Neg", b.Op("Squeeze", picked, b.Ints(1)))
	if c.Has(2) {
		weight = b.With(graph.Int("axis", 0)).Op("Gather", c.Inputs[2], label)
		loss = b.Op("Mul", loss, weight)
	}
	if counts != "" {
		loss = b.Op("Where", counts, loss, floatLike(c, b, 0))
		if c.Has(2) {
			weight = b.Op("Where", counts, weight, floatLike(c, b, 0))
		} else {
			weight = b.Cast(counts, c.In[0].Type)
		}
	}
	total := func(x string) string { return b.With(graph.Int("keepdims", 0)).Op("ReduceSum", x) }
	switch r := c.Text("reduction"); {
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
	return []string{loss}, nil
}
