package dispute_test

import (
	"bytes"
	"testing"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// newForcedAffair is an affair in which attempts can be forced, and the first one of
// unit 0 is, for p0. computer makes its receipt; a diligent auditor has answered, and
// everybody has the states.
func newForcedAffair(t *testing.T, computer func(*affair) *worktest.Training) *affair {
	t.Helper()
	for nonce := range uint64(60) {
		a := &affair{
			honest: worktest.NewTraining(t, nil),
			cheat:  worktest.NewTraining(t, &worktest.Lie{Unit: 0, Step: 2, Element: 5}),
		}
		o := a.honest.Order()
		o.Nonce = nonce
		auditAll(&o)
		a.Play = worktest.Begin(t, chaintest.New(t, worktest.Network(worktest.Rules(worktest.Forced))...), o)
		a.Computer = computer(a)
		a.Assign(0, "p0")
		a.Submit(0)
		if _, forced := a.ProveDrawMsg(0); !forced {
			continue
		}
		a.Attest(0)
		a.honest.Learn(a.cheat)
		a.Computer = a.honest
		return a
	}
	t.Fatal("no attempt is forced")
	return nil
}

// A provider shows as the truth about a forced attempt what is none: the whole game
// about it is played on the chain, and it loses its bond, out of which those are paid
// whose work it spoilt. Who challenges what is true loses.
func TestFalseTruth(t *testing.T) {
	const segment = 1 // in which the cheat's arithmetic is wrong: at its first step, so that both its states are
	p0 := chaintest.Named("p0")
	for _, c := range []struct {
		name  string
		cheat bool // computes the receipt
		truth func(honest, cheat proof.Outcome) proof.Outcome
		loser disputev1.Side
	}{
		{"garbage that takes cover behind the forced draw", true,
			func(_, cheat proof.Outcome) proof.Outcome { return cheat }, disputev1.SIDE_DEFENDER},
		{"a false state before the last step, to make an honest auditor look blind", false,
			func(honest, cheat proof.Outcome) proof.Outcome {
				return proof.Outcome{Before: cheat.Before, End: honest.End}
			}, disputev1.SIDE_DEFENDER},
		{"the truth", false,
			func(honest, _ proof.Outcome) proof.Outcome { return honest }, disputev1.SIDE_CHALLENGER},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newForcedAffair(t, func(a *affair) *worktest.Training {
				if c.cheat {
					return a.cheat
				}
				return a.honest
			})
			p := &a.Order.Problem
			cheat, honest := a.sides()
			truth := []proof.Outcome{honest.Segment(p, 0), honest.Segment(p, segment)}
			auditor := worktest.Named(t, a.Unit(0).Audits[0].Auditor)
			a.Deliver(auditor, a.DiligentMsg(0, auditor, truth))
			a.NextBlock(worktest.UnitWindow)

			truth[segment] = c.truth(truth[segment], cheat.Segment(p, segment))
			m, _ := a.ProveDrawMsg(0)
			m.Truth = wire.OutcomesToProto(truth)
			a.Deliver(p0, m)
			before, purse := a.peer("p0"), a.Balance(worktest.Challenger.Address)
			bond := before.Reserved // the attempt is all that it has done

			first, _ := p.Segment(segment)
			defender, challenger := cheat.From(first), honest.From(first)
			if c.loser == disputev1.SIDE_CHALLENGER {
				defender, challenger = challenger, defender
			}
			id := a.Dispute(job.TruthTarget(0, segment), 0, challenger)
			d, cost := a.PlayOut(id, defender, challenger)
			t.Logf("%+v, verdict: %s", cost, d.Reason)
			if d.Loser != c.loser || d.StepLo != 0 || int(d.Node) != a.cheat.Lie.Node || d.Element != 5 {
				t.Fatalf("%v lost: %s; found %+v", d.Loser, d.Reason, d)
			}
			after, auditors := a.peer("p0"), a.peer(auditor.Name)
			if c.loser == disputev1.SIDE_CHALLENGER {
				if after.Stake != before.Stake || len(a.Unit(0).Forced) != 1 || a.Balance(worktest.Challenger.Address) >= purse {
					t.Fatalf("p0 is %+v, was %+v", after, before)
				}
			} else {
				if before.Stake-after.Stake != bond || after.Reserved != 0 || after.JailedUntil == 0 || len(a.Unit(0).Forced) != 0 {
					t.Fatalf("p0 is %+v, was %+v with a bond of %d", after, before, bond)
				}
				if reward := (bond*a.Lease().Params.RewardBps + 9999) / 10_000; a.Balance(worktest.Challenger.Address)-purse != reward {
					t.Fatalf("the challenger got %d, want %d", a.Balance(worktest.Challenger.Address)-purse, reward)
				}
			}
			s := a.Finish()
			if end := a.peer(auditor.Name); end.Stake != auditors.Stake || end.Reserved != 0 || end.JailedUntil != 0 {
				t.Errorf("the diligent auditor is %+v, was %+v", end, auditors)
			}
			if paid(s.Ledger, p0) != (c.loser == disputev1.SIDE_CHALLENGER) || !paid(s.Ledger, auditor) {
				t.Errorf("paid %+v, prizes %+v, out of slashes %+v", s.Ledger.Paid, s.Ledger.Prizes, s.Ledger.SlashPaid)
			}
			if !bytes.Equal(s.Final, a.honestFinal()) {
				t.Error("the training ends elsewhere than an honest one")
			}
		})
	}
}

// paid reports whether somebody was paid for a forced attempt: out of the pool, or out
// of the bond of who showed a false truth.
func paid(l workv1.Ledger, who chaintest.Account) bool {
	for _, s := range append(l.Prizes, l.SlashPaid...) {
		if s.Account == who.String() && s.Amount > 0 {
			return true
		}
	}
	return false
}
