package lm

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
)

// A session gives the logits of the whole, however its tokens come.
func TestSessionsEqualTheWhole(t *testing.T) {
	for _, dir := range folders(t) {
		m, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		given, _ := expected(t, dir)
		tokens := int32s(tensor.Of[int64](given))
		g, err := m.Graph(len(tokens), 0)
		if err != nil {
			t.Fatal(err)
		}
		whole := tensor.Of[float32](run(t, cpu.New(1), g, map[string]*tensor.Tensor{"tokens": given})["logits"])
		for _, cuts := range [][]int{{1, 2, 3, 4, 5, 6, 20}, {5, 6, 7, 12, 13, 20}, {20}, {18, 19, 20}} {
			for _, e := range []engine.Executor{cpu.New(1), cpu.New(2), engine.Reference{}} {
				s := m.NewSession(e)
				for _, end := range cuts {
					got, err := s.Append(context.Background(), tokens[s.Len():end]...)
					if err != nil {
						t.Fatal(err)
					}
					if want := whole[(end-1)*m.Vocabulary : end*m.Vocabulary]; !slices.Equal(got, want) {
						t.Fatalf("%s: after %d tokens in %v the logits are others", m.Family, end, cuts)
					}
				}
			}
		}
	}
}

func int32s(x []int64) []int32 {
	y := make([]int32, len(x))
	for i := range x {
		y[i] = int32(x[i])
	}
	return y
}

func TestSessionRefusals(t *testing.T) {
	m, err := Open("testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	s := m.NewSession(cpu.New(1))
	for says, tokens := range map[string][]int32{
		"no tokens": {}, "token 48: want 0 to 47": {1, 48}, "token -1": {-1}, "65 tokens after 0 are more than its context of 64": make([]int32, 65),
	} {
		if _, err := s.Append(context.Background(), tokens...); err == nil || !strings.Contains(err.Error(), says) || s.Len() > 0 {
			t.Errorf("%v, want %q; %d tokens were taken", err, says, s.Len())
		}
	}
	if _, err := s.Append(context.Background(), make([]int32, 64)...); err != nil {
		t.Errorf("a whole context: %v", err)
	}
	if _, err := s.Append(context.Background(), 0); err == nil {
		t.Error("more than the context was taken")
	}
}

// With TALLY_GGUF, tokens a second of a real model: one after the other, and of a prompt.
func BenchmarkSession(b *testing.B) {
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		b.Skip("TALLY_GGUF names no file")
	}
	m, err := OpenGGUF(path)
	if err != nil {
		b.Fatal(err)
	}
	prompt := make([]int32, 4*Chunk)
	for i := range prompt {
		prompt[i] = int32(i*31%m.Vocabulary + 1)
	}
	for _, threads := range []int{1, 2} {
		e := cpu.New(threads)
		stages := m.Stages(e)
		warm := stages.NewSession()
		if _, err := warm.Append(context.Background(), prompt[:2*Chunk]...); err != nil {
			b.Fatal(err)
		}
		if _, err := warm.Append(context.Background(), 1); err != nil {
			b.Fatal(err)
		}
		b.Run("prefill/t"+string(rune('0'+threads)), func(b *testing.B) {
			for b.Loop() {
				if _, err := stages.NewSession().Append(context.Background(), prompt...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(prompt)*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
		b.Run("decode/t"+string(rune('0'+threads)), func(b *testing.B) {
			best := time.Hour
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				warm.read.Cut(2 * Chunk)
				if _, err := warm.Append(context.Background(), 1); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(start))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
			b.ReportMetric(1/best.Seconds(), "tokens/s-at-best")
		})
	}
}

// The roots that a receipt has, of a short reply and of a long one, and what part of the time they take in which it was made.
func BenchmarkRoots(b *testing.B) {
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		b.Skip("TALLY_GGUF names no file")
	}
	m, err := OpenGGUF(path)
	if err != nil {
		b.Fatal(err)
	}
	stages := m.Stages(cpu.New(2))
	for _, c := range []struct{ prompt, reply int }{{32, 16}, {130, 60}, {1024, 250}} {
		b.Run(fmt.Sprintf("%d+%d", c.prompt, c.reply), func(b *testing.B) {
			tokens := make([]int32, c.prompt)
			for i := range tokens {
				tokens[i] = int32(i*31%m.Vocabulary + 1)
			}
			s, served := stages.NewSession(), time.Duration(math.MaxInt64)
			for range 2 { // the first is slower: it plans
				start := time.Now()
				s = stages.NewSession()
				if _, err := s.Append(b.Context(), tokens...); err != nil {
					b.Fatal(err)
				}
				for i := range c.reply {
					if _, err := s.Append(b.Context(), int32(i)); err != nil {
						b.Fatal(err)
					}
				}
				served = min(served, time.Since(start))
			}
			b.ReportAllocs()
			for b.Loop() {
				s.read.pages = nil
				if _, err := s.read.PagesRoot(2); err != nil {
					b.Fatal(err)
				}
				_ = TokensRoot(tokens)
			}
			b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(served), "%ofserving")
		})
	}
}
