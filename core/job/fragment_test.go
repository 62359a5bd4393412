package job

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/erasure"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/proof"
)

// newCut is newKept where each of four custodians, of five who could, keeps a fragment of
// the checkpoints.
func newCut(t *testing.T) *kept {
	t.Helper()
	m := testMatch()
	m.Validators = append(m.Validators, party("v4", Rates{}), party("v5", Rates{}))
	m.Order.Conditions.Custodians, m.Order.Conditions.CodedBytes, m.Order.Problem.StateBytes = 4, 100, 40
	k := newKeptOf(t, m)
	if c := k.lease.Order.Fragments(); c != (erasure.Code{Fragments: 4, Needed: 2}) {
		t.Fatalf("%+v", c)
	}
	return k
}

// fragments returns a fragment of each checkpoint of the first unit after the start, and
// their roots.
func (k *kept) fragments(number int) (fragments []*graph.State, roots []canon.Hash) {
	k.t.Helper()
	for _, s := range k.states[1:] {
		p, err := k.lease.Order.Fragments().Fragment(s, number)
		if err != nil {
			k.t.Fatal(err)
		}
		root, err := p.Root()
		if err != nil {
			k.t.Fatal(err)
		}
		fragments, roots = append(fragments, p), append(roots, root)
	}
	return fragments, roots
}

// anyFragment is what a custodian attests to where nobody asks for it.
func (w *world) anyFragment(unit int, custodian string) *Fragment {
	if !w.lease.Order.Fragments().Cuts() {
		return nil
	}
	number, _ := w.lease.FreeFragment(unit, custodian)
	return &Fragment{Number: number}
}

func (k *kept) fragment(number int) *Fragment {
	k.t.Helper()
	_, roots := k.fragments(number)
	return &Fragment{number, canon.Root(roots), File{"fragments", "cid", 9}}
}

// keep lets a custodian of the first unit attest to the fragment that it should keep.
func (k *kept) keep(custodian string) int {
	k.t.Helper()
	number, ok := k.lease.FreeFragment(0, custodian)
	if !ok {
		k.t.Fatal("no fragment is free")
	}
	k.do(Attest{custodian, 0, 0, k.fragment(number)})
	return number
}

func (k *kept) shownFragment(custodian string) proof.Shown {
	k.t.Helper()
	q, drawn := k.lease.Sample(k.lease.Question(custodian, 0))
	if !drawn {
		k.t.Fatal("nothing is drawn yet")
	}
	if q.State < 0 {
		return q.ShowTensor(k.records)
	}
	fragments, roots := k.fragments(k.lease.Units[0].attestation(custodian).Fragment.Number)
	a, err := q.ShowFragment(fragments[q.State-1], roots)
	if err != nil {
		k.t.Fatal(err)
	}
	return a
}

// Half of a quorum makes up the whole, but only beyond the size that the consumer
// says.
func TestFragments(t *testing.T) {
	o := testOrder()
	o.Problem.StateBytes = 100 // 300 of a unit
	for custodians, needed := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 2, 8: 3, 12: 4, 16: 5} {
		for limit, want := range map[uint64]int{0: 1, 299: needed, 300: 1} {
			o.Conditions.Custodians, o.Conditions.CodedBytes = custodians, limit
			if c := o.Fragments(); c.Needed != want || c.Fragments != custodians || !c.Valid() {
				t.Errorf("%d custodians beyond %d bytes: %+v", custodians, limit, c)
			}
		}
	}
	o.Problem.StateBytes = 1 << 63
	if o.Check() == nil {
		t.Error("a state of 2^63 bytes")
	}
}

func TestAttestationNamesAFragment(t *testing.T) {
	k := newCut(t)
	a, b := k.custodian(0), k.custodian(1)
	k.refused("names one", Attest{a, 0, 0, nil})
	k.refused("names one", Attest{a, 0, 0, &Fragment{Number: 4}})
	k.refused("names one", Attest{a, 0, 0, &Fragment{Number: -1}})
	k.do(Attest{a, 0, 0, k.fragment(1)})
	k.refused("kept already", Attest{b, 0, 0, k.fragment(1)})
	k.refused("limits", Attest{b, 0, 0, &Fragment{Data: File{CID: string(make([]byte, 200))}}})
	if n := k.keep(b); n != 0 { // its own is taken
		t.Fatalf("it is to keep fragment %d", n)
	}
	if k.lease.Units[0].Status != Received {
		t.Fatal("two of four are no quorum")
	}
	if k.keep(k.custodian(2)); k.lease.Units[0].Status != Counted {
		t.Fatal("three of four are a quorum")
	}
	k.keep(k.custodian(3))
	if n, ok := k.lease.FreeFragment(0, a); ok {
		t.Fatalf("fragment %d is free", n)
	}
	whole := newKept(t)
	whole.refused("keeps all", Attest{whole.custodian(0), 0, 0, &Fragment{}})
}

