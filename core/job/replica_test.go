package job

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/proof"
)

// replicatedMatch is an order whose units are computed by several of some providers.
func replicatedMatch(replicas, providers int) Match {
	m := testMatch()
	c := &m.Order.Conditions
	c.Replicas, c.Auditors, c.AuditSegments, c.Speculate, c.MaxPrice = replicas, 0, 0, MaxUnits, 100_000_000
	c.MinProviders = providers
	m.Providers = nil
	for i := range providers {
		m.Providers = append(m.Providers, party(fmt.Sprintf("p%02d", i), Rates{1000, 10}))
	}
	return m
}

// giveOut lets the places of a unit be drawn, and returns who has them.
func (w *world) giveOut(unit int) (drawn []string) {
	w.t.Helper()
	w.do(Assign{By: w.lease.Lead(), Units: []Assignment{{Unit: unit, Attempt: w.lease.Units[unit].Attempt}}})
	w.pass(1)
	return w.placed(unit)
}

func (w *world) placed(unit int) (drawn []string) {
	for _, r := range w.lease.Units[unit].Replicas {
		drawn = append(drawn, r.Provider)
	}
	return drawn
}

// says is what a replica says of a unit. Who copies has the checkpoints, and not what lies between.
func (w *world) says(unit int, who, lie, copied string) Reveal {
	r := w.receiptOf(unit, who, lie)
	s := Reveal{Receipt: r, Salt: canon.Sum("salt", []byte(who)), Signature: ed25519.Sign(w.keys[who], r.SignBytes())}
	if w.lease.Order.Problem.Interval > 1 {
		for i := range w.lease.Order.Problem.Segments() {
			s.Inner = append(s.Inner, canon.Sum("inner", r.Checkpoints[i+1][:], []byte(copied)))
		}
	}
	return s
}

func commitTo(s Reveal) Commit {
	return Commit{s.Receipt.Provider, s.Receipt.Unit, s.Receipt.Attempt, proof.Commitment(s.Receipt.ID(), s.Inner, s.Salt)}
}

// agree lets all replicas of a unit say the truth.
func (w *world) agree(unit int) {
	w.t.Helper()
	drawn := w.giveOut(unit)
	for _, who := range drawn {
		w.do(commitTo(w.says(unit, who, "", "")))
	}
	for _, who := range drawn {
		w.do(w.says(unit, who, "", ""))
	}
	w.pass(1)
	w.attest(unit)
}

// differ lets the replicas of a unit say what lies tells of each, "" for the truth.
func (w *world) differ(unit int, lies ...string) (drawn []string) {
	w.t.Helper()
	drawn = w.giveOut(unit)
	for i, who := range drawn {
		w.do(commitTo(w.says(unit, who, lies[i], "")))
	}
	for i, who := range drawn {
		w.do(w.says(unit, who, lies[i], ""))
	}
	return drawn
}

// refute lets a replica win disputes about all results that differ from its own.
func (w *world) refuteOthers(unit int, who string) {
	w.t.Helper()
	for targets := w.lease.Differs(unit, who); len(targets) > 0; targets = w.lease.Differs(unit, who) {
		w.next++
		w.do(OpenDispute{ID: w.next, Target: targets[0], Attempt: w.lease.Units[unit].Attempt, Challenger: who})
		w.do(CloseDispute{ID: w.next, Loser: dispute.Defender})
	}
}

