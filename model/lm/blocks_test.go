package lm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/model/lm/family"
)

// blocky returns the file of a small model whose matrices are blocks of a type, drawn, with scales of about 1/256.
func blocky(t testing.TB, of quant.Type) []byte {
	t.Helper()
	c, err := family.Parse([]byte(`{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 512,
		"vocab_size": 80, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": true}`))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(uint64(of), 1))
	pairs := []gguf.Pair{
		{Key: "general.architecture", Data: gguf.Of("llama")}, {Key: "llama.block_count", Data: gguf.Of(uint32(c.Layers))},
		{Key: "llama.embedding_length", Data: gguf.Of(uint32(c.Width))}, {Key: "llama.attention.head_count", Data: gguf.Of(uint32(c.Heads))},
		{Key: "llama.attention.head_count_kv", Data: gguf.Of(uint32(c.Shared))}, {Key: "llama.feed_forward_length", Data: gguf.Of(uint32(c.Hidden))},
		{Key: "llama.context_length", Data: gguf.Of(uint32(c.Context))}, {Key: "llama.attention.layer_norm_rms_epsilon", Data: gguf.Of(c.Epsilon)},
	}
	var weights []gguf.Weight
	for _, w := range c.Weights() {
		typ := of
		if len(w.Shape) == 1 {
			typ = quant.F32
		}
		size, err := typ.Size(w.Shape)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		tame(b, typ)
		weights = append(weights, gguf.Weight{Name: c.GGUFName(w.Name), Type: typ, Shape: w.Shape, Blocks: bytes.NewReader(b)})
	}
	var out bytes.Buffer
	if err := gguf.Write(&out, pairs, weights); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tame gives scales, and elements that have none, a size of about 1/256.
func tame(b []byte, of quant.Type) {
	_, size := of.Block()
	high := map[quant.Type][]int{quant.F32: {3}, quant.F16: {1}, quant.BF16: {1}, quant.Q6_K: {209}, quant.Q4_1: {1, 3}, quant.Q5_1: {1, 3}, quant.Q4_K: {1, 3}, quant.Q5_K: {1, 3}}[of]
	if high == nil {
		high = []int{1}
	}
	for _, at := range high {
		for i := at; i < len(b); i += size {
			switch of {
			case quant.F32, quant.BF16:
				b[i] = 0x3b | b[i]&0x80
			default:
				b[i] = 0x18 | b[i]&0x83
			}
		}
	}
}

// A model whose weights stay in blocks has the logits of the one that was dequantised, bit for bit.
func TestBlocksEqualTheirElements(t *testing.T) {
	tokens := []int32{5, 79, 0, 31, 31, 2, 64, 17, 8}
	for _, of := range quant.Types {
		b := blocky(t, of)
		m, err := ReadGGUF(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		floats := dequantized(t, bytes.NewReader(b), int64(len(b)), m)
		var want [][]float32
		for i, e := range []engine.Executor{cpu.New(1), cpu.New(1), cpu.New(2), engine.Reference{}} {
			s := m.NewSession(e)
			if i == 0 {
				s = floats.NewSession(e)
			}
			for j, part := range [][]int32{tokens[:6], tokens[6:7], tokens[7:]} {
				if _, ok := e.(engine.Reference); ok && j > 0 {
					break // it takes its time
				}
				got, err := s.Append(context.Background(), part...)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					want = append(want, slices.Clone(got))
				} else if !slices.Equal(got, want[j]) {
					t.Fatalf("%v, %s: part %d has other logits", of, e.Name(), j)
				}
			}
		}
	}
}

// With TALLY_GGUF, a real model has the logits of its dequantised weights.
func TestRealBlocks(t *testing.T) {
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		t.Skip("TALLY_GGUF names no file")
	}
	m, err := OpenGGUF(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	floats := dequantized(t, file, info.Size(), m)
	a, b := m.NewSession(cpu.New(2)), floats.NewSession(cpu.New(2))
	for _, tokens := range [][]int32{{504, 3575, 282, 4649, 314}, {7042}, {30}, {504, 3575}} {
		got, err := a.Append(context.Background(), tokens...)
		if err != nil {
			t.Fatal(err)
		}
		want, err := b.Append(context.Background(), tokens...)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after %d tokens the logits are others", a.Len())
		}
	}
}

// dequantized returns the model of a file with all its weights as float32.
func dequantized(t testing.TB, src io.ReaderAt, size int64, m *Model) *Model {
	t.Helper()
	f, err := gguf.Read(src, size)
	if err != nil {
		t.Fatal(err)
	}
	plain := map[string]*tensor.Tensor{}
	for _, w := range m.Weights() {
		x, _ := f.Find(m.GGUFName(w.Name))
		if plain[w.Name], err = f.Float32(x); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(w.Name, "q_proj") || strings.Contains(w.Name, "k_proj") {
			family.MoveRows(plain[w.Name], m.HeadSize, false)
		}
	}
	floats, err := New(&m.Config, plain)
	if err != nil {
		t.Fatal(err)
	}
	return floats
}

// With TALLY_GGUF, tokens a second of a real model in blocks, beside those of its dequantised weights, by plans at hand: a token
// after 256, and a prompt's first 128 and 512.
func BenchmarkBlocks(b *testing.B) {
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		b.Skip("TALLY_GGUF names no file")
	}
	m, err := OpenGGUF(path)
	if err != nil {
		b.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		b.Fatal(err)
	}
	models := []struct {
		name string
		*Model
	}{{"blocks", m}, {"float32", dequantized(b, file, info.Size(), m)}}
	for _, at := range []struct{ rows, past int }{{1, 256}, {128, 0}, {512, 0}} {
		for _, threads := range []int{1, 2} {
			for _, x := range models {
				b.Run(fmt.Sprintf("%d after %d/t%d/%s", at.rows, at.past, threads, x.name), func(b *testing.B) {
					g, err := x.Graph(at.rows, at.past)
					if err != nil {
						b.Fatal(err)
					}
					p, err := lowered(g)
					if err != nil {
						b.Fatal(err)
					}
					r, err := cpu.New(threads).Prepare(p)
					if err != nil {
						b.Fatal(err)
					}
					s := &graph.State{Slots: p.Slots}
					for _, slot := range p.Slots {
						s.Tensors = append(s.Tensors, tensor.Must(tensor.New(slot.Type, slot.Shape)))
					}
					run := func() {
						if _, err := r.Run(context.Background(), graph.Inputs{States: []*graph.State{s}}, nil); err != nil {
							b.Fatal(err)
						}
					}
					run()
					least := time.Hour // others may be at work
					for b.Loop() {
						begun := time.Now()
						run()
						least = min(least, time.Since(begun))
					}
					b.ReportMetric(float64(at.rows)/least.Seconds(), "tokens/s-at-best")
				})
			}
		}
	}
}
