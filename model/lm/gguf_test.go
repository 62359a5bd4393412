package lm

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/model/lm/family"
)

// asGGUF writes a model of a folder as its GGUF file would be: norms with the 1 that is added to them, rows instead of columns, and in Llama's files
// what is turned together as neighbours.
func asGGUF(t *testing.T, m *Model, change func(pairs []gguf.Pair) []gguf.Pair) []byte {
	t.Helper()
	arch, paired := strings.TrimSuffix(m.Family, "_text"), m.Family == "llama"
	pairs := []gguf.Pair{
		{Key: "general.architecture", Data: gguf.Of(arch)}, {Key: arch + ".block_count", Data: gguf.Of(uint32(m.Layers))},
		{Key: arch + ".embedding_length", Data: gguf.Of(uint32(m.Width))}, {Key: arch + ".attention.head_count", Data: gguf.Of(uint32(m.Heads))},
		{Key: arch + ".attention.head_count_kv", Data: gguf.Of(uint32(m.Shared))}, {Key: arch + ".feed_forward_length", Data: gguf.Of(uint32(m.Hidden))},
		{Key: arch + ".context_length", Data: gguf.Of(uint32(m.Context))}, {Key: arch + ".rope.freq_base", Data: gguf.Of(m.Rotary[0].Base)},
	}
	put := func(key string, v gguf.Value) { pairs = append(pairs, gguf.Pair{Key: arch + "." + key, Data: v}) }
	if m.Of.LayerNorm {
		pairs = pairs[:len(pairs)-1]
		put("attention.layer_norm_epsilon", gguf.Of(m.Epsilon))
	} else {
		put("attention.layer_norm_rms_epsilon", gguf.Of(m.Epsilon))
	}
	if m.Of.Scalar {
		put("attention.scale", gguf.Of(m.Scale))
	}
	if m.Of.Softcaps {
		put("attn_logit_softcapping", gguf.Of(m.Softcap))
		put("final_logit_softcapping", gguf.Of(m.HeadCap))
	}
	if m.Of.LocalRotary {
		put("rope.freq_base_swa", gguf.Of(m.Rotary[1].Base))
	}
	looksBack, window := make([]bool, m.Layers), -1
	for i, w := range m.Windows {
		looksBack[i], window = w >= 0, max(window, w)
	}
	if window >= 0 && m.Of.Windowed {
		put("attention.sliding_window", gguf.Of(uint32(window+1)))
		put("attention.sliding_window_pattern", gguf.ArrayOf(looksBack...))
	}
	var weights []gguf.Weight
	write := func(name string, x *tensor.Tensor) {
		weights = append(weights, gguf.Weight{Name: name, Type: quant.F32, Shape: x.Shape, Blocks: bytes.NewReader(x.Bytes())})
	}
	if f := m.Rotary[0].Factors; f != nil {
		put("rope.dimension_count", gguf.Of(uint32(m.Turned)))
		put("rope.scaling.original_context_length", gguf.Of(uint32(m.Context)))
		put("rope.scaling.attn_factor", gguf.Of(m.Rotary[0].Length))
		write("rope_factors_short.weight", vector(f...))
	}
	for _, w := range m.Weights() {
		x := m.weights[w.Name].stored
		switch {
		case paired && (strings.Contains(w.Name, "q_proj") || strings.Contains(w.Name, "k_proj")):
			x = interleaved(x, m.HeadSize)
		case m.Of.UnitOffset && strings.HasSuffix(w.Name, "norm.weight"):
			fallthrough
		case m.Of.UnitOffset && len(w.Shape) == 1:
			x = tensor.Must(tensor.From(x.Shape, slices.Clone(tensor.Of[float32](x))))
			for i, v := range tensor.Of[float32](x) {
				tensor.Of[float32](x)[i] = v + 1
			}
		case m.Of.Columns && len(w.Shape) == 2 && strings.Contains(w.Name, "layers"):
			x = transposed(x)
		}
		write(m.GGUFName(w.Name), x)
	}
	var out bytes.Buffer
	if err := gguf.Write(&out, change(pairs), weights); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// interleaved moves the rows of each head from halves to neighbours.
func interleaved(x *tensor.Tensor, size int) *tensor.Tensor {
	out := tensor.Must(tensor.New(x.Type, x.Shape))
	columns := x.Len() / x.Shape[0]
	for row := range x.Shape[0] {
		head, i := row/size, row%size
		from := head*size + i/2 + i%2*size/2
		for c := range columns {
			out.Set(row*columns+c, x.At(from*columns+c))
		}
	}
	return out
}

func transposed(x *tensor.Tensor) *tensor.Tensor {
	rows, columns := x.Shape[0], x.Shape[1]
	out := tensor.Must(tensor.New(x.Type, tensor.Shape{columns, rows}))
	for i := range x.Len() {
		out.Set(i%columns*rows+i/columns, x.At(i))
	}
	return out
}

func same(pairs []gguf.Pair) []gguf.Pair { return pairs }

// reads returns the logits of tokens, and the program that gives them.
func reads(t *testing.T, m *Model, tokens *tensor.Tensor) (logits []float32, program canon.Hash) {
	t.Helper()
	g, err := m.Graph(tokens.Len(), 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := lowered(g)
	if err != nil {
		t.Fatal(err)
	}
	p.Consts = nil // the weights, in the order of their names
	return tensor.Of[float32](run(t, cpu.New(1), g, map[string]*tensor.Tensor{"tokens": tokens})["logits"]), p.Commit().Root()
}

// A GGUF file of any family is the same model as the folder that it was made of, bit for bit. It has the same graph, unless the file has other weights.
func TestGGUFEqualsTheFolder(t *testing.T) {
	for _, dir := range folders(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			folder, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if folder.Family == "mistral" || folder.Rotary[0].Llama3 != nil {
				t.Skip("the format has no such key")
			}
			b := asGGUF(t, folder, same)
			m, err := ReadGGUF(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			tokens, _ := expected(t, dir)
			got, program := reads(t, m, tokens)
			want, its := reads(t, folder, tokens)
			if !slices.Equal(got, want) {
				t.Error("other logits")
			}
			if !folder.Of.UnitOffset && !folder.Of.Columns && program != its {
				t.Error("another graph")
			}
		})
	}
}

// What llama.cpp's converter makes of a folder is the same model, bit for bit, as far as the converter says all that the folder does.
func TestConvertedEqualsTheFolder(t *testing.T) {
	unsaid := map[string]func(c *family.Config){ // what it leaves out of these
		"mistral": func(c *family.Config) { c.Windows = []int{-1, -1} },
		"gemma2":  func(c *family.Config) { c.Scale = 0.5 },
		"gemma3":  func(c *family.Config) { c.Scale, c.Windows = 0.5, []int{4, 4, 4} },
	}
	for _, dir := range folders(t) {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			folder, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if unsaid[name] != nil {
				unsaid[name](&folder.Config)
			}
			m, err := OpenGGUF("testdata/converted/" + name + ".gguf")
			if err != nil {
				t.Fatal(err)
			}
			tokens, _ := expected(t, dir)
			got, _ := reads(t, m, tokens)
			want, _ := reads(t, folder, tokens)
			most := 0.0
			if name == "llama3" { // factors are rounded, and have been computed in another order
				most = 1e-4
			}
			for i := range want {
				if d := math.Abs(float64(got[i] - want[i])); !(d <= most) {
					t.Fatalf("logit %d is %v, want %v", i, got[i], want[i])
				}
			}
		})
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
		`architecture "mamba" is not supported: there are [gemma gemma2 gemma3 gpt2 llama phi3 qwen2 qwen3]`: set("general.architecture", gguf.Of("mamba")),
		"head_dim is 0":                                   set("llama.attention.head_count", gguf.Of(uint32(17))),
		"llama.block_count is 4294967295":                 set("llama.block_count", gguf.Of(uint32(math.MaxUint32))),
		"want 1 to 512":                                   set("llama.block_count", gguf.Of(uint32(513))),
		`weight "blk.2.attn_norm.weight" is missing`:      set("llama.block_count", gguf.Of(uint32(3))),
		`weight "blk.0.ffn_gate.weight" is [24 16]:`:      set("llama.feed_forward_length", gguf.Of(uint32(25))),
		"layer_norm_rms_epsilon is NaN":                   set("llama.attention.layer_norm_rms_epsilon", gguf.Of(float32(math.NaN()))),
		"is a mixture of experts (llama.expert_count)":    set("llama.expert_count", gguf.Of(uint32(8))),
		`llama.rope.scaling.type "yarn" is not supported`: set("llama.rope.scaling.type", gguf.Of("yarn")),
		"2 of 4 elements of a head are turned":            set("llama.rope.dimension_count", gguf.Of(uint32(2))),
		"llama.attention.sliding_window is not suppo":     set("llama.attention.sliding_window", gguf.Of(uint32(2))),
		"llama.logit_scale is not supported":              set("llama.logit_scale", gguf.Of(float32(2))),
		"keys of 4 elements and values of 8":              set("llama.attention.value_length", gguf.Of(uint32(8))),
		"tokens that see those after them":                set("llama.attention.causal", gguf.Of(false)),
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