func TestReplicasThatAgree(t *testing.T) {
	var single uint64
	for _, kind := range []string{Training, Batch} {
		for n := least; n <= MaxReplicas; n++ {
			m := replicatedMatch(n, n+1)
			if kind == Batch {
				m.Order.Problem = batchOrder().Problem
			}
			w := newWorldOf(t, m)
			one := m.Order
			one.Conditions.Replicas = 0
			q, err := NewQuote(&one.Problem, &one.Conditions, Rates{1000, 10}, 500, m.Params.Tariff)
			if err != nil {
				t.Fatal(err)
			}
			single = q.Unit
			for w.lease.Round < w.lease.Order.Problem.Rounds {
				for s := range w.lease.Order.Problem.Shards {
					w.agree(w.lease.Unit(w.lease.Round, s))
				}
				w.pass(1)
				w.do(w.merge()) // at once: the windows run on
			}
			w.pass(100)
			if w.lease.Phase != Settled || w.lease.Reason != "" {
				t.Fatalf("%d replicas: %v, %q", n, w.lease.Phase, w.lease.Reason)
			}
			var paid uint64
			for _, p := range m.Providers {
				paid += w.purse[p.Account]
			}
			if want := single * uint64(n*w.lease.Order.Problem.Units()); paid != want {
				t.Errorf("%s, %d replicas: providers were paid %d, want %d", kind, n, paid, want)
			}
			if w.lease.Quote.Price < q.Price+single*uint64((n-1)*w.lease.Order.Problem.Units()) {
				t.Errorf("%d replicas cost %d, one %d", n, w.lease.Quote.Price, q.Price)
			}
		}
	}
}

// No majority decides: one honest replica of three wins, and the others lose their bonds.
func TestMajorityThatIsWrongLoses(t *testing.T) {
	for _, lies := range [][]string{{"", "x", "x"}, {"x", "", "x"}, {"x", "x", ""}, {"x", "", "y"}} {
		w := newWorldOf(t, replicatedMatch(3, 5))
		drawn := w.differ(0, lies...)
		honest := drawn[slices.Index(lies, "")]
		if u := &w.lease.Units[0]; u.Status != Assigned || len(w.lease.Differs(0, honest)) != 2 {
			t.Fatalf("%v: the unit is %v, %d differ", lies, u.Status, len(w.lease.Differs(0, honest)))
		}
		w.refuteOthers(0, honest)
		if u := &w.lease.Units[0]; u.Status != Received || u.Provider != honest || len(u.Replicas) != 0 {
			t.Fatalf("%v: the unit is %v, of %s", lies, u.Status, u.Provider)
		}
		for _, who := range drawn {
			if (who == honest) == slices.Contains(w.lease.Barred, who) || (who == honest) == w.jailed[who] {
				t.Errorf("%v: %s is barred: %v", lies, who, w.lease.Barred)
			}
		}
		if w.purse[honest] == 0 {
			t.Errorf("%v: %s has no reward", lies, honest)
		}
	}
}

// Where replicas of a task have differed, the game decides who is credited; by the seed's rule nobody is. What is not
// credited is not burnt for, and who was right is paid either way.
func TestWhoIsCreditedWhereReplicasDiffer(t *testing.T) {
	for _, c := range []struct {
		lose    bool
		project uint64
		want    int // units and workers that are credited
	}{{false, 1, 3}, {true, 1, 2}, {true, 0, 3}} {
		m := replicatedMatch(2, 4)
		m.Order.Problem, m.Order.Project = batchOrder().Problem, c.project
		m.Order.Problem.Shards, m.Order.Problem.Records, m.Order.Conditions.Credit = 2, 32, true
		m.Params.AllLose, m.Params.BurnUT, m.Order.Conditions.MaxPrice = c.lose, UT, 1<<40
		w := newWorldOf(t, m)
		drawn := w.differ(0, "x", "")
		w.refuteOthers(0, drawn[1])
		w.pass(1)
		w.attest(0)
		w.agree(1)
		w.pass(1)
		if !w.lease.Units[0].Differed || w.lease.Units[1].Differed {
			t.Fatalf("%+v: units have differed: %v, %v", c, w.lease.Units[0].Differed, w.lease.Units[1].Differed)
		}
		w.do(w.merge())
		for w.lease.Phase != Settled {
			w.pass(100)
		}
		var credited uint64
		for _, flops := range w.flops { // order: a sum
			credited += flops
		}
		if want := uint64(c.want) * w.lease.Order.Problem.UnitFLOPs(); credited != want || w.lease.Ledger.Burnt < want {
			t.Errorf("%+v: %d FLOP are credited of %d, for %d utally", c, credited, want, w.lease.Ledger.Burnt)
		}
		if w.purse[drawn[1]] == 0 {
			t.Errorf("%+v: %s was right, and is not paid", c, drawn[1])
		}
	}
}

