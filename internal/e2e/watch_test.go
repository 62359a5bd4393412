package e2e_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
)

// Fraud that nobody audits is found by the challenger when the next round is
// nearly done: what descends from it is void, honest work in it is paid from the
// cheater's bond, and all is computed again.
func TestLateFraudIsRolledBack(t *testing.T) {
	t.Parallel()
	gate := nettest.NewGate()
	var cheater atomic.Value // the first to compute unit 0
	wrong := nettest.Bend{Wrong: func(r nettest.Run) bool {
		if r.Merge || r.Round != 0 || r.Shard != 0 || r.Step != 2 {
			return false
		}
		cheater.CompareAndSwap(nil, r.Role)
		return cheater.Load() == r.Role
	}}
	n := nettest.Start(t, nettest.Options{
		Spec: func(s *consume.Spec) { s.Conditions.Assurance.Audit = &consume.SpecAudit{} },
		Idle: []string{"challenger-0"},
		Bend: map[string]nettest.Bend{
			"provider-0": wrong,
			"provider-1": wrong,
			"validator-0": {Before: func(ctx context.Context, r nettest.Run) error {
				if r.Merge && r.Round == 1 {
					return gate.Wait(ctx)
				}
				return nil
			}},
		},
	})
	id := n.Post(nil)
	before := n.Lease(id, "the work of the last round", func(l *job.Lease) bool {
		return l.Round == 1 && l.Units[2].Status == job.Accepted && l.Units[3].Status == job.Accepted
	})
	if got := n.Name(before.Units[0].Provider); got != cheater.Load() {
		t.Fatalf("%s has the unit that %v forged", got, cheater.Load())
	}
	n.Begin("challenger-0")
	n.Lease(id, "the verdict", func(l *job.Lease) bool { return len(l.Barred) > 0 })
	gate.Open()
	l := n.Settle(id)
	if got := barred(n, l); !slices.Equal(got, []string{cheater.Load().(string)}) {
		t.Fatalf("barred %v", got)
	}
	for i, want := range []int{1, 0, 1, 1} {
		if got := l.Units[i].Attempt; got != want {
			t.Errorf("unit %d was computed %d times, want %d", i, got+1, want+1)
		}
	}
	// Who worked for nothing in the last round is not out of pocket.
	harmed := []string{"validator-1", "challenger-0"}
	for _, u := range before.Units[2:] {
		if who := n.Name(u.Provider); who != cheater.Load() {
			harmed = append(harmed, who)
		}
	}
	for _, who := range harmed {
		if paid(n, l.Ledger.SlashPaid, who) == 0 {
			t.Errorf("%s got nothing of the slash: %+v", who, l.Ledger.SlashPaid)
		}
	}
	ds := disputes(t, n)
	if len(ds) != 1 || about(ds[0]) != job.UnitTarget(0) || ds[0].StepLo != 2 || ds[0].Loser != disputev1.SIDE_DEFENDER {
		t.Errorf("disputes %+v", ds)
	}
}

// A challenger that begins again does not repeat what it has checked.
func TestChallengerRemembers(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	gate := nettest.NewGate()
	n := nettest.Start(t, nettest.Options{Bend: holdRound(1, gate)})
	id := n.Post(nil)
	holds := func(e events.Event) bool { return e.Role == "challenger-0" && e.Kind == events.Replayed }
	third := func() func(events.Event) bool {
		count := 0
		return func(e events.Event) bool {
			if holds(e) {
				count++
			}
			return count == 3
		}
	}
	n.Lease(id, "the first merge", nettest.MergedBy(1))
	n.Await("two units and a merge", third())
	n.End("challenger-0")
	n.Begin("challenger-0")
	gate.Open()
	n.Settle(id)
	if got := n.Count(holds); got > 6 {
		t.Errorf("%d checks of four units and two merges", got)
	}
}

// A challenger whose machine errs loses its bond and nobody else anything: the
// provider defends what it computed, and is paid.
func TestFalseChallengeCostsTheChallenger(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Bend: map[string]nettest.Bend{"challenger-0": {Wrong: func(r nettest.Run) bool { return !r.Merge && r.Round == 0 && r.Shard == 0 && r.Step == 1 }}},
		// Nothing is accepted before the challenger has looked at it.
		Spec: func(s *consume.Spec) { s.Conditions.UnitWindow = consume.Duration(3 * time.Second) },
	})
	id := n.Post(nil)
	n.Await("a challenge", func(e events.Event) bool { return e.Role == "challenger-0" && e.Kind == events.Found && e.Unit == 0 })
	defender := n.Lease(id, "the dispute", func(l *job.Lease) bool { return len(l.Disputes) == 1 }).Disputes[0].Defender
	l := n.Settle(id)
	ds := disputes(t, n)
	if len(ds) != 1 || ds[0].Loser != disputev1.SIDE_CHALLENGER || about(ds[0]) != job.UnitTarget(0) {
		t.Fatalf("disputes %+v", ds)
	}
	if l.Ledger.Slashed != 0 || len(l.Barred) != 0 || l.Units[0].Attempt != 0 || paid(n, l.Ledger.Paid, n.Name(defender)) == 0 {
		t.Errorf("slashed %d, barred %v, paid %+v", l.Ledger.Slashed, barred(n, l), l.Ledger.Paid)
	}
}

// A provider that has gone away cannot answer a false challenge. Another challenger
// answers in its place, and the provider loses nothing.
func TestAbsentProviderIsDefended(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) {
			c.Challengers, c.Dispute = 2, devnet.Default().Dispute
			c.Dispute.AnswerMs = 5000
		},
		Bend: map[string]nettest.Bend{"challenger-0": {Wrong: func(r nettest.Run) bool { return !r.Merge && r.Round == 0 && r.Shard == 0 && r.Step == 1 }}},
		Spec: func(s *consume.Spec) {
			s.Conditions.UnitWindow, s.Conditions.UnitTimeout = consume.Duration(3*time.Second), consume.Duration(8*time.Second)
		},
	})
	id := n.Post(nil)
	l := n.Lease(id, "the dispute", func(l *job.Lease) bool { return len(l.Disputes) == 1 })
	defender := n.Name(l.Disputes[0].Defender)
	n.End(defender)
	l = n.Settle(id)
	ds := disputes(t, n)
	if len(ds) != 1 || ds[0].Loser != disputev1.SIDE_CHALLENGER || n.Name(ds[0].Parties.DefenderSubstitute) != "challenger-1" {
		t.Fatalf("disputes %+v", ds)
	}
	if len(l.Barred) != 0 || l.Units[0].Attempt != 0 || paid(n, l.Ledger.Paid, defender) == 0 {
		t.Errorf("barred %v, paid %+v", barred(n, l), l.Ledger.Paid)
	}
}

// about returns what a dispute is about.
func about(d disputev1.Dispute) job.Target {
	t, _ := wire.TargetFromProto(d.Parties.Target)
	return t
}
