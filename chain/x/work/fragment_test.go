package work_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// beginCut is beginAsked where each of four custodians, of five who could, keeps a fragment;
// nobody has attested yet.
func beginCut(t *testing.T) asked {
	t.Helper()
	more := []chaintest.Option{worktest.Rules(func(p *job.Params) { p.AnswerTime = answerTime.Milliseconds() })}
	for _, v := range worktest.Reserve {
		more = append(more, chaintest.Validator(v, 10_000*worktest.Tally))
	}
	a := beginAskedOf(t, func(o *job.Order) {
		o.Conditions.Custodians, o.Conditions.CodedBytes, o.Problem.StateBytes = 4, 1, 1<<10
	}, more...)
	a.Assign(0, "p0")
	a.Submit(0)
	return a
}

// fragments returns a fragment of the state that all checkpoints are, and the roots of all
// of them, the last bit of which is another if it is wrong.
func (a asked) fragments(number int, wrong bool) (*graph.State, []canon.Hash) {
	a.T.Helper()
	p, err := a.Order.Fragments().Fragment(a.state, number)
	if err != nil {
		a.T.Fatal(err)
	}
	if wrong {
		p.Tensors[0].Bytes()[100] ^= 1
	}
	root, err := p.Root()
	if err != nil {
		a.T.Fatal(err)
	}
	var roots []canon.Hash
	for range a.Order.Problem.Segments() {
		roots = append(roots, root)
	}
	return p, roots
}

func (a asked) attestMsg(custodian, number int, wrong bool) *workv1.MsgAttest {
	_, roots := a.fragments(number, wrong)
	return &workv1.MsgAttest{
		Custodian: a.Unit(0).Attested[custodian].Custodian, Order: a.ID.String(),
		Fragment: wire.FragmentToProto(&job.Fragment{Number: number, Root: canon.Root(roots), Data: job.File{Role: "fragments", CID: "bafyfragments", Size: 9}}),
	}
}

func (a asked) attest(custodian, number int, wrong bool) {
	a.T.Helper()
	m := a.attestMsg(custodian, number, wrong)
	a.Deliver(worktest.Named(a.T, m.Custodian), m)
}

// A custodian of a fragment answers with a tile of it.
func TestCustodianOfAFragmentAnswers(t *testing.T) {
	a := beginCut(t)
	first := worktest.Named(t, a.Unit(0).Attested[0].Custodian)
	bad := a.attestMsg(0, 0, false)
	bad.Fragment.Root = []byte{1}
	a.Refuse(work.ErrMalformed, first, bad)
	bad.Fragment = nil
	a.Refuse(work.ErrRefused, first, bad)
	for i := range 4 {
		a.attest(i, i, false)
	}
	if got := a.Unit(0).Attested[3].Fragment; got == nil || got.Number != 3 || !bytes.Equal(got.Root, a.attestMsg(3, 3, false).Fragment.Root) {
		t.Fatalf("%+v", got)
	}
	custodian := worktest.Named(t, a.Unit(0).Attested[3].Custodian)
	for { // until a fragment is drawn
		a.Deliver(worktest.Challenger, a.askMsg(custodian))
		a.NextBlock(time.Second)
		r := a.Unit(0).Questions[0]
		seed, err := canon.HashOf(r.Seed)
		if err != nil {
			t.Fatal(err)
		}
		fragment, roots := a.fragments(3, false)
		q := proof.SampleFragments(seed, canon.Root(roots), len(roots), a.records.Root())
		shown := q.ShowTensor(a.records)
		if q.State > 0 {
			if shown, err = q.ShowFragment(fragment, roots); err != nil {
				t.Fatal(err)
			}
		}
		m := &workv1.MsgAnswer{Custodian: r.Custodian, Order: a.ID.String(), Shown: canon.Marshal(&shown)}
		used := a.Deliver(custodian, m).TxResults[0].GasUsed
		if q.State > 0 {
			t.Logf("the answer has %d bytes and takes %d gas", a.Size(custodian, m), used)
			break
		}
	}
	a.Audit(0, true)
	a.Finish()
}

// A custodian of a wrong fragment is convicted by whoever shows it; another keeps the
// fragment.
func TestCustodianOfAWrongFragmentIsConvicted(t *testing.T) {
	a := beginCut(t)
	for i := range 3 {
		a.attest(i, i, i == 1)
	}
	liar := worktest.Named(t, a.Unit(0).Attested[1].Custodian)
	kept, roots := a.fragments(1, true)
	w, err := proof.FindWrongFragment(a.Order.Fragments(), 1, 2, a.state, kept, roots)
	if err != nil || w == nil {
		t.Fatal(w, err)
	}
	m := &workv1.MsgExpose{Sender: worktest.Challenger.String(), Order: a.ID.String(), Custodian: liar.String(), Wrong: canon.Marshal(w)}
	honest := *m
	honest.Custodian = a.Unit(0).Attested[0].Custodian
	a.Refuse(work.ErrRefused, worktest.Challenger, &honest)
	a.Refuse(work.ErrMalformed, worktest.Challenger, &workv1.MsgExpose{Sender: m.Sender, Order: m.Order, Custodian: m.Custodian, Wrong: m.Wrong[1:]})
	a.Refuse(work.ErrMalformed, worktest.Challenger, &workv1.MsgExpose{Sender: m.Sender, Order: m.Order, Custodian: m.Custodian, Wrong: make([]byte, proof.MaxWrongFragment+1)})
	bond := job.DefaultParams.KeepFactor * (a.Lease().Quote.Unit + a.Lease().Quote.Keep)
	before, err := a.Provider.Get(a.Ctx(), liar.Address)
	if err != nil {
		t.Fatal(err)
	}
	purse, fund := a.Balance(worktest.Challenger.Address), a.Balance(moduleAddress(provider.Insurance))
	fork := a
	fork.Play = worktest.Join(t, a.Chain.Fork(), a.Order) // fragments survive an export
	for _, p := range []asked{a, fork} {
		p.Computer = p
		used := p.Deliver(worktest.Challenger, m).TxResults[0].GasUsed
		if size := p.Size(worktest.Challenger, m); size > worktest.MaxTx {
			t.Errorf("what shows a wrong fragment has %d bytes", size)
		} else {
			t.Logf("what shows a wrong fragment has %d bytes and takes %d gas", size, used)
		}
		reward := (bond*job.DefaultParams.RewardBps + 9999) / 10_000
		after, err := p.Provider.Get(p.Ctx(), liar.Address)
		if err != nil || before.Stake-after.Stake != bond || after.JailedUntil <= p.Now().UnixMilli() {
			t.Fatalf("%+v, was %+v: %v", after, before, err)
		}
		if got, insured := p.Balance(worktest.Challenger.Address)-purse, p.Balance(moduleAddress(provider.Insurance))-fund; got != reward || insured != bond-reward {
			t.Fatalf("the witness got %d of %d, the fund %d", got, bond, insured)
		}
		if u := p.Unit(0); u.Status != workv1.UNIT_STATUS_RECEIVED || !u.Attested[1].Failed {
			t.Fatalf("%+v", u)
		}
		p.Refuse(work.ErrRefused, worktest.Challenger, m)
	}
	a.NextBlock(time.Second) // draws who keeps the fragment in its place
	a.attest(4, 1, false)
	a.Audit(0, true)
	a.Finish()
	settlement(a.Play)
}
