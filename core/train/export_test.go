package train

import (
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// ReadFields returns what a graph reads of records, by field.
func ReadFields(t *testing.T, fs Fields, records *tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	rows := records.Shape[0]
	b := graph.NewBuilder("fields")
	values := fs.read(b, b.Input("batch", records.Type, records.Shape), rows)
	for _, f := range fs {
		b.Output(values[f.Name], f.Type, nil)
	}
	g := b.Graph()
	typed, err := op.Infer(g, lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	binding := lower.Binding{Groups: 1, Slots: []graph.Slot{{Name: "batch", Type: records.Type, Shape: records.Shape}}, Inputs: []graph.Ref{{Kind: graph.RefSlot}}}
	for i, f := range fs {
		binding.Results = append(binding.Results, graph.Slot{Name: f.Name, Type: f.Type, Shape: typed.Outputs[i].Shape})
		binding.Outputs = append(binding.Outputs, i)
	}
	p, err := typed.Program(binding)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Run(graph.Inputs{States: []*graph.State{{Slots: binding.Slots, Tensors: []*tensor.Tensor{records}}}}, graph.Reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*tensor.Tensor{}
	for i, f := range fs {
		out[f.Name] = s.Tensors[i]
	}
	return out
}
