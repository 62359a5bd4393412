package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/text"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/lm/family"
	"github.com/tally-network/tally/model/zoo"
)

// Sizes of the model that the demo trains and serves: about 57,000 parameters for 67 characters. It is of Mistral's family, whose tokens look
// back no further than a window. So it goes on with texts that are longer than those that it was trained on.
const (
	modelWidth, modelHidden = 48, 128
	modelLayers             = 2
	modelHeads, modelShared = 4, 2
	modelWindow             = 32
	modelContext            = 512 // tokens of a text that is gone on with
	recordLength            = 64  // of one that it is trained on
)

// MaxParameters bounds the model, so that it is trained in minutes.
const MaxParameters = 120_000

// settings are its config.json.
func settings(vocabulary int) ([]byte, error) {
	return json.MarshalIndent(map[string]any{
		"architectures": []string{"MistralForCausalLM"}, "model_type": "mistral", "torch_dtype": "float32", "hidden_act": "silu", "hidden_size": modelWidth,
		"intermediate_size": modelHidden, "num_hidden_layers": modelLayers, "num_attention_heads": modelHeads, "num_key_value_heads": modelShared,
		"head_dim": modelWidth / modelHeads, "max_position_embeddings": modelContext, "sliding_window": modelWindow, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
		"tie_word_embeddings": false, "vocab_size": vocabulary, "bos_token_id": nil, "eos_token_id": nil,
	}, "", "  ")
}

// NewModel returns the model for a vocabulary as it is before training. Its weights follow from the seed.
func NewModel(vocabulary int, seed uint64) (*lm.Model, error) {
	config, err := settings(vocabulary)
	if err != nil {
		return nil, err
	}
	c, err := family.Parse(config)
	if err != nil {
		return nil, err
	}
	m, err := lm.Make(c, func(name string, shape tensor.Shape) *tensor.Tensor {
		t := tensor.Must(tensor.New(tensor.Float32, shape))
		v := tensor.Of[float32](t)
		switch {
		case len(shape) == 1: // norms
			for i := range v {
				v[i] = 1
			}
		case strings.Contains(name, "embed_tokens"):
			zoo.Normal(v, seed, name, 0.1)
		case strings.Contains(name, "lm_head"):
			zoo.Normal(v, seed, name, 0.02)
		case strings.Contains(name, "o_proj"), strings.Contains(name, "down_proj"): // what is added to the stream does not grow with the layers
			zoo.Normal(v, seed, name, 1/math.Sqrt(float64(2*modelLayers*shape[1])))
		default:
			zoo.Normal(v, seed, name, 1/math.Sqrt(float64(shape[1])))
		}
		return t
	})
	if err != nil {
		return nil, err
	}
	if n := m.Parameters(); n > MaxParameters {
		return nil, fmt.Errorf("the model has %d parameters, limit %d; give a text with fewer different characters", n, MaxParameters)
	}
	return m, nil
}

// Scorer turns a graph from tokens [batch length] to logits into one that scores text. It maps tokens and those after them, both int32 [batch
// length], to the losses of the latter, float32 [batch length], in nats.
func Scorer(forward *graph.Graph) *graph.Graph {
	tokens, logits := forward.Inputs[0], forward.Outputs[0]
	forward.Outputs = nil
	b := graph.Extend(forward)
	next := b.Input("next", tensor.Int32, tokens.Shape)
	byToken := b.With(graph.Ints("perm", 0, 2, 1)).Op("Transpose", logits.Name)
	loss := b.With(graph.String("reduction", "none")).As(ScoreSlot).Op("SoftmaxCrossEntropyLoss", byToken, next)
	b.Output(loss, tensor.Float32, tokens.Shape)
	return b.Graph()
}

// template lets the model go on with what was said: nobody has taught it to answer.
const template = "{% for m in messages %}{{ m.content }}\n\n{% endfor %}"

// writeFolder writes a trained model as a folder that Hugging Face's programs read, and ours: weights are a file of the order's result.
func writeFolder(dir string, t *text.Tokenizer, weights []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	config, err := settings(t.Size())
	if err != nil {
		return err
	}
	tokens, err := tokenizerFile(t)
	if err != nil {
		return err
	}
	chat, err := json.MarshalIndent(map[string]any{"chat_template": template}, "", "  ")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"config.json": config, "tokenizer.json": tokens, "tokenizer_config.json": chat, "model.safetensors": weights} { // each alone
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	return err
}

// unknownToken is what characters outside the vocabulary become. No character is called so.
const unknownToken = "<unk>"

// tokenizerFile is a tokenizer of characters as Hugging Face's tokenizer.json: pieces of one character, none of which merge.
func tokenizerFile(t *text.Tokenizer) ([]byte, error) {
	vocabulary := map[string]int{unknownToken: text.Unknown}
	for i := 1; i < t.Size(); i++ {
		character, err := t.Decode([]int32{int32(i)})
		if err != nil {
			return nil, err
		}
		vocabulary[character] = i
	}
	unknown := map[string]any{"id": text.Unknown, "content": unknownToken, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
	return json.MarshalIndent(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []any{unknown}, "normalizer": nil, "pre_tokenizer": nil, "post_processor": nil,
		"decoder": map[string]string{"type": "Fuse"},
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": unknownToken, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocabulary, "merges": []string{},
		},
	}, "", "  ")
}
