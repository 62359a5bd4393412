package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/model/zoo"
)

// Model is a small network, and what is done with it: real in kind, with a few
// matrices of more than one tile and sums of more than one fold block.
type Model struct {
	Name   string
	Recipe train.Recipe // of training; a batch has none
	Graph  func() (*graph.Graph, error)
	Fields []Field  // of its records; none: they are the tokens of a text
	Parts  []string // of its steps, by the names of [Subject.Part]
}

const (
	batch      = 2
	window     = 16 // tokens that a model reads; a square, for the convolutions
	vocabulary = 11
)

// Models are the networks that faults are put into. Between them they use every
// optimizer.
var Models = []Model{
	{Name: "mlp", Recipe: train.Recipe{Optimizer: "sgd", Momentum: 0.9, Nesterov: true}, Graph: mlp},
	{Name: "cnn", Recipe: train.Recipe{Optimizer: "adagrad", Epsilon: 1e-6}, Graph: cnn},
	{Name: "gpt", Recipe: train.Recipe{Optimizer: "adamw", Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, WeightDecay: 0.1, ClipNorm: 1}, Graph: gpt},
}

// network writes a graph whose parameters come from a fixed stream.
type network struct {
	*graph.Builder
	r *rand.Rand
}

func newNetwork(name string) (n network, tokens string) {
	n = network{graph.NewBuilder(name), rand.New(rand.NewPCG(3, 5))}
	return n, n.Input("tokens", tensor.Int32, tensor.Shape{batch, window})
}

func (n network) parameter(name string, shape ...int) string {
	t := tensor.Must(tensor.New(tensor.Float32, shape))
	for i := range t.Len() {
		t.Set(i, tensor.F32(n.r.Float32()-0.5))
	}
	return n.Init(name, t)
}

// logits ends the graph: x holds vocabulary numbers for each token.
func (n network) logits(x string) *graph.Graph {
	n.Output(n.Op("Reshape", x, n.Ints(batch, window, vocabulary)), tensor.Float32, tensor.Shape{batch, window, vocabulary})
	return n.Graph()
}

func (n network) linear(name, x string, in, out int) string {
	return n.Op("Add", n.Op("MatMul", x, n.parameter(name+".weight", in, out)), n.parameter(name+".bias", out))
}

// mlp sees each token with what stands beside it in its record.
func mlp() (*graph.Graph, error) {
	const width, hidden = 6, 40
	n, tokens := newNetwork("mlp")
	x := n.Op("Reshape", n.Op("Gather", n.parameter("embedding", vocabulary, width), tokens), n.Ints(-1, 4*width))
	x = n.Op("Relu", n.linear("first", x, 4*width, hidden))
	x = n.Op("Tanh", n.linear("second", x, hidden, hidden))
	return n.logits(n.linear("third", x, hidden, 4*vocabulary)), nil
}

// cnn lays the tokens of a record out as a square picture.
func cnn() (*graph.Graph, error) {
	const side, channels = 4, 6
	n, tokens := newNetwork("cnn")
	x := n.Op("Gather", n.parameter("embedding", vocabulary, channels), tokens)
	x = n.With(graph.Ints("perm", 0, 2, 1)).Op("Transpose", x)
	x = n.Op("Reshape", x, n.Ints(batch, channels, side, side))
	around := []graph.Attr{graph.Ints("kernel_shape", 3, 3), graph.Ints("pads", 1, 1, 1, 1)}
	conv := func(name, x string, in, out int) string {
		return n.With(around...).Op("Conv", x, n.parameter(name+".weight", out, in, 3, 3), n.parameter(name+".bias", out))
	}
	x = n.Op("Relu", conv("first", x, channels, channels))
	x = n.With(around...).Op("MaxPool", x)
	x = n.With(append(around, graph.Int("count_include_pad", 1))...).Op("AveragePool", n.Op("Sigmoid", conv("second", x, channels, channels)))
	x = n.Op("Reshape", conv("third", x, channels, vocabulary), n.Ints(batch, vocabulary, window))
	return n.logits(n.With(graph.Ints("perm", 0, 2, 1)).Op("Transpose", x)), nil
}

func gpt() (*graph.Graph, error) {
	return zoo.GPT{Vocab: vocabulary, Context: window, Width: 12, Layers: 1, Heads: 2, Seed: 1}.Graph(batch)
}

// count is how many records there are.
const count = 24

// text is records with some structure, so that gradients are not all alike.
func text() *tensor.Tensor {
	t := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{count, window + 1}))
	r := rand.New(rand.NewPCG(7, 11))
	for i := range t.Len() {
		t.Set(i, tensor.Word((i%5+r.IntN(3))%vocabulary))
	}
	return t
}

func (m Model) String() string {
	return fmt.Sprintf("%s, %s", m.Name, cmp.Or(m.Recipe.Optimizer, job.Batch))
}