// Who has copied all checkpoints does not have the states between them.
func TestCopierIsFound(t *testing.T) {
	w := newWorldOf(t, replicatedMatch(2, 3))
	drawn := w.giveOut(0)
	shown := []Reveal{w.says(0, drawn[0], "", ""), w.says(0, drawn[1], "", "guess")}
	for _, s := range shown {
		w.do(commitTo(s))
	}
	for _, s := range shown {
		w.do(s)
	}
	differs := w.lease.Differs(0, drawn[0])
	if len(differs) != 1 || differs[0] != ResultTarget(0, drawn[1], 0) {
		t.Fatalf("%v differ", differs)
	}
	s, err := w.lease.Subject(differs[0], 0)
	if err != nil || s.Defender != drawn[1] || len(s.Points) != 3 || s.Points[1] != shown[1].Inner[0] || s.Claim.Interval != w.lease.InnerStep(0, 0) || s.Claim.Steps != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	w.refuteOthers(0, drawn[0])
	if u := &w.lease.Units[0]; u.Status != Received || u.Provider != drawn[0] {
		t.Errorf("the unit is %v, of %s", u.Status, u.Provider)
	}
}

// A game that is lost says nothing for the other result: each is judged by itself.
func TestLostDisputeRefutesNobodyElse(t *testing.T) {
	w := newWorldOf(t, replicatedMatch(2, 3))
	drawn := w.differ(0, "", "x")
	w.do(OpenDispute{ID: 1, Target: w.lease.Differs(0, drawn[1])[0], Challenger: drawn[1]})
	w.do(CloseDispute{ID: 1, Loser: dispute.Challenger})
	if u := &w.lease.Units[0]; u.Status != Assigned || len(w.lease.Barred) > 0 {
		t.Fatalf("the unit is %v, barred %v", u.Status, w.lease.Barred)
	}
	w.do(OpenDispute{ID: 2, Target: w.lease.Differs(0, drawn[0])[0], Challenger: drawn[0]})
	w.do(OpenDispute{ID: 3, Target: w.lease.Differs(0, drawn[1])[0], Challenger: drawn[1]})
	w.do(CloseDispute{ID: 2, Loser: dispute.Defender})
	if u := &w.lease.Units[0]; u.Status != Received || u.Provider != drawn[0] || len(w.lease.Disputes) > 0 {
		t.Errorf("the unit is %v, of %s, disputes %v", u.Status, u.Provider, w.lease.Disputes)
	}
}

