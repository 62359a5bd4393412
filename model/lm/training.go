package lm

import (
	"fmt"
	"maps"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/model/lm/family"
)

// Make returns the model of a configuration whose weights a function gives, each in its shape, by the name that Llama has for it.
func Make(c *family.Config, weight func(name string, shape tensor.Shape) *tensor.Tensor) (*Model, error) {
	given := map[string]*tensor.Tensor{}
	for _, w := range c.Weights() {
		given[w.Name] = weight(w.Name, w.Shape)
	}
	return New(c, given)
}

// Training returns the graph by which a model is trained, on texts of as many tokens. Its input is
//
//	tokens  int32 [texts, length], each below Vocabulary
//
// and its output
//
//	logits  float32 [texts, length, Vocabulary]
//
// Its float32 initializers are the weights, by their names, and nothing else. So what training makes of them is model.safetensors of the folder
// whose config.json is this configuration. Weights of fewer bits are widened; quantised ones are not trained.
func (m *Model) Training(texts, length int) (*graph.Graph, error) {
	if texts < 1 || length < 1 || length > m.Context {
		return nil, fmt.Errorf("%s: training on %d texts of %d tokens, with a context of %d", m.Family, texts, length, m.Context)
	}
	m, err := m.widened()
	if err != nil {
		return nil, err
	}
	w := m.writer(length)
	w.texts = texts
	tokens := w.b.Input("tokens", tensor.Int32, tensor.Shape{texts, length})
	w.at = w.b.Const(tensor.Must(tensor.From(tensor.Shape{length}, numbers(length))))
	x := w.embed(tokens)
	w.places()
	for i := range m.Layers {
		in := w.project(i, x)
		x = w.finish(i, x, w.look(i, in[:]...))
	}
	w.b.Output(w.b.With().As("logits").Op("Identity", w.head(x)), tensor.Float32, tensor.Shape{texts, length, m.Vocabulary})
	return w.untrained(), nil
}

// widened returns the model with float32 weights.
func (m *Model) widened() (*Model, error) {
	wide := *m
	wide.weights = maps.Clone(m.weights)
	for _, n := range m.Weights() {
		x := m.weights[n.Name].stored
		switch {
		case x.Type == tensor.Float32:
			continue
		case !x.Type.Half():
			return nil, fmt.Errorf("%s: weight %q is quantised: train the model that it was made from", m.Family, n.Name)
		}
		y, err := tensor.New(tensor.Float32, x.Shape)
		if err != nil {
			return nil, err
		}
		for i, v := 0, tensor.Of[float32](y); i < len(v); i++ {
			v[i] = float32(tensor.FloatOf(x.Type, x.At(i)))
		}
		wide.weights[n.Name] = weight{stored: y}
	}
	return &wide, nil
}

// untrained makes initializers that are no weights constants, which training leaves alone.
func (w *writer) untrained() *graph.Graph {
	g := w.b.Graph()
	var weights []graph.Const
	var nodes []graph.Node
	for _, c := range g.Consts {
		if w.held[c.Name] == c.Name {
			weights = append(weights, c)
			continue
		}
		nodes = append(nodes, graph.Node{Op: "Constant", Outputs: []string{c.Name}, Attrs: []graph.Attr{graph.Tensor("value", c.Tensor)}})
	}
	g.Consts, g.Nodes = weights, append(nodes, g.Nodes...)
	return g
}
