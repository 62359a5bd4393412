package family

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/gguf"
)

// GGUF returns the metadata by which a GGUF file says what a model of a folder is, as llama.cpp's converter writes it. Whether the file says all, [Config.Same] tells.
func (c *Config) GGUF() ([]gguf.Pair, error) {
	arch := ""
	of := c.Family
	if of == "mistral" {
		of = "llama"
	}
	for _, name := range slices.Sorted(maps.Keys(architectures)) {
		if architectures[name].family == of {
			arch = name
		}
	}
	if arch == "" || c.Rotary[0].Llama3 != nil || c.Rotary[0].Factors != nil {
		return nil, fmt.Errorf("%s with its rotation is not written as GGUF: convert the model with llama.cpp's convert_hf_to_gguf.py", c.Family)
	}
	pairs := []gguf.Pair{{Key: "general.architecture", Data: gguf.Of(arch)}}
	add := func(key string, v gguf.Value) { pairs = append(pairs, gguf.Pair{Key: arch + "." + key, Data: v}) }
	number := func(key string, n int) { add(key, gguf.Of(uint32(n))) }
	number("block_count", c.Layers)
	number("context_length", c.Context)
	number("embedding_length", c.Width)
	number("feed_forward_length", c.Hidden)
	number("attention.head_count", c.Heads)
	number("attention.head_count_kv", c.Shared)
	number("attention.key_length", c.HeadSize)
	number("attention.value_length", c.HeadSize)
	if c.Of.LayerNorm {
		add("attention.layer_norm_epsilon", gguf.Of(c.Epsilon))
	} else {
		add("attention.layer_norm_rms_epsilon", gguf.Of(c.Epsilon))
	}
	if !c.Of.Learned {
		number("rope.dimension_count", c.Turned)
		add("rope.freq_base", gguf.Of(c.Rotary[0].Base))
		if c.Of.LocalRotary {
			add("rope.freq_base_swa", gguf.Of(c.Rotary[1].Base))
		}
		if c.Rotary[0].Factor != 0 {
			add("rope.scaling.type", gguf.Of("linear"))
			add("rope.scaling.factor", gguf.Of(c.Rotary[0].Factor))
		}
	}
	if c.Softcap != 0 {
		add("attn_logit_softcapping", gguf.Of(c.Softcap))
	}
	if c.HeadCap != 0 {
		add("final_logit_softcapping", gguf.Of(c.HeadCap))
	}
	if window := slices.Max(c.Windows) + 1; window > 0 {
		number("attention.sliding_window", window)
	}
	return pairs, nil
}

// Same returns an error unless the file that was made of a folder's model says all that its config.json does.
func (c *Config) Same(file *Config) error {
	a, b := *c, *file
	b.Family, b.Of = a.Family, a.Of // which say how weights are stored, too
	if a.Of.Bias != file.Of.Bias || a.Of.MLPBias != file.Of.MLPBias || !reflect.DeepEqual(a, b) {
		return fmt.Errorf("%s: no GGUF file says all that config.json does: of windows, scales and caps it has those of the models that were published", c.Family)
	}
	return nil
}

// IsTransposed reports whether a weight has rows in a GGUF file where the folder has columns.
func (c *Config) IsTransposed(w Weight) bool {
	return c.Of.Columns && len(w.Shape) == 2 && w.Name != Embedding && w.Name != Positions && w.Name != head
}

// ToGGUF returns a weight of a folder as a GGUF file has it: vectors in float32, norms with the 1 that is added to them, rows instead of columns, and in
// Llama's files what is turned together as neighbours.
func (c *Config) ToGGUF(w Weight, t *tensor.Tensor) *tensor.Tensor {
	_, in, _ := InLayer(w.Name)
	if len(w.Shape) == 1 {
		x := make([]float32, t.Len())
		for i := range x {
			if x[i] = float32(tensor.FloatOf(t.Type, t.At(i))); c.Of.UnitOffset && strings.HasSuffix(in, "norm.weight") {
				x[i]++
			}
		}
		t = tensor.Must(tensor.From(t.Shape, x))
	}
	switch {
	case c.IsTransposed(w):
		rows, columns := t.Shape[0], t.Shape[1]
		out := tensor.Must(tensor.New(t.Type, tensor.Shape{columns, rows}))
		for i := range t.Len() {
			out.Set(i%columns*rows+i/columns, t.At(i))
		}
		return out
	case !c.Of.Learned && (c.Family == "llama" || c.Family == "mistral") && (strings.HasPrefix(in, "self_attn.q_proj.") || strings.HasPrefix(in, "self_attn.k_proj.")):
		MoveRows(t, c.HeadSize, true)
	}
	return t
}

// MoveRows moves the rows of each head of queries or keys: between halves, as graphs want them, and pairs, as Llama's GGUF files have them. No element changes.
func MoveRows(x *tensor.Tensor, size int, toPairs bool) {
	row := x.Shape[1:].Elements() * x.Type.Size()
	was := make([]byte, size*row)
	for head := 0; head < len(x.Bytes()); head += len(was) {
		to := x.Bytes()[head:][:len(was)]
		copy(was, to)
		for half := range size {
			pair := half%(size/2)*2 + half/(size/2)
			if toPairs {
				copy(to[pair*row:][:row], was[half*row:])
			} else {
				copy(to[half*row:][:row], was[pair*row:])
			}
		}
	}
}
