package leases

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/ledger"
	"github.com/tally-network/tally/node/events"
)

// follower returns a follower of a ledger.
func follower(t *testing.T) (*Follower, *ledger.Ledger) {
	n := ledger.Start(t)
	return &Follower{Chain: n.Client, Recorder: &events.Recorder{Name: "test", Log: slog.New(slog.DiscardHandler)}}, n
}

// Every role read every live lease whole in every block: a hundred cheap orders of many
// units took each role gigabytes and half a minute a block.
func TestLeaseIsReadAgainOnceItChanges(t *testing.T) {
	f, n := follower(t)
	n.Height = 7
	for i := range 3 {
		l := &job.Lease{Phase: job.Active}
		l.Order.Nonce = uint64(i)
		n.IDs = append(n.IDs, l.Order.ID())
		n.Leases[l.Order.ID()] = canon.Marshal(l)
	}
	live := func(leases, reads int) []Lease {
		t.Helper()
		n.Reads = 0
		got, err := f.Live(t.Context(), "me")
		if err != nil || len(got) != leases || n.Reads != reads {
			t.Fatalf("%d leases after %d reads, want %d after %d: %v", len(got), n.Reads, leases, reads, err)
		}
		return got
	}
	first := live(3, 3)
	if again := live(3, 0); !slices.Equal(first, again) {
		t.Error("a lease that did not change is another")
	}
	n.Height = 8
	if again := live(3, 3); slices.Equal(first, again) {
		t.Error("leases that changed are the same")
	}
	settled := n.IDs[2]
	n.IDs = n.IDs[:2]
	live(2, 0)
	if _, cached := f.cache.leases[settled]; cached {
		t.Error("a lease that is settled is cached")
	}
	if n.Scans != 1 {
		t.Errorf("all leases were listed %d times", n.Scans)
	}
	n.Forgot = true // a role was away for too long
	live(2, 0)
	n.Forgot, n.Height = false, 5 // and now its node has gone back
	live(2, 2)
	if n.Scans != 3 {
		t.Errorf("all leases were listed %d times, want once more each time", n.Scans)
	}
}

// What is more than may be cached is read anew each time, and that is the largest.
func TestLargestLeasesAreNotCached(t *testing.T) {
	c := cache{leases: map[canon.Hash]cachedLease{{1}: {size: maxCached / 2}, {2}: {size: maxCached/2 + 1}, {3}: {size: 10}}}
	c.evict()
	_, largest := c.leases[canon.Hash{2}]
	if len(c.leases) != 2 || largest {
		t.Errorf("cached are %v", c.leases)
	}
}

// A lease is read with the last checkpoint of each receipt; a task has the others when it
// needs them, and nothing of a unit that was done again meanwhile.
func TestFillBringsRoots(t *testing.T) {
	f, n := follower(t)
	roots := []canon.Hash{{1}, {2}, {3}}
	l := &job.Lease{Units: make([]job.Unit, 2), Merges: make([]job.Merge, 1)}
	l.Order.Problem.Rounds, l.Order.Problem.Shards, l.Order.Problem.Steps, l.Order.Problem.Interval = 1, 2, 2, 1
	l.Units[0].Receipt = &job.Receipt{Checkpoints: []canon.Hash{{1}, {2}, {4}}}
	l.Units[1].Receipt = &job.Receipt{Unit: 1, Attempt: 3, Checkpoints: roots[2:]}
	l.Merges[0].Root = canon.Hash{9}
	answer := func(attempt int, all ...canon.Hash) workv1.QueryRootsResponse {
		r := workv1.Roots{Attempt: uint32(attempt)}
		for _, h := range all {
			r.Roots = append(r.Roots, h[:]...)
		}
		return workv1.QueryRootsResponse{Checkpoints: []workv1.Roots{r}}
	}
	n.Lists = answer(3, roots...)
	whole := job.Part{Units: []int{0, 1}, Merges: []int{0}}
	filled, err := f.Fill(t.Context(), l, whole)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(filled.Units[1].Receipt.Checkpoints, roots) || !slices.Equal(filled.Merges[0].Inputs, []canon.Hash{{4}, {3}}) {
		t.Errorf("filled with %v and %v", filled.Units[1].Receipt.Checkpoints, filled.Merges[0].Inputs)
	}
	if len(l.Units[1].Receipt.Checkpoints) != 1 || l.Merges[0].Inputs != nil {
		t.Error("what others read was changed")
	}
	if _, err := f.Fill(t.Context(), filled, whole); err != nil || !slices.Equal(n.Asked, []string{"[1]"}) {
		t.Errorf("asked for %q: %v", n.Asked, err)
	}
	for name, r := range map[string]workv1.QueryRootsResponse{
		"nothing":         {},
		"no receipt":      answer(4),
		"another attempt": answer(4, canon.Hash{1}, canon.Hash{7}, canon.Hash{3}), // with the same end
		"another unit":    answer(3, canon.Hash{1}, canon.Hash{2}, canon.Hash{4}),
		"too few":         answer(3, roots[1:]...),
	} {
		n.Lists = r
		if _, err := f.Fill(t.Context(), l, whole); err == nil {
			t.Errorf("%s: taken for the unit's checkpoints", name)
		}
	}
}
