package lm

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/gguf"
)

// asGGUF writes a model of Llama's as its GGUF file would be: what is turned together are neighbours.
func asGGUF(t *testing.T, m *Model, change func(pairs []gguf.Pair) []gguf.Pair) []byte {
	t.Helper()
	pairs := change([]gguf.Pair{
		{Key: "general.architecture", Data: gguf.Of("llama")}, {Key: "llama.block_count", Data: gguf.Of(uint32(m.Layers))},
		{Key: "llama.embedding_length", Data: gguf.Of(uint32(m.Width))}, {Key: "llama.attention.head_count", Data: gguf.Of(uint32(m.Heads))},
		{Key: "llama.attention.head_count_kv", Data: gguf.Of(uint32(m.Shared))}, {Key: "llama.feed_forward_length", Data: gguf.Of(uint32(m.Hidden))},
		{Key: "llama.context_length", Data: gguf.Of(uint32(m.Context))}, {Key: "llama.attention.layer_norm_rms_epsilon", Data: gguf.Of(m.Epsilon)},
	})
	var weights []gguf.Weight
	for _, w := range m.needs() {
		x := m.weights[w.name].stored
		if strings.Contains(w.name, "q_proj") || strings.Contains(w.name, "k_proj") {
			x = interleaved(x, m.HeadSize)
		}
		weights = append(weights, gguf.Weight{Name: ggufName(w.name), Type: quant.F32, Shape: x.Shape, Blocks: bytes.NewReader(x.Bytes())})
	}
	var out bytes.Buffer
	if err := gguf.Write(&out, pairs, weights); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// interleaved moves the rows of each head from halves to neighbours.
func interleaved(x *tensor.Tensor, size int) *tensor.Tensor {
	out := tensor.Must(tensor.New(x.Type, x.Shape))
	columns := x.Shape[1]
	for row := range x.Shape[0] {
		head, i := row/size, row%size
		from := head*size + i/2 + i%2*size/2
		for c := range columns {
			out.Set(row*columns+c, x.At(from*columns+c))
		}
	}
	return out
}

func same(pairs []gguf.Pair) []gguf.Pair { return pairs }

// A GGUF file is the same model as the folder that it was made of.
func TestGGUFEqualsTheFolder(t *testing.T) {
	folder, err := Open("testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	b := asGGUF(t, folder, same)
	m, err := ReadGGUF(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	tokens, want := expected(t, "testdata/llama")
	g, err := m.Graph(tokens.Len(), 0)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, cpu.New(1), g, map[string]*tensor.Tensor{"tokens": tokens})["logits"]
	for i, x := range tensor.Of[float32](got) {
		if y := tensor.Of[float32](want)[i]; !(math.Abs(float64(x-y)) < 2e-4) {
			t.Fatalf("logit %d is %v, want %v", i, x, y)
		}
	}
}

func TestGGUFRefusals(t *testing.T) {
	folder, err := Open("testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	set := func(key string, v gguf.Value) func(pairs []gguf.Pair) []gguf.Pair {
		return func(pairs []gguf.Pair) []gguf.Pair {
			for i := range pairs {
				if pairs[i].Key == key {
					pairs[i].Data = v
					return pairs
				}
			}
			return append(pairs, gguf.Pair{Key: key, Data: v})
		}
	}
	for says, change := range map[string]func(pairs []gguf.Pair) []gguf.Pair{
		`architecture "mamba" is not supported`:       set("general.architecture", gguf.Of("mamba")),
		"head_dim is 0":                               set("llama.attention.head_count", gguf.Of(uint32(17))),
		"llama.block_count is 4294967295":             set("llama.block_count", gguf.Of(uint32(math.MaxUint32))),
		"want 1 to 512":                               set("llama.block_count", gguf.Of(uint32(513))),
		`weight "blk.2.attn_norm.weight" is missing`:  set("llama.block_count", gguf.Of(uint32(3))),
		`weight "blk.0.ffn_gate.weight" is [24 16]:`:  set("llama.feed_forward_length", gguf.Of(uint32(25))),
		"layer_norm_rms_epsilon is NaN":               set("llama.attention.layer_norm_rms_epsilon", gguf.Of(float32(math.NaN()))),
		"llama.expert_count is not supported":         set("llama.expert_count", gguf.Of(uint32(8))),
		"llama.rope.scaling.type is not supported":    set("llama.rope.scaling.type", gguf.Of("yarn")),
		"2 of 4 elements of a head are turned":        set("llama.rope.dimension_count", gguf.Of(uint32(2))),
		"llama.attention.sliding_window is not suppo": set("llama.attention.sliding_window", gguf.Of(uint32(2))),
	} {
		b := asGGUF(t, folder, change)
		if _, err := ReadGGUF(bytes.NewReader(b), int64(len(b))); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// With TALLY_GGUF, the file of a real model: what it goes on with, greedily.
func TestRealGGUF(t *testing.T) {
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		t.Skip("TALLY_GGUF names no file")
	}
	m, err := OpenGGUF(path)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var held runtime.MemStats
	runtime.ReadMemStats(&held)
	t.Logf("%.4g MB of heap", float64(held.HeapAlloc)/1e6)
	t.Logf("%s: %d layers, %d weights, %d bytes for a token's keys and values", m.Family, m.Layers, m.Parameters(), m.TokenBytes())
	tokens := []int64{504, 3575, 282, 4649, 314} // "The capital of France is" of SmolLM2
	for range 8 {
		g, err := m.Graph(len(tokens), 0)
		if err != nil {
			t.Fatal(err)
		}
		logits := tensor.Of[float32](run(t, cpu.New(2), g, map[string]*tensor.Tensor{"tokens": tensor.Must(tensor.From(tensor.Shape{len(tokens)}, tokens))})["logits"])
		last := logits[len(logits)-m.Vocabulary:]
		best := 0
		for i, x := range last {
			if x > last[best] {
				best = i
			}
		}
		t.Logf("%d: %.5f", best, last[best])
		tokens = append(tokens, int64(best))
	}
}
