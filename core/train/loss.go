package train

import (
	"fmt"
	"maps"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// model is a consumer's graph on its way into a step graph.
type model struct {
	*graph.Graph
	b      *graph.Builder
	params map[string]string // names in b of the initializers that may be trained
	batch  string            // name in b of the records [rows, columns]
	rows   int
	cols   int
}

// losses join a model to a batch and return the name of the loss, a float32
// without axes.
var losses = map[string]func(*model) (string, error){
	"next-token-cross-entropy": nextToken,
}

// nextToken trains a language model: from tokens [B T] to logits [B T V]. A
// record is T+1 tokens; each but the first is to be predicted from those before
// it. The loss is the mean over all predictions of −log softmax, in nats.
func nextToken(m *model) (string, error) {
	if len(m.Inputs) != 1 || len(m.Outputs) != 1 {
		return "", fmt.Errorf("a language model has one input and one output, this has %d and %d", len(m.Inputs), len(m.Outputs))
	}
	in, s := m.Inputs[0], tensor.Shape{m.rows, m.cols - 1}
	if !in.Type.Integer() || len(in.Shape) != 2 || in.Shape[1] != s[1] {
		return "", fmt.Errorf("input %q is %v%v, but should be integers [batch %d], one fewer than the columns of a record", in.Name, in.Type, in.Shape, s[1])
	}
	names, out, err := m.use(map[string]string{in.Name: m.columns(in.Type, 0)}, []tensor.Shape{s})
	if err != nil {
		return "", err
	}
	if o := out[0]; o.Type != tensor.Float32 || len(o.Shape) != 3 || !o.Shape[:2].Equal(s) {
		return "", fmt.Errorf("output %q is %v%v, but should be float32 [%d %d vocabulary]", o.Name, o.Type, o.Shape, s[0], s[1])
	}
	b := m.b
	logits := b.Op("Reshape", names[out[0].Name], b.Ints(s.Elements(), out[0].Shape[2]))
	labels := b.Op("Reshape", m.columns(tensor.Int32, 1), b.Ints(s.Elements()))
	return b.With(graph.String("reduction", "mean")).Op("SoftmaxCrossEntropyLoss", logits, labels), nil
}

// columns returns the batch without its last column, or, from the second on, as
// integers of type t.
func (m *model) columns(t tensor.DType, from int) string {
	v := m.b.Op("Slice", m.batch, m.b.Ints(from), m.b.Ints(from+m.cols-1), m.b.Ints(1))
	if t != tensor.Int32 {
		v = m.b.With(graph.Int("to", int(t))).Op("Cast", v)
	}
	return v
}

// use puts the model into the step graph with its inputs bound, in the given
// shapes. It returns the names of its values there, and its typed outputs.
func (m *model) use(inputs map[string]string, shapes []tensor.Shape) (map[string]string, []graph.Value, error) {
	g := *m.Graph
	g.Inputs = append([]graph.Value(nil), g.Inputs...)
	for i, s := range shapes {
		g.Inputs[i].Shape = s
	}
	t, err := op.Infer(&g, lower.FP32)
	if err != nil {
		return nil, nil, fmt.Errorf("model with inputs of shape %v: %w", shapes, err)
	}
	maps.Copy(inputs, m.params)
	return m.b.Import("model/", t.Graph, inputs), t.Outputs, nil
}
