package lmtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/safetensors"
)

// Encoder's settings: a BERT of one layer.
const (
	EncoderWidth  = 8
	EncoderTokens = 12 // of a text, with the two around it
	encoderInner  = 16
)

// Encoder makes a folder of a tiny sentence encoder, with a tokenizer of single letters between [CLS] and [SEP]. Nobody trained it. Files of the same
// names come instead.
func Encoder(t testing.TB, name string, instead map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	tokens := []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]"}
	for c := 'a'; c <= 'z'; c++ {
		tokens = append(tokens, string(c), "##"+string(c))
	}
	vocabulary, special := map[string]int{}, []any{}
	for i, token := range tokens {
		if vocabulary[token] = i; i < 4 {
			special = append(special, map[string]any{"id": i, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
		}
	}
	files := map[string]any{
		"config.json": map[string]any{
			"model_type": "bert", "hidden_size": EncoderWidth, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": encoderInner, "vocab_size": len(tokens),
			"max_position_embeddings": 2 * EncoderTokens, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "pad_token_id": 0,
		},
		"sentence_bert_config.json": map[string]any{"max_seq_length": EncoderTokens, "do_lower_case": false},
		"tokenizer.json": map[string]any{
			"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": special,
			"normalizer":    map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil, "lowercase": true},
			"pre_tokenizer": map[string]string{"type": "BertPreTokenizer"}, "decoder": map[string]any{"type": "WordPiece", "prefix": "##", "cleanup": true},
			"post_processor": map[string]any{"type": "BertProcessing", "sep": []any{"[SEP]", 3}, "cls": []any{"[CLS]", 2}},
			"model":          map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary},
		},
	}
	for name, v := range files { // each alone
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := instead[name]; ok {
			text = []byte(other)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeEncoderWeights(t, filepath.Join(dir, "model.safetensors"), len(tokens))
	return dir
}

func writeEncoderWeights(t testing.TB, name string, tokens int) {
	shapes := map[string]tensor.Shape{
		"embeddings.word_embeddings.weight": {tokens, EncoderWidth}, "embeddings.position_embeddings.weight": {2 * EncoderTokens, EncoderWidth}, "embeddings.token_type_embeddings.weight": {2, EncoderWidth},
	}
	linear := func(name string, from, to int) {
		shapes[name+".weight"], shapes[name+".bias"] = tensor.Shape{to, from}, tensor.Shape{to}
	}
	const layer = "encoder.layer.0."
	for _, part := range []string{"self.query", "self.key", "self.value", "output.dense"} {
		linear(layer+"attention."+part, EncoderWidth, EncoderWidth)
	}
	linear(layer+"intermediate.dense", EncoderWidth, encoderInner)
	linear(layer+"output.dense", encoderInner, EncoderWidth)
	for _, norm := range []string{"embeddings.LayerNorm", layer + "attention.output.LayerNorm", layer + "output.LayerNorm"} {
		shapes[norm+".weight"], shapes[norm+".bias"] = tensor.Shape{EncoderWidth}, tensor.Shape{EncoderWidth}
	}
	all, state := map[string]*tensor.Tensor{}, uint32(1)
	for _, key := range slices.Sorted(maps.Keys(shapes)) {
		x := tensor.Must(tensor.New(tensor.Float32, shapes[key]))
		for i := range x.Len() {
			state = state*1664525 + 1013904223
			x.Set(i, tensor.F32(float32(state>>8)/(1<<23)-1))
		}
		all[key] = x
	}
	f, err := os.Create(name)
	if err == nil {
		err = safetensors.Write(f, all, nil)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
}
