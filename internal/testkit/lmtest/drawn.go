package lmtest

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/model/lm/family"
)

// drawnVocabulary has room for the tokenizers in format/tokenizer/testdata.
const drawnVocabulary = 1024

// Drawn makes a folder of a model as model/lm/testdata has it, with other settings, whose weights are drawn, of a type. It has one of the tokenizers in
// format/tokenizer/testdata, and a template.
func Drawn(t testing.TB, of, tokens string, typ tensor.DType, other map[string]any) string {
	t.Helper()
	read := func(parts ...string) []byte {
		b, err := os.ReadFile(filepath.Join(append([]string{root(t)}, parts...)...))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	all := map[string]any{}
	if err := json.Unmarshal(read("model", "lm", "testdata", of, "config.json"), &all); err != nil {
		t.Fatal(err)
	}
	maps.Copy(all, other)
	all["vocab_size"] = drawnVocabulary
	config, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c, err := family.Parse(config)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	drawn := map[string]*tensor.Tensor{}
	for _, w := range c.Weights() {
		x := tensor.Must(tensor.New(typ, w.Shape))
		for i := range x.Len() {
			x.Set(i, tensor.FloatWord(typ, 0.4*r.NormFloat64()))
		}
		drawn[w.Name] = x
	}
	var weights bytes.Buffer
	if err := safetensors.Write(&weights, drawn, nil); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), of)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"config.json": config, "model.safetensors": weights.Bytes(), "tokenizer.json": read("format", "tokenizer", "testdata", tokens+".json"),
		"tokenizer_config.json": []byte(`{"chat_template": "{{ messages[0].content }}{{ eos_token }}", "eos_token": "<|endoftext|>"}`),
	} { // each alone
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