func TestSilentReplicas(t *testing.T) {
	const timeout = 101
	late := func(w *world) uint64 {
		fee, err := w.lease.lateFee()
		if err != nil {
			t.Fatal(err)
		}
		return fee
	}
	t.Run("before committing", func(t *testing.T) {
		w := newWorldOf(t, replicatedMatch(3, 4))
		drawn := w.giveOut(0)
		for _, who := range drawn[:2] {
			w.do(commitTo(w.says(0, who, "", "")))
		}
		w.pass(timeout + 1)
		again := w.placed(0)
		if len(again) != 3 || slices.Contains(again, drawn[2]) || w.lease.Ledger.Slashed != late(w) || w.lease.Units[0].Attempt != 0 {
			t.Fatalf("%v had places, then %v; slashed %d", drawn, again, w.lease.Ledger.Slashed)
		}
		w.do(commitTo(w.says(0, again[2], "", "")))
		for _, who := range again {
			w.do(w.says(0, who, "", ""))
		}
		if w.lease.Units[0].Status != Received {
			t.Errorf("the unit is %v", w.lease.Units[0].Status)
		}
	})
	t.Run("before committing, and nobody takes the place", func(t *testing.T) {
		for _, n := range []int{2, 3} {
			w := newWorldOf(t, replicatedMatch(n, n))
			drawn := w.giveOut(0)
			w.do(commitTo(w.says(0, drawn[0], "", "")))
			w.pass(timeout + 1)
			if u := &w.lease.Units[0]; u.Status != Open || u.Attempt != 1 || w.purse[drawn[0]] != w.lease.Quote.Unit || w.lease.Ledger.Slashed != uint64(n-1)*late(w)+w.lease.Quote.Unit {
				t.Errorf("%d replicas: the unit is %v, attempt %d; who has committed has %d, slashed %d", n, u.Status, u.Attempt, w.purse[drawn[0]], w.lease.Ledger.Slashed)
			}
		}
	})
	t.Run("before committing, too often", func(t *testing.T) {
		w := newWorldOf(t, replicatedMatch(2, 20))
		honest := w.giveOut(0)[0]
		w.do(commitTo(w.says(0, honest, "", "")))
		for w.lease.Units[0].Attempt == 0 {
			if w.purse[honest] != 0 {
				t.Fatal("it is paid for work that is not lost")
			}
			w.pass(timeout + 1)
		}
		if w.purse[honest] != w.lease.Quote.Unit {
			t.Errorf("who has committed has %d", w.purse[honest])
		}
	})
	t.Run("before showing, one of three", func(t *testing.T) {
		w := newWorldOf(t, replicatedMatch(3, 4))
		drawn := w.giveOut(0)
		for _, who := range drawn {
			w.do(commitTo(w.says(0, who, "", "")))
		}
		for _, who := range drawn[:2] {
			w.do(w.says(0, who, "", ""))
		}
		w.pass(timeout)
		if u := &w.lease.Units[0]; u.Status != Received || len(u.Replicas) != 1 || w.lease.Ledger.Slashed != late(w) {
			t.Errorf("the unit is %v with %v; slashed %d", u.Status, u.Replicas, w.lease.Ledger.Slashed)
		}
	})
	t.Run("before showing, one of two", func(t *testing.T) {
		w := newWorldOf(t, replicatedMatch(2, 3))
		drawn := w.giveOut(0)
		for _, who := range drawn {
			w.do(commitTo(w.says(0, who, "", "")))
		}
		w.do(w.says(0, drawn[0], "", ""))
		w.pass(timeout)
		if u := &w.lease.Units[0]; u.Status != Open || u.Attempt != 1 || w.purse[drawn[0]] != w.lease.Quote.Unit || w.lease.Ledger.Slashed != late(w)+w.lease.Quote.Unit {
			t.Errorf("the unit is %v, attempt %d; who has shown its result has %d, slashed %d", u.Status, u.Attempt, w.purse[drawn[0]], w.lease.Ledger.Slashed)
		}
	})
	t.Run("when results differ", func(t *testing.T) {
		w := newWorldOf(t, replicatedMatch(2, 3))
		w.differ(0, "", "x")
		w.pass(timeout)
		if u := &w.lease.Units[0]; u.Status != Open || u.Attempt != 1 || w.lease.Ledger.Slashed != 2*late(w) {
			t.Errorf("the unit is %v, attempt %d, slashed %d", u.Status, u.Attempt, w.lease.Ledger.Slashed)
		}
	})
	t.Run("for ever", func(t *testing.T) {
		w := newWorldOf(t, replicatedMatch(2, 3))
		for w.lease.Phase == Active {
			if w.lease.Units[0].Status == Open {
				w.giveOut(0)
			}
			w.pass(timeout)
		}
		if w.lease.Reason == "" {
			t.Error("a lease whose providers are all silent goes on")
		}
	})
}

// The data of a unit may be had of another replica. Who does not hand it over pays.
func TestDataOfAnotherReplica(t *testing.T) {
	w := newWorldOf(t, replicatedMatch(3, 4))
	drawn := w.differ(0, "", "", "")
	w.pass(202)
	if u := &w.lease.Units[0]; u.Status != Received || u.Provider != drawn[1] || u.Receipt.Provider != drawn[1] || len(u.Replicas) != 1 || w.lease.Ledger.Slashed == 0 {
		t.Fatalf("the unit is %v, of %s, with %d others; %v had it", u.Status, u.Provider, len(u.Replicas), drawn)
	}
	w.attest(0)
	w.pass(1)
	if w.lease.Units[0].Status != Accepted {
		t.Errorf("the unit is %v", w.lease.Units[0].Status)
	}
}

