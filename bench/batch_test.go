package bench

import (
	"testing"
)

// What tally bench batch measures happens: a devnet gives what the engine alone does.
func TestBatchBesideTheEngine(t *testing.T) {
	rows, err := batchBeside(t.Context(), t.Logf, encoder{vocab: 50, words: 4, width: 8, layers: 1, heads: 2}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Value <= 0 {
			t.Errorf("%v", r)
		}
	}
	if len(rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
}
