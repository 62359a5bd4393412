package demo

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// GPT is the shape of a character-level language model: a decoder-only
// transformer with normalisation before each block, learned positions, causal
// attention and GELU.
type GPT struct {
	Vocab   int // characters
	Context int // characters that it reads at once
	Width   int // of the residual stream
	Layers  int
	Heads   int  // divide Width
	Tied    bool // the head reuses the embedding of characters
	Seed    uint64
}

// NewGPT returns a small model for a vocabulary: about 66,000 parameters for 67
// characters.
func NewGPT(vocab int, seed uint64) GPT {
	return GPT{Vocab: vocab, Context: 64, Width: 48, Layers: 2, Heads: 4, Seed: seed}
}

// Limits on a model that Graph builds.
const (
	MaxExtent = 1 << 12 // of context and width
	MaxLayers = 64
)

// Check returns an error unless the model can be built.
func (c GPT) Check() error {
	switch {
	case c.Vocab < 2 || c.Vocab > 1<<16:
		return fmt.Errorf("a vocabulary of %d characters is not between 2 and 65536; give a text", c.Vocab)
	case c.Context < 1 || c.Context > MaxExtent || c.Width < 1 || c.Width > MaxExtent || c.Layers < 0 || c.Layers > MaxLayers:
		return fmt.Errorf("context %d, width %d and %d layers are out of range", c.Context, c.Width, c.Layers)
	case c.Heads < 1 || c.Width%c.Heads != 0:
		return fmt.Errorf("%d heads do not divide the width %d", c.Heads, c.Width)
	}
	return nil
}

// Parameters returns the number of trained numbers.
func (c GPT) Parameters() int {
	w := c.Width
	layer := 2*2*w + (w*3*w + 3*w) + (w*w + w) + (w*4*w + 4*w) + (4*w*w + w)
	n := c.Vocab*w + c.Context*w + c.Layers*layer + 2*w
	if !c.Tied {
		n += w * c.Vocab
	}
	return n
}

// Graph builds the forward graph: from tokens, int32 [batch Context], to logits,
// float32 [batch Context Vocab]. Graphs that differ in batch alone have the same
// initializers.
func (c GPT) Graph(batch int) (*graph.Graph, error) { return c.graph(batch, false) }

// Outline is Graph without initial values: the parameters are inputs after the
// tokens. It takes no memory for them, however many they are.
func (c GPT) Outline(batch int) (*graph.Graph, error) { return c.graph(batch, true) }

func (c GPT) graph(batch int, outline bool) (*graph.Graph, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	m := &builder{graph.NewBuilder("gpt"), c, outline}
	logits := m.logits(m.Input("tokens", tensor.Int32, tensor.Shape{batch, c.Context}))
	m.Output(logits, tensor.Float32, tensor.Shape{batch, c.Context, c.Vocab})
	return m.Builder.Graph(), nil
}

type builder struct {
	*graph.Builder
	GPT
	outline bool // parameters are inputs
}

// logits maps tokens [batch Context] to [batch Context Vocab].
func (m *builder) logits(tokens string) string {
	c := m.GPT
	embedding := m.normal("embedding", 0.1, c.Vocab, c.Width)
	x := m.Op("Add", m.Op("Gather", embedding, tokens), m.normal("positions", 0.1, c.Context, c.Width))
	x = m.Op("Reshape", x, m.Ints(-1, c.Width))
	mask := m.mask()
	for l := range c.Layers {
		at := fmt.Sprintf("layer%d.", l)
		x = m.Op("Add", x, m.attention(at+"attention.", m.norm(at+"norm1", x), mask))
		x = m.Op("Add", x, m.feedForward(at+"feedforward.", m.norm(at+"norm2", x)))
	}
	x = m.norm("norm", x)
	var logits string
	if c.Tied {
		logits = m.Op("MatMul", x, m.With(graph.Ints("perm", 1, 0)).Op("Transpose", embedding))
	} else {
		logits = m.Op("MatMul", x, m.normal("head", 0.02, c.Width, c.Vocab))
	}
	return m.With().As("logits").Op("Reshape", logits, m.Ints(-1, c.Context, c.Vocab))
}

// parameter is a tensor that is trained, from the values that fill gives it.
func (m *builder) parameter(name string, shape []int, fill func([]float32)) string {
	if m.outline {
		return m.Input(name, tensor.Float32, shape)
	}
	t := tensor.Must(tensor.New(tensor.Float32, shape))
	fill(tensor.Of[float32](t))
	return m.Init(name, t)
}