// All who said what is wrong lose, one after another; the work is void with the last of them.
func TestCollusionOfAllReplicasIsFound(t *testing.T) {
	w := newWorldOf(t, replicatedMatch(3, 4))
	drawn := w.differ(0, "x", "x", "x")
	w.pass(1)
	w.attest(0)
	w.pass(1)
	if w.lease.Units[0].Status != Accepted {
		t.Fatalf("the unit is %v", w.lease.Units[0].Status)
	}
	for i, who := range drawn {
		if u := &w.lease.Units[0]; u.Provider != who || u.Attempt != 0 {
			t.Fatalf("%d convictions: %s answers for the unit, attempt %d", i, u.Provider, u.Attempt)
		}
		w.do(OpenDispute{ID: uint64(i), Target: UnitTarget(0), Challenger: asker})
		w.do(CloseDispute{ID: uint64(i), Loser: dispute.Defender})
	}
	if u := &w.lease.Units[0]; u.Status != Open || u.Attempt != 1 || len(w.lease.Barred) != 3 {
		t.Errorf("the unit is %v, attempt %d; barred %v", u.Status, u.Attempt, w.lease.Barred)
	}
}

func TestReplicaEventsAreRefused(t *testing.T) {
	w := newWorldOf(t, replicatedMatch(2, 3))
	if err := w.assign(0, "p00"); err == nil || !strings.Contains(err.Error(), "names none") {
		t.Errorf("the lead chose who computes: %v", err)
	}
	drawn := w.giveOut(0)
	var stranger string
	for _, p := range w.lease.Providers {
		if !slices.Contains(drawn, p.Account) {
			stranger = p.Account
		}
	}
	a, b := w.says(0, drawn[0], "", ""), w.says(0, drawn[1], "", "")
	refuse := func(what string, e Event) {
		t.Helper()
		if err := w.try(e); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
	refuse("an empty commitment", Commit{By: drawn[0]})
	refuse("a commitment of who has no place", commitTo(w.says(0, stranger, "", "")))
	refuse("a receipt that nobody committed to", Submit{a.Receipt, a.Signature})
	refuse("a result before all have committed", a)
	refuse("the word of who waits", Ready{Provider: stranger})
	w.do(commitTo(a))
	refuse("a second commitment", commitTo(w.says(0, drawn[0], "x", "")))
	refuse("a result before all have committed", a)
	copied := commitTo(a)
	copied.By = drawn[1]
	w.do(copied)
	refuse("a result under another's commitment", b)
	refuse("what nobody committed to", w.says(0, drawn[0], "x", ""))
	wrong := a
	wrong.Salt = canon.Sum("other")
	refuse("another salt", wrong)
	wrong = a
	wrong.Inner = wrong.Inner[1:]
	refuse("too few states", wrong)
	wrong = a
	wrong.Signature = nil
	refuse("a result that is not signed", wrong)
	w.do(a)
	refuse("a result shown twice", a)
	refuse("a dispute about what was not shown", OpenDispute{ID: 1, Target: ResultTarget(0, drawn[1], 0), Challenger: drawn[0]})
	refuse("a dispute about oneself", OpenDispute{ID: 1, Target: ResultTarget(0, drawn[0], 0), Challenger: drawn[0]})
	w.pass(202)
	refuse("a result after its time", b)
	for n, want := range map[int]bool{-1: false, 0: true, 1: false, 2: true, 8: true, 9: false} {
		o := testOrder()
		o.Conditions.Replicas, o.Conditions.Auditors, o.Conditions.AuditSegments = n, 0, 0
		if err := o.Check(); (err == nil) != want {
			t.Errorf("%d replicas: %v", n, err)
		}
	}
	o := testOrder()
	o.Conditions.Replicas = 2
	if err := o.Check(); err == nil {
		t.Error("replicas and auditors were taken")
	}
}

// Who splits its stake among accounts has as many places in the mean, and never all of them more
// often than its share allows.
func TestStakeDecidesWhoIsDrawn(t *testing.T) {
	const tries = 4000
	for _, split := range []int{1, 2, 5} {
		pool := []Party{{Account: "a", Weight: 400}, {Account: "b", Weight: 300}}
		for i := range split {
			pool = append(pool, Party{Account: fmt.Sprint("s", i), Weight: 300 / uint64(split)})
		}
		first, both := 0, 0
		for i := range tries {
			m := means{affords: func(string, uint64) bool { return true }}
			lots := beacon.Draw(canon.Sum("seed", []byte(fmt.Sprint(i))), beacon.Replicas, nil)
			drawn, err := m.able(lots, pool, 2, each(1))
			if err != nil || len(drawn) != 2 {
				t.Fatal(drawn, err)
			}
			mine := func(i int) bool { return strings.HasPrefix(drawn[i], "s") }
			if mine(0) {
				first++
			}
			if mine(0) && mine(1) {
				both++
			}
		}
		if share := float64(first) / tries; share < 0.27 || share > 0.33 {
			t.Errorf("split among %d accounts: %.3f of the first places, want 0.3", split, share)
		}
		if share := float64(both) / tries; share > 0.3*0.3+0.01 {
			t.Errorf("split among %d accounts: both places with %.3f, want at most %.3f", split, share, 0.3*0.3)
		}
	}
}

// Whatever replicas do and leave undone, every ledger adds up, the lease ends, and nobody who does
// what it should loses more than nothing.
func TestReplicasWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(least, MaxReplicas).Draw(t, "replicas")
		m := replicatedMatch(n, n+rapid.IntRange(0, 4).Draw(t, "more"))
		m.Order.Problem.Rounds, m.Order.Problem.Shards = rapid.IntRange(1, 2).Draw(t, "rounds"), 2
		w := newWorldOf(t, m)
		bad := map[string]string{} // what each dishonest provider does
		for _, p := range m.Providers {
			bad[p.Account] = rapid.SampledFrom([]string{"", "", "", "silent", "stalls", "lies", "copies"}).Draw(t, p.Account)
		}
		for range 60 {
			if w.lease.Phase != Active && w.lease.Phase != Stopping {
				break
			}
			for i := range w.lease.Units {
				w.playReplicas(t, i, bad)
			}
			if w.lease.AwaitsMerge() && w.lease.Phase < Closing {
				w.do(w.merge())
			}
			w.pass(int64(rapid.SampledFrom([]int{1, 2, 50, 90}).Draw(t, "ms")))
		}
		for range 20 {
			w.pass(5000)
		}
		if w.lease.Phase != Settled {
			t.Fatalf("the lease is %v", w.lease.Phase)
		}
		for who, what := range bad {
			if what == "" && (slices.Contains(w.lease.Barred, who) || w.jailed[who]) {
				t.Fatalf("%s did all that it should, and is barred", who)
			}
		}
	})
}

