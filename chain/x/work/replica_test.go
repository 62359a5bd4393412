package work_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// replicated is a play of an order whose units are computed by several providers, and of two
// offers.
func replicated(t *testing.T, n int) *worktest.Play {
	t.Helper()
	o := worktest.Order()
	c := &o.Conditions
	c.Replicas, c.Auditors, c.AuditSegments, c.Speculate = n, 0, 0, job.MaxUnits
	chain := chaintest.New(t, worktest.Network()...)
	worktest.Offer(chain, "v1")
	return worktest.Begin(t, chain, o)
}

// giveOut gives out a unit, and lets the next block draw who computes it.
func giveOut(p *worktest.Play, unit int) workv1.Unit {
	p.Deliver(p.Lead(), &workv1.MsgAssign{Lead: p.Lease().Lead, Order: p.ID.String(), Units: []workv1.Assignment{{Unit: uint32(unit), Attempt: p.Unit(unit).Attempt}}})
	p.NextBlock(time.Second)
	return p.Unit(unit)
}

// word is what a replica says of a unit: the truth, or what a lie makes of it.
func word(p *worktest.Play, unit int, who, lie string) (*workv1.MsgCommit, *workv1.MsgReveal) {
	r := p.Receipt(unit)
	r.Provider = who
	for i := 1; i < len(r.Checkpoints) && lie != ""; i++ {
		r.Checkpoints[i] = canon.Sum("lie", r.Checkpoints[i][:], []byte(lie))
	}
	s := job.Reveal{Receipt: r, Salt: canon.Sum("salt", []byte(who)), Signature: ed25519.Sign(worktest.Named(p.T, who).Peer, r.SignBytes())}
	for i := range p.Order.Problem.Segments() {
		s.Inner = append(s.Inner, canon.Sum("inner", r.Checkpoints[i+1][:]))
	}
	hash := proof.Commitment(r.ID(), s.Inner, s.Salt)
	return &workv1.MsgCommit{Provider: who, Order: p.ID.String(), Unit: uint32(unit), Attempt: uint32(r.Attempt), Hash: hash[:]}, wire.RevealToProto(&s)
}

// say lets the replicas of a unit commit and show, in two blocks.
func say(p *worktest.Play, u workv1.Unit, lies map[string]string) {
	for _, r := range u.Replicas {
		commit, _ := word(p, int(u.Unit), r.Provider, lies[r.Provider])
		p.Queue(worktest.Named(p.T, r.Provider), commit)
	}
	p.Flush()
	for _, r := range u.Replicas {
		_, show := word(p, int(u.Unit), r.Provider, lies[r.Provider])
		p.Queue(worktest.Named(p.T, r.Provider), show)
	}
	p.Flush()
}

// Replicas are drawn from those behind all offers, by nobody's choice, and all are paid.
func TestReplicasAreDrawnAndPaid(t *testing.T) {
	p := replicated(t, 3)
	if n := len(p.Lease().Providers); n != len(worktest.Providers)+len(worktest.Rivals) {
		t.Fatalf("places are drawn from %d providers", n)
	}
	for _, x := range p.Lease().Providers {
		if x.Weight != 1_000*worktest.Tally {
			t.Errorf("%s weighs %d", x.Account, x.Weight)
		}
	}
	p.Refuse(work.ErrRefused, p.Lead(), p.AssignMsg(0, "p0"))
	paid := map[string]int{}
	for p.Lease().Phase == workv1.PHASE_ACTIVE {
		for s := range p.Order.Problem.Shards {
			u := giveOut(p, int(p.Lease().Round)*p.Order.Problem.Shards+s)
			if len(u.Replicas) != 3 || u.Provider != "" {
				t.Fatalf("unit %d has replicas %v", u.Unit, u.Replicas)
			}
			for _, r := range u.Replicas {
				paid[r.Provider]++
			}
			say(p, u, nil)
			p.NextBlock(time.Second)
			p.Attest(int(u.Unit))
			p.NextBlock(time.Second)
			if now := p.Unit(int(u.Unit)); now.Status != workv1.UNIT_STATUS_ACCEPTED {
				t.Fatalf("unit %d is %v, before its window is over", u.Unit, now.Status)
			}
		}
		p.Deliver(p.Lead(), p.MergeMsg())
	}
	s := p.Finish()
	for _, share := range s.Ledger.Paid {
		if n := paid[share.Account]; n > 0 && share.Amount == 0 {
			t.Errorf("%s computed %d units, and was paid nothing", share.Account, n)
		}
		delete(paid, share.Account)
	}
	if len(paid) > 0 {
		t.Errorf("computed and were not paid: %v", paid)
	}
}

// A replica that differs is disputed by another; one that does not defend its result loses.
func TestReplicaThatDiffersLoses(t *testing.T) {
	p := replicated(t, 2)
	u := giveOut(p, 0)
	honest, liar := u.Replicas[0].Provider, u.Replicas[1].Provider
	_, early := word(p, 0, honest, "")
	p.Refuse(work.ErrRefused, worktest.Named(t, honest), early)
	say(p, u, map[string]string{liar: "x"})
	targets := p.State().Differs(0, honest)
	if len(targets) != 1 || targets[0] != job.ResultTarget(0, liar, 0) {
		t.Fatalf("%v differ", targets)
	}
	subject, err := p.State().Subject(targets[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	o := dispute.OpeningOf(subject.Points, 0)
	p.Deliver(worktest.Named(t, honest), &disputev1.MsgOpen{
		Challenger: honest, Order: p.ID.String(), Target: wire.TargetToProto(targets[0]), Opening: canon.Marshal(&o),
	})
	p.NextBlock(2 * worktest.UnitTimeout)
	if now := p.Unit(0); now.Status != workv1.UNIT_STATUS_ASSIGNED {
		t.Fatalf("the unit is %v while its results are in dispute", now.Status)
	}
	p.NextBlock(time.Duration(dispute.DefaultRules.Clock+1) * time.Millisecond)
	p.NextBlock(time.Second)
	now := p.Unit(0)
	if now.Status != workv1.UNIT_STATUS_RECEIVED || now.Provider != honest || len(now.Replicas) != 0 {
		t.Fatalf("the unit is %v, of %s", now.Status, now.Provider)
	}
	if l := p.Lease(); len(l.Barred) != 1 || l.Barred[0] != liar || l.Ledger.Slashed == 0 {
		t.Errorf("barred %v, slashed %d", l.Barred, l.Ledger.Slashed)
	}
}
