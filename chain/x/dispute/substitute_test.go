package dispute_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// answer is the time that a side has for one move.
var answer = time.Duration(dispute.DefaultParams().AnswerMs) * time.Millisecond

func substitute(id uint64, who chaintest.Account, side disputev1.Side) *disputev1.MsgSubstitute {
	return &disputev1.MsgSubstitute{Substitute: who.String(), Dispute: id, Side: side}
}

// A challenger that falls silent is substituted by somebody else, who wins and gets
// the reward.
func TestAnybodyMovesForTheHonestSide(t *testing.T) {
	a := newAffair(t)
	id := a.challenge()
	defender, challenger := a.sides()
	a.Step(id, defender, challenger, new(worktest.Cost))
	helper, side := worktest.Consumer, disputev1.SIDE_CHALLENGER
	if log := a.Refuse(dispute.ErrSubstitute, helper, substitute(id, helper, side)); !strings.Contains(log, "has not missed an answer yet") {
		t.Fatal(log)
	}
	b, after := a.NextBlock(answer), a.NextBlock(time.Millisecond)
	if n := len(chaintest.Events[*disputev1.EventMissed](t, b)) + len(chaintest.Events[*disputev1.EventMissed](t, after)); n != 1 {
		t.Fatalf("%d answers were missed", n)
	}
	if log := a.Refuse(dispute.ErrSubstitute, chaintest.Named("p0"), substitute(id, chaintest.Named("p0"), side)); !strings.Contains(log, "other side") {
		t.Fatal(log)
	}
	a.Refuse(dispute.ErrSubstitute, helper, substitute(id, helper, disputev1.SIDE_DEFENDER))
	a.Deliver(helper, substitute(id, helper, side))
	if a.bonds() != 2*bond {
		t.Fatalf("%d utally are locked", a.bonds())
	}
	before, purse := a.peer("p0"), a.Balance(helper.Address)
	d, _ := a.PlayOut(id, defender, challenger)
	if d.Loser != disputev1.SIDE_DEFENDER || d.StepLo != 2 || d.Parties.ChallengerSubstitute != helper.String() {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	reward := (before.Reserved*job.DefaultParams.RewardBps + 9999) / 10_000
	if got := a.Balance(helper.Address) - purse; got != bond+reward {
		t.Errorf("the helper got %d, want its bond of %d and %d", got, bond, reward)
	}
	if got := a.Balance(worktest.Challenger.Address); got != worktest.Purse || a.bonds() != 0 {
		t.Errorf("the challenger has %d of %d; %d are locked", got, uint64(worktest.Purse), a.bonds())
	}
}

// A substitute that falls silent, too, forfeits its bond, and another may come; at
// the end the side loses by its clock, and the winner gets half of what is left.
func TestSubstituteThatFallsSilent(t *testing.T) {
	staked, other := chaintest.Named("v1"), worktest.Consumer
	t.Run("the bond of the first is stake", func(t *testing.T) { substituteTwice(t, staked, other) })
	t.Run("the bond of the second is stake", func(t *testing.T) { substituteTwice(t, other, staked) })
}

// substituteTwice has two substitutes, one after the other, take the challenger's seat and
// fall silent. No substitute was possible any more after a first whose bond was stake.
func substituteTwice(t *testing.T, first, second chaintest.Account) {
	a := newAffair(t)
	id := a.challenge()
	defender, challenger := a.sides()
	a.Step(id, defender, challenger, new(worktest.Cost))
	fund := insurance(a.Chain)
	purse := a.Balance(chaintest.Named("p0").Address)
	begun := a.bonds()
	a.NextBlock(answer)
	a.NextBlock(time.Millisecond)
	a.Deliver(first, substitute(id, first, disputev1.SIDE_CHALLENGER))
	a.NextBlock(answer)
	a.NextBlock(time.Millisecond)
	if log := a.Refuse(dispute.ErrSubstitute, first, substitute(id, first, disputev1.SIDE_CHALLENGER)); !strings.Contains(log, "has the seat") {
		t.Fatal(log)
	}
	a.Deliver(second, substitute(id, second, disputev1.SIDE_CHALLENGER))
	if got := insurance(a.Chain) - fund; got != bond || begun != bond {
		t.Fatalf("the fund got %d, %d were locked", got, begun)
	}
	d, _ := a.Game(id)
	a.NextBlock(time.Duration(d.Deadline-a.Now().UnixMilli()+1) * time.Millisecond)
	if d, _ = a.Game(id); d.Loser != disputev1.SIDE_CHALLENGER {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	if got := a.Balance(chaintest.Named("p0").Address) - purse; got != bond || a.bonds() != 0 || insurance(a.Chain)-fund != 2*bond {
		t.Fatalf("the defender got %d of two bonds, the fund %d", got, insurance(a.Chain)-fund)
	}
}

// A challenge keeps nobody from work; a missed answer does.
func TestDefenderThatMissesAnAnswerGetsNoWork(t *testing.T) {
	a := newAffair(t)
	id := a.challenge()
	a.Assign(1, "p0")
	a.NextBlock(answer)
	a.NextBlock(time.Millisecond)
	if d, _ := a.Game(id); a.peer("p0").Unanswered != 1 || !d.Missed || !a.Lease().Disputes[0].Missed {
		t.Fatal("a provider that missed an answer is not barred")
	}
	a.Refuse(work.ErrInactive, a.Lead(), a.AssignMsg(1, "p0"))
	defender, challenger := a.sides()
	a.Step(id, defender, challenger, new(worktest.Cost))
	if d, _ := a.Game(id); d.Missed || a.peer("p0").Unanswered != 0 || a.Lease().Disputes[0].Missed {
		t.Fatal("an answer is missed that was given")
	}
}

// Several challenge one claim at once, each for the same bond.
// The first conviction ends the other games, and their bonds return.
func TestChallengersOfOneClaim(t *testing.T) {
	a := newAffair(t)
	defender, challenger := a.sides()
	id := a.challenge()
	m := *a.OpenMsg(job.UnitTarget(0), 0, challenger)
	a.Refuse(work.ErrRefused, worktest.Challenger, &m)
	m.Challenger = worktest.Consumer.String()
	purse := a.Balance(worktest.Consumer.Address)
	a.Deliver(worktest.Consumer, &m)
	if locked := purse - a.Balance(worktest.Consumer.Address); locked != bond || a.bonds() != 2*bond {
		t.Fatalf("the second challenger locked %d, all of them %d", locked, a.bonds())
	}
	d, _ := a.PlayOut(id, defender, challenger)
	if d.Loser != disputev1.SIDE_DEFENDER {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	other, _ := a.Game(id + 1)
	if other.Stage != "over" || other.Loser != disputev1.SIDE_UNSPECIFIED || !strings.Contains(other.Reason, "refuted in dispute") {
		t.Fatalf("the other dispute is at %s: %v lost, %s", other.Stage, other.Loser, other.Reason)
	}
	if a.Balance(worktest.Consumer.Address) != purse || a.bonds() != 0 {
		t.Fatalf("%d utally are locked", a.bonds())
	}
	if s := a.Finish(); canon.Hash(s.Final) != canon.Hash(a.honestFinal()) {
		t.Fatal("the training ends elsewhere than without the fraud")
	}
}

// Whoever takes the seat of an honest defender that was away for one answer can lose the game on purpose. Nothing that the
// defender did was shown to be wrong: so it is jailed for having been away, and neither it nor its owner is excluded.
func TestSubstituteThatLosesOnPurposeExcludesNobody(t *testing.T) {
	a := newAffair(t)
	a.Compute(1, "p1") // as it should be
	honest := a.honest.Unit(1, a.honest.Problem.Start)
	lying := worktest.NewTraining(t, &worktest.Lie{Unit: 1, Step: 2, Element: 5}).Unit(1, a.honest.Problem.Start)
	id := a.Dispute(job.UnitTarget(1), 0, lying)
	a.NextBlock(answer)
	a.NextBlock(time.Millisecond)
	friend := worktest.Consumer
	a.Deliver(friend, substitute(id, friend, disputev1.SIDE_DEFENDER))
	d, _ := a.PlayOut(id, lying, honest) // the challenger tells the truth, and its friend does not
	if d.Loser != disputev1.SIDE_DEFENDER || strings.Contains(d.Reason, "silent") {
		t.Fatalf("%v lost: %s", d.Loser, d.Reason)
	}
	if p := a.peer("p1"); p.JailedUntil == wire.Forever || p.JailedUntil <= a.Now().UnixMilli() {
		t.Errorf("it is jailed until %d", p.JailedUntil)
	}
}
