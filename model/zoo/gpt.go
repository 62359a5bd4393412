package zoo

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Radford et al., Language Models are Unsupervised Multitask Learners, 2019.
var gpt = Architecture{
	Name: "gpt", About: "language model: a decoder-only transformer that predicts each next token",
	Settings: []Setting{
		batch(8),
		number("vocabulary", 256, 2, maxWords, "different tokens; 256 are bytes"),
		number("context", 64, 1, MaxExtent, "tokens that it reads at once"),
		number("width", 48, 1, MaxExtent, "of the residual stream"),
		number("layers", 2, 0, MaxLayers, "blocks of attention and feed-forward"),
		number("heads", 4, 1, MaxExtent, "attention heads, which divide the width"),
		word("tied", "whether the head reuses the embedding of tokens", "no", "yes"),
		dropout("behind the embedding, attention and feed-forward"),
	},
	build: buildGPT,
}

// MaxLayers bounds transformers.
const MaxLayers = 64

// GPT is the settings of a gpt as programs give them: a language model with
// normalisation before each block, learned positions, causal attention and GELU.
type GPT struct {
	Vocab   int // different tokens
	Context int // tokens that it reads at once
	Width   int // of the residual stream
	Layers  int
	Heads   int  // divide Width
	Tied    bool // the head reuses the embedding of tokens
	Seed    uint64
}

// NewGPT returns a small model for a vocabulary: about 66,000 parameters for 67
// characters.
func NewGPT(vocab int, seed uint64) GPT {
	return GPT{Vocab: vocab, Context: 64, Width: 48, Layers: 2, Heads: 4, Seed: seed}
}

// settings are c as users would write it.
func (c GPT) settings(batch int) map[string]string {
	out := map[string]string{"tied": "no"}
	if c.Tied {
		out["tied"] = "yes"
	}
	for name, x := range map[string]int{"batch": batch, "vocabulary": c.Vocab, "context": c.Context, "width": c.Width, "layers": c.Layers, "heads": c.Heads} { // each alone
		out[name] = strconv.Itoa(x)
	}
	return out
}

// Check returns an error unless the model can be built.
func (c GPT) Check() error {
	if _, err := gpt.resolve(c.settings(1)); err != nil {
		return err
	}
	return headsDivide(c.Heads, c.Width)
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
func (c GPT) Graph(batch int) (*graph.Graph, error) {
	m, err := gpt.New(c.settings(batch), c.Seed)
	if err != nil {
		return nil, err
	}
	return m.Graph, nil
}

// Outline is Graph without initial values: the parameters are inputs after the
// tokens. It takes no memory for them, however many they are.
func (c GPT) Outline(batch int) (*graph.Graph, error) {
	m, err := gpt.Outline(c.settings(batch))
	if err != nil {
		return nil, err
	}
	return m.Graph, nil
}

// decoder is a gpt while it is built. Its weights are [in out], and have names of their own.
type decoder struct {
	*net
	vocabulary, context, width, layers int
}

func buildGPT(n *net) error {
	d := &decoder{n, n.int("vocabulary"), n.int("context"), n.int("width"), n.int("layers")}
	if err := headsDivide(n.int("heads"), d.width); err != nil {
		return err
	}
	tokens, err := n.input("tokens", tensor.Int32, n.int("batch"), d.context)
	if err != nil {
		return err
	}
	n.Output(d.logits(tokens), tensor.Float32, tensor.Shape{n.int("batch"), d.context, d.vocabulary})
	return nil
}

// logits maps tokens [batch context] to [batch context vocabulary].
func (d *decoder) logits(tokens string) string {
	embedding := d.parameter("embedding", normal(0.1), d.vocabulary, d.width)
	x := d.Op("Add", d.Op("Gather", embedding, tokens), d.parameter("positions", normal(0.1), d.context, d.width))
	x = d.drop(d.Op("Reshape", x, d.Ints(-1, d.width)))
	mask := d.mask()
	for l := range d.layers {
		at := fmt.Sprintf("layer%d.", l)
		x = d.Op("Add", x, d.drop(d.attention(at+"attention.", d.norm(at+"norm1", x), mask)))
		x = d.Op("Add", x, d.drop(d.feedForward(at+"feedforward.", d.norm(at+"norm2", x))))
	}
	x = d.norm("norm", x)
	var logits string
	if d.word("tied") == "yes" {
		logits = d.Op("MatMul", x, d.With(graph.Ints("perm", 1, 0)).Op("Transpose", embedding))
	} else {
		logits = d.Op("MatMul", x, d.parameter("head", normal(0.02), d.width, d.vocabulary))
	}
	return d.With().As("logits").Op("Reshape", logits, d.Ints(-1, d.context, d.vocabulary))
}

// mask adds −10⁹ to the scores of tokens that are yet to come.
func (d *decoder) mask() string {
	t := d.context
	v := make([]float32, t*t)
	for i := range t {
		for j := i + 1; j < t; j++ {
			v[i*t+j] = -1e9
		}
	}
	return d.constant("mask", tensor.Must(tensor.From(tensor.Shape{t, t}, v)))
}

func (d *decoder) norm(name, x string) string {
	return d.layerNorm(name+".scale", name+".shift", x, d.width, 0)
}

// project is x·W + b. Weights keep the variance of their input, times gain.
func (d *decoder) project(name, x string, gain float64, in, out int) string {
	w := d.parameter(name+".weight", normal(gain/math.Sqrt(float64(in))), in, out)
	return d.Op("Add", d.Op("MatMul", x, w), d.parameter(name+".bias", all(0), out))
}

// residual is the gain of what is added to the stream, so that the sum over all
// layers does not grow with their number.
func (d *decoder) residual() float64 { return 1 / math.Sqrt(float64(2*d.layers)) }

func (d *decoder) attention(name, x, mask string) string {
	y := d.attend(mixer{name, d.context, d.width, d.int("heads"), mask}, d.project(name+"qkv", x, 1, d.width, 3*d.width))
	return d.project(name+"out", y, d.residual(), d.width, d.width)
}

func (d *decoder) feedForward(name, x string) string {
	x = d.project(name+"up", x, 1, d.width, 4*d.width)
	x = d.With(graph.String("approximate", "tanh")).Op("Gelu", x)
	return d.project(name+"down", x, d.residual(), 4*d.width, d.width)
}
