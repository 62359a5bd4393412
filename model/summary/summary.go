// Package summary says what an ONNX model is: parameters, operators, and what a forward pass takes. Call [Of].
//
// Invariants: a number is exact or left out. FLOPs are those that the network prices (core/graph). Parameters are
// the initializers but indices (int64), flags (bool) and the running statistics of BatchNormalization.
//
// Source: the summaries of Keras and torchinfo.
package summary

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// Summary is what a model is.
type Summary struct {
	Inputs         []Tensor   `json:"inputs"`
	Outputs        []Tensor   `json:"outputs"`
	Parameters     int        `json:"parameters"`
	ParameterBytes int        `json:"parameter_bytes"`
	Statistics     int        `json:"running_statistics,omitempty"` // numbers of BatchNormalization that no gradient changes
	Tensors        []Tensor   `json:"parameter_tensors"`            // in the order in which the graph reads them
	Nodes          int        `json:"nodes"`
	Operators      []Operator `json:"operators"` // the most FLOPs first
	Pass           *Pass      `json:"forward_pass,omitempty"`
	Unknown        string     `json:"unknown,omitempty"` // why there is no Pass

	typed *lower.Typed
}

// Tensor is an input, an output or a parameter.
type Tensor struct {
	Name  string       `json:"name"`
	Type  string       `json:"type"`
	Shape tensor.Shape `json:"shape"`
}

// String returns t for people.
func (t Tensor) String() string { return fmt.Sprintf("%s %s%v", t.Name, t.Type, t.Shape) }

// Operator is one that the graph has, with all its nodes together.
type Operator struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	FLOPs uint64 `json:"flops"`
}

// Pass is what computing the outputs once takes.
type Pass struct {
	FLOPs  uint64 `json:"flops"`
	Bytes  uint64 `json:"bytes_moved"` // between memory and processor if nothing is fused
	Memory uint64 `json:"memory"`      // bytes of all values together; executors use that of some again
}

// statistics are the inputs of operators that are no parameters.
var statistics = map[string][]int{"BatchNormalization": {3, 4}}

// Of summarises a graph.
func Of(g *graph.Graph) *Summary {
	s := &Summary{Inputs: Tensors(g.Inputs), Outputs: Tensors(g.Outputs), Tensors: []Tensor{}, Nodes: len(g.Nodes)}
	s.parameters(g)
	counts := map[string]*Operator{}
	for i := range g.Nodes {
		name := g.Nodes[i].Op
		if counts[name] == nil {
			counts[name] = &Operator{Name: name}
		}
		counts[name].Nodes++
	}
	if err := s.cost(g, counts); err != nil {
		s.Unknown = err.Error()
	}
	for _, o := range counts { // order: sorted below
		s.Operators = append(s.Operators, *o)
	}
	slices.SortFunc(s.Operators, func(a, b Operator) int {
		return cmp.Or(cmp.Compare(b.FLOPs, a.FLOPs), cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Name, b.Name))
	})
	return s
}

// Tensors returns values as summaries have them.
func Tensors(list []graph.Value) []Tensor {
	out := []Tensor{}
	for _, v := range list {
		out = append(out, Tensor{v.Name, v.Type.String(), v.Shape})
	}
	return out
}

// parameters lists them as nodes read them.
func (s *Summary) parameters(g *graph.Graph) {
	held := make(map[string]*tensor.Tensor, len(g.Consts))
	for _, c := range g.Consts {
		held[c.Name] = c.Tensor
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for j, name := range n.Inputs {
			t := held[name]
			delete(held, name) // what is read twice counts once
			switch {
			case t == nil || t.Type == tensor.Int64 || t.Type == tensor.Bool:
			case slices.Contains(statistics[n.Op], j):
				s.Statistics += t.Len()
			default:
				s.Parameters += t.Len()
				s.ParameterBytes += len(t.Bytes())
				s.Tensors = append(s.Tensors, Tensor{name, t.Type.String(), t.Shape})
			}
		}
	}
}

// cost finds what a pass takes, and the part of each operator in it.
func (s *Summary) cost(g *graph.Graph, counts map[string]*Operator) (err error) {
	if s.typed, err = op.Infer(g, lower.FP32); err != nil {
		return err
	}
	p, err := s.typed.Function()
	if err != nil {
		return err
	}
	leaves := p.Leaves()
	for i := range leaves {
		if o := counts[leaves[i].Origin.Op]; o != nil {
			o.FLOPs += leaves[i].Cost().FLOPs
		}
	}
	c := p.Cost()
	s.Pass = &Pass{c.FLOPs, c.Bytes, engine.Memory(p)}
	return nil
}

// Shape returns the shape of a value, if it is known.
func (s *Summary) Shape(value string) (tensor.Shape, bool) {
	if s.typed == nil {
		return nil, false
	}
	t, shape := s.typed.Type(value)
	return shape, t.Valid()
}
