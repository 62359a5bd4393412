package dispute_test

import (
	"testing"

	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// stakeAll leaves a peer nothing but stake: it can pay fees, as the sponsor does.
func (a *affair) stakeAll(name string) chaintest.Account {
	a.T.Helper()
	who := chaintest.Named(name)
	if have := a.Balance(who.Address); have > 0 {
		a.Deliver(who, &providerv1.MsgDeposit{Account: who.String(), Amount: have})
	}
	return who
}

// filesBond returns what somebody has reserved as a custodian of the order's files.
func (a *affair) filesBond(who chaintest.Account) (bond uint64) {
	for _, e := range a.Lease().Reserve {
		if e.Account == who.String() && e.Reason == workv1.REASON_FILES {
			bond += e.Amount
		}
	}
	return bond
}

// reported is an affair in which an auditor that has staked everything has found that
// unit 0 is wrong.
func reported(t *testing.T) (*affair, chaintest.Account) {
	t.Helper()
	a, auditor := audited(t)
	a.Audit(0, false)
	return a, auditor
}

// audited is an affair in which an auditor that has staked everything is about to say
// that unit 0 is wrong.
func audited(t *testing.T) (*affair, chaintest.Account) {
	t.Helper()
	a := &affair{
		honest: worktest.NewTraining(t, nil),
		cheat:  worktest.NewTraining(t, &worktest.Lie{Unit: 0, Step: 2, Element: 5}),
	}
	a.Play = worktest.Begin(t, chaintest.New(t, worktest.Network()...), a.honest.Order())
	a.Computer = a.cheat
	a.Assign(0, "p0")
	a.Submit(0)
	a.Attest(0)
	a.honest.Learn(a.cheat)
	auditor := worktest.Named(t, a.Unit(0).Audits[0].Auditor)
	a.stakeAll(auditor.Name)
	return a, auditor
}

// A report of what is wrong carries its opening: one transaction holds both, and the
// bond behind the word that it has just given is behind the game.
func TestReportCarriesItsOpening(t *testing.T) {
	a, auditor := audited(t)
	_, w := a.sides()
	open := a.OpenMsg(job.UnitTarget(0), 0, w)
	open.Challenger = auditor.String()
	b := a.Deliver(auditor, a.ReportMsg(0, auditor, false), open)
	d, _ := a.Game(chaintest.Events[*disputev1.EventOpened](t, b)[0].Dispute)
	if u := a.Unit(0); d.Parties.ChallengerPurse != disputev1.PURSE_VERDICT || d.Waiting || !u.Audits[0].Done || u.Audits[0].Pass {
		t.Fatalf("%+v; unit 0 is %+v", d, u)
	}
}

// An auditor that has staked everything could not lock a challenger's bond, so what it
// had found to be forged passed, and its report was a false alarm. Its verdict's bond,
// which it reserved when it was drawn, stands behind the game.
func TestAuditorWithEverythingStakedDefeatsAForgedUnit(t *testing.T) {
	a, auditor := reported(t)
	before := a.peer(auditor.Name)
	_, w := a.sides()
	m := a.OpenMsg(job.UnitTarget(0), 0, w)
	m.Challenger = auditor.String()
	if _, _, err := a.Chain.Work.Claim(a.Ctx(), a.ID, job.UnitTarget(0), 0, 1); err != nil {
		t.Fatal(err)
	}
	id := chaintest.Events[*disputev1.EventOpened](t, a.Deliver(auditor, m))[0].Dispute
	d, _ := a.Game(id)
	if after := a.peer(auditor.Name); d.Parties.ChallengerPurse != disputev1.PURSE_VERDICT || after.Stake != before.Stake || after.Reserved != before.Reserved || a.bonds() != 0 {
		t.Fatalf("%v; %+v, was %+v; %d are locked", d.Parties.ChallengerPurse, after, before, a.bonds())
	}
	defender, challenger := a.sides()
	if d, _ = a.PlayOut(id, defender, challenger); d.Loser != disputev1.SIDE_DEFENDER {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	if a.peer("p0").JailedUntil == 0 || a.Unit(0).Attempt != 1 || a.peer(auditor.Name).Reserved != a.filesBond(auditor) || a.Balance(auditor.Address) == 0 {
		t.Fatalf("%+v; unit 0 is %+v", a.peer(auditor.Name), a.Unit(0))
	}
	a.Finish()
}

// A pledge is worth what a bond is: who loses the game loses the word's bond, and has
// no second game for nothing.
func TestFalseReportPaysForItsGame(t *testing.T) {
	a, auditor := reported(t)
	before, worth := a.peer(auditor.Name), a.Lease().Quote.Unit // it keeps the unit, too
	m := a.accusation(auditor, 0)                               // what is right
	id := chaintest.Events[*disputev1.EventOpened](t, a.Deliver(auditor, m))[0].Dispute
	defender, challenger := a.sides()
	if d, _ := a.PlayOut(id, defender, challenger); d.Loser != disputev1.SIDE_CHALLENGER {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	if after := a.peer(auditor.Name); before.Stake-after.Stake != 100*worth || before.Reserved-after.Reserved != 100*worth {
		t.Fatalf("the auditor has %+v, it had %+v", after, before)
	}
	b := a.Deliver(auditor, m)
	if d, _ := a.Game(chaintest.Events[*disputev1.EventOpened](t, b)[0].Dispute); d.Parties.ChallengerPurse != disputev1.PURSE_STAKE {
		t.Errorf("a second game is played at no bond: %+v", d.Parties)
	}
}

// Who has stake challenges with it: a challenger needs no money beside. A false challenge
// takes it, half for the defender.
func TestChallengersBondComesOutOfStake(t *testing.T) {
	for _, right := range []bool{true, false} {
		a := newAffair(t)
		who := a.stakeAll("v1")
		before := a.peer("v1")
		m := a.accusation(who, 0)
		if right {
			_, w := a.sides()
			m = a.OpenMsg(job.UnitTarget(0), 0, w)
			m.Challenger = who.String()
		}
		id := chaintest.Events[*disputev1.EventOpened](t, a.Deliver(who, m))[0].Dispute
		if p := a.peer("v1"); p.Reserved != before.Reserved+bond || a.bonds() != 0 {
			t.Fatalf("%+v, was %+v", p, before)
		}
		a.Chain = a.Fork() // invariants hold of what is imported, too
		purse, fund := a.Balance(chaintest.Named("p0").Address), insurance(a.Chain)
		defender, challenger := a.sides()
		a.PlayOut(id, defender, challenger)
		after := a.peer("v1")
		switch {
		case right && (after.Stake != before.Stake || after.Reserved > before.Reserved):
			t.Errorf("the challenger has %+v, it had %+v", after, before)
		case !right && (after.Stake != before.Stake-bond || a.Balance(chaintest.Named("p0").Address) != purse+bond/2 || insurance(a.Chain) != fund+bond-bond/2):
			t.Errorf("the challenger has %+v, it had %+v", after, before)
		}
	}
}

// Seven friends of a cheat that challenge it, and lose, raise nobody's bond: the eighth
// challenger locks what the first did.
func TestFriendsCannotRaiseABond(t *testing.T) {
	friends := crowd(7)
	a := newAffairIn(t, funded(friends))
	want := func() uint64 {
		_, b, err := a.Chain.Work.Claim(a.Ctx(), a.ID, job.UnitTarget(0), 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := want()
	for _, name := range friends {
		a.accuse(name, 0)
	}
	if want() != first {
		t.Fatalf("a bond of %d while friends play, %d before", want(), first)
	}
	for played, _ := a.open(); len(played) > 0; played, _ = a.open() {
		if d := urgent(played); d != nil {
			defender, _ := a.sides()
			a.Step(d.Id, defender, nil, new(worktest.Cost))
		} else {
			a.NextBlock(clock)
		}
	}
	if want() != first || first != bond {
		t.Fatalf("a bond of %d after seven friends have lost, %d before", want(), first)
	}
	defender, challenger := a.sides()
	if d, _ := a.PlayOut(a.challenge(), defender, challenger); d.Loser != disputev1.SIDE_DEFENDER || d.Parties.Bond != first {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	if u := a.Unit(0); u.Status != workv1.UNIT_STATUS_OPEN {
		t.Errorf("unit 0 is %v", u.Status)
	}
}
