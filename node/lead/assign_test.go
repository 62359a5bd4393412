package lead

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/roletest"
	"github.com/tally-network/tally/node/leases"
)

// roundOf returns a lease with one round of open units.
func roundOf(units int, providers ...string) *job.Lease {
	l := &job.Lease{Phase: job.Active, Units: make([]job.Unit, units), Merges: make([]job.Merge, 1)}
	l.Order.Problem.Rounds, l.Order.Problem.Shards = 1, units
	l.Params.MaxOpen, l.Params.LeadTimeout = 2, 60_000
	for i := range l.Units {
		l.Units[i].Status = job.Open
	}
	for _, p := range providers {
		l.Providers = append(l.Providers, job.Party{Account: p})
	}
	l.Recount()
	return l
}

// take lets a unit reach a status in the hands of a provider.
func take(l *job.Lease, unit int, provider string, s job.Status) {
	l.Units[unit] = job.Unit{Status: s, Attempt: l.Units[unit].Attempt, Provider: provider}
	l.Recount()
}

func reopen(l *job.Lease, unit int) {
	l.Units[unit] = job.Unit{Status: job.Open, Attempt: l.Units[unit].Attempt + 1}
	l.Recount()
}

// counts returns how many units of a plan each provider gets.
func counts(plan map[int]string) map[string]int {
	n := map[string]int{}
	for _, p := range plan {
		n[p]++
	}
	return n
}

func TestPlanSpreadsAndRespectsTheLimit(t *testing.T) {
	for units, want := range map[int]map[string]int{
		1: {"a": 1},
		2: {"a": 1, "b": 1},
		3: {"a": 2, "b": 1},
		9: {"a": 2, "b": 2},
	} {
		if got := counts(newPace().plan(roundOf(units, "a", "b"), 0)); !maps.Equal(got, want) {
			t.Errorf("%d units: %v, want %v", units, got, want)
		}
	}
	l := roundOf(2, "a", "b")
	l.Barred = []string{"a"}
	if got := counts(newPace().plan(l, 0)); got["a"] != 0 || got["b"] != 2 {
		t.Errorf("a is barred: %v", got)
	}
}

// Those that wait are served first, one unit each, however slow they are.
func TestPlanServesThoseThatWait(t *testing.T) {
	p := newPace()
	p.took["a"], p.took["b"], p.took["c"] = 1, 10, 100
	l := roundOf(3, "a", "b", "c")
	l.Queue = []job.Waiting{{Provider: "c"}, {Provider: "b"}}
	if got := p.plan(l, 0); !maps.Equal(got, map[int]string{0: "c", 1: "b", 2: "a"}) {
		t.Errorf("plan %v", got)
	}
	for range 10 {
		p.refuse("c") // whatever it says to offers: nobody else gets a unit before it
	}
	if got := p.plan(l, 0); !maps.Equal(got, map[int]string{0: "c", 1: "b", 2: "a"}) {
		t.Errorf("plan after c has refused offers: %v", got)
	}
	l.Barred = []string{"c"}
	if got := p.plan(l, 0); !maps.Equal(got, map[int]string{0: "b", 1: "a", 2: "a"}) {
		t.Errorf("plan without c: %v", got)
	}
}

// One that waits and to which the chain gives nothing lets others have a turn, but is tried again soon.
func TestWhomTheChainRefusesStopsNobody(t *testing.T) {
	p := newPace()
	l := roundOf(1, "a", "c")
	l.Queue = []job.Waiting{{Provider: "c"}}
	var tried []int
	for turn := range 20 {
		first := p.plan(l, 0)[0]
		p.pass(l)
		if first == "c" {
			tried = append(tried, turn)
			p.deny("c")
		}
	}
	if got := fmt.Sprint(tried); got != "[0 2 6 10 14 18]" {
		t.Errorf("tried at turns %s", got)
	}
	p.refuse("c")
	p.accept("c")
	if got := p.plan(l, 0)[0]; got != "c" || len(p.refused)+len(p.denied) != 0 {
		t.Errorf("after it got a unit: the unit goes to %s; refused %v, denied %v", got, p.refused, p.denied)
	}
}