// mask adds −10⁹ to the scores of characters that are yet to come.
func (m *builder) mask() string {
	t := m.Context
	v := make([]float32, t*t)
	for i := range t {
		for j := i + 1; j < t; j++ {
			v[i*t+j] = -1e9
		}
	}
	return m.constant("mask", tensor.Must(tensor.From(tensor.Shape{t, t}, v)))
}

// constant is a value that is not trained, as an initializer would be.
func (m *builder) constant(name string, t *tensor.Tensor) string {
	return m.With(graph.Tensor("value", t)).As(name).Op("Constant")
}

func (m *builder) norm(name, x string) string {
	scale, shift := m.fill(name+".scale", 1, m.Width), m.fill(name+".shift", 0, m.Width)
	return m.With(graph.Int("axis", -1)).Op("LayerNormalization", x, scale, shift)
}

// linear is x·W + b. Weights keep the variance of their input, times gain.
func (m *builder) linear(name, x string, gain float64, in, out int) string {
	w := m.normal(name+".weight", gain/math.Sqrt(float64(in)), in, out)
	return m.Op("Add", m.Op("MatMul", x, w), m.fill(name+".bias", 0, out))
}

// residual is the gain of what is added to the stream, so that the sum over all
// layers does not grow with their number.
func (m *builder) residual() float64 { return 1 / math.Sqrt(float64(2*m.Layers)) }

func (m *builder) attention(name, x, mask string) string {
	heads := func(v string) string {
		v = m.Op("Reshape", v, m.Ints(-1, m.Context, m.Heads, m.Width/m.Heads))
		return m.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", v)
	}
	qkv := m.With(graph.Int("axis", -1), graph.Int("num_outputs", 3)).Ops("Split", 3, m.linear(name+"qkv", x, 1, m.Width, 3*m.Width))
	scale := float32(1 / math.Sqrt(float64(m.Width/m.Heads)))
	q := m.Op("Mul", qkv[0], m.constant(name+"scale", tensor.Scalar(scale)))
	k := m.With(graph.Ints("perm", 0, 1, 3, 2)).Op("Transpose", heads(qkv[1]))
	scores := m.Op("Add", m.Op("MatMul", heads(q), k), mask)
	y := m.Op("MatMul", m.With(graph.Int("axis", -1)).Op("Softmax", scores), heads(qkv[2]))
	y = m.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", y)
	y = m.Op("Reshape", y, m.Ints(-1, m.Width))
	return m.linear(name+"out", y, m.residual(), m.Width, m.Width)
}

func (m *builder) feedForward(name, x string) string {
	x = m.linear(name+"up", x, 1, m.Width, 4*m.Width)
	x = m.With(graph.String("approximate", "tanh")).Op("Gelu", x)
	return m.linear(name+"down", x, m.residual(), 4*m.Width, m.Width)
}

// fill is a parameter of equal numbers.
func (m *builder) fill(name string, x float32, shape ...int) string {
	return m.parameter(name, shape, func(v []float32) {
		for i := range v {
			v[i] = x
		}
	})
}

// normal is a parameter of nearly normal numbers.
func (m *builder) normal(name string, deviation float64, shape ...int) string {
	return m.parameter(name, shape, func(v []float32) { normal(v, m.Seed, name, deviation) })
}

// normal fills v with nearly normal numbers: each is the sum of four uniform 16-bit
// numbers, taken from SHA-256 of seed, name and a counter, and is rounded once when it
// is scaled.
func normal(v []float32, seed uint64, name string, deviation float64) {
	const uniform = 37837.227 // deviation of the sum: √(4·(2³² − 1)/12)
	scale := float32(deviation / uniform)
	var counter [16]byte
	binary.LittleEndian.PutUint64(counter[:], seed)
	for i := 0; i < len(v); i += 4 {
		binary.LittleEndian.PutUint64(counter[8:], uint64(i/4))
		h := sha256.Sum256(append(counter[:], name...))
		for j := range min(4, len(v)-i) {
			sum := -4 * 65535 / 2
			for k := range 4 {
				sum += int(binary.LittleEndian.Uint16(h[8*j+2*k:]))
			}
			v[i+j] = float32(float32(sum) * scale)
		}
	}
}
