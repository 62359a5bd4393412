package train_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

const golden = "../../vectors/training.json"

// The program of a small training and the state that it reaches are fixed.
func TestGolden(t *testing.T) {
	got := map[string]string{}
	for _, optimizer := range []string{"sgd", "adamw"} {
		r := recipe()
		r.Optimizer = optimizer
		tr := begin(t, bigram(), r)
		s := tr.Start
		for step := range 5 {
			s = run(t, tr.Program, order().Rows(0, step), s)
		}
		root, err := s.Root()
		if err != nil {
			t.Fatal(err)
		}
		got[optimizer+", program"] = tr.Program.Commit().Root().String()
		got[optimizer+", state after 5 steps"] = root.String()
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
