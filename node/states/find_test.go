package states

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/blobs"
)

// Whoever checks what was shown of a forced attempt finds its checkpoints, though the
// unit is done again: with the provider and custodians of that attempt.
func TestCheckpointsOfForcedAttemptsAreFound(t *testing.T) {
	end := canon.Sum("end")
	receipt := func(attempt int, provider string) *job.Receipt {
		return &job.Receipt{Attempt: attempt, Provider: provider, Checkpoints: []canon.Hash{{}, canon.Sum(canon.Domain(provider))}}
	}
	kept := func(by string) []job.Attestation { return []job.Attestation{{Custodian: by, Done: true}} }
	old := receipt(0, "p0")
	old.Checkpoints[1] = end
	l := &job.Lease{
		Order: job.Order{Problem: job.Problem{Steps: 1, Interval: 1}},
		Units: []job.Unit{{Attempt: 1, Receipt: receipt(1, "p1"), Attested: kept("v1")}},
		Past:  [][]job.Past{{{Forced: &job.Forced{Unit: job.Unit{Receipt: old, Attested: kept("v0")}}}}},
	}
	at := places(l, end)
	if len(at) != 1 || at[0].receipt != old || at[0].at != 1 {
		t.Fatalf("found at %+v", at)
	}
	if got := blobs.HoldersOf(l, old); !slices.Equal(got, []string{"p0", "v0"}) {
		t.Errorf("asked of %v", got)
	}
	if got := blobs.HoldersOf(l, l.Units[0].Receipt); !slices.Equal(got, []string{"p1", "v1"}) {
		t.Errorf("the next attempt's are asked of %v", got)
	}
}
