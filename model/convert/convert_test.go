package convert_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/convert"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
)

func create(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "model.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func logits(t *testing.T, m *lm.Model, tokens []int32) []float32 {
	t.Helper()
	out, err := m.Stages(cpu.New(1)).Step(t.Context(), []lm.Part{{Sequence: &lm.Sequence{}, Tokens: tokens, Logits: len(tokens)}})
	if err != nil {
		t.Fatal(err)
	}
	return tensor.Of[float32](out[0])
}

// The file is the same model as the folder: it makes the same tokens of texts, and the same logits of tokens, bit for bit.
func TestFileIsTheFolder(t *testing.T) {
	for _, x := range []struct {
		of, tokens string
		typ        tensor.DType
		other      map[string]any
	}{
		{"llama", "smollm", tensor.Float32, map[string]any{}}, {"mistral", "llama3", tensor.BFloat16, map[string]any{"sliding_window": nil}}, {"qwen2", "qwen2", tensor.Float16, map[string]any{}},
		{"qwen3", "qwen2", tensor.BFloat16, map[string]any{}}, {"phi3", "o200k", tensor.Float32, map[string]any{}}, {"gpt2", "gpt2", tensor.Float32, map[string]any{}},
		{"gemma", "gpt2", tensor.BFloat16, map[string]any{}}, {"gemma2", "gpt2", tensor.Float32, map[string]any{"query_pre_attn_scalar": 4}},
	} {
		t.Run(x.of, func(t *testing.T) {
			dir, to := lmtest.Drawn(t, x.of, x.tokens, x.typ, x.other), create(t)
			if err := convert.File(to, dir); err != nil {
				t.Fatal(err)
			}
			got, err := files.Open(to.Name())
			if err != nil {
				t.Fatal(err)
			}
			want, err := files.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			const text = "It's 12345 cafe\u0301s,  isn't it?\n\n<|endoftext|>Yes"
			a, err := got.Tokenizer.Encode(text, true)
			if err != nil {
				t.Fatal(err)
			}
			b, err := want.Tokenizer.Encode(text, true)
			if err != nil {
				t.Fatal(err)
			}
			b = b[:min(len(b), 60)]
			if a = a[:len(b)]; !slices.Equal(a, b) || !slices.Equal(got.Ends, want.Ends) || got.Template.Source() != want.Template.Source() {
				t.Errorf("tokens %v, want %v; ends %v, want %v", a, b, got.Ends, want.Ends)
			}
			if !slices.Equal(logits(t, got.Weights, a), logits(t, want.Weights, a)) {
				t.Error("other logits")
			}
		})
	}
}

// What a GGUF file cannot say is refused.
func TestRefused(t *testing.T) {
	for says, dir := range map[string]string{
		"no GGUF file says all that config.json does":         lmtest.Drawn(t, "gemma3", "gpt2", tensor.Float32, map[string]any{}),
		"llama with its rotation is not written":              lmtest.Drawn(t, "llama3", "gpt2", tensor.Float32, map[string]any{}),
		"llama.attention.sliding_window is not supported":     lmtest.Drawn(t, "mistral", "gpt2", tensor.Float32, map[string]any{}),
		"a tokenizer of BPE without bytes as its letters":     lmtest.Drawn(t, "llama", "llama2", tensor.Float32, map[string]any{}),
		"tokens before texts and 1 behind them have no place": lmtest.Drawn(t, "llama", "roberta", tensor.Float32, map[string]any{}),
	} {
		if err := convert.File(create(t), dir); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
