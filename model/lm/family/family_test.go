package family_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/model/lm/family"
)

// small is config.json of a small model, with other settings.
func small(t testing.TB, of string, other map[string]any) []byte {
	t.Helper()
	all := map[string]any{
		"model_type": of, "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24, "vocab_size": 48,
		"max_position_embeddings": 64, "rms_norm_eps": 1e-6,
	}
	maps.Copy(all, other)
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRefused(t *testing.T) {
	for _, x := range []struct {
		of, says string
		other    map[string]any
	}{
		{"bloom", "is not supported: there are [gemma ", nil},
		{"", "names no model_type", nil},
		{"llama", "mixture of experts", map[string]any{"num_local_experts": 8}},
		{"qwen3", "mixture of experts", map[string]any{"num_experts": 8}},
		{"llama", "num_hidden_layers is 0", map[string]any{"num_hidden_layers": 0}},
		{"llama", "hidden_size is 1048576", map[string]any{"hidden_size": 1 << 20}},
		{"llama", "4 heads do not share 3 heads", map[string]any{"num_key_value_heads": 3}},
		{"llama", "the epsilon of norms is 0", map[string]any{"rms_norm_eps": 0}},
		{"llama", `activation "mish" is not supported`, map[string]any{"hidden_act": "mish"}},
		{"llama", `rope_scaling "yarn" is not supported`, map[string]any{"rope_scaling": map[string]any{"rope_type": "yarn"}}},
		{"llama", `rope_scaling "longrope" is not supported`, map[string]any{"rope_scaling": map[string]any{"rope_type": "longrope"}}},
		{"llama", "2 of 4 elements of a head are turned: only all", map[string]any{"partial_rotary_factor": 0.5}},
		{"phi3", "1 elements of a head of 4 cannot be turned in pairs", map[string]any{"partial_rotary_factor": 0.25}},
		{"phi3", "0 factors of angles: want 2", map[string]any{"rope_scaling": map[string]any{"type": "su"}}},
		{"phi3", "a factor of angles is 0", map[string]any{"rope_scaling": map[string]any{"type": "longrope", "short_factor": []float32{1, 0}}}},
		{"phi3", "original_max_position_embeddings is 0", map[string]any{"rope_scaling": map[string]any{"type": "longrope", "short_factor": []float32{1, 1}}}},
		{"qwen2", "sliding_window is 0", map[string]any{"sliding_window": 0}},
		{"qwen2", "1 layer_types for 2 layers", map[string]any{"sliding_window": 5, "layer_types": []string{"sliding_attention"}}},
		{"qwen2", `layer type "linear_attention"`, map[string]any{"sliding_window": 5, "layer_types": []string{"linear_attention", "full_attention"}}},
		{"qwen2", "windows of no size", map[string]any{"layer_types": []string{"sliding_attention", "full_attention"}}},
	} {
		if _, err := family.Parse(small(t, x.of, x.other)); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s with %v: %v, want %q", x.of, x.other, err, x.says)
		}
	}
}

// Texts beyond those that longrope's short factors are for are refused: the angles of all their tokens are others.
func TestLongRope(t *testing.T) {
	c, err := family.Parse(small(t, "phi3", map[string]any{
		"rope_scaling": map[string]any{"type": "longrope", "short_factor": []float32{1, 1.5}, "long_factor": []float32{2, 4}}, "original_max_position_embeddings": 32,
		"max_position_embeddings": 1024,
	}))
	if err != nil {
		t.Fatal(err)
	}
	if want := float32(math.Sqrt2); c.Context != 32 || c.Rotary[0].Length != want || c.Rotary[1].Factors[1] != 1.5 { // √(1 + log 32 / log 32)
		t.Errorf("context %d, %+v: want 32, and a length of %v", c.Context, c.Rotary[0], want)
	}
}

