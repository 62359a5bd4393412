package watch

import (
	"testing"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
)

// Our own work is not what we look at: a forced attempt of ours is wrong by duty, and the chain refuses our challenge.
func TestOwnWorkIsNotChecked(t *testing.T) {
	dir := t.TempDir()
	c := &challenger{env: role.New(role.Parts{Dir: dir, Account: &client.Account{Address: "challenger"}})}
	l := &job.Lease{Units: make([]job.Unit, 2), Merges: make([]job.Merge, 1)}
	l.Order.Problem.Rounds, l.Order.Problem.Shards = 1, 2
	l.Units[0] = job.Unit{Status: job.Counted, Provider: "challenger", Receipt: &job.Receipt{Provider: "challenger"}}
	l.Units[1] = job.Unit{Status: job.Counted, Provider: "other", Receipt: &job.Receipt{Provider: "other", Unit: 1}}
	if target, _, ok := c.next(l); !ok || target != job.UnitTarget(1) {
		t.Fatalf("looks at %v first", target)
	}
}
