package bench

import (
	"context"
	"testing"

	"github.com/tally-network/tally/core/graph"
)

// What does not depend on the machine meets its targets.
func TestProofFigures(t *testing.T) {
	for _, part := range []func(context.Context, Options) ([]Row, error){longest, disputing, others} {
		rows, err := part(t.Context(), Options{Tell: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			t.Log(r)
			if r.Met != nil && !*r.Met {
				t.Errorf("%s is %v %s", r.Name, r.Value, r.Unit)
			}
		}
	}
}

// BenchmarkSegment trains a segment of the GPT, with and without a checkpoint beside it.
func BenchmarkSegment(b *testing.B) {
	t, err := newProvenTraining(2)
	if err != nil {
		b.Fatal(err)
	}
	defer t.close()
	for name, beside := range map[string]func(*graph.State) error{"plain": func(*graph.State) error { return nil }, "proven": t.keep} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := t.segment(b.Context(), beside); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
