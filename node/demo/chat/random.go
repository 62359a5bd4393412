package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/safetensors"
)

// letters are the tokens of the random model.
var letters = append([]string{"<s>", "</s>", "<unk>"}, strings.Split(" \nabcdefghijklmnopqrstuvwxyz.,?!:'-0123456789", "")...)

// Sizes of the random model.
const (
	hidden, inner   = 64, 128
	layers          = 2
	heads, groups   = 4, 2
	randomContext   = 512
	template        = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
	randomSeed      = 7
	randomDeviation = 0.3
)

// Random writes a small model into a new folder, as Hugging Face has them, whose weights nobody has trained: it replies letters without a sense. Its
// bytes are always the same.
func Random(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	vocabulary, special := map[string]int{}, []any{}
	for i, token := range letters {
		vocabulary[token] = i
		if i < 3 {
			special = append(special, map[string]any{"id": i, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
		}
	}
	var failed error
	for name, v := range map[string]any{ // each its own file
		"config.json": map[string]any{
			"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu", "hidden_size": hidden, "intermediate_size": inner,
			"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": groups, "max_position_embeddings": randomContext,
			"rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": true, "vocab_size": len(letters), "bos_token_id": 0, "eos_token_id": 1,
		},
		"tokenizer.json": map[string]any{
			"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": special,
			"normalizer": map[string]string{"type": "Lowercase"}, "pre_tokenizer": nil, "post_processor": nil, "decoder": map[string]string{"type": "Fuse"},
			"model": map[string]any{
				"type": "BPE", "dropout": nil, "unk_token": "<unk>", "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
				"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocabulary, "merges": []string{},
			},
		},
		"tokenizer_config.json":  map[string]any{"chat_template": template, "bos_token": "<s>", "eos_token": "</s>"},
		"generation_config.json": map[string]any{"eos_token_id": 1},
	} {
		text, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		failed = errors.Join(failed, err)
	}
	return errors.Join(failed, writeWeights(filepath.Join(dir, "model.safetensors")))
}

// writeWeights writes weights by chance that is always the same.
func writeWeights(path string) (err error) {
	r := rand.New(rand.NewPCG(randomSeed, randomSeed))
	weights := map[string]*tensor.Tensor{}
	add := func(name string, shape ...int) {
		t := tensor.Must(tensor.New(tensor.Float32, shape))
		values := tensor.Of[float32](t)
		for i := range values {
			values[i] = 1 // of norms
			if len(shape) > 1 {
				values[i] = float32(randomDeviation * r.NormFloat64())
			}
		}
		weights[name] = t
	}
	const narrow = hidden / heads * groups
	add("model.embed_tokens.weight", len(letters), hidden)
	for i := range layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		add(at+"input_layernorm.weight", hidden)
		add(at+"self_attn.q_proj.weight", hidden, hidden)
		add(at+"self_attn.k_proj.weight", narrow, hidden)
		add(at+"self_attn.v_proj.weight", narrow, hidden)
		add(at+"self_attn.o_proj.weight", hidden, hidden)
		add(at+"post_attention_layernorm.weight", hidden)
		add(at+"mlp.gate_proj.weight", inner, hidden)
		add(at+"mlp.up_proj.weight", inner, hidden)
		add(at+"mlp.down_proj.weight", hidden, inner)
	}
	add("model.norm.weight", hidden)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return safetensors.Write(f, weights, map[string]string{"format": "pt"})
}
