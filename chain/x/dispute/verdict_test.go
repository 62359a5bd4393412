package dispute_test

import (
	"testing"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// auditAll is an order every segment of which is audited.
func auditAll(o *job.Order) { o.Conditions.AuditSegments = o.Problem.Segments() }

// An auditor that said that a forged segment holds is convicted by the same game
// as the provider, before or after it, and loses the bond behind its word.
func TestLyingAuditorIsConvicted(t *testing.T) {
	for _, receiptFirst := range []bool{false, true} {
		a := newAffair(t, auditAll)
		u := a.Unit(0)
		auditor := worktest.Named(t, u.Audits[0].Auditor)
		defender, challenger := a.sides()
		opening := a.OpenMsg(job.UnitTarget(0), 0, challenger).Opening
		before := a.peer(auditor.Name)
		if before.Reserved == 0 {
			t.Fatal("no bond stands behind the verdict")
		}
		if receiptFirst {
			if d, _ := a.PlayOut(a.challenge(), defender, challenger); d.Loser != disputev1.SIDE_DEFENDER {
				t.Fatalf("%v lost: %s", d.Loser, d.Reason)
			}
			if n := len(a.Unit(0).Verdicts); n != 1 {
				t.Fatalf("%d verdicts are kept", n)
			}
		}
		fund, purse := insurance(a.Chain), a.Balance(worktest.Challenger.Address)
		id := a.Dispute(job.VerdictTarget(0, auditor.String()), 0, challenger)
		d, _ := a.PlayOut(id, defender, challenger)
		if d.Loser != disputev1.SIDE_DEFENDER || d.Parties.Defender != auditor.String() || d.StepLo != 2 {
			t.Fatalf("%v lost: %s", d.Loser, d.Reason)
		}
		slash := a.Lease().Quote.Unit * job.DefaultParams.VerdictFactor
		kept := uint64(0)
		for _, e := range a.Lease().Reserve { // it may be a custodian, too; one that has not attested is let go at acceptance
			if e.Account == auditor.String() {
				kept += e.Amount
			}
		}
		after := a.peer(auditor.Name)
		if after.Reserved != kept || before.Stake-after.Stake != slash || after.JailedUntil == 0 {
			t.Fatalf("the auditor is %+v, was %+v", after, before)
		}
		reward := (slash*job.DefaultParams.RewardBps + 9999) / 10_000
		if got := a.Balance(worktest.Challenger.Address) - purse; got != reward || insurance(a.Chain)-fund != slash-reward {
			t.Fatalf("the challenger got %d, want %d", got, reward)
		}
		a.Refuse(work.ErrRefused, worktest.Challenger, &disputev1.MsgOpen{
			Challenger: worktest.Challenger.String(), Order: a.ID.String(), Target: wire.TargetToProto(job.VerdictTarget(0, auditor.String())),
			Opening: opening,
		})
	}
}
