package family

import (
	"fmt"
	"strings"

	"github.com/tally-network/tally/core/tensor"
)

// Weights outside of layers.
const (
	Embedding = "model.embed_tokens.weight"
	Positions = "model.positions.weight"
	head      = "lm_head.weight"
)

// Weight is a weight that the graph reads. It goes by the name that Llama has for it.
type Weight struct {
	Name  string
	Shape tensor.Shape
}

// Head names the weight that gives logits.
func (c *Config) Head() string {
	if c.Tied {
		return Embedding
	}
	return head
}

// Weights lists the weights, in the order in which the graph reads them.
func (c *Config) Weights() (out []Weight) {
	of := &c.Of
	add := func(name string, shape ...int) { out = append(out, Weight{name, shape}) }
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
	add(Embedding, c.Vocabulary, c.Width)
	if of.Learned {
		add(Positions, c.Context, c.Width)
	}
	q, kv := c.Heads*c.HeadSize, c.Shared*c.HeadSize
	for i := range c.Layers {
		at := Layer(i)
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
		add(head, c.Vocabulary, c.Width)
	}
	return out
}

// Layer begins the names of weights of layer i.
func Layer(i int) string { return fmt.Sprintf("model.layers.%d.", i) }

// InLayer cuts a name into the number of its layer, if it is in one, and what it is called there.
func InLayer(name string) (layer, in string, ok bool) {
	tail, ok := strings.CutPrefix(name, "model.layers.")
	if !ok {
		return "", name, false
	}
	layer, in, _ = strings.Cut(tail, ".")
	return layer, in, true
}

// Parameters returns the number of weights.
func (c *Config) Parameters() (n int) {
	for _, w := range c.Weights() {
		n += w.Shape.Elements()
	}
	return n
}

// FolderNames returns what a weight may be called in a folder, with or without the prefix of the model's body.
func (c *Config) FolderNames(name string) []string {
	body := strings.TrimPrefix(name, "model.")
	names := []string{name, body, "model.language_model." + body, "language_model." + name}
	if c.Of.names == nil {
		return names
	}
	layer, in, inLayer := InLayer(name)
	own := c.Of.names[in]
	if inLayer {
		own = "h." + layer + "." + own
	}
	return append(names, own, "transformer."+own)
}