// keys is a GGUF file without weights but the embedding's.
func keys(t testing.TB, arch string, other map[string]gguf.Value) *gguf.File {
	t.Helper()
	pairs := []gguf.Pair{{Key: "general.architecture", Data: gguf.Of(arch)}}
	all := map[string]gguf.Value{
		"block_count": gguf.Of(uint32(46)), "embedding_length": gguf.Of(uint32(96)), "attention.head_count": gguf.Of(uint32(4)), "feed_forward_length": gguf.Of(uint32(24)),
		"context_length": gguf.Of(uint32(64)), "attention.layer_norm_rms_epsilon": gguf.Of(float32(1e-6)), "attention.key_length": gguf.Of(uint32(16)),
	}
	maps.Copy(all, other)
	for key, v := range all { // in any order
		pairs = append(pairs, gguf.Pair{Key: arch + "." + key, Data: v})
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, pairs, []gguf.Weight{{Name: "token_embd.weight", Shape: []int{8, 96}, Blocks: bytes.NewReader(make([]byte, 4*8*96))}}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What no key tells of Gemma's models follows from their sizes, as it does in llama.cpp.
func TestGemmaByItsSize(t *testing.T) {
	of2 := func(window uint32) map[string]gguf.Value {
		return map[string]gguf.Value{"attention.sliding_window": gguf.Of(window), "attn_logit_softcapping": gguf.Of(float32(50)), "final_logit_softcapping": gguf.Of(float32(30))}
	}
	large, err := family.ParseGGUF(keys(t, "gemma2", of2(8)))
	if err != nil {
		t.Fatal(err)
	}
	if want := float32(1 / math.Sqrt(24)); large.Scale != want || large.Windows[0] != 7 || large.Windows[1] != -1 || large.Softcap != 50 || large.HeadCap != 30 {
		t.Errorf("scale %v, want %v; windows %v, caps %v and %v", large.Scale, want, large.Windows[:2], large.Softcap, large.HeadCap)
	}
	small, err := family.ParseGGUF(keys(t, "gemma3", map[string]gguf.Value{"attention.sliding_window": gguf.Of(uint32(8)), "rope.freq_base": gguf.Of(float32(1e6)),
		"rope.scaling.type": gguf.Of("linear"), "rope.scaling.factor": gguf.Of(float32(8)), "attention.sliding_window_pattern": gguf.Of(uint32(3))}))
	if err != nil {
		t.Fatal(err)
	}
	if small.Scale != 0.25 || small.Windows[1] != 7 || small.Windows[2] != -1 || small.Rotary[0].Factor != 8 || small.Rotary[1].Factor != 0 || small.Rotary[1].Base != 10_000 {
		t.Errorf("scale %v, windows %v, %+v", small.Scale, small.Windows[:3], small.Rotary)
	}
}

func TestGGUFRefused(t *testing.T) {
	u := func(n uint32) gguf.Value { return gguf.Of(n) }
	for _, x := range []struct {
		arch, says string
		other      map[string]gguf.Value
	}{
		{"qwen3moe", `architecture "qwen3moe" is not supported`, nil},
		{"gemma2", "gemma2.attn_logit_softcapping is missing: convert the model again", nil},
		{"qwen2", "qwen2.attention.sliding_window is not supported", map[string]gguf.Value{"attention.sliding_window": u(7)}},
		{"qwen2", "qwen2.pooling_type is not supported", map[string]gguf.Value{"pooling_type": u(3)}},
		{"qwen3", "qwen3.rope.dimension_sections is not supported", map[string]gguf.Value{"rope.dimension_sections": gguf.ArrayOf[int32](8, 4)}},
		{"phi3", `"rope_factors_short.weight" is missing`, map[string]gguf.Value{"rope.scaling.attn_factor": gguf.Of(float32(1.2))}},
		{"gemma3", "2 layer_types for 46 layers", map[string]gguf.Value{"attention.sliding_window": u(7), "attention.sliding_window_pattern": gguf.ArrayOf(true, false)}},
		{"llama", "8 of 16 elements of a head are turned", map[string]gguf.Value{"rope.dimension_count": u(8)}},
	} {
		if _, err := family.ParseGGUF(keys(t, x.arch, x.other)); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s with %v: %v, want %q", x.arch, x.other, err, x.says)
		}
	}
}

// Whatever a file says, it is refused, or its weights have names.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"../testdata/*/config.json", "../testdata/converted/*.gguf"} {
		all, err := filepath.Glob(pattern)
		if err != nil || len(all) == 0 {
			f.Fatal(all, err)
		}
		for _, name := range all {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b[:min(len(b), 8<<10)])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := family.Parse(b)
		if err != nil {
			file, readErr := gguf.Read(bytes.NewReader(b), math.MaxInt64/2)
			if readErr != nil {
				return
			}
			if c, err = family.ParseGGUF(file); err != nil {
				return
			}
		}
		seen := map[string]bool{}
		for _, w := range c.Weights() {
			if name := c.GGUFName(w.Name); seen[name] || strings.Contains(name, "..") {
				t.Fatalf("%s is called %s", w.Name, name)
			} else {
				seen[name] = true
			}
		}
	})
}

// Whatever a stranger's adapter says, its weights are pairs of the model's products.
func FuzzParseAdapter(f *testing.F) {
	all, err := filepath.Glob("../testdata/adapters/*/adapter_config.json")
	if err != nil || len(all) == 0 {
		f.Fatal(all, err)
	}
	for _, name := range all {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "base_model.model.model.layers.0.mlp.down_proj", uint8(0))
	}
	text, err := os.ReadFile("../testdata/llama/config.json")
	if err != nil {
		f.Fatal(err)
	}
	c, err := family.Parse(text)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte, module string, more uint8) {
		a, err := family.ParseAdapter(b)
		if err != nil {
			return
		}
		if a.Rank < 1 || a.Scale == 0 || a.Scale != a.Scale {
			t.Fatalf("%+v", a)
		}
		names, err := a.AdapterWeights(c, map[string]tensor.Shape{
			module + family.AdapterA: {a.Rank, 24}, module + family.AdapterB: {16 + int(more), a.Rank},
		})
		if err == nil && (len(names) != 2 || more != 0) {
			t.Fatalf("%v", names)
		}
	})
}
