// Package encoder writes a sentence encoder as an ONNX graph: a BERT in the files of Hugging
// Face, from token ids to one vector for each text.
//
// A text's vector is the mean of its tokens' last hidden states, of length 1. Tokens whose mask
// is 0 count nowhere.
//
// Call [Open] first, and then [Encoder.Graph] for the graph of some texts, or [Encoder.NewEmbedder] to compute vectors.
// [Describe] tells what a folder holds.
//
// Invariants: every weight that is used has the name, type and shape that follow from the
// config. Weights take memory in proportion to the file, which is bounded.
//
// Sources: Devlin et al., arXiv 1810.04805, for the model; Reimers and Gurevych, arXiv
// 1908.10084, for pooling; names of tensors as in Hugging Face's transformers.
package encoder

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Names of inputs and of the output.
const (
	IDs       = "input_ids"      // int64 [batch length]
	Mask      = "attention_mask" // int64 [batch length], 1 for tokens and 0 for padding
	Embedding = "embedding"      // float32 [batch width]
)

// MaxBatch bounds the texts of a run.
const MaxBatch = 1 << 12

// Graph writes the model for a batch of texts of one length in tokens.
func (e *Encoder) Graph(batch, length int) (*graph.Graph, error) {
	switch {
	case length < 1 || length > e.Positions:
		return nil, fmt.Errorf("texts of %d tokens, and the model reads 1 to %d: cut them", length, e.Positions)
	case batch < 1 || batch > min(MaxBatch, maxScores/e.Heads/length/length):
		return nil, fmt.Errorf("a batch of %d texts of %d tokens is empty or too large: take a smaller one", batch, length)
	}
	m := &builder{graph.NewBuilder("encoder"), e, batch, length}
	s := tensor.Shape{batch, length}
	ids, mask := m.Input(IDs, tensor.Int64, s), m.Input(Mask, tensor.Int64, s)
	m.Output(m.embed(ids, m.Cast(mask, tensor.Float32)), tensor.Float32, tensor.Shape{batch, e.Width})
	return m.Builder.Graph(), nil
}

type builder struct {
	*graph.Builder
	*Encoder
	batch, length int
}

// embed maps ids and a float mask, both [batch length], to vectors [batch width].
func (m *builder) embed(ids, mask string) string {
	x := m.Op("Add", m.Op("Gather", m.weight("embeddings.word_embeddings.weight"), ids), m.places())
	x = m.norm("embeddings.LayerNorm", m.Op("Reshape", x, m.Ints(-1, m.Width)))
	hide := m.Op("Mul", m.Op("Sub", mask, m.Scalar(1)), m.Scalar(1e9))
	hide = m.Op("Reshape", hide, m.Ints(m.batch, 1, 1, m.length))
	for i := range m.Layers {
		at := layer(i)
		x = m.norm(at+"attention.output.LayerNorm", m.Op("Add", x, m.attention(at+"attention.", x, hide)))
		x = m.norm(at+"output.LayerNorm", m.Op("Add", x, m.feedForward(at, x)))
	}
	return m.pool(m.Op("Reshape", x, m.Ints(m.batch, m.length, m.Width)), m.Op("Unsqueeze", mask, m.Ints(2)))
}

// places is the sum of what a position and the first type of token add, [length width].
func (m *builder) places() string {
	positions := tensor.Of[float32](m.weights["embeddings.position_embeddings.weight"])
	types := tensor.Of[float32](m.weights["embeddings.token_type_embeddings.weight"])
	sum := make([]float32, m.length*m.Width)
	for i := range sum {
		sum[i] = positions[i] + types[i%m.Width]
	}
	return m.Init("embeddings.places", tensor.Must(tensor.From(tensor.Shape{m.length, m.Width}, sum)))
}

func (m *builder) weight(name string) string { return m.Init(name, m.weights[name]) }

func (m *builder) norm(name, x string) string {
	return m.With(graph.Int("axis", -1), graph.Float("epsilon", float32(m.Epsilon))).Op("LayerNormalization", x, m.weight(name+".weight"), m.weight(name+".bias"))
}

// linear is x·Wᵀ + b.
func (m *builder) linear(name, x string) string {
	w := m.With(graph.Ints("perm", 1, 0)).Op("Transpose", m.weight(name+".weight"))
	return m.Op("Add", m.Op("MatMul", x, w), m.weight(name+".bias"))
}

// attention lets each token of a text look at those that are not hidden.
func (m *builder) attention(name, x, hide string) string {
	size := m.Width / m.Heads
	heads := func(of string, perm ...int) string {
		v := m.Op("Reshape", m.linear(name+"self."+of, x), m.Ints(m.batch, m.length, m.Heads, size))
		return m.With(graph.Ints("perm", perm...)).Op("Transpose", v)
	}
	scores := m.Op("MatMul", heads("query", 0, 2, 1, 3), heads("key", 0, 2, 3, 1))
	scores = m.Op("Add", m.Op("Mul", scores, m.Scalar(float32(1/math.Sqrt(float64(size))))), hide)
	y := m.Op("MatMul", m.With(graph.Int("axis", -1)).Op("Softmax", scores), heads("value", 0, 2, 1, 3))
	y = m.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", y)
	return m.linear(name+"output.dense", m.Op("Reshape", y, m.Ints(-1, m.Width)))
}

func (m *builder) feedForward(at, x string) string {
	x = m.linear(at+"intermediate.dense", x)
	x = m.With(graph.String("approximate", activations[m.Activation])).Op("Gelu", x)
	return m.linear(at+"output.dense", x)
}

// Least divisors, as in sentence-transformers: a text without tokens has the vector 0.
const (
	leastCount  = 1e-9
	leastLength = 1e-12
)

// pool is the mean over the tokens, made as long as 1.
func (m *builder) pool(x, mask string) string {
	over := func(op, v string, keep int) string {
		return m.With(graph.Int("keepdims", keep)).Op(op, v, m.Ints(1))
	}
	count := m.Op("Max", over("ReduceSum", mask, 0), m.Scalar(leastCount))
	mean := m.Op("Div", over("ReduceSum", m.Op("Mul", x, mask), 0), count)
	return m.With().As(Embedding).Op("Div", mean, m.Op("Max", over("ReduceL2", mean, 1), m.Scalar(leastLength)))
}
