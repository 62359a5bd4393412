package train_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"testing"

	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/train"
)

var update = flag.Bool("update", false, "write the golden files anew")

const golden = "../../vectors/training.json"

// The program of a small training and the state that it reaches are fixed.
func TestGolden(t *testing.T) {
	got := map[string]string{}
	for name, change := range map[string]func(*train.Recipe){
		"sgd":      func(r *train.Recipe) { r.Optimizer = "sgd" },
		"adamw":    func(*train.Recipe) {},
		"adam":     func(r *train.Recipe) { r.Optimizer = "adam" },
		"adagrad":  func(r *train.Recipe) { r.Optimizer = "adagrad" },
		"nesterov": func(r *train.Recipe) { r.Optimizer, r.Momentum, r.Nesterov = "sgd", 0.9, true },
		"cosine, clipped, accumulated": func(r *train.Recipe) {
			r.Schedule, r.Decay, r.Final, r.ClipNorm, r.Accumulate = "cosine", 4, 0.1, 0.5, 2
		},
		"mixed":      func(r *train.Recipe) { r.Profile = lower.Mixed },
		"int8":       func(r *train.Recipe) { r.Profile = lower.Int8 },
		"recomputed": func(r *train.Recipe) { r.Recompute = 2 },
		"adapters": func(r *train.Recipe) {
			r.Adapters = train.Adapters{Rank: 2, Alpha: 1, Of: []string{"head"}}
		},
	} {
		r := recipe()
		change(&r)
		tr := begin(t, bigram(), r)
		s := tr.Start
		for step := range 5 {
			s = run(t, tr.Program, order().Rows(0, step), s)
		}
		root, err := s.Root()
		if err != nil {
			t.Fatal(err)
		}
		got[name+", program"] = tr.Program.Commit().Root().String()
		got[name+", state after 5 steps"] = root.String()
	}
	if *update {
		b, err := json.MarshalIndent(got, "", "\t")
		if err == nil {
			err = os.WriteFile(golden, append(b, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
