package provide

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/testkit/ledger"
	"github.com/tally-network/tally/internal/testkit/roletest"
	"github.com/tally-network/tally/node/disputer"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/p2p"
)

// providing returns a provider of a lease that it has loaded, beside another.
func providing(t *testing.T) (*provider, *job.Lease, *ledger.Ledger) {
	t.Helper()
	env, n := roletest.New(t, roletest.Me)
	l, _ := roletest.Lease(t, env)
	roletest.Alone(t, env, n, l)
	l.Phase, l.Files.Said = job.Active, job.Had
	l.Params.MaxOpen, l.Params.LeadTimeout = 2, 60_000
	l.Providers = []job.Party{{Account: roletest.Me}, {Account: "other"}}
	for i := range l.Units {
		l.Units[i].Status = job.Open
	}
	l.Recount()
	if _, err := env.Jobs.Get(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return &provider{env: env, idle: map[canon.Hash]int64{}}, l, n
}

// A provider asks the chain for work only once its lead has had the time to give it some.
func TestProviderThatIsPassedOver(t *testing.T) {
	give := func(l *job.Lease, who string) {
		l.Units[0] = job.Unit{Status: job.Assigned, Provider: who}
		l.Recount()
	}
	for name, c := range map[string]struct {
		bend func(l *job.Lease)
		at   int64 // ms after the first look
		want bool
	}{
		"others work, for as long as a lead may be idle": {func(l *job.Lease) { give(l, "other") }, 60_000, true},
		"others work, not so long":                       {func(l *job.Lease) { give(l, "other") }, 59_999, false},
		"it works itself":                                {func(l *job.Lease) { give(l, roletest.Me) }, 90_000, false},
		"nobody works, for a quarter of the lead's time": {func(l *job.Lease) { l.DueSince = 1 }, 15_001, true},
		"nobody works, and nothing is due":               {func(*job.Lease) {}, 90_000, false},
		"it waits already": {func(l *job.Lease) {
			give(l, "other")
			l.Queue = []job.Waiting{{Provider: roletest.Me}}
		}, 90_000, false},
		"the files were not had": {func(l *job.Lease) { give(l, "other"); l.Files.Said = job.Silent }, 90_000, false},
		"it is barred":           {func(l *job.Lease) { give(l, "other"); l.Barred = []string{roletest.Me} }, 90_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, l, _ := providing(t)
			c.bend(l)
			if p.passedOver(l, 0) {
				t.Error("at the first look")
			}
			if got := p.passedOver(l, c.at); got != c.want {
				t.Errorf("after %d ms: %v", c.at, got)
			}
		})
	}
}

// Only the lead of a lease may offer its units, and only to its providers.
func TestWhoMayOfferAUnit(t *testing.T) {
	p, l, n := providing(t)
	lead, err := p2p.PeerID(n.Keys["lead"])
	if err != nil {
		t.Fatal(err)
	}
	if err := p.mayOffer(t.Context(), l, lead); err != nil {
		t.Error(err)
	}
	if err := p.mayOffer(t.Context(), l, "another peer"); err == nil || !strings.Contains(err.Error(), "is led by lead") {
		t.Errorf("another peer: %v", err)
	}
	l.Providers = l.Providers[1:]
	if err := p.mayOffer(t.Context(), l, lead); err == nil || !strings.Contains(err.Error(), "not a provider") {
		t.Errorf("of a lease that is not ours: %v", err)
	}
}

// A unit goes on from its last checkpoint that is still here, and else from the beginning.
func TestUnitIsResumed(t *testing.T) {
	p, l, _ := providing(t)
	w, err := p.env.Jobs.Get(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	states, roots := roletest.Unit(t, w, l, 0)
	n := p.notes(l.Order.ID(), 0, 0)
	resumes := func(want int) {
		t.Helper()
		done, s, err := p.resume(t.Context(), l, 0, n)
		if err != nil || len(done) != want {
			t.Fatalf("after %d checkpoints, want %d: %v", len(done), want, err)
		}
		if root, err := s.Root(); err != nil || root != roots[want] {
			t.Errorf("from state %v, want %v: %v", root.Short(), roots[want].Short(), err)
		}
	}
	resumes(0)
	if _, _, err := p.env.States.Put(l.Order.ID(), states[0]); err != nil {
		t.Fatal(err)
	}
	if err := n.save([]checkpoint{{Root: roots[1]}}); err != nil {
		t.Fatal(err)
	}
	resumes(1)
	if err := n.save([]checkpoint{{Root: roots[1]}, {Root: canon.Sum("lost")}}); err != nil {
		t.Fatal(err)
	}
	resumes(1)
}

// A forced attempt presents one segment wrong, which follows from keys and chain; a restart
// draws the same, and the next attempt anew.
func TestForcedAttemptIsDrawnAgain(t *testing.T) {
	p, l, _ := providing(t)
	l.Params.ForcedBps = 10_000
	first, err := p.forcedDraw(l, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.forcedDraw(l, 0, 0)
	if err != nil || !first.forced || first.wrong != again.wrong || string(first.output) != string(again.output) {
		t.Errorf("drawn again: %+v, %+v, %v", first, again, err)
	}
	if next, err := p.forcedDraw(l, 0, 1); err != nil || string(next.output) == string(first.output) {
		t.Errorf("the next attempt draws the same: %v", err)
	}
	w, err := p.env.Jobs.Get(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	s := w.Start
	for segment := range l.Order.Problem.Segments() {
		if altered := first.present(segment, s) != s; altered != (segment == first.wrong) {
			t.Errorf("segment %d is altered: %v", segment, altered)
		}
	}
	l.Params.ForcedBps = 0
	if none, err := p.forcedDraw(l, 0, 0); err != nil || none.forced || none.present(none.wrong, s) != s {
		t.Errorf("where none are forced: %+v, %v", none, err)
	}
}

// A provider whose unit starts from a merge that nobody has finds out whether it is wrong, and disputes it.
func TestWrongMergeIsFoundByWhoStartsFromIt(t *testing.T) {
	for name, wrong := range map[string]bool{"a wrong merge": true, "a merge that is right": false} {
		p, l, _ := providing(t)
		found := 0
		p.env.Observe = func(e events.Event) {
			if e.Kind == events.Found {
				found++
			}
		}
		p.player = disputer.New(t.Context(), p.env)
		j, err := p.env.Jobs.Get(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		var ends []*graph.State
		for shard := range 2 {
			states, roots := roletest.Unit(t, j, l, shard)
			roletest.Receive(t, p.env, l, shard, roots, roletest.Put(t, p.env, states[0]), roletest.Put(t, p.env, states[1]))
			l.Units[shard].Status = job.Accepted
			ends = append(ends, states[1])
		}
		merged, err := j.MergeStates(t.Context(), ends)
		if err == nil {
			l.Merges[0].Root, err = merged.Root()
		}
		if err != nil {
			t.Fatal(err)
		}
		if wrong {
			l.Merges[0].Root = canon.Sum("a state that nobody has")
		}
		l.Round, l.Units[2] = 1, job.Unit{Status: job.Assigned, Provider: roletest.Me}
		l.Recount()
		if _, _, err := p.resume(t.Context(), l, 2, p.notes(l.Order.ID(), 2, 0)); (err != nil) != wrong {
			t.Errorf("%s: the start is here: %v", name, err)
		}
		_ = p.doubtStart(t.Context(), l, 2) // the ledger takes no transactions
		if (found > 0) != wrong {
			t.Errorf("%s: %d findings", name, found)
		}
	}
}
