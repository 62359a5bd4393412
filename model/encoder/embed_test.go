package encoder

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/engine/cpu"
)

// Vectors are the reference's, and bit for bit those that each text has alone.
func TestEmbedder(t *testing.T) {
	c := tiny
	c.Positions = 40
	e, err := read(t, c, chance(c))
	if err != nil {
		t.Fatal(err)
	}
	m := e.NewEmbedder(cpu.New(2))
	var texts [][]int32
	for i := range 90 {
		text := make([]int32, 1+i*7%c.Positions)
		for j := range text {
			text[j] = int32((i*31 + j*17) % c.Vocabulary)
		}
		texts = append(texts, text)
	}
	all, err := m.Embed(t.Context(), texts)
	if err != nil || len(all) != len(texts) {
		t.Fatal(len(all), err)
	}
	ref := reference{c, chance(c)}
	for i, text := range texts {
		alone, err := m.Embed(t.Context(), [][]int32{text})
		if err != nil || !slices.Equal(alone[0], all[i]) {
			t.Errorf("text %d: %v alone, %v in a batch, %v", i, alone, all[i], err)
		}
		ids, mask := make([]int64, len(text)), make([]int64, len(text))
		for j, id := range text {
			ids[j], mask[j] = int64(id), 1
		}
		for j, w := range ref.embed(ids, mask) {
			if g := float64(all[i][j]); math.Abs(g-w) > 2e-6 {
				t.Errorf("text %d, element %d is %v, want %v", i, j, g, w)
			}
		}
	}
	for says, text := range map[string][]int32{"has 0 tokens": {}, "has 41 tokens": make([]int32, 41), "token 11": {11}, "token -1": {-1}} {
		if _, err := m.Embed(t.Context(), [][]int32{text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	m.turn <- struct{}{}
	if _, err := m.Embed(ctx, texts); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestLengths(t *testing.T) {
	m := (&Encoder{Config: Config{Positions: 300}}).NewEmbedder(nil)
	for n, want := range map[int]int{1: 8, 8: 8, 9: 12, 12: 12, 13: 16, 33: 48, 49: 64, 65: 96, 128: 128, 129: 192, 193: 256, 257: 300, 300: 300} {
		if got := m.length(n); got != want {
			t.Errorf("%d tokens are padded to %d, want %d", n, got, want)
		}
	}
}
