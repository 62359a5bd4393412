package lead

import (
	"errors"
	"testing"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/testkit/roletest"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/store"
)

// A lead brings the files of its order before anything else, and gives out nothing before a
// quorum of custodians has them.
func TestLeadTakesFilesFirst(t *testing.T) {
	env, n := roletest.New(t, roletest.Me)
	l, _ := roletest.Lease(t, env)
	roletest.Alone(t, env, n, l)
	d := &lead{env: env, pace: newPace()}
	l.Phase = job.Active
	for i := range l.Units {
		l.Units[i].Status = job.Open
	}
	l.Recount()
	if err := d.lead(t.Context(), l, 0); err != nil || !env.Jobs.Has(l) {
		t.Fatalf("files that are here were not taken: %v", err)
	}
	missing := blobs.File(job.RoleHeldOut, store.RefOf([]byte("nobody has it")))
	l.Order.Problem.Files = append(l.Order.Problem.Files, missing)
	roletest.Lend(t, env, l)
	if err := d.lead(t.Context(), l, 0); err != nil {
		t.Errorf("it fails before its custodians have said whether they have the files: %v", err)
	}
	l.Files.Said = job.Had
	var away *blobs.FetchError
	if err := d.lead(t.Context(), l, 0); !errors.As(err, &away) {
		t.Errorf("without a file: %v", err)
	}
	l.Phase = job.Settled
	if err := d.lead(t.Context(), l, 0); err != nil {
		t.Errorf("of a lease that is over: %v", err)
	}
}

// A provider that takes none of the units that it is offered in a turn has refused once, so that one that
// is still fetching the files is asked again soon.
func TestOffersOfOneTurnAreRefusedOnce(t *testing.T) {
	env, _ := roletest.New(t, roletest.Me)
	l := roundOf(2, "nowhere")
	d := &lead{env: env, pace: newPace()}
	if err := d.assign(t.Context(), l, 0); err == nil {
		t.Fatal("somebody took a unit who is nowhere")
	}
	if n := d.pace.refused["nowhere"].failures; n != 1 {
		t.Errorf("two offers of one turn count as %d", n)
	}
}
