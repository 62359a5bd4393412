package job

import (
	"testing"

	"github.com/tally-network/tally/core/dispute"
)

// speculativeMatch is testMatch with windows that outlast the rounds.
func speculativeMatch(ahead int) Match {
	m := testMatch()
	m.Order.Conditions.Speculate, m.Order.Conditions.UnitWindow = ahead, 40
	return m
}

func (w *world) computeRound() {
	w.t.Helper()
	for s, p := range []string{"p1", "p2"} {
		if i := w.lease.Unit(w.lease.Round, s); w.lease.Units[i].Status == Open {
			w.compute(i, p, "")
		}
	}
	w.pass(1)
}

func (w *world) finishAll() {
	w.t.Helper()
	for w.lease.Phase < Closing {
		if w.lease.AwaitsMerge() {
			w.do(w.merge())
			continue
		}
		w.computeRound()
		w.pass(41)
	}
	w.pass(101)
	if w.lease.Phase != Settled {
		w.t.Fatalf("the lease is %v", w.lease.Phase)
	}
}

func TestWindowsRunBesideTheNextRounds(t *testing.T) {
	waits := newWorldOf(t, speculativeMatch(0))
	waits.computeRound()
	if waits.lease.AwaitsMerge() {
		t.Fatal("a round that waits is merged in its window")
	}
	waits.pass(40)
	waits.finishAll()

	w := newWorldOf(t, speculativeMatch(MaxUnits))
	begin := w.now
	for w.lease.Round < len(w.lease.Merges) {
		w.computeRound()
		w.do(w.merge())
	}
	if took := w.now - begin; took >= 40 {
		t.Errorf("all rounds took %d ms, a window is 40", took)
	}
	first := w.lease.Merges[0].Until
	w.finishAll()
	if w.now < first || w.lease.FinalRoot() != waits.lease.FinalRoot() {
		t.Errorf("settled at %d in a window until %d, or with another root", w.now, first)
	}
}

func TestDepthBoundsHowFarRoundsRunAhead(t *testing.T) {
	w := newWorldOf(t, speculativeMatch(1))
	for w.lease.Phase < Closing {
		if w.lease.AwaitsMerge() {
			w.do(w.merge())
			if ahead := w.lease.Round - w.lease.Windows.Final; ahead > 1 && w.lease.Round < len(w.lease.Merges) {
				t.Fatalf("%d rounds are ahead of windows, 1 may be", ahead)
			}
			continue
		}
		w.computeRound()
		w.pass(1)
	}
}

// Only the word of all who were drawn ends the wait for a window.
func TestSilentAuditorMakesAUnitWait(t *testing.T) {
	w := newWorldOf(t, speculativeMatch(MaxUnits))
	if err := w.assign(0, "p1"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(0, ""))
	w.attest(0)
	u := &w.lease.Units[0]
	window := u.WindowEnd
	for w.lease.Units[0].Status == Counted && w.now < window+1000 {
		w.pass(1)
	}
	if w.lease.Units[0].Status != Accepted || w.now < window {
		t.Fatalf("the unit is %v at %d, its window ends at %d", w.lease.Units[0].Status, w.now, window)
	}
}

// A bond covers all that descends from a unit, however far the rounds ran ahead.
func TestLateFraudIsPaidAtAnyDepth(t *testing.T) {
	w := newWorldOf(t, speculativeMatch(MaxUnits))
	for w.lease.Phase < Closing {
		if w.lease.AwaitsMerge() {
			w.do(w.merge())
			continue
		}
		w.computeRound()
	}
	bond := w.bondOf(0)
	cheat := w.lease.Units[0].Provider
	earned := map[string]uint64{}
	for i := range w.lease.Units {
		all, err := w.lease.earnings(i, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Account != cheat && (i == 0 || i >= w.lease.Order.Problem.Shards) {
				earned[s.Account] += s.Amount
			}
		}
	}
	if err := w.challenge(1, UnitTarget(0), "c"); err != nil {
		t.Fatal(err)
	}
	before := map[string]uint64{}
	for a := range earned {
		before[a] = w.purse[a]
	}
	w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	for a, want := range earned {
		if got := w.purse[a] - before[a]; got < want {
			t.Errorf("%s lost work worth %d, and got %d of a bond of %d", a, want, got, bond)
		}
	}
	if w.lease.Round != 0 || w.lease.Windows.Final != 0 || w.lease.Phase != Active {
		t.Errorf("the lease is %v at round %d, %d final", w.lease.Phase, w.lease.Round, w.lease.Windows.Final)
	}
}

// A custodian that is convicted while the window of an accepted unit runs is replaced.
func TestAcceptedUnitGetsAnotherCustodianInItsWindow(t *testing.T) {
	m := testMatch()
	m.Validators = append(m.Validators, party("v4", Rates{}))
	m.Order.Conditions.Speculate, m.Order.Conditions.UnitWindow = MaxUnits, 40
	k := newKeptOf(t, m)
	k.lease.Params.AnswerTime = 5
	k.attest(0)
	k.audit(0, true)
	k.pass(1)
	u := &k.lease.Units[0]
	if u.Status != Accepted {
		t.Fatalf("the unit is %v", u.Status)
	}
	who, before := k.custodian(0), len(u.Attested)
	k.ask(who)
	k.now = k.lease.Question(who, 0).Due + 1
	k.tick()
	k.pass(1)
	u = &k.lease.Units[0]
	if len(u.Attested) != before+1 || u.Keeps(who) || u.Status != Accepted {
		t.Fatalf("the unit is %v, kept by %+v", u.Status, u.Attested)
	}
	next := k.custodian(before)
	k.do(Attest{next, 0, 0, nil})
	k.finish()
	if k.purse[next] == 0 {
		t.Errorf("%s kept the unit, and got nothing", next)
	}
}