// What the chain refuses counts against an offer that was taken, or against who waits, never against both.
func TestPostCountsWhatTheChainRefuses(t *testing.T) {
	env, _ := roletest.New(t, roletest.Me)
	d := &lead{env: env, pace: newPace()}
	taken := []workv1.Assignment{{Provider: "waits"}, {Provider: "took", Unit: 1, Signature: []byte{1}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.post(ctx, roundOf(2, "waits", "took"), taken); err == nil {
		t.Fatal("a chain that is not there took assignments")
	}
	if p := d.pace; len(p.refused) != 1 || p.refused["took"].failures != 1 || len(p.denied) != 1 || p.denied["waits"].failures != 1 {
		t.Errorf("refused %v, denied %v", p.refused, p.denied)
	}
}

// Who is three times as fast gets the units, the other one what is left.
func TestPlanGivesMoreToTheFaster(t *testing.T) {
	p := newPace()
	l := roundOf(4, "fast", "slow")
	take(l, 0, "fast", job.Assigned)
	take(l, 1, "slow", job.Assigned)
	p.see(l, 1000)
	take(l, 0, "fast", job.Received)
	p.see(l, 2000)
	take(l, 1, "slow", job.Received)
	p.see(l, 4500)
	if p.took["fast"] != 1000 || p.took["slow"] != 3500 {
		t.Fatalf("took %v", p.took)
	}
	if got := p.plan(l, 5000); got[2] != "fast" || got[3] != "fast" {
		t.Errorf("plan %v", got)
	}
	// It has as many as it may: the last unit waits for it, until the lead must act.
	take(l, 2, "fast", job.Assigned)
	take(l, 0, "fast", job.Assigned)
	l.DueSince = 5000
	if got := p.plan(l, 6000); len(got) != 0 {
		t.Errorf("plan %v, want patience", got)
	}
	if got := p.plan(l, 5000+l.Params.LeadTimeout/2); got[3] != "slow" {
		t.Errorf("plan %v, want the unit given to who is there", got)
	}
}

// A provider whose receipts nobody can check is as slow as they are in vain;
// work that is void for another's fault says nothing.
func TestPaceLearnsFromUnitsGivenInVain(t *testing.T) {
	for name, c := range map[string]struct {
		reached job.Status
		slow    bool
	}{
		"late":       {job.Assigned, true},
		"unattested": {job.Received, true},
		"voided":     {job.Accepted, false},
	} {
		p := newPace()
		l := roundOf(1, "a", "b")
		for now, s := range []job.Status{job.Assigned, job.Received, job.Counted, job.Accepted} {
			if s <= c.reached {
				take(l, 0, "a", s)
				p.see(l, int64(now))
			}
		}
		reopen(l, 0)
		p.see(l, 60_000)
		want := map[bool]string{true: "b", false: "a"}[c.slow]
		p.took["b"] = 10
		if got := p.plan(l, 60_000)[0]; got != want {
			t.Errorf("%s: the unit goes to %s; took %v", name, got, p.took)
		}
	}
}

// A provider that takes its time to answer does not keep others from beginning, and what is taken at
// once is posted together, after those who wait.
func TestLateAnswersHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan answer)
		say := func(after time.Duration, provider string, unit uint32, err error) {
			go func() {
				time.Sleep(after)
				answers <- answer{provider, workv1.Assignment{Unit: unit, Provider: provider}, err}
			}()
		}
		say(0, "a", 1, nil)
		say(lull/2, "b", 2, nil)
		say(time.Second, "b", 3, errors.New("one is enough"))
		say(patience, "slow", 4, nil)
		say(patience, "away", 5, errors.New("nobody is there"))
		p := newPace()
		p.refuse("b")
		begun, got := time.Now(), ""
		err := p.collect(answers, 5, []workv1.Assignment{{Unit: 0, Provider: "waits"}}, func(taken []workv1.Assignment) error {
			for _, a := range taken {
				got += fmt.Sprint(a.Unit)
			}
			got += fmt.Sprintf(" after %v; ", time.Since(begun).Round(time.Second))
			return nil
		})
		if want := "012 after 0s; 4 after 5s; "; got != want {
			t.Errorf("posted %q, want %q", got, want)
		}
		if err == nil || len(p.refused) != 1 || p.refused["away"].failures != 1 {
			t.Errorf("%v; refused: %v", err, p.refused)
		}
	})
}

// Who does not answer sits out ever more turns, and none once it has answered.
func TestRefusalsDouble(t *testing.T) {
	p := newPace()
	l := roundOf(1, "a")
	var asked []int
	for turn := range 100 {
		able := len(p.plan(l, 0)) > 0
		p.pass(l)
		if able {
			asked = append(asked, turn)
			p.refuse("a")
		}
	}
	if got := fmt.Sprint(asked); got != "[0 2 6 14 30 62]" {
		t.Errorf("asked at turns %s", got)
	}
	p.accept("a")
	if len(p.plan(l, 0)) != 1 {
		t.Error("it answered and is not asked")
	}
}

func TestPaceForgetsEndedLeases(t *testing.T) {
	p := newPace()
	a, b := roundOf(1, "a"), roundOf(1, "b")
	b.Order.Nonce = 1
	p.see(a, 0)
	p.see(b, 0)
	p.keep([]leases.Lease{{Lease: b}})
	if len(p.units) != 1 || p.units[b.Order.ID()] == nil {
		t.Errorf("%d leases are remembered", len(p.units))
	}
}

// A provider chooses what it pays for gas, so what it is granted follows its work.
func TestGrantsFollowWork(t *testing.T) {
	p, l := newPace(), roundOf(3*unitsPerGrant, "a", "b")
	for _, want := range []bool{true, false, false} {
		if p.sponsors(l, "a") != want {
			t.Fatalf("a is sponsored: %v", !want)
		}
		if want {
			p.granted(l, "a")
		}
	}
	if !p.sponsors(l, "b") {
		t.Error("b pays for a")
	}
	for i := range unitsPerGrant {
		if p.sponsors(l, "a") {
			t.Fatalf("after %d units", i)
		}
		take(l, i, "a", job.Accepted)
	}
	if !p.sponsors(l, "a") {
		t.Error("a has worked")
	}
	p.keep(nil)
	if len(p.grants) != 0 {
		t.Error("leases are over")
	}
}
