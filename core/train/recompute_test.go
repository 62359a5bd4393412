package train_test

import (
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// What is computed again has the bits that it had, so training ends in the same
// state.
func TestRecomputationChangesNoBit(t *testing.T) {
	dropping := small
	dropping.vocabulary, dropping.context, dropping.layers, dropping.dropout = vocab, context, 3, true
	models := map[string]*graph.Graph{
		"mlp": deepMLP(8, 8, batch, context), "cnn": images(batch, context), "gpt": dropping.graph(batch),
	}
	changes := map[string]func(*train.Recipe){
		"adamw":       func(*train.Recipe) {},
		"clipped":     func(r *train.Recipe) { r.Optimizer, r.Momentum, r.ClipNorm = "sgd", 0.9, 0.5 },
		"accumulated": func(r *train.Recipe) { r.Accumulate = 2 },
		"adapters": func(r *train.Recipe) {
			r.Adapters = train.Adapters{Rank: 2, Alpha: 4, Of: []string{"embedding"}}
		},
		"frozen": func(r *train.Recipe) { r.Frozen = []string{"embedding", "*.bias"} },
		"mixed":  func(r *train.Recipe) { r.Profile = lower.Mixed },
		"int8":   func(r *train.Recipe) { r.Profile = lower.Int8 },
	}
	for model, g := range models {
		for name, change := range changes {
			t.Run(model+", "+name, func(t *testing.T) {
				t.Parallel()
				r := recipe()
				change(&r)
				plain := begin(t, g, r)
				want := plain.Start
				for step := range 3 {
					want = run(t, plain.Program, order().Rows(0, step), want)
				}
				for _, parts := range []int{2, 100} {
					r.Recompute = parts
					tr := begin(t, g, r)
					if tr.Program.Commit().Root() == plain.Program.Commit().Root() {
						t.Fatalf("%d parts: nothing is computed again", parts)
					}
					got := tr.Start
					for step := range 3 {
						got = run(t, tr.Program, order().Rows(0, step), got)
					}
					for i, slot := range want.Slots {
						if got.Slots[i].Name != slot.Name || !got.Tensors[i].Equal(want.Tensors[i]) {
							t.Errorf("%d parts: slot %q differs", parts, slot.Name)
						}
					}
				}
			})
		}
	}
}

// Recomputation trades memory for at most one more forward pass.
func TestRecomputationSavesMemory(t *testing.T) {
	const rows, columns = 32, 33
	for name, c := range map[string]struct {
		g     *graph.Graph
		parts int
		least float64 // by how much the peak falls
	}{
		"mlp of 16 layers": {deepMLP(16, 16, rows, columns-1), 8, 2},
		"gpt of 6 layers":  {gpt{vocabulary: 16, context: columns - 1, width: 16, heads: 4, layers: 6}.graph(rows), 6, 4},
	} {
		r := recipe()
		r.Batch = rows
		records := tensor.Shape{rows, columns}
		cost := func(parts int) (peak, flops, forward int) {
			r.Recompute = parts
			tr, err := train.New(c.g, r, records)
			if err != nil {
				t.Fatal(err)
			}
			eval, err := tr.Evaluate(records)
			if err != nil {
				t.Fatal(err)
			}
			return tr.Program.Peak(), int(tr.Program.Cost().FLOPs), int(eval.Batch.Cost().FLOPs)
		}
		peak, flops, forward := cost(0)
		less, more, _ := cost(c.parts)
		t.Logf("%s, %d parts: peak %d → %d bytes (%.1f times less), %d → %d FLOP (%.2f forward passes more)",
			name, c.parts, peak, less, float64(peak)/float64(less), flops, more, float64(more-flops)/float64(forward))
		if float64(peak) < c.least*float64(less) {
			t.Errorf("%s: the peak falls from %d to %d bytes", name, peak, less)
		}
		if more-flops > forward {
			t.Errorf("%s: %d FLOP instead of %d, a forward pass has %d", name, more, flops, forward)
		}
	}
}
