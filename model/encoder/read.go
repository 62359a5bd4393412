package encoder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/internal/bounded"
)

// Limits on what is read.
const (
	maxConfig  = 1 << 20   // bytes of a file of settings
	maxWeights = 1<<31 - 1 // bytes of weights: more fit into no model
	maxExtent  = 1 << 16   // of any axis but the vocabulary
	maxVocab   = 1 << 20   // tokens
	maxLayers  = 1 << 8
	maxScores  = 1 << 30 // elements of the scores of a run
)

// Config is what config.json says, as far as it changes what is computed.
type Config struct {
	Kind         string  `json:"model_type"`
	Width        int     `json:"hidden_size"`
	Layers       int     `json:"num_hidden_layers"`
	Heads        int     `json:"num_attention_heads"`
	Intermediate int     `json:"intermediate_size"`
	Vocabulary   int     `json:"vocab_size"`
	Positions    int     `json:"max_position_embeddings"`
	Types        int     `json:"type_vocab_size"`
	Epsilon      float64 `json:"layer_norm_eps"`
	Activation   string  `json:"hidden_act"`
	Placing      string  `json:"position_embedding_type"`
	Decoder      bool    `json:"is_decoder"`
	Padding      int     `json:"pad_token_id"`
}

// activations are values of Gelu's attribute, by the names of activations.
var activations = map[string]string{"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}

// check returns an error unless the encoder is one that Graph can write.
func (c *Config) check() error {
	if c.Kind != "bert" || c.Decoder {
		return fmt.Errorf("model_type is %.40q, and is_decoder %v: only encoders of type \"bert\" are read; export others to ONNX, for tally batch", c.Kind, c.Decoder)
	}
	for _, x := range []struct {
		key     string
		n, most int
	}{
		{"hidden_size", c.Width, maxExtent}, {"num_hidden_layers", c.Layers, maxLayers}, {"num_attention_heads", c.Heads, maxExtent},
		{"intermediate_size", c.Intermediate, maxExtent}, {"vocab_size", c.Vocabulary, maxVocab},
		{"max_position_embeddings", c.Positions, maxExtent}, {"type_vocab_size", c.Types, maxExtent},
	} {
		if x.n < 1 || x.n > x.most {
			return fmt.Errorf("%s is %d, want 1 to %d", x.key, x.n, x.most)
		}
	}
	switch {
	case c.Width%c.Heads != 0:
		return fmt.Errorf("num_attention_heads is %d, which does not divide hidden_size, %d", c.Heads, c.Width)
	case activations[c.Activation] == "":
		return fmt.Errorf("hidden_act is %.40q: write gelu, gelu_new or gelu_pytorch_tanh, if it is one of these", c.Activation)
	case c.Placing != "" && c.Placing != "absolute":
		return fmt.Errorf("position_embedding_type is %.40q: only absolute positions are read", c.Placing)
	case c.Epsilon <= 0 || c.Epsilon >= 1:
		return fmt.Errorf("layer_norm_eps is %v, want a number between 0 and 1", c.Epsilon)
	case c.Padding < 0 || c.Padding >= c.Vocabulary:
		return fmt.Errorf("pad_token_id is %d, and there are %d tokens", c.Padding, c.Vocabulary)
	}
	return nil
}

// Encoder is a model with its weights.
type Encoder struct {
	Config
	Context int                       // tokens of a text: positions, or fewer if the model was trained for fewer
	weights map[string]*tensor.Tensor // float32, by the names that BERT has without a prefix
}

// Open reads the encoder in a folder: config.json and model.safetensors, and what sentence-transformers keeps beside them.
func Open(dir string) (*Encoder, error) {
	c, context, err := settings(dir)
	if err != nil {
		return nil, err
	}
	f, size, err := bounded.Open(filepath.Join(dir, weightsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: save the model in one file with transformers, by save_pretrained(DIR, safe_serialization=True)", err)
	} else if err != nil {
		return nil, err
	}
	e := &Encoder{Config: *c, Context: context, weights: map[string]*tensor.Tensor{}}
	if err = errors.Join(e.read(f, size), f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return e, nil
}

// checkPooling returns an error if a file says that texts are not pooled by the mean.
func checkPooling(name string) error {
	var modes map[string]any
	if err := optional(name, &modes); err != nil {
		return err
	}
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		if modes[mode] == true && strings.HasPrefix(mode, "pooling_mode_") && mode != "pooling_mode_mean_tokens" {
			return fmt.Errorf("%s: %.40s is on: only the mean of tokens is written", name, mode)
		}
	}
	return nil
}

// Read reads an encoder from the text of its config.json and from the first size bytes of a
// safetensors file.
func Read(config []byte, src io.ReaderAt, size int64) (*Encoder, error) {
	c, err := parse(config)
	if err != nil {
		return nil, err
	}
	e := &Encoder{Config: *c, Context: c.Positions, weights: map[string]*tensor.Tensor{}}
	return e, e.read(src, size)
}

// read reads the weights.
func (e *Encoder) read(src io.ReaderAt, size int64) error {
	if size > maxWeights {
		return fmt.Errorf("model.safetensors has %d bytes, limit %d: take a smaller model", size, int64(maxWeights))
	}
	all, _, err := safetensors.Read(src, size, nil)
	if err != nil {
		return fmt.Errorf("model.safetensors: %w", err)
	}
	shapes := e.shapes()
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		x := all[name]
		if x == nil {
			x = all["bert."+name] // of a model with a head
		}
		if e.weights[name], err = asFloat32(x, shapes[name]); err != nil {
			return fmt.Errorf("model.safetensors: tensor %q: %w", name, err)
		}
	}
	return nil
}

// shapes are those of all weights that are used, by name.
func (c *Config) shapes() map[string]tensor.Shape {
	out := map[string]tensor.Shape{
		"embeddings.word_embeddings.weight":       {c.Vocabulary, c.Width},
		"embeddings.position_embeddings.weight":   {c.Positions, c.Width},
		"embeddings.token_type_embeddings.weight": {c.Types, c.Width},
	}
	norm := func(name string) {
		out[name+".weight"], out[name+".bias"] = tensor.Shape{c.Width}, tensor.Shape{c.Width}
	}
	linear := func(name string, from, to int) {
		out[name+".weight"], out[name+".bias"] = tensor.Shape{to, from}, tensor.Shape{to}
	}
	norm("embeddings.LayerNorm")
	for i := range c.Layers {
		at := layer(i)
		for _, name := range []string{"self.query", "self.key", "self.value", "output.dense"} {
			linear(at+"attention."+name, c.Width, c.Width)
		}
		norm(at + "attention.output.LayerNorm")
		linear(at+"intermediate.dense", c.Width, c.Intermediate)
		linear(at+"output.dense", c.Intermediate, c.Width)
		norm(at + "output.LayerNorm")
	}
	return out
}

func layer(i int) string { return fmt.Sprintf("encoder.layer.%d.", i) }

// asFloat32 checks a tensor, and returns it as float32.
func asFloat32(x *tensor.Tensor, shape tensor.Shape) (*tensor.Tensor, error) {
	switch {
	case x == nil:
		return nil, fmt.Errorf("it is missing: is this a BERT of the size that config.json gives, in one file?")
	case !x.Shape.Equal(shape):
		return nil, fmt.Errorf("its shape is %v, and by config.json %v", x.Shape, shape)
	case x.Type == tensor.Float32:
		return x, nil
	case !x.Type.Half():
		return nil, fmt.Errorf("its elements are %v: convert them to F32, F16 or BF16", x.Type)
	}
	out, err := tensor.New(tensor.Float32, shape)
	if err != nil {
		return nil, err
	}
	for i := range x.Len() {
		out.Set(i, tensor.F32(float32(tensor.FloatOf(x.Type, x.At(i)))))
	}
	return out, nil
}
