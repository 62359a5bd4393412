package lead

import (
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// No more units are given out than have as many different providers, however their places are
// drawn; who has committed is free for the next.
func TestUnitsAreGivenOutWhosePlacesCanBeFilled(t *testing.T) {
	l := roundOf(9, "a", "b", "c")
	l.Order.Conditions.Replicas = 2
	wants := func(what string, want int) {
		t.Helper()
		if got := placeable(l); len(got) != want {
			t.Errorf("%s: units %v are given out, want %d", what, got, want)
		}
	}
	wants("at first", 2)
	l.Units[0] = job.Unit{Status: job.Assigned}
	wants("before the draw", 1)
	l.Units[0].Replicas = []job.Replica{{Provider: "a"}, {Provider: "b"}}
	wants("after the draw", 1)
	l.Units[1] = job.Unit{Status: job.Assigned, Replicas: []job.Replica{{Provider: "a"}, {Provider: "b"}}}
	wants("when two have as many as they may", 0)
	l.Units[0].Replicas[0].Commit, l.Units[0].Replicas[1].Commit = canon.Hash{1}, canon.Hash{2}
	wants("when two have committed", 1)
	l.Barred = []string{"c"}
	wants("when one is barred", 0)
	l.Units[1].Replicas[0].Commit, l.Units[1].Replicas[1].Commit = canon.Hash{1}, canon.Hash{2}
	wants("when all have committed", 1)
	l.Barred = []string{"b", "c"}
	wants("when one is left", 0)
}