// playReplicas lets the replicas of a unit do what they do.
func (w *world) playReplicas(t *rapid.T, unit int, bad map[string]string) {
	u := &w.lease.Units[unit]
	switch {
	case u.Status == Open && w.lease.Phase == Active && unit/w.lease.Order.Problem.Shards == w.lease.Round:
		_ = w.try(Assign{By: w.lease.Lead(), Units: []Assignment{{Unit: unit, Attempt: u.Attempt}}})
	case u.Status == Received && len(u.Attested) > 0:
		w.attest(unit)
	case u.Status == Assigned && !u.Sealed:
		for _, r := range u.Replicas {
			if what := bad[r.Provider]; r.Commit.IsZero() && what != "silent" {
				w.do(commitTo(w.wordOf(unit, r.Provider, what)))
			}
		}
	case u.Status == Assigned:
		for _, r := range u.Replicas {
			if what := bad[r.Provider]; r.Result == 0 && what != "stalls" && w.lease.Units[unit].Status == Assigned {
				w.do(w.wordOf(unit, r.Provider, what))
			}
		}
		for _, r := range w.lease.Units[unit].Replicas {
			for _, target := range w.lease.Differs(unit, r.Provider) {
				if what := bad[r.Provider]; what == "stalls" || what == "silent" || w.lease.Units[unit].Status != Assigned {
					continue
				}
				w.next++
				if w.try(OpenDispute{ID: w.next, Target: target, Attempt: u.Attempt, Challenger: r.Provider}) != nil {
					continue
				}
				loser := dispute.Challenger // the referee is right
				if what := bad[target.Account()]; what == "lies" || what == "copies" {
					loser = dispute.Defender
				}
				w.do(CloseDispute{ID: w.next, Loser: loser})
			}
		}
	}
}

