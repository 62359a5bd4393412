// Package lmtest makes folders of tiny language models, complete as people have them. Call [Folder], or [Drawn] for one of any family; [Adapter] for a
// LoRA adapter.
//
// Invariant: nobody trained the weights, which are those of model/lm/testdata, or drawn: replies have no sense.
package lmtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Template is the chat template of the models.
const Template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"

// alphabet are the 48 tokens of the models in lm/testdata, as a tokenizer of single letters has them.
var alphabet = append([]string{"<s>", "</s>", "<unk>"}, strings.Split(" \nabcdefghijklmnopqrstuvwxyz.,?!:'-0123456789", "")...)

// Folder makes a folder of a tiny model, with a tokenizer of single letters, a chat template and tokens that end replies. Files of the same
// names come instead; an empty text leaves a file out.
func Folder(t testing.TB, name string, instead map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	vocabulary := map[string]int{}
	for i, token := range alphabet {
		vocabulary[token] = i
	}
	special := func(id int) map[string]any {
		return map[string]any{"id": id, "content": alphabet[id], "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
	}
	write := func(name string, v any) {
		text, ok := v.(string)
		if !ok {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root(t), "model", "lm", "testdata", "llama"))); err != nil {
		t.Fatal(err)
	}
	write("tokenizer.json", map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []any{special(0), special(1), special(2)},
		"normalizer": nil, "pre_tokenizer": nil, "post_processor": nil, "decoder": map[string]string{"type": "Fuse"},
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": "<unk>", "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocabulary, "merges": []string{},
		},
	})
	write("tokenizer_config.json", map[string]any{"chat_template": Template, "bos_token": "<s>", "eos_token": map[string]string{"content": "</s>"}})
	write("generation_config.json", map[string]any{"eos_token_id": []int{1, 46}})
	for name, text := range instead { // each its own
		if text == "" {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(name, text)
	}
	return dir
}

// Adapter returns the folder of a LoRA adapter for the models of [Folder], one of those in model/lm/testdata/adapters that begin with llama. Nobody trained it.
func Adapter(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(root(t), "model", "lm", "testdata", "adapters", name)
}

// root is the folder of the repository.
func root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the repository is not found")
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}
