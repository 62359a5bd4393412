package app_test

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/histories"
)

// However a node comes to a block of a random history, it has the state of the others. What it exports begins another chain, which
// goes on as this one does. node/statesync has it begin at a snapshot. make histories plays more of them.
func TestHistories(t *testing.T) {
	var all histories.Counts
	first, n := histories.Seeds(t)
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := histories.Write(t, seed)
			h.Replayed(t)
			h.Killed(t)
			on := h.Imported(t)
			c := h.Count(t)
			all.Add(c)
			t.Logf("seed %d: %v; %d blocks after an import", seed, c, on)
		})
	}
	t.Logf("all: %v", all)
	if all.Settled == 0 || all.Disputes == 0 || all.Votes == 0 || all.Sets == 0 {
		t.Error("these histories have no lease that settles, no dispute, no vote or no rotation")
	}
	types, err := chaintest.Messages()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("executed: %s\nnever: %v", histories.Brief(all.Executed), all.Missing(types))
}
