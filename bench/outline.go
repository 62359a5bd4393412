package bench

import (
	"cmp"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/model/zoo"
)

// outline returns the program of one training step of a model, forward, backward
// and update by plain gradient descent, without any of its parameters' values.
func outline(m zoo.GPT, batch int) (*graph.Program, error) {
	model, err := m.Outline(batch)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder("step")
	records := graph.Slot{Name: "records", Type: tensor.Int32, Shape: tensor.Shape{1 << 20, m.Context + 1}}
	tokens := b.Input("batch", tensor.Int32, tensor.Shape{batch, m.Context + 1})
	columns := func(from int) string {
		return b.Op("Slice", tokens, b.Ints(from), b.Ints(from+m.Context), b.Ints(1))
	}
	bound, params := map[string]string{model.Inputs[0].Name: columns(0)}, slices.Clone(model.Inputs[1:])
	slices.SortFunc(params, func(x, y graph.Value) int { return cmp.Compare(x.Name, y.Name) })
	var names []string
	for _, p := range params {
		bound[p.Name] = b.Input("p/"+p.Name, p.Type, p.Shape)
		names = append(names, bound[p.Name])
	}
	logits := b.Op("Reshape", b.Import("model/", model, bound)[model.Outputs[0].Name], b.Ints(-1, m.Vocab))
	labels := b.Op("Reshape", columns(1), b.Ints(-1))
	b.Output(b.With(graph.String("reduction", "mean")).Op("SoftmaxCrossEntropyLoss", logits, labels), tensor.Float32, nil)

	typed, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		return nil, err
	}
	forward, calls := typed.Differentiable()
	b = graph.Extend(forward)
	gradients, err := train.Gradients(b, calls, forward.Outputs[0].Name, names, 1)
	if err != nil {
		return nil, err
	}
	g := *b.Graph()
	bind := lower.Binding{Groups: 1, Data: &records, Rows: batch, Inputs: []graph.Ref{{Kind: graph.RefData}}}
	g.Outputs = nil
	for i, p := range params {
		next := b.Op("Sub", names[i], b.Op("Mul", gradients[names[i]], b.Scalar(0.01)))
		g.Outputs = append(g.Outputs, graph.Value{Name: next, Type: p.Type, Shape: p.Shape})
		bind.Slots = append(bind.Slots, graph.Slot{Name: names[i], Type: p.Type, Shape: p.Shape})
		bind.Inputs = append(bind.Inputs, graph.Ref{Kind: graph.RefSlot, Index: i})
		bind.Outputs = append(bind.Outputs, i)
	}
	g.Nodes, g.Consts = b.Graph().Nodes, b.Graph().Consts
	if typed, err = op.Infer(&g, lower.FP32); err != nil {
		return nil, err
	}
	return typed.Program(bind)
}
