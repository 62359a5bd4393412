package lm

import (
	"bytes"
	"testing"

	"github.com/tally-network/tally/core/canon"
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
		_ = r.Check(&Model{Config: Config{Vocabulary: 100, Context: 1000}})
	})
}
