package blobs_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/testkit/roletest"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/leases"
)

// The consumer of one order had another's list of checkpoints by naming it as a file of its
// own: whoever had it for the other pinned it for both, and handed it to parties of either.
func TestNothingIsServedForAnotherOrder(t *testing.T) {
	env, n := roletest.New(t, roletest.Me)
	mine, _ := roletest.Lease(t, env)
	roletest.Alone(t, env, n, mine)
	theirs := *mine
	theirs.Order.Nonce++
	ref, err := env.Store.PutBytes(blobs.Pin(theirs.Order.ID()), []byte("the checkpoints of their order"))
	if err != nil {
		t.Fatal(err)
	}
	stolen := blobs.File(job.RoleHeldOut, ref)
	mine.Order.Problem.Files = append(slices.Clone(mine.Order.Problem.Files), stolen)
	env.Blobs.Serve(leases.Lease{Lease: mine})
	env.Blobs.Serve(leases.Lease{Lease: &theirs})
	who := env.Host.ID() // a party of both
	if !env.Blobs.MayRead(who, theirs.Order.ID(), ref.CID) {
		t.Fatal("who is a party may not read")
	}
	var away *blobs.FetchError
	if _, err := env.Blobs.Fetch(t.Context(), mine, stolen); !errors.As(err, &away) {
		t.Errorf("it is here for another order, and was brought for this one: %v", err)
	}
	if env.Blobs.MayRead(who, mine.Order.ID(), ref.CID) {
		t.Error("it is read for the sake of an order that it is not of")
	}
}
