package audit

import (
	"crypto/ed25519"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
)

// A friend of the provider disputes a forced attempt at once, so that the forced draw is
// shown, with an invented truth, before any auditor has answered. Those who were to look still
// do.
func TestForcedAttemptThatIsShownEarlyIsLookedAt(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	a := &auditor{env: role.New(role.Parts{Account: &client.Account{Address: "me"}, Keys: role.Keys{VRF: key}})}
	receipt := &job.Receipt{Provider: "p"}
	truth := make([]proof.Outcome, 8)
	for i := range 9 {
		receipt.Checkpoints = append(receipt.Checkpoints, canon.Sum("state", []byte{byte(i)}))
	}
	for i := range truth {
		truth[i].End = receipt.Checkpoints[i+1]
	}
	for _, c := range []struct {
		name  string
		audit job.Audit
		want  int // segments
	}{
		{"shown before it had answered", job.Audit{Auditor: "me"}, 3},
		{"shown before another had answered", job.Audit{Auditor: "she"}, 0},
		{"its time was over before", job.Audit{Auditor: "me", Forfeit: true}, 0},
		{"its word is contradicted", job.Audit{Auditor: "me", Done: true, Bonded: true}, 8},
		{"its bond is gone", job.Audit{Auditor: "me", Done: true}, 0},
	} {
		f := &job.Forced{Unit: job.Unit{Receipt: receipt, Audited: 3, Audits: []job.Audit{c.audit}}, Truth: truth}
		got := a.doubted(f)
		if len(got) != c.want || slices.ContainsFunc(got, func(s int) bool { return s < 0 || s >= len(truth) }) {
			t.Errorf("%s: looks at segments %v, want %d of them", c.name, got, c.want)
		}
	}
}
