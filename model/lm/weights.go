package lm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/internal/bounded"
)

// Model is a language model: its configuration, and its weights by the names that Llama has for them.
type Model struct {
	Config
	weights map[string]weight
	forms   *Forms
}

// weight is a weight as it is stored: floats, or rows of blocks, which are uint8.
type weight struct {
	stored *tensor.Tensor
	of     quant.Type // what the blocks are
}

// maxIndex bounds the index of files in bytes, and maxFiles their number.
const (
	maxIndex = 64 << 20
	maxFiles = 1 << 10
)

// Open reads a folder with config.json and weights as safetensors, in one file or in those that model.safetensors.index.json names.
func Open(dir string) (*Model, error) {
	text, err := bounded.ReadFile(filepath.Join(dir, "config.json"), maxConfig)
	if err != nil {
		return nil, err
	}
	c, err := ParseConfig(text)
	if err != nil {
		return nil, err
	}
	files, err := WeightFiles(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]*tensor.Tensor{}
	for _, name := range files {
		some, err := readWeights(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for k, t := range some { // each has its own key
			if all[k] != nil {
				return nil, fmt.Errorf("%s: weight %q stands in another file, too", name, k)
			}
			all[k] = t
		}
	}
	return New(c, all)
}

// WeightFiles names the files of weights that a folder has, by its index or without one, sorted.
func WeightFiles(dir string) ([]string, error) {
	text, err := bounded.ReadFile(filepath.Join(dir, "model.safetensors.index.json"), maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{"model.safetensors"}, nil
	} else if err != nil {
		return nil, err
	}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("model.safetensors.index.json: %w", err)
	}
	seen := map[string]bool{}
	var files []string
	for _, f := range index.Files { // sorted below
		if filepath.Base(f) != f || !strings.HasSuffix(f, ".safetensors") {
			return nil, fmt.Errorf("model.safetensors.index.json names %q: want a .safetensors file of the same folder", f)
		}
		if !seen[f] {
			seen[f] = true
			files = append(files, f)
		}
	}
	if len(files) == 0 || len(files) > maxFiles {
		return nil, fmt.Errorf("model.safetensors.index.json names %d files: want 1 to %d", len(files), maxFiles)
	}
	slices.Sort(files)
	return files, nil
}

func readWeights(path string) (map[string]*tensor.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	all, _, err := safetensors.Read(f, info.Size())
	return all, err
}

// New returns the model of a configuration and of weights by their family's names. It fails unless each weight that the graph reads is
// there, in its shape, with finite shape and a float type; others are left out.
func New(c *Config, given map[string]*tensor.Tensor) (*Model, error) {
	m := &Model{Config: *c, weights: map[string]weight{}}
	for _, w := range m.needs() {
		t := find(given, w.name, c)
		if t == nil {
			return nil, fmt.Errorf("%s: weight %q is missing", c.Family, w.name)
		}
		if !t.Type.Float() || t.Type == tensor.Float64 || !t.Shape.Equal(w.shape) {
			return nil, fmt.Errorf("%s: weight %q is %v%v: want %v of float32, float16 or bfloat16", c.Family, w.name, t.Type, t.Shape, w.shape)
		}
		m.weights[w.name] = weight{stored: t}
	}
	return m, nil
}

// find returns a weight by the name that Llama has for it, with or without the prefix of the model's body.
func find(given map[string]*tensor.Tensor, name string, c *Config) *tensor.Tensor {
	for _, n := range []string{name, strings.TrimPrefix(name, "model."), "model.language_model." + strings.TrimPrefix(name, "model."), "language_model." + name} {
		if t := given[n]; t != nil {
			return t
		}
	}
	if c.Of.names == nil {
		return nil
	}
	layer, rest, inLayer := "", name, false
	if tail, ok := strings.CutPrefix(name, "model.layers."); ok {
		layer, rest, inLayer = strings.Cut(tail, ".")
	}
	own := c.Of.names[rest]
	if inLayer {
		own = "h." + layer + "." + own
	}
	return either(given[own], given["transformer."+own])
}

// need is a weight that the graph reads.
type need struct {
	name  string
	shape tensor.Shape
}

// needs lists the weights, in the order in which the graph reads them.
func (m *Model) needs() (out []need) {
	c, of := &m.Config, &m.Config.Of
	add := func(name string, shape ...int) { out = append(out, need{name, shape}) }
	norm := func(name string, size int) {
		add(name+".weight", size)
		if of.LayerNorm {
			add(name+".bias", size)
		}
	}
	linear := func(name string, out, in int, bias bool) {
		if of.Columns {
			add(name+".weight", in, out)
		} else {
			add(name+".weight", out, in)
		}
		if bias {
			add(name+".bias", out)
		}
	}
	add("model.embed_tokens.weight", c.Vocabulary, c.Width)
	if of.Learned {
		add("model.positions.weight", c.Context, c.Width)
	}
	q, kv := c.Heads*c.HeadSize, c.Shared*c.HeadSize
	for i := range c.Layers {
		at := layerName(i)
		norm(at+"input_layernorm", c.Width)
		if of.Fused {
			linear(at+"self_attn.qkv_proj", q+2*kv, c.Width, of.Bias)
		} else {
			linear(at+"self_attn.q_proj", q, c.Width, of.Bias)
			linear(at+"self_attn.k_proj", kv, c.Width, of.Bias)
			linear(at+"self_attn.v_proj", kv, c.Width, of.Bias)
		}
		if of.QKNorm {
			add(at+"self_attn.q_norm.weight", c.HeadSize)
			add(at+"self_attn.k_norm.weight", c.HeadSize)
		}
		linear(at+"self_attn.o_proj", c.Width, q, of.Bias && of.OutBias)
		norm(at+"post_attention_layernorm", c.Width)
		if of.PostNorms {
			norm(at+"pre_feedforward_layernorm", c.Width)
			norm(at+"post_feedforward_layernorm", c.Width)
		}
		switch {
		case of.Plain:
			linear(at+"mlp.up_proj", c.Hidden, c.Width, of.MLPBias)
		case of.Fused:
			linear(at+"mlp.gate_up_proj", 2*c.Hidden, c.Width, of.MLPBias)
		default:
			linear(at+"mlp.gate_proj", c.Hidden, c.Width, of.MLPBias)
			linear(at+"mlp.up_proj", c.Hidden, c.Width, of.MLPBias)
		}
		linear(at+"mlp.down_proj", c.Width, c.Hidden, of.MLPBias)
	}
	norm("model.norm", c.Width)
	if !c.Tied {
		add("lm_head.weight", c.Vocabulary, c.Width)
	}
	return out
}

func layerName(i int) string { return fmt.Sprintf("model.layers.%d.", i) }

// inLayer is what a weight is called in its layer.
func inLayer(name string) string {
	if tail, ok := strings.CutPrefix(name, "model.layers."); ok {
		_, name, _ = strings.Cut(tail, ".")
	}
	return name
}

// Parameters returns the number of weights.
func (m *Model) Parameters() (n int) {
	for _, w := range m.needs() {
		n += w.shape.Elements()
	}
	return n
}
