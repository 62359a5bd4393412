package lm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tally-network/tally/format/gguf"
)

// OpenGGUF reads a model from a GGUF file. Its weights stay in their blocks.
func OpenGGUF(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m, err := ReadGGUF(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// ReadGGUF is OpenGGUF of the first size bytes of src.
func ReadGGUF(src io.ReaderAt, size int64) (*Model, error) {
	f, err := gguf.Read(src, size)
	if err != nil {
		return nil, err
	}
	c, err := GGUFConfig(f)
	if err != nil {
		return nil, err
	}
	m := &Model{Config: *c, weights: map[string]weight{}}
	for _, need := range m.needs() {
		name := ggufName(need.name)
		t, ok := f.Find(name)
		if !ok {
			return nil, fmt.Errorf("weight %q is missing", name)
		}
		if !t.Shape.Equal(need.shape) { // before it is read
			return nil, fmt.Errorf("weight %q is %v: want %v", name, t.Shape, need.shape)
		}
		x, err := f.Stored(t)
		if err != nil {
			return nil, fmt.Errorf("weight %q: %w", name, err)
		}
		m.weights[need.name] = weight{x, t.Type}
	}
	return m, nil
}

// GGUFConfig reads the configuration of the architecture llama, which Mistral's models and SmolLM2 have as well. It reads no weights.
func GGUFConfig(f *gguf.File) (*Config, error) {
	arch, err := f.Text("general.architecture")
	if err != nil {
		return nil, err
	}
	if arch != "llama" {
		return nil, fmt.Errorf("a GGUF file of architecture %q is not supported, only llama: take the model's folder with safetensors", arch)
	}
	of := families[arch]
	of.Interleaved = true // its queries and keys are stored so
	c := &Config{Family: arch, Of: of}
	r := ggufReader{f: f, arch: arch}
	c.Layers, c.Width, c.Heads = r.number("block_count"), r.number("embedding_length"), r.number("attention.head_count")
	c.Shared, c.Hidden, c.Context = r.or("attention.head_count_kv", c.Heads), r.number("feed_forward_length"), r.number("context_length")
	c.HeadSize = r.or("attention.key_length", c.Width/max(c.Heads, 1))
	c.Epsilon, c.Rotary[0].Base = r.float("attention.layer_norm_rms_epsilon", 0), r.float("rope.freq_base", 10_000)
	c.Rotary[1] = c.Rotary[0]
	if turned := r.or("rope.dimension_count", c.HeadSize); turned != c.HeadSize {
		r.fail("%d of %d elements of a head are turned: only all are supported", turned, c.HeadSize)
	}
	for _, key := range []string{"rope.scaling.type", "expert_count", "attention.sliding_window"} {
		if f.Has(arch + "." + key) {
			if text, err := f.Text(arch + "." + key); err != nil || text != "none" {
				r.fail("%s.%s is not supported", arch, key)
			}
		}
	}
	if _, ok := f.Find("rope_freqs.weight"); ok {
		r.fail("scaled angles (rope_freqs.weight) are not supported")
	}
	e, ok := f.Find("token_embd.weight")
	if !ok || len(e.Shape) != 2 {
		r.fail("there is no token_embd.weight, or it is no matrix")
	} else {
		c.Vocabulary = e.Shape[0]
	}
	_, untied := f.Find("output.weight")
	c.Tied = !untied
	if r.err != nil {
		return nil, r.err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, c.setWindows(&settings{})
}

// ggufReader reads keys of an architecture, up to the first error.
type ggufReader struct {
	f    *gguf.File
	arch string
	err  error
}

func (r *ggufReader) fail(format string, args ...any) {
	r.err = errors.Join(r.err, fmt.Errorf(format, args...))
}

func (r *ggufReader) number(key string) int {
	n, err := r.f.Uint(r.arch + "." + key)
	if err != nil || n > maxContext {
		r.err = errors.Join(r.err, fmt.Errorf("%s.%s is %d: want at most %d", r.arch, key, n, maxContext), err)
	}
	return int(min(n, maxContext))
}

func (r *ggufReader) or(key string, otherwise int) int {
	if !r.f.Has(r.arch + "." + key) {
		return otherwise
	}
	return r.number(key)
}

func (r *ggufReader) float(key string, otherwise float32) float32 {
	if !r.f.Has(r.arch + "." + key) {
		return otherwise
	}
	v, err := r.f.Float(r.arch + "." + key)
	if err != nil || !finite(float32(v)) {
		r.err = errors.Join(r.err, fmt.Errorf("%s.%s is %v", r.arch, key, v), err)
	}
	return float32(v)
}

// ggufName is what a weight is called there.
func ggufName(name string) string {
	if tail, ok := strings.CutPrefix(name, "model.layers."); ok {
		layer, rest, _ := strings.Cut(tail, ".")
		module, part, _ := cutLast(rest)
		return "blk." + layer + "." + map[string]string{
			"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
			"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
			"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
		}[module] + "." + part
	}
	return map[string]string{"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}[name]
}

// cutLast cuts a name at its last dot.
func cutLast(name string) (before, after string, found bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}
