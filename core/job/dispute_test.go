package job

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/core/dispute"
)

// received brings a unit to a receipt that counts, with its audits answered.
func (w *world) received(lie string) {
	w.t.Helper()
	w.compute(0, "p0", lie)
}

func (w *world) challenge(id uint64, t Target, who string) error {
	w.t.Helper()
	return w.try(OpenDispute{ID: id, Target: t, Attempt: w.lease.Attempt(t), Challenger: who})
}

// Who fills the list of disputes keeps others out for as long as it pays bonds; their
// time to dispute begins anew when a place is free.
func TestFullListKeepsNobodyOutForGood(t *testing.T) {
	w := newWorld(t)
	for w.lease.Round < w.lease.Order.Problem.Rounds {
		w.finishRound()
	}
	for id := range uint64(maxDisputes - reservedDisputes) {
		if err := w.challenge(id, UnitTarget(5), fmt.Sprintf("c%d", id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.challenge(maxDisputes, UnitTarget(4), "honest"); err == nil {
		t.Fatal("there is no limit")
	}
	w.pass(w.lease.Windows.End + 1000 - w.now)
	w.do(CloseDispute{ID: 0, Loser: dispute.Challenger})
	w.pass(w.lease.Order.Conditions.Window - 1)
	if err := w.challenge(maxDisputes, UnitTarget(4), "honest"); err != nil {
		t.Fatal(err)
	}
	w.pass(1)
	if err := w.challenge(maxDisputes+1, UnitTarget(3), "late"); err == nil {
		t.Fatal("a dispute began after the window")
	}
}

// Any number of challengers delay a unit by one game, because only those who come
// while it waits in any case hold it up.
func TestManyChallengersDelayAUnitNoLongerThanOne(t *testing.T) {
	const game = 60 // how long each plays for time
	w := newWorld(t)
	w.received("")
	begun := w.now
	end := w.lease.Units[0].WindowEnd
	for id := uint64(1); w.lease.Units[0].Status != Accepted; id++ {
		if err := w.challenge(id, UnitTarget(0), fmt.Sprintf("c%d", id)); err != nil {
			t.Fatal(err)
		}
		for range game {
			if w.pass(1); w.lease.Units[0].Status == Accepted {
				break
			}
		}
		if w.now > end+game {
			t.Fatalf("%d ms after the window, unit is %v", w.now-end, w.lease.Units[0].Status)
		}
		w.do(CloseDispute{ID: id, Loser: dispute.Challenger})
		// The next comes before time can pass.
	}
	if w.now < begun+game {
		t.Fatal("the first challenge delayed nothing")
	}
}

// In the end, a lease waits for those disputes only that began within its window.
func TestNoDisputeBeginsAfterTheWindow(t *testing.T) {
	w := newWorld(t)
	for w.lease.Round < w.lease.Order.Problem.Rounds {
		w.finishRound()
	}
	end := w.lease.Windows.End
	if err := w.challenge(1, UnitTarget(5), "c"); err != nil {
		t.Fatal(err)
	}
	w.pass(end - w.now)
	if w.lease.Phase != Closing {
		t.Fatalf("the lease is %v while a dispute is open", w.lease.Phase)
	}
	if err := w.challenge(2, UnitTarget(4), "d"); err == nil {
		t.Fatal("a dispute began after the window")
	}
	w.do(CloseDispute{ID: 1, Loser: dispute.Challenger})
	w.pass(1)
	if w.lease.Phase != Settled {
		t.Fatalf("the lease is %v", w.lease.Phase)
	}
}

// A challenge costs twice what replaying its segment is worth, and no more, however
// many are open or were lost: friends of a cheat cannot price out the honest.
func TestBondsAreFlat(t *testing.T) {
	w := newWorld(t)
	w.received("")
	w.compute(1, "p1", "")
	p := &w.lease.Order.Problem
	bond := func(target Target, segment int) uint64 {
		t.Helper()
		b, err := w.lease.ChallengeBond(target, segment)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := bond(UnitTarget(0), 0)
	for id := uint64(1); id <= 20; id++ {
		if err := w.challenge(id, UnitTarget(0), fmt.Sprintf("c%d", id)); err != nil {
			t.Fatal(err)
		}
	}
	for id := uint64(1); id <= 7; id++ {
		w.do(CloseDispute{ID: id, Loser: dispute.Challenger})
	}
	if err := w.challenge(21, UnitTarget(0), "c9"); err == nil {
		t.Fatal("one challenger disputed the same claim twice")
	}
	if got := bond(UnitTarget(0), 0); got != first || first != w.lease.Params.ChallengeBond {
		t.Fatalf("a bond of %d after 20 challenges, %d before", got, first)
	}
	w.lease.Params.ChallengeBond = 1
	unit := w.lease.Quote.Unit
	if got, want := bond(UnitTarget(0), 0), 2*unit*uint64(p.Interval)/uint64(p.Steps); got < want || got > want+4 {
		t.Errorf("a bond of %d for a segment, want %d", got, want)
	}
	if bond(UnitTarget(0), 1) != bond(VerdictTarget(0, "v1"), 1) || bond(UnitTarget(0), 1) != bond(TruthTarget(0, 1), 0) {
		t.Error("a segment is not worth the same in every dispute about it")
	}
	p.MergeFLOPs = 4 * p.UnitFLOPs()
	if got := bond(MergeTarget(0), 0); got < 4*unit {
		t.Errorf("a bond of %d for a merge that costs as much as four units, of %d each", got, unit)
	}
	if _, err := w.lease.ChallengeBond(UnitTarget(0), p.Segments()); err == nil {
		t.Error("a segment that does not exist has a price")
	}
}

// The first conviction ends all disputes about the claim, and takes the bond once.
func TestConvictionEndsTheOthers(t *testing.T) {
	for _, merge := range []bool{false, true} {
		w := newWorld(t)
		target := map[bool]Target{false: UnitTarget(0), true: MergeTarget(0)}[merge]
		w.received("lie")
		w.compute(1, "p1", "")
		w.pass(20)
		w.do(w.merge())
		other := UnitTarget(1)
		for id, x := range []Target{target, target, target, other} {
			if err := w.challenge(uint64(id+1), x, fmt.Sprintf("c%d", id)); err != nil {
				t.Fatal(err)
			}
		}
		bond := w.held[map[bool]string{false: "p0", true: "v0"}[merge]]
		w.do(CloseDispute{ID: 2, Loser: dispute.Defender})
		if n := len(w.lease.Disputes); n != 1 || w.lease.Disputes[0].ID != 4 {
			t.Fatalf("%d disputes are left", n)
		}
		if w.lease.Ledger.Slashed != bond || w.purse["c1"] == 0 || w.purse["c0"] != 0 {
			t.Fatalf("slashed %d of %d, c1 got %d", w.lease.Ledger.Slashed, bond, w.purse["c1"])
		}
	}
}

// Several disputes about work that is voided by the fraud of another: its bond
// hasWaited for all of them.
func TestBondOfVoidWorkWaitsForEveryDispute(t *testing.T) {
	for losers, slashed := range map[[2]dispute.Side]bool{
		{dispute.Challenger, dispute.Challenger}: false,
		{dispute.Challenger, dispute.Defender}:   true,
		{dispute.Defender, dispute.Nobody}:       true, // it ends the other
	} {
		w := newWorld(t)
		w.compute(0, "p0", "lie")
		w.compute(1, "p1", "")
		w.pass(20)
		w.do(w.merge())
		w.compute(2, "p2", "lie")
		for id, who := range []string{"c", "d"} {
			if err := w.challenge(uint64(id+1), UnitTarget(2), who); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.challenge(9, UnitTarget(0), "c"); err != nil {
			t.Fatal(err)
		}
		w.do(CloseDispute{ID: 9, Loser: dispute.Defender})
		bond := w.held["p2"]
		if bond == 0 || w.lease.Units[2].Status != Open {
			t.Fatalf("unit 2 is %v, %d held", w.lease.Units[2].Status, bond)
		}
		before := w.lease.Ledger.Slashed
		for i, loser := range losers {
			if w.held["p2"] != bond {
				t.Fatalf("%v: %d held before dispute %d", losers, w.held["p2"], i)
			}
			if loser != dispute.Nobody {
				w.do(CloseDispute{ID: uint64(i + 1), Loser: loser})
			}
			if loser == dispute.Defender {
				break
			}
		}
		if got := w.lease.Ledger.Slashed - before; (got == bond) != slashed || w.held["p2"] != 0 || len(w.lease.Disputes) != 0 {
			t.Fatalf("%v: slashed %d of %d, %d held", losers, got, bond, w.held["p2"])
		}
	}
}

// A challenge alone bars nobody from work; a missed answer does, until the
// defender answers or the dispute ends.
func TestMissedAnswerBarsFromNewWork(t *testing.T) {
	w := newWorld(t)
	w.received("")
	if err := w.challenge(1, UnitTarget(0), "c"); err != nil {
		t.Fatal(err)
	}
	for _, answered := range []Event{MissAnswer{1, false}, CloseDispute{ID: 1, Loser: dispute.Challenger}} {
		if n := len(w.lease.Eligible()); n != 3 {
			t.Fatalf("%d providers may get units", n)
		}
		w.do(MissAnswer{1, true})
		if err := w.assign(1, "p0"); err == nil {
			t.Fatal("a provider that missed an answer got a unit")
		}
		if n := len(w.lease.Eligible()); n != 2 {
			t.Fatalf("%d providers may get units", n)
		}
		w.do(answered)
	}
	if err := w.assign(1, "p0"); err != nil {
		t.Fatal(err)
	}
	if err := w.try(MissAnswer{7, true}); err == nil {
		t.Fatal("an answer was missed in no dispute")
	}
}

// The reward goes to who played for the challenger in the end.
func TestSubstituteIsRewarded(t *testing.T) {
	w := newWorld(t)
	w.received("lie")
	if err := w.challenge(1, UnitTarget(0), "c"); err != nil {
		t.Fatal(err)
	}
	if err := w.try(Substitute{1, "p0"}); err == nil {
		t.Fatal("a defender took its challenger's seat")
	}
	w.do(Substitute{1, "d"})
	w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	if w.purse["d"] == 0 || w.purse["c"] != 0 {
		t.Fatalf("d got %d, c %d", w.purse["d"], w.purse["c"])
	}
}

// When no provider is left, the lease stops; no lead is to blame.
func TestLeaseStopsWhenEveryProviderIsBarred(t *testing.T) {
	w := newWorld(t)
	for id, p := range []string{"p0", "p1", "p2"} {
		w.compute(0, p, "lie")
		if err := w.challenge(uint64(id+1), UnitTarget(0), "c"); err != nil {
			t.Fatal(err)
		}
		w.do(CloseDispute{ID: uint64(id + 1), Loser: dispute.Defender})
	}
	w.pass(2)
	if w.lease.Phase != Settled || w.free["v0"] != stake || w.purse["consumer"] != w.lease.Quote.Price+w.lease.Deposit {
		t.Fatalf("the lease is %v (%s), the lead has %d", w.lease.Phase, w.lease.Reason, w.free["v0"])
	}
}

// Whatever a dispute is about may be gone before its game is over. Then it ends
// without a loser, and the lease goes on.
func TestDisputesOfWhatIsGoneEndWithoutALoser(t *testing.T) {
	for _, loser := range []dispute.Side{dispute.Defender, dispute.Challenger} {
		w := newWorld(t)
		w.received("lie")
		w.compute(1, "p1", "")
		w.pass(20)
		w.do(w.merge())
		lead := w.lease.Merges[0].By
		w.do(OpenDispute{ID: 1, Target: UnitTarget(0), Challenger: "c"})
		w.do(OpenDispute{ID: 2, Target: MergeTarget(0), Challenger: "d"})
		w.do(OpenDispute{ID: 3, Target: MergeTarget(0), Challenger: "e"})
		w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
		if n := len(w.lease.Disputes); n != 2 || !w.lease.Disputes[0].Void {
			t.Fatalf("%d disputes are left: %+v", n, w.lease.Disputes)
		}
		w.lease.Leads[w.lease.inLine(lead)].Gone = true // as by another merge of it
		w.perform(w.lease.Reserve.release(lead, ForLead, w.lease.Reserve.Held(lead, ForLead)))
		w.lease.Reserve.open(lead, ForLead).Guilty = true
		if !w.lease.Moot(2) || w.lease.Moot(9) {
			t.Fatal("a void merge of a lead without a bond can still be judged")
		}
		slashed := w.lease.Ledger.Slashed
		w.do(CloseDispute{ID: 2, Loser: loser})
		if len(w.lease.Disputes) != 0 || w.lease.Ledger.Slashed != slashed {
			t.Fatalf("loser %v: %d disputes are left, %d slashed", loser, len(w.lease.Disputes), w.lease.Ledger.Slashed-slashed)
		}
	}
	// What no rule should let happen does not stop a lease either.
	w := newWorld(t)
	w.received("lie")
	w.lease.Disputes = []Dispute{
		{ID: 1, Target: VerdictTarget(0, "nobody"), Defender: "v1", Challenger: "c"},
		{ID: 2, Target: TruthTarget(0, 1), Defender: "p0", Challenger: "c"},
		{ID: 3, Target: UnitTarget(0), Attempt: 7, Defender: "p0", Challenger: "c"},
	}
	for id := range uint64(3) {
		if !w.lease.Moot(id + 1) {
			t.Fatalf("dispute %d is about something", id+1)
		}
		w.do(CloseDispute{ID: id + 1, Loser: dispute.Defender})
	}
	if w.lease.Units[0].Attempt != 0 || w.lease.Ledger.Slashed != 0 {
		t.Fatal("somebody lost a dispute about nothing")
	}
}

// A friend of the cheat disputes what is right, and loses: that said that nobody had shown
// the auditor's report to be right, so it was a false alarm, and the cheat had a part of
// its bond. A report stands until its own dispute has ended, or its time is over.
func TestFriendsLossIsNoFalseAlarm(t *testing.T) {
	report := func(w *world) string {
		auditor := w.lease.Units[0].Audits[0].Auditor
		w.do(Report{By: auditor, Unit: 0, Output: []byte(auditor), Pass: false})
		return auditor
	}
	begin := func() *world {
		w := newWorld(t)
		if err := w.assign(0, "p0"); err != nil {
			t.Fatal(err)
		}
		w.submit(w.receipt(0, "forged"))
		w.attest(0)
		return w
	}
	w := begin()
	if err := w.challenge(1, UnitTarget(0), "friend"); err != nil {
		t.Fatal(err)
	}
	auditor := report(w)
	if w.lease.Disputed(auditor, UnitTarget(0), 0) {
		t.Error("an auditor that owes a dispute is to wait for another's")
	}
	w.pass(w.lease.Order.Conditions.UnitWindow + 1)
	w.do(CloseDispute{ID: 1, Loser: dispute.Challenger})
	w.pass(1)
	if u := w.lease.Units[0]; u.Status != Counted || u.Audits[0].Wrong {
		t.Fatalf("the unit is %v while its auditor has time to show what is wrong", u.Status)
	}
	if err := w.challenge(2, UnitTarget(0), auditor); err != nil {
		t.Fatal(err)
	}
	if !w.lease.Disputes[0].Holds || w.lease.Disputes[0].Pledge != auditor {
		t.Fatalf("%+v", w.lease.Disputes)
	}
	w.pass(w.lease.Order.Conditions.UnitTimeout * 3) // its game may last
	w.do(CloseDispute{ID: 2, Loser: dispute.Defender})
	if w.stakeOf(auditor) != stake || w.stakeOf("p0") == stake {
		t.Errorf("the auditor has %d of %d, the cheat %d", w.stakeOf(auditor), stake, w.stakeOf("p0"))
	}

	w = begin() // who reports and shows nothing pays, as before
	if err := w.challenge(1, UnitTarget(0), "friend"); err != nil {
		t.Fatal(err)
	}
	auditor = report(w)
	w.do(CloseDispute{ID: 1, Loser: dispute.Challenger})
	w.pass(w.lease.Order.Conditions.UnitTimeout + 1)
	if u := w.lease.Units[0]; u.Status != Accepted || !u.Audits[0].Wrong || w.stakeOf(auditor) == stake {
		t.Errorf("the unit is %v, its auditor has %d", u.Status, w.stakeOf(auditor))
	}
}

// Whatever others do, an auditor that has reported finds a place for its dispute.
func TestFullListHasRoomForReports(t *testing.T) {
	w := newWorld(t)
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(0, "forged"))
	w.attest(0)
	auditor := w.lease.Units[0].Audits[0].Auditor
	w.do(Report{By: auditor, Unit: 0, Output: []byte(auditor), Pass: false})
	for id := range uint64(maxDisputes - reservedDisputes) {
		if err := w.challenge(id, UnitTarget(0), fmt.Sprintf("c%d", id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.challenge(maxDisputes, UnitTarget(0), "one more"); err == nil {
		t.Fatal("there is no limit")
	}
	if err := w.challenge(maxDisputes, UnitTarget(0), auditor); err != nil {
		t.Fatal(err)
	}
}

// A provider that hands its data to the custodians alone, and late, leaves an auditor no time
// to look; its audit was forfeit, and the forged unit accepted. From the moment at which a
// receipt counts, others have the data, and auditors have the unit's time.
func TestAuditorsHaveTimeOnceAReceiptCounts(t *testing.T) {
	w := newWorld(t)
	if err := w.assign(0, "p1"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(0, "forged"))
	w.pass(w.lease.Units[0].Due - w.now)
	w.attest(0)
	timeout := w.lease.Order.Conditions.UnitTimeout
	w.pass(timeout)
	u := &w.lease.Units[0]
	if u.Status != Counted || u.Audits[0].Forfeit {
		t.Fatalf("the unit is %v, the audit %+v", u.Status, u.Audits[0])
	}
	auditor := u.Audits[0].Auditor
	w.do(Report{By: auditor, Unit: 0, Output: []byte(auditor), Pass: false})
	w.pass(timeout - 1)
	if w.lease.Units[0].Status != Counted {
		t.Fatal("a mismatch that was reported in time holds nothing")
	}
	w.pass(2)
	if w.lease.Units[0].Status != Accepted {
		t.Error("a unit waits for a dispute for ever")
	}
}