func (w *world) wordOf(unit int, who, what string) Reveal {
	switch what {
	case "lies":
		return w.says(unit, who, "x", "")
	case "copies":
		return w.says(unit, who, "", who)
	}
	return w.says(unit, who, "", "")
}

// replicatedWorld has an order of some rounds of two units, all of whose units three of some
// providers compute.
func replicatedWorld(t *testing.T, rounds, providers int) *world {
	m := replicatedMatch(3, providers)
	m.Order.Problem.Rounds = rounds
	return newWorldOf(t, m)
}

// agreeOnRound lets all replicas of a round say the same, and merges it.
func (w *world) agreeOnRound(lie string) {
	w.t.Helper()
	for s := range w.lease.Order.Problem.Shards {
		i := w.lease.Unit(w.lease.Round, s)
		w.differ(i, lie, lie, lie)
		w.pass(1)
		w.attest(i)
	}
	w.pass(1)
	w.do(w.merge())
}

// Whatever places a provider has, it has one reserve for all of them.
func TestReplicasStandOnOneReserve(t *testing.T) {
	w := replicatedWorld(t, 3, 3) // so all have a place of each unit
	l := &w.lease
	for l.Round < 3 {
		w.agreeOnRound("")
		for _, p := range l.Providers {
			if got, want := l.Reserve.Held(p.Account, ForWork), l.Params.BondFactor*l.Quote.Honest; got != want {
				t.Fatalf("%d utally of %s stand behind %d rounds, want %d", got, p.Account, l.Round, want)
			}
		}
	}
	w.pass(100)
	if l.Phase != Settled || w.stakeOf("p00") != stake {
		t.Errorf("%v, p00 has %d", l.Phase, w.stakeOf("p00"))
	}
}

// A convict loses all of its reserve, once, and all of its places. Others answer for what they have
// said too, and nothing is void.
func TestConvictedReplicaLosesAllItsPlaces(t *testing.T) {
	w := replicatedWorld(t, 3, 4)
	l := &w.lease
	for l.Round < 1 {
		w.agreeOnRound("")
	}
	drawn := w.giveOut(2)
	other := w.giveOut(3)
	bad := drawn[slices.IndexFunc(drawn, func(who string) bool { return slices.Contains(other, who) })]
	w.do(commitTo(w.says(3, bad, "", "")))
	for _, who := range drawn {
		lie := map[bool]string{true: "x"}[who == bad]
		w.do(commitTo(w.says(2, who, lie, "")))
	}
	for _, who := range drawn {
		lie := map[bool]string{true: "x"}[who == bad]
		w.do(w.says(2, who, lie, ""))
	}
	honest := drawn[slices.IndexFunc(drawn, func(who string) bool { return who != bad })]
	held := l.Reserve.Held(bad, ForWork)
	w.refuteOthers(2, honest)
	if l.Ledger.Slashed != held || w.held[bad] != 0 || w.purse[honest] != held*l.Params.RewardBps/bps {
		t.Errorf("%d of %d slashed, %d left, the challenger has %d", l.Ledger.Slashed, held, w.held[bad], w.purse[honest])
	}
	for i := range l.Units[:4] {
		if u := &l.Units[i]; u.Provider == bad || u.Replica(bad) != nil || u.Attempt != 0 || i < 2 && u.Status != Accepted {
			t.Errorf("unit %d is %v, attempt %d, of %s with %v", i, u.Status, u.Attempt, u.Provider, w.placed(i))
		}
	}
	if w.pass(1); len(l.Units[3].Replicas) != 3 || slices.Contains(w.placed(3), bad) {
		t.Errorf("%v have the places of the unit that the convict had begun", w.placed(3))
	}
}

