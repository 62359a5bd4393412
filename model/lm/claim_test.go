package lm

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/model/lm/family"
)

// What reads as a request is what writing it gives.
func FuzzRequest(f *testing.F) {
	for _, r := range []Request{{}, {Prompt: []int32{1, 2, 300}, Made: 1, MaxTokens: 5, Ends: []int32{7}, Seed: 1 << 63, Likeliest: 3},
		{Sampling: Sampling{Temperature: 0.7, TopK: 40, TopP: 0.9, Bias: map[int32]float32{1: -100, 2: 3}}}} {
		f.Add(canon.Marshal(&r))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Request
		if canon.UnmarshalWithin(b, &r, 64<<20) != nil {
			return
		}
		if again := canon.Marshal(&r); !bytes.Equal(again, b) {
			t.Fatalf("%x is written as %x", b, again)
		}
		_ = r.Check(&Model{Config: family.Config{Vocabulary: 100, Context: 1000}})
	})
}

// All requests have the slots of one, and no two of them one identity.
func TestIdentities(t *testing.T) {
	some := Request{Prompt: []int32{1, 2, 3}, Made: 1, MaxTokens: 5, Ends: []int32{7}, Seed: 1 << 40, Likeliest: 3, Sampling: Sampling{Temperature: 0.5, TopK: 4, Bias: map[int32]float32{3: 1, 0: 2}}}
	seen := map[canon.Hash]string{}
	for name, change := range map[string]func(r *Request){
		"as it is": func(*Request) {}, "a longer prompt": func(r *Request) { r.Prompt = append(slices.Clone(r.Prompt), 0) }, "another prompt": func(r *Request) { r.Prompt = []int32{1, 2, 4} },
		"made": func(r *Request) { r.Made = 2 }, "max_tokens": func(r *Request) { r.MaxTokens = 6 }, "ends": func(r *Request) { r.Ends = []int32{7, 8} }, "no ends": func(r *Request) { r.Ends = nil },
		"seed": func(r *Request) { r.Seed++ }, "high seed": func(r *Request) { r.Seed += 1 << 32 }, "likeliest": func(r *Request) { r.Likeliest = 0 },
		"temperature": func(r *Request) { r.Sampling.Temperature = 1 }, "top_k": func(r *Request) { r.Sampling.TopK = 5 }, "top_p": func(r *Request) { r.Sampling.TopP = 0.5 },
		"min_p": func(r *Request) { r.Sampling.MinP = 0.5 }, "repeat": func(r *Request) { r.Sampling.Repeat = 0.5 }, "presence": func(r *Request) { r.Sampling.Presence = 0.5 },
		"frequency": func(r *Request) { r.Sampling.Frequency = 0.5 }, "another bias": func(r *Request) { r.Sampling.Bias = map[int32]float32{3: 1, 0: 1} }, "fewer biases": func(r *Request) { r.Sampling.Bias = map[int32]float32{3: 1} },
	} {
		r := some
		change(&r)
		if err := r.State().Fits(some.State().Slots); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if other, ok := seen[r.ID()]; ok {
			t.Errorf("%s and %s are one", name, other)
		}
		seen[r.ID()] = name
	}
	some.Owner, some.Pages = "somebody", true
	if seen[some.ID()] != "as it is" {
		t.Error("what changes no token changes the identity")
	}
}

// What has no room in a request's state is refused.
func TestRequestsTooLarge(t *testing.T) {
	m := &Model{Config: family.Config{Vocabulary: 2000, Context: 1000}}
	many := map[int32]float32{}
	for id := range int32(MaxBias + 1) {
		many[id] = 1
	}
	for says, r := range map[string]Request{
		"65 tokens end the reply": {Ends: make([]int32, MaxEnds+1)}, "1025 tokens have a bias": {Sampling: Sampling{Bias: many}},
	} {
		r.Prompt, r.MaxTokens = []int32{1}, 1
		if err := r.Check(m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		var back Request
		if canon.Unmarshal(canon.Marshal(&r), &back) == nil {
			t.Errorf("it can be sent: %s", says)
		}
		_ = r.ID() // of what was not checked there is one, too
	}
}

// A page of tokens is filled up with zeros, and the next begins after Chunk tokens.
func TestTokenPages(t *testing.T) {
	tokens := make([]int32, Chunk+1)
	tokens[Chunk] = 5
	pages := TokenPages(tokens)
	if len(pages) != 2 || pages[1] != TokenPages([]int32{5, 0})[0] || pages[0] == pages[1] || TokensRoot(tokens) != canon.Root(pages) {
		t.Errorf("pages %v", pages)
	}
}

func BenchmarkRequestID(b *testing.B) {
	r := Request{Prompt: make([]int32, 1024), MaxTokens: 5}
	b.ReportAllocs()
	for b.Loop() {
		_ = r.ID()
	}
}
