package summary_test

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/model/summary"
	"github.com/tally-network/tally/model/zoo"
)

// Of reference models the parameters are those that are trained, and the operators' costs are all of the cost.
func TestReferenceModels(t *testing.T) {
	for _, a := range zoo.Architectures {
		m, err := a.New(map[string]string{"batch": "2"}, 1)
		if err != nil {
			t.Fatal(err)
		}
		s := summary.Of(m.Graph)
		parameters, nodes, flops := 0, 0, uint64(0)
		for _, p := range s.Tensors {
			parameters += p.Shape.Elements()
		}
		for i, o := range s.Operators {
			nodes, flops = nodes+o.Nodes, flops+o.FLOPs
			if i > 0 && o.FLOPs > s.Operators[i-1].FLOPs {
				t.Errorf("%s: %s comes too late", a.Name, o.Name)
			}
		}
		if s.Parameters != m.Parameters || parameters != m.Parameters || s.ParameterBytes != 4*m.Parameters || s.Statistics != 0 {
			t.Errorf("%s: %d parameters, %d in tensors, want %d", a.Name, s.Parameters, parameters, m.Parameters)
		}
		if s.Pass == nil || nodes != len(m.Graph.Nodes) || s.Nodes != nodes || flops != s.Pass.FLOPs || s.Pass.Memory < uint64(s.ParameterBytes) {
			t.Errorf("%s: %+v, %d nodes, %d FLOP of operators; %s", a.Name, s.Pass, nodes, flops, s.Unknown)
		}
		if shape, ok := s.Shape(m.Graph.Outputs[0].Name); !ok || !shape.Equal(m.Graph.Outputs[0].Shape) {
			t.Errorf("%s: the output is %v", a.Name, shape)
		}
	}
}

// What is no parameter is not counted as one, and what is read twice counts once.
func TestParameters(t *testing.T) {
	b := graph.NewBuilder("all")
	x := b.Input("x", tensor.Float32, tensor.Shape{1, 2, 3})
	of := func(name string, t tensor.DType, s ...int) string { return b.Init(name, tensor.Must(tensor.New(t, s))) }
	w := of("w", tensor.Float32, 2)
	y := b.Op("BatchNormalization", x, w, w, of("mean", tensor.Float32, 2), of("variance", tensor.Float32, 2))
	y = b.Op("Where", of("flags", tensor.Bool, 3), y, b.Op("Cast", of("small", tensor.Uint8, 3)))
	b.Output(b.Op("Reshape", y, of("shape", tensor.Int64, 1)), tensor.Float32, nil)
	s := summary.Of(b.Graph())
	if s.Parameters != 2+3 || s.ParameterBytes != 8+3 || s.Statistics != 4 || len(s.Tensors) != 2 {
		t.Errorf("%+v", s)
	}
	if s.Pass != nil || s.Unknown == "" { // Cast says no type
		t.Errorf("%+v of a graph that is wrong", s.Pass)
	}
	if _, ok := s.Shape("x"); ok {
		t.Error("a shape is known")
	}
}

// Where shapes follow from the value of an input, the cost is left out, and why is said.
func TestCostThatIsOpen(t *testing.T) {
	b := graph.NewBuilder("open")
	x, n := b.Input("x", tensor.Float32, tensor.Shape{6}), b.Input("n", tensor.Int64, tensor.Shape{2})
	b.Output(b.Op("Reshape", x, n), tensor.Float32, tensor.Shape{2, 3})
	if s := summary.Of(b.Graph()); s.Pass != nil || !strings.Contains(s.Unknown, "n") || s.Operators[0].Name != "Reshape" {
		t.Errorf("%+v", s)
	}
}