// A counted unit whose provider is convicted of another waits for a unit's time, in which what the next
// says can be disputed. Then it is accepted.
func TestCountedUnitOfAConvictIsHeld(t *testing.T) {
	m := replicatedMatch(3, 3) // so all have a place of each unit
	m.Order.Conditions.Speculate = 0
	w := newWorldOf(t, m)
	l := &w.lease
	w.giveOut(0)
	w.agree(1)
	u := &l.Units[1]
	bad, next := u.Provider, u.Replicas[0].Provider
	for _, act := range []func(Reveal){func(s Reveal) { w.do(commitTo(s)) }, func(s Reveal) { w.do(s) }} {
		for _, who := range w.placed(0) {
			act(w.says(0, who, map[bool]string{true: "x"}[who == bad], ""))
		}
	}
	if u = &l.Units[1]; u.Status != Counted {
		t.Fatalf("the unit is %v before the conviction", u.Status)
	}
	w.refuteOthers(0, next)
	convicted := w.now
	w.pass(l.Order.Conditions.UnitTimeout - 1)
	if u = &l.Units[1]; u.Status != Counted || u.Provider != next || u.Attempt != 0 {
		t.Errorf("while it can be disputed, the unit is %v, attempt %d, of %s", u.Status, u.Attempt, u.Provider)
	}
	if wake := l.WakeUnit(1); wake != convicted+l.Order.Conditions.UnitTimeout {
		t.Errorf("it is looked at again at %d, %d after the conviction", wake, wake-convicted)
	}
	w.pass(1)
	if u = &l.Units[1]; u.Status != Accepted {
		t.Errorf("after that the unit is %v", u.Status)
	}
}

// A convict alone that answers for early work takes what descends from it along, and pays it.
func TestLastReplicaPaysWhatIsVoid(t *testing.T) {
	w := replicatedWorld(t, 4, 7)
	l := &w.lease
	w.agreeOnRound("x")
	var liars []string
	liars = append(append(liars, l.Units[0].Provider), w.placed(0)...)
	for l.Round < 3 && l.Phase == Active {
		w.agreeOnRound("")
	}
	for i, who := range liars {
		if u := &l.Units[0]; u.Provider != who || l.Round != 3 {
			t.Fatalf("%s answers for the unit, round %d, after %d convictions", u.Provider, l.Round, i)
		}
		w.convict(UnitTarget(0)) // with the last, paysVoid: all else is paid
	}
	if l.Round != 0 || l.Units[0].Status != Open || l.Units[0].Attempt != 1 {
		t.Errorf("round %d, unit 0 is %v", l.Round, l.Units[0].Status)
	}
}

// Who has shown a wrong result answers for it though its unit is void by what another did.
func TestDisputedResultOutlivesItsUnit(t *testing.T) {
	for _, loser := range []dispute.Side{dispute.Defender, dispute.Challenger} {
		w := replicatedWorld(t, 3, 3)
		l := &w.lease
		w.agreeOnRound("")
		bad := w.differ(2, "", "x", "")[1]
		w.do(OpenDispute{ID: 90, Target: ResultTarget(2, bad, 0), Challenger: asker})
		w.do(OpenDispute{ID: 91, Target: ResultTarget(2, bad, 1), Challenger: asker})
		w.convict(MergeTarget(0))
		held := l.Reserve.Held(bad, ForWork)
		if l.Round != 0 || l.Units[2].Status != Open || held == 0 || len(l.Disputes) != 2 {
			t.Fatalf("round %d, %d are left behind the result, %d disputes", l.Round, held, len(l.Disputes))
		}
		w.do(CloseDispute{ID: 90, Loser: loser})
		if loser == dispute.Challenger {
			w.do(CloseDispute{ID: 91, Loser: loser})
		}
		if l.Ledger.Slashed == 0 || (w.stakeOf(bad) == stake) != (loser == dispute.Challenger) || len(l.Disputes) != 0 {
			t.Errorf("%v loses: %s has %d of its stake, %d disputes", loser, bad, w.stakeOf(bad), len(l.Disputes))
		}
	}
}
