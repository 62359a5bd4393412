package states_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/roletest"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/states"
	"github.com/tally-network/tally/store"
)

// What the policy does not keep goes once the unit is accepted, and comes back by
// computing it again.
func TestCheckpointsArePrunedAndDerived(t *testing.T) {
	for _, c := range []struct {
		policy states.Policy
		stays  []int
	}{
		{"", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{states.KeepAll, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{states.Thin, []int{4, 8, 10}},
		{states.Derive, []int{10}},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			env, n := roletest.New(t, roletest.Me)
			env.States.Accepted = c.policy
			l, j := roletest.Lease(t, env)
			l.Order.Problem.Steps = 10
			roletest.Alone(t, env, n, l)
			steps, roots := roletest.Unit(t, j, l, 0)
			var files []job.File
			for _, s := range steps {
				_, ref, err := env.States.Put(l.Order.ID(), s)
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, blobs.File("state", ref))
			}
			roletest.Receive(t, env, l, 0, roots, files...)
			keep := env.NewPruner()
			for height, at := range []job.Status{job.Counted, job.Accepted, job.Accepted} {
				var stays []int
				l.Units[0].Status = at
				if err := keep.Block(t.Context(), 1, []leases.Lease{{Lease: l, Changed: uint64(height)}}); err != nil {
					t.Fatal(err)
				}
				for i, f := range files {
					if ref, err := blobs.RefOf(f); err == nil && env.Store.Has(ref) {
						stays = append(stays, i+1)
					}
				}
				if want := c.stays; at == job.Accepted && !slices.Equal(stays, want) || at == job.Counted && len(stays) != 10 {
					t.Fatalf("of a unit that is %v, %v stays, want %v", at, stays, want)
				}
			}
			for i, root := range roots {
				s, err := env.States.Get(t.Context(), l, root)
				if err != nil {
					t.Fatalf("checkpoint %d: %v", i, err)
				}
				if got, err := s.Root(); err != nil || got != root {
					t.Fatalf("checkpoint %d has root %v, %v", i, got.Short(), err)
				}
			}
		})
	}
}

// The pruner lets go of a lease some time after it has ended, and of nothing else.
func TestPrunerLetsGoOfEndedLeases(t *testing.T) {
	env, _ := roletest.New(t, roletest.Me)
	l, j := roletest.Lease(t, env)
	if _, err := env.Jobs.Get(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	steps, _ := roletest.Unit(t, j, l, 0)
	root, ref, err := env.States.Put(l.Order.ID(), steps[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Store.Unpin("files"); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Store.PutBytes("draft", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	keep := env.NewPruner()
	block := func(now int64, live ...leases.Lease) {
		t.Helper()
		if err := keep.Block(t.Context(), now, live); err != nil {
			t.Fatal(err)
		}
	}
	here := func() bool {
		_, err := os.Stat(env.States.NoteFile(l.Order.ID(), root))
		return env.Store.Has(ref) && err == nil
	}
	block(0, leases.Lease{Lease: l})
	if !env.Jobs.Has(l) {
		t.Fatal("work on which somebody may ask is not loaded any more")
	}
	block(1)
	if env.Jobs.Has(l) {
		t.Fatal("work that is settled takes memory")
	}
	block(states.KeepFor) // not long enough
	if !here() {
		t.Fatal("it was let go too early")
	}
	block(states.KeepFor+1, leases.Lease{Lease: l}) // a verdict has brought it back
	block(2*states.KeepFor + 2)
	block(3*states.KeepFor + 2)
	if !here() {
		t.Fatal("it was let go though it had lived again")
	}
	block(3*states.KeepFor + 3)
	if env.Store.Has(ref) || here() {
		t.Fatal("it is still here")
	}
	if pins := env.Store.Pins(); !slices.Equal(pins, []string{"draft"}) {
		t.Errorf("pins %v", pins)
	}
}

// One lease whose checkpoints cannot be had does not keep the others from being let go of.
func TestOneLeaseWithoutRootsStopsNobody(t *testing.T) {
	env, n := roletest.New(t, roletest.Me)
	env.States.Accepted = states.Derive
	n.Lists = workv1.QueryRootsResponse{Checkpoints: []workv1.Roots{{}}} // voided since it was read
	l := &job.Lease{Phase: job.Active, Units: make([]job.Unit, 1), Past: make([][]job.Past, 1), Merges: make([]job.Merge, 1)}
	p := &l.Order.Problem
	p.Rounds, p.Shards, p.Steps, p.Interval = 1, 1, 2, 1
	l.Units[0] = job.Unit{Status: job.Accepted, Receipt: &job.Receipt{Checkpoints: []canon.Hash{{1}}}}
	if _, err := env.Store.PutBytes(blobs.Pin(canon.Sum("ended")), []byte("x")); err != nil {
		t.Fatal(err)
	}
	keep := env.NewPruner()
	for at := range int64(3) {
		if err := keep.Block(t.Context(), at*(states.KeepFor+1), []leases.Lease{{Lease: l, Changed: uint64(at)}}); err != nil {
			t.Errorf("block %d: %v", at, err)
		}
	}
	if pins := env.Store.Pins(); len(pins) > 0 {
		t.Errorf("an order that ended long ago is still kept: %v", pins)
	}
}

// A lease that cannot be read keeps no role from its other leases, is told of once,
// and nothing that is kept for it is let go of.
func TestOneBadLeaseStopsNobody(t *testing.T) {
	env, n := roletest.New(t, roletest.Me)
	for i := range 3 {
		l := &job.Lease{Phase: job.Active}
		l.Order.Nonce = uint64(i)
		id := l.Order.ID()
		n.IDs = append(n.IDs, id)
		n.Leases[id] = canon.Marshal(l)
		if _, err := env.Store.PutBytes(blobs.Pin(id), []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	bad := n.IDs[1]
	whole := n.Leases[bad]
	n.Leases[bad] = whole[:len(whole)-1]
	var told []events.Event
	env.Observe = func(e events.Event) { told = append(told, e) }
	keep := env.NewPruner()
	for at := range int64(3) {
		live, err := env.Leases.Live(t.Context(), "me")
		if err != nil || len(live) != 2 {
			t.Fatalf("%d leases: %v", len(live), err)
		}
		if err := keep.Block(t.Context(), at*(states.KeepFor+1), live); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 1 || told[0].Kind != events.Trouble || told[0].Order != bad || !strings.Contains(told[0].Text, "canonical") {
		t.Fatalf("told: %+v", told)
	}
	if !env.Store.Has(store.RefOf([]byte{1})) {
		t.Fatal("what the bad lease may ask for is gone")
	}
	n.Leases[bad] = whole
	if live, err := env.Leases.Live(t.Context(), "me"); err != nil || len(live) != 3 {
		t.Fatalf("%d leases: %v", len(live), err)
	}
	n.Height++
	n.Err = status.Error(codes.Unavailable, "down")
	if _, err := env.Leases.Live(t.Context(), "me"); err == nil {
		t.Fatal("no node answers, and that is no error")
	}
}
