package train

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
)

// Distillation: a model learns from another, its teacher, beside the labels. The consumer's graph holds both, on the same
// inputs, and an output of it is the teacher's.
//
// What that output follows from is in a step as it is applied: with its initializers as they are, running statistics
// and nothing dropped. So no gradient reaches it. It is in no score, and not in what is trained.

// teachable are the losses that tell classes apart: a teacher does, too.
var teachable = []string{"cross-entropy", "masked-token-cross-entropy", "next-token-cross-entropy"}

// defaultTemperature is what logits are divided by, unless it is said.
const defaultTemperature = 2

// Between these a teacher's part of a loss, which is never negative, is so by rounding at least −10⁻⁴; errors grow as the square of the
// temperature. Of float32 logits 0.1 apart, over 2 to 50,000 classes, the least is −5·10⁻⁵ at 20, −0.02 at 50 and −3 at 1,000.
const (
	MinTemperature = 0.1
	MaxTemperature = 20
)

// teacher is what a model learns from beside the labels.
type teacher struct {
	graph       *graph.Graph
	weight      float32
	temperature float32
	says        []graph.Value // its one output, in a step
}

// split takes the teacher out of a graph. Without one the student is the graph.
func (a *LossOptions) split(g *graph.Graph) (student, teaches *graph.Graph, err error) {
	if a.Teacher == "" {
		return g, nil, nil
	}
	at := slices.IndexFunc(g.Outputs, func(o graph.Value) bool { return o.Name == a.Teacher })
	if at < 0 || len(g.Outputs) == 1 {
		return nil, nil, fmt.Errorf("the model has the outputs %q, but one of them should be the teacher's, %q, and another the model's own", names(g.Outputs), a.Teacher)
	}
	of := func(outputs []graph.Value) (*graph.Graph, error) {
		part := *g
		part.Outputs = outputs
		return part.Canonical()
	}
	if student, err = of(slices.Delete(slices.Clone(g.Outputs), at, at+1)); err != nil {
		return nil, nil, err
	}
	teaches, err = of(g.Outputs[at : at+1])
	return student, teaches, err
}

// like returns what the teacher says where the model says o, "" if there is none.
func (t *teacher) like(o graph.Value) (string, error) {
	if t == nil {
		return "", nil
	}
	if says := t.says[0]; says.Type != o.Type || !says.Shape.Equal(o.Shape) {
		return "", fmt.Errorf("the teacher gives %v%v, but the model %v%v: both tell the same classes apart, for the same inputs", says.Type, says.Shape, o.Type, o.Shape)
	}
	return t.says[0].Name, nil
}

// mix adds to losses how far the model's predictions, logits [n classes], are from what the teacher says. They count as the
// losses do, which are multiplied by their counts already:
//
//	(1 − α)·loss + α·T²·c·Σₖ q[k]·(log q[k] − log p[k])     q = softmax(teacher/T), p = softmax(model/T)
//
// What the teacher excludes, q[k] = 0, adds nothing. T² keeps the gradients as large as those of the labels. Source: Hinton
// et al., arXiv 1503.02531.
func (t *teacher) mix(b *graph.Builder, losses, logits, says, counts string) string {
	soft := func(v string) string {
		if t.temperature != 1 {
			v = b.Op("Mul", v, b.Scalar(1/t.temperature))
		}
		return b.With(graph.Int("axis", 1)).Op("LogSoftmax", v)
	}
	p, q := soft(logits), soft(says)
	likely := b.Op("Exp", q)
	each := b.Op("Mul", likely, b.Op("Sub", q, p))
	each = b.Op("Where", b.Op("Equal", likely, b.Scalar(0)), b.Scalar(0), each)
	apart := b.With(graph.Int("keepdims", 0)).Op("ReduceSum", each, b.Ints(1))
	by := float32(float32(t.weight*t.temperature) * t.temperature)
	apart = b.Op("Mul", b.Op("Mul", apart, counts), b.Scalar(by))
	if t.weight == 1 {
		return apart
	}
	return b.Op("Add", b.Op("Mul", losses, b.Scalar(1-t.weight)), apart)
}
