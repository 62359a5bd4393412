package terms_test

import (
	"errors"
	"testing"

	"cosmossdk.io/collections"

	"github.com/tally-network/tally/chain/x/work/terms"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Leases of the same parties share pools; one that goes takes away what is its own alone. Whatever is missing or
// left over is found.
func TestPoolsAreThoseOfTheLeases(t *testing.T) {
	ctx, svc, _ := chaintest.Store(t)
	sb := collections.NewSchemaBuilder(svc)
	s := terms.New(sb, 1, 2, 3)
	if _, err := sb.Build(); err != nil {
		t.Fatal(err)
	}
	lease := func(rate uint64) *job.Lease {
		return &job.Lease{FeeBps: rate, Providers: job.Pool{{Account: "p0", Rates: job.Rates{GFLOP: rate}}}, Auditors: job.Pool{{Account: "v1", Weight: 7}}}
	}
	ids := []canon.Hash{{1}, {2}, {3}}
	for i, id := range ids {
		if err := s.Enter(ctx, id, lease(uint64(i/2))); err != nil { // the last has another price
			t.Fatal(err)
		}
	}
	for i, id := range ids {
		var got job.Lease
		if err := s.Read(ctx, id, &got); err != nil || got.FeeBps != uint64(i/2) || got.Providers[0].GFLOP != uint64(i/2) || got.Auditors[0].Weight != 7 {
			t.Fatalf("lease %d is read as %+v: %v", i, got, err)
		}
	}
	for i, want := range []int{3, 3, 2, 0} {
		if n, err := s.Pools(ctx); err != nil || n != want || s.Check(ctx) != nil {
			t.Fatalf("with %d leases gone %d pools are stored, want %d: %v, %v", i, n, want, err, s.Check(ctx))
		}
		if i < len(ids) {
			branch, _ := ctx.CacheContext()
			if err := s.Remove(branch, ids[i][:]); err != nil || s.Check(branch) == nil {
				t.Errorf("a lease goes without its pools, and nobody finds out: %v", err)
			}
			if err := s.Forget(ctx, ids[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Read(ctx, ids[0], new(job.Lease)); !errors.Is(err, collections.ErrNotFound) {
		t.Errorf("a lease that is gone: %v", err)
	}
}