// A custodian of a fragment shows it, and is paid; one that cannot loses bond and place, and
// who is drawn in its place keeps the fragment that it kept.
func TestCustodianOfAFragmentAnswers(t *testing.T) {
	k := newCut(t)
	for i := range 4 {
		k.keep(k.custodian(i))
	}
	k.audit(0, true)
	seen := map[int]bool{}
	who := k.custodian(3)
	for range 40 {
		k.ask(who)
		q, _ := k.lease.Sample(k.lease.Question(who, 0))
		seen[q.State] = true
		a := k.shownFragment(who)
		if q.State > 0 {
			k.refused("", Answer{By: who, Shown: proof.Shown{Slot: a.Slot, Type: a.Type, Shape: a.Shape, Tile: a.Tile, Path: a.Path}})
			whole, err := q.ShowState(k.states[q.State])
			if err != nil {
				t.Fatal(err)
			}
			k.refused("", Answer{By: who, Shown: whole})
		}
		k.do(Answer{By: who, Shown: a})
	}
	if len(seen) != 4 || seen[0] {
		t.Fatalf("asked for %v", seen)
	}
	k.ask(who)
	k.now = k.lease.Question(who, 0).Due + 1
	k.tick()
	k.pass(1)
	next := k.custodian(4)
	if next == who || k.lease.Units[0].Keeps(who) {
		t.Fatalf("%s keeps after %s", next, who)
	}
	if u := &k.lease.Units[0]; u.Status != Accepted {
		t.Fatalf("the unit is %v", u.Status)
	}
	k.finish()
}

// Who keeps a wrong fragment is convicted as soon as somebody shows it, and its fragment is
// kept by another.
func TestCustodianOfAWrongFragmentIsExposed(t *testing.T) {
	k := newCut(t)
	liar := k.custodian(2)
	fragments, roots := k.fragments(2)
	fragments[1].Tensors[0].Bytes()[70] ^= 1
	var err error
	if roots[1], err = fragments[1].Root(); err != nil {
		t.Fatal(err)
	}
	k.do(Attest{liar, 0, 0, &Fragment{2, canon.Root(roots), File{}}})
	for _, i := range []int{0, 1} {
		k.keep(k.custodian(i))
	}
	k.ask(liar)
	w, err := proof.FindWrongFragment(k.lease.Order.Fragments(), 2, 2, k.states[2], fragments[1], roots)
	if err != nil || w == nil {
		t.Fatal(w, err)
	}
	other := *w
	other.State = 1
	k.refused("fragment", Expose{"c", liar, 0, 0, other})
	k.refused("no attestation", Expose{"c", k.custodian(3), 0, 0, *w})
	k.refused("cannot expose itself", Expose{liar, liar, 0, 0, *w})
	k.refused("not under way", Expose{"c", liar, 0, 1, *w})
	k.refused("no unit 99", Expose{"c", liar, 99, 0, *w})
	k.refused("", Expose{"c", k.custodian(0), 0, 0, *w})
	bond, fee := k.lease.keepBond(), k.lease.Params.AskFee
	held := k.held[liar]
	k.do(Expose{"c", liar, 0, 0, *w})
	reward := bond * k.lease.Params.RewardBps / bps
	if k.purse["c"] != reward || k.purse[Insurance] != bond-reward || k.held[liar] > held-bond || !k.jailed[liar] || k.purse[asker] != stake || fee == 0 {
		t.Fatalf("the witness has %d, the fund %d, the liar %d, the asker %d", k.purse["c"], k.purse[Insurance], k.held[liar], k.purse[asker])
	}
	k.pass(1)
	next := k.custodian(4)
	if u := &k.lease.Units[0]; u.Status != Received || next == liar || len(k.lease.Questions()) != 0 {
		t.Fatalf("the unit is %v, kept by %s", u.Status, next)
	}
	k.refused("no attestation", Expose{"c", liar, 0, 0, *w})
	if n := k.keep(next); n != 2 {
		t.Fatalf("it keeps fragment %d", n)
	}
	k.refused("right", Expose{"c", next, 0, 0, k.rightFragment(2)})
	k.audit(0, true)
	k.pass(20)
	if u := &k.lease.Units[0]; u.Status != Accepted {
		t.Fatalf("the unit is %v", u.Status)
	}
	var audits uint64 // are another matter
	if u := &k.lease.Units[0]; slices.ContainsFunc(u.Audits, func(a Audit) bool { return a.Auditor == liar }) {
		if audits, err = k.lease.auditWage(u); err != nil {
			t.Fatal(err)
		}
	}
	k.finish()
	if k.purse[liar] != audits || k.purse[next] == 0 {
		t.Fatalf("the liar is paid %d, who keeps in its place %d", k.purse[liar], k.purse[next])
	}
}

// rightFragment shows a tile of a right fragment of the first checkpoint.
func (k *kept) rightFragment(number int) proof.WrongFragment {
	k.t.Helper()
	fragments, roots := k.fragments(number)
	w := proof.WrongFragment{State: 1, Fragment: k.tile(fragments[0], 0)}
	w.Fragment.Beside = canon.NewTree(roots).Prove(0)
	for n := range k.lease.Order.Fragments().Needed {
		w.Tiles = append(w.Tiles, k.tile(k.states[1], n))
	}
	return w
}

// tile opens a tile of the first tensor of a state.
func (k *kept) tile(s *graph.State, tile int) proof.Shown {
	k.t.Helper()
	x := s.Tensors[0]
	keyed, err := s.Keyed()
	if err != nil {
		k.t.Fatal(err)
	}
	return proof.Shown{Slot: keyed.Open(0), Type: x.Type, Shape: x.Shape, Tile: x.Tile(nil, tile), Path: canon.NewTree(x.Leaves()).Prove(tile)}
}

// What is void needs no fragments.
func TestVoidUnitFreesItsFragments(t *testing.T) {
	k := newCut(t)
	for i := range 3 {
		k.keep(k.custodian(i))
	}
	if err := k.challenge(1, UnitTarget(0), "c"); err != nil {
		t.Fatal(err)
	}
	k.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	if n, ok := k.lease.FreeFragment(0, "v1"); !ok || n != 0 {
		t.Fatalf("fragment %d, %v", n, ok)
	}
}
