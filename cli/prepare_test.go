package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/safetensors"
)

// An encoder and token ids become a task that can be tried without a network.
func TestEmbeddingIsPrepared(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, b []byte) {
		if err := os.WriteFile(in(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]*tensor.Tensor{}
	random := func(name string, s ...int) {
		all[name] = tensor.Must(tensor.New(tensor.Float32, s))
		for i, v := 0, tensor.Of[float32](all[name]); i < len(v); i++ {
			v[i] = float32((i*7+len(name))%5) - 2
		}
	}
	for name, n := range map[string]int{"word": 9, "position": 4, "token_type": 2} {
		random("embeddings."+name+"_embeddings.weight", n, 2)
	}
	for _, name := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "intermediate.dense", "output.dense"} {
		random("encoder.layer.0."+name+".weight", 2, 2)
		random("encoder.layer.0."+name+".bias", 2)
	}
	for _, name := range []string{"embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output"} {
		random(name+".LayerNorm.weight", 2)
		random(name+".LayerNorm.bias", 2)
	}
	var weights, ids bytes.Buffer
	if err := safetensors.Write(&weights, all, nil); err != nil {
		t.Fatal(err)
	}
	if err := npy.Write(&ids, tensor.Must(tensor.From(tensor.Shape{33, 2}, make([]int32, 66)))); err != nil {
		t.Fatal(err)
	}
	put("model.safetensors", weights.Bytes())
	put("ids.npy", ids.Bytes())
	put("config.json", []byte(`{"model_type": "bert", "hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 2,
		"vocab_size": 9, "max_position_embeddings": 4, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}`))
	task := in("texts/task.yaml")
	if code, out, errOut := run("drill", "prepare", "embed", "--model", dir, "--tokens", in("ids.npy"), "--project", "1", "--out", in("texts")); code != 0 || !strings.Contains(out, "33 records, 17 a run") {
		t.Fatalf("%d: %s%s", code, out, errOut)
	}
	t.Setenv("TALLY_HOME", in("none"))
	if code, out, errOut := run("order", "validate", task); code != 0 || !strings.Contains(out, "33 records") {
		t.Errorf("%d: %s%s", code, out, errOut)
	}
	if code, _, errOut := run("drill", "prepare", "embed", "--model", dir, "--tokens", in("ids.npy"), "--project", "1", "--out", in("again"), "--mask", in("config.json")); code == 0 || !strings.Contains(errOut, "it is no .npy file") {
		t.Errorf("%d: %s", code, errOut)
	}
}
