package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/tensor"
)

// kept is a world whose first unit has real data: the states of its checkpoints,
// and the training records.
type kept struct {
	*world
	states  []*graph.State
	records *tensor.Tensor
}

func testTensor(what string, shape ...int) *tensor.Tensor {
	b := make([]byte, tensor.Shape(shape).Elements())
	for i := range b {
		h := canon.Sum("element", []byte(what), []byte(fmt.Sprint(i)))
		b[i] = h[0]
	}
	t, err := tensor.FromBytes(tensor.Uint8, shape, b)
	if err != nil {
		panic(err)
	}
	return t
}

// newKept brings the first unit to its receipt. Four validators can keep, three do.
func newKept(t *testing.T) *kept {
	t.Helper()
	m := testMatch()
	m.Validators = append(m.Validators, party("v4", Rates{}))
	return newKeptOf(t, m)
}

func newKeptOf(t *testing.T, m Match) *kept {
	t.Helper()
	k := &kept{records: testTensor("records", 70, 40)}
	var roots []canon.Hash
	for i := range m.Order.Problem.Segments() + 1 {
		s := &graph.State{}
		for j, shape := range [][]int{{33, 65}, {}, {0, 5}} {
			x := testTensor(fmt.Sprint(i, j), shape...)
			s.Slots = append(s.Slots, graph.Slot{Name: fmt.Sprint("w", j), Type: x.Type, Shape: x.Shape})
			s.Tensors = append(s.Tensors, x)
		}
		root, err := s.Root()
		if err != nil {
			t.Fatal(err)
		}
		k.states, roots = append(k.states, s), append(roots, root)
	}
	m.Order.Problem.Start, m.Order.Problem.Data = roots[0], k.records.Root()
	k.world = newWorldOf(t, m)
	if err := k.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	r := k.receipt(0, "").Receipt
	r.Checkpoints = roots
	k.submit(k.sign(r))
	return k
}

// shown is the right answer of a custodian that is asked about the first unit.
func (k *kept) shown(custodian string) proof.Shown {
	k.t.Helper()
	r := k.lease.Question(custodian, 0)
	if r == nil {
		k.t.Fatalf("%s is not asked", custodian)
	}
	q, drawn := k.lease.Sample(r)
	if !drawn {
		k.t.Fatal("nothing is drawn yet")
	}
	if q.State < 0 {
		return q.ShowTensor(k.records)
	}
	a, err := q.ShowState(k.states[q.State])
	if err != nil {
		k.t.Fatal(err)
	}
	return a
}

func (k *kept) custodian(i int) string { return k.lease.Units[0].Attested[i].Custodian }

// inHand returns what a custodian of unit 0 has reserved for other duties than keeping it.
func (k *kept) inHand(who string) (held uint64) {
	if f := k.lease.Files.custodian(who); f != nil {
		held += k.lease.bondFor(ForFiles)
	}
	for _, a := range k.lease.Units[0].Audits {
		if a.Auditor == who && a.Bonded {
			held += k.lease.verdictBond()
		}
	}
	return held
}

// ask asks a custodian, and lets the next block draw what is asked.
func (k *kept) ask(custodian string) {
	k.t.Helper()
	k.do(Ask{By: asker, Custodian: custodian, Unit: 0, Attempt: 0})
	k.pass(1)
}

func (k *kept) refused(want string, e Event) {
	k.t.Helper()
	if err := k.try(e); err == nil || !strings.Contains(err.Error(), want) {
		k.t.Fatalf("%T: want an error about %q, got %v", e, want, err)
	}
}

func TestAttestationBindsABond(t *testing.T) {
	k := newKept(t)
	bond := k.lease.Params.KeepFactor * (k.lease.Quote.Unit + k.lease.Quote.Keep)
	who := k.custodian(0)
	if bond += k.inHand(who); k.held[who] != bond { // before it has said anything
		t.Fatalf("%d utally are held, want %d", k.held[who], bond)
	}
	k.do(Attest{who, 0, 0, nil})
	k.pass(101) // one of three is no quorum
	if u := k.lease.Units[0]; u.Status != Open || k.held[who] != k.inHand(who) {
		t.Fatalf("the unit is %v, %d held", u.Status, k.held[who])
	}
	if err := k.assign(0, "p0"); err == nil {
		t.Fatal("a unit was given again to a provider whose data could not be had")
	}
	k.compute(0, "p1", "")
	k.finish()
	if k.free[who] != stake {
		t.Fatalf("%d utally are free after the end", k.free[who])
	}
}

// withhold gives a unit to a provider whose data nobody can have.
func (w *world) withhold(unit int, provider string) {
	w.t.Helper()
	if err := w.assign(unit, provider); err != nil {
		w.t.Fatal(err)
	}
	w.submit(w.receipt(unit, ""))
	w.pass(102)
}

// A unit whose data could be had of nobody ends the lease: what is accepted is paid,
// the rest refunded, and each attempt has cost its provider a penalty.
func TestWithheldUnitGoesToAnother(t *testing.T) {
	w := newWorld(t)
	w.compute(1, "p1", "")
	w.pass(20)
	for attempt, p := range []string{"p0", "p1", "p2"} {
		may := slices.DeleteFunc(w.lease.Eligible(), func(p string) bool { return w.lease.Withheld(0, p) })
		if len(may) != 3-attempt {
			t.Fatalf("attempt %d: %q may get the unit", attempt, may)
		}
		w.withhold(0, p)
	}
	if why := w.lease.Reason; w.lease.Phase == Active || !strings.Contains(why, "of no provider") {
		t.Fatalf("the lease is %v (%s)", w.lease.Phase, why)
	}
	w.pass(60)
	penalty := w.lease.Quote.Unit * w.lease.Params.LateBps / bps
	if w.lease.Phase != Settled || w.purse["p1"] != 30*1100+6*5 || w.purse["consumer"] == 0 || w.purse[Insurance]+w.lease.Ledger.Insured != 3*penalty {
		t.Fatalf("the lease is %v, p1 got %d, the consumer %d, the fund %d", w.lease.Phase, w.purse["p1"], w.purse["consumer"], w.purse[Insurance])
	}
}

// Withholding is paid for and bounded: before, a provider could hold a lease for ever,
// for nothing, until its units could not be read any more.
func TestWithholdingHasAnEnd(t *testing.T) {
	m := testMatch()
	m.Params.MaxAttempts, m.Params.MaxLate = 4, 100
	w := newWorldOf(t, m)
	for attempt := range 4 {
		if w.lease.Phase != Active {
			t.Fatalf("after %d attempts the lease is %v", attempt, w.lease.Phase)
		}
		if attempt == 1 {
			w.withhold(0, "p2")
			continue
		}
		if err := w.assign(0, []string{"p0", "", "p1", "p1"}[attempt]); err != nil {
			t.Fatal(err)
		}
		w.pass(101)
	}
	if l := &w.lease; l.Phase == Active || !strings.Contains(l.Reason, "given out 4 times") {
		t.Fatalf("the lease is %v (%s)", l.Phase, l.Reason)
	}
	w.pass(60)
	if w.lease.Phase != Settled || w.purse[Insurance] != 4*w.lease.Quote.Unit*w.lease.Params.LateBps/bps {
		t.Fatalf("the lease is %v, the fund has %d", w.lease.Phase, w.purse[Insurance])
	}
	m.Params.MaxAttempts, m.Params.MaxLate = 16, 1
	w = newWorldOf(t, m)
	for unit := range 2 {
		w.withhold(unit, "p0")
	}
	if !slices.Contains(w.lease.Barred, "p0") {
		t.Fatal("a provider whose data was twice not to be had is not barred")
	}
}

func TestRightAnswerEarnsTheFee(t *testing.T) {
	seen := map[int]bool{}
	for i := range 40 {
		k := newKept(t)
		k.attest(0)
		k.audit(0, true)
		k.pass(int64(i))
		who := k.custodian(0)
		k.do(Ask{By: asker, Custodian: who, Unit: 0, Attempt: 0})
		k.refused("next block", Answer{By: who})
		k.pass(1)
		q, _ := k.lease.Sample(k.lease.Question(who, 0))
		seen[q.State] = true
		k.do(Answer{By: who, Shown: k.shown(who)})
		if k.purse[who] != k.lease.Params.AskFee || k.purse[asker] != stake-k.lease.Params.AskFee {
			t.Fatalf("the custodian has %d, the asker %d", k.purse[who], k.purse[asker])
		}
		k.refused("nobody asks", Answer{By: who})
		k.ask(who) // anybody may ask again
		k.do(Answer{By: who, Shown: k.shown(who)})
		if i == 0 {
			k.finish()
			if k.free[who] != stake || k.lease.Ledger.Slashed != 0 {
				t.Fatalf("%d free, %d slashed", k.free[who], k.lease.Ledger.Slashed)
			}
		}
	}
	if len(seen) != len(newKept(t).states)+1 {
		t.Errorf("asked for %v only", seen)
	}
}

func TestAskIsRefused(t *testing.T) {
	k := newKept(t)
	who := k.custodian(0)
	k.refused("no attestation", Ask{By: asker, Custodian: who, Unit: 0, Attempt: 0})
	k.attest(0)
	k.refused("cannot ask itself", Ask{By: who, Custodian: who, Unit: 0, Attempt: 0})
	k.refused("no attestation", Ask{By: asker, Custodian: "p1", Unit: 0, Attempt: 0})
	k.refused("no attestation", Ask{By: asker, Custodian: k.custodian(2), Unit: 0, Attempt: 0})
	k.refused("not under way", Ask{By: asker, Custodian: who, Unit: 0, Attempt: 1})
	k.refused("no unit 99", Ask{By: asker, Custodian: who, Unit: 99, Attempt: 0})
	k.refused("no unit -2", Ask{By: asker, Custodian: who, Unit: -2, Attempt: 0})
	k.do(Ask{By: asker, Custodian: who, Unit: 0, Attempt: 0})
	k.refused("already", Ask{By: "another", Custodian: who, Unit: 0, Attempt: 0})
}

// Questions are stored with what they are about: of a lease's mutable part they make nothing
// longer but the counts of the custodians that are asked.
func TestQuestionsDoNotGrowTheMutablePart(t *testing.T) {
	k := newKeptOf(t, testMatch())
	k.attestAll(0)
	size := func() int { return len(canon.Marshal(k.lease.Mutable())) }
	before, custodians := size(), len(k.lease.Units[0].Attested)
	for i := range custodians {
		k.do(Ask{By: asker, Custodian: k.custodian(i), Unit: 0})
	}
	if more := size() - before; more > 4*custodians {
		t.Errorf("questions to %d custodians add %d bytes to the mutable part", custodians, more)
	}
}

// attestAll lets every custodian of a unit attest.
func (w *world) attestAll(unit int) {
	w.t.Helper()
	for _, a := range slices.Clone(w.lease.Units[unit].Attested) {
		if !a.Done {
			w.do(Attest{a.Custodian, unit, w.lease.Units[unit].Attempt, w.anyFragment(unit, a.Custodian)})
		}
	}
}

// The more questions are open, the more time a custodian has for the next.
func TestManyQuestionsTakeMoreTime(t *testing.T) {
	k := newKeptOf(t, testMatch()) // three keep every unit
	k.lease.Params.AnswerLoad = 2
	k.attest(0)
	k.audit(0, true)
	k.compute(1, "p1", "")
	for _, i := range []int{2, 3} {
		if i == 2 {
			k.attestAll(1)
			k.pass(20)
			k.do(k.merge())
		}
		k.compute(i, []string{"p1", "p2"}[i%2], "")
		k.attestAll(i)
	}
	who, other := k.custodian(0), k.custodian(1)
	for unit := range 4 {
		k.do(Ask{By: asker, Custodian: who, Unit: unit, Attempt: 0})
	}
	k.do(Ask{By: asker, Custodian: other, Unit: 0, Attempt: 0})
	k.pass(1)
	for i, want := range []int64{1, 1, 1, 2, 2} { // by unit: two are about the first
		if r := k.lease.Questions()[i]; r.Due != k.now+want*k.lease.Params.AnswerTime {
			t.Errorf("question %d is due in %d ms", i, r.Due-k.now)
		}
	}
}

// An account answers once in a block, in whichever of its leases it is asked.
func TestQuestionsOfOtherLeasesTakeTime(t *testing.T) {
	for open, want := range map[int]int64{0: 1, 290: 1, 300: 2, MaxUnits: 14, 1 << 40: 14} {
		k := newKept(t)
		k.lease.Params.AnswerTime, k.lease.Params.AnswerLoad = 600_000, 16
		k.attest(0)
		k.do(Ask{By: asker, Custodian: k.custodian(0), Unit: 0, Open: open})
		k.pass(1)
		if r := k.lease.Questions()[0]; r.Due != k.now+want*k.lease.Params.AnswerTime {
			t.Errorf("with %d questions open elsewhere, an answer is due in %d ms", open, r.Due-k.now)
		}
	}
}

func TestNothingIsAskedAfterTheWindow(t *testing.T) {
	k := newKept(t)
	k.attest(0)
	k.audit(0, true)
	who := k.custodian(0)
	for k.lease.Phase == Active {
		k.finishRound()
	}
	k.now = k.lease.Windows.End - 1
	k.do(Ask{By: asker, Custodian: who, Unit: 0, Attempt: 0})
	k.now++
	k.refused("window closed", Ask{By: asker, Custodian: k.custodian(1), Unit: 0, Attempt: 0})
	k.tick()
	if k.lease.Phase != Closing {
		t.Fatal("the lease ended with a question open")
	}
	k.do(Answer{By: who, Shown: k.shown(who)})
	k.pass(1)
	if k.lease.Phase != Settled {
		t.Fatalf("the lease is %v", k.lease.Phase)
	}
}

// Whatever a custodian shows that is not what was drawn is refused, and its time goes
// on.
func TestWrongAnswersAreRefused(t *testing.T) {
	for name, bend := range map[string]func(k *kept, a *proof.Shown){
		"another byte":    func(_ *kept, a *proof.Shown) { a.Tile = slices.Clone(a.Tile); a.Tile[0] ^= 1 },
		"no tile":         func(_ *kept, a *proof.Shown) { a.Tile = nil },
		"a longer tile":   func(_ *kept, a *proof.Shown) { a.Tile = append(slices.Clone(a.Tile), 0) },
		"no path":         func(_ *kept, a *proof.Shown) { a.Path = nil },
		"another place":   func(_ *kept, a *proof.Shown) { a.Slot.Index++ },
		"fewer tensors":   func(_ *kept, a *proof.Shown) { a.Slot.N-- },
		"no tensors":      func(_ *kept, a *proof.Shown) { a.Slot.N = 0 },
		"another name":    func(_ *kept, a *proof.Shown) { a.Slot.Entry.Key += "x" },
		"another root":    func(_ *kept, a *proof.Shown) { a.Slot.Entry.Value[0] ^= 1 },
		"another type":    func(_ *kept, a *proof.Shown) { a.Type = tensor.Int8 },
		"no type":         func(_ *kept, a *proof.Shown) { a.Type = 200 },
		"another shape":   func(_ *kept, a *proof.Shown) { a.Shape = tensor.Shape{65, 33} },
		"endless shape":   func(_ *kept, a *proof.Shown) { a.Shape = tensor.Shape{1 << 40, 1 << 40} },
		"negative extent": func(_ *kept, a *proof.Shown) { a.Shape = tensor.Shape{-1, -1} },
		"nothing":         func(_ *kept, a *proof.Shown) { *a = proof.Shown{} },
		"another seed": func(k *kept, a *proof.Shown) {
			q, _ := k.lease.Sample(k.lease.Question(k.custodian(0), 0))
			for q.Seed = canon.Sum("another"); ; q.Seed = canon.Sum("next", q.Seed[:]) {
				if b, _ := q.ShowState(k.states[q.State]); string(b.Tile) != string(a.Tile) {
					*a = b
					return
				}
			}
		},
		"another state": func(k *kept, a *proof.Shown) {
			q, _ := k.lease.Sample(k.lease.Question(k.custodian(0), 0))
			*a, _ = q.ShowState(k.states[(q.State+1)%len(k.states)])
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKept(t)
			k.attest(0)
			who := k.custodian(0)
			for { // until a tile of the large tensor of a state is drawn
				k.ask(who)
				q, _ := k.lease.Sample(k.lease.Question(who, 0))
				if a := k.shown(who); q.State >= 0 && a.Slot.Index == 0 {
					break
				}
				k.do(Answer{By: who, Shown: k.shown(who)})
			}
			a := k.shown(who)
			bend(k, &a)
			if err := k.try(Answer{By: who, Shown: a}); err == nil {
				t.Fatal("accepted")
			}
			k.refused("nobody asks", Answer{By: k.custodian(1), Shown: k.shown(who)})
			k.do(Answer{By: who, Shown: k.shown(who)})
		})
	}
}

func TestCustodianThatDoesNotAnswer(t *testing.T) {
	for name, status := range map[string]Status{"counted": Counted, "accepted": Accepted} {
		t.Run(name, func(t *testing.T) {
			k := newKept(t)
			k.lease.Params.AnswerTime = 5
			k.attest(0)
			k.audit(0, true)
			if status == Accepted {
				k.pass(20)
			}
			var others []string
			for _, a := range k.lease.Units[0].Attested[1:] {
				others = append(others, a.Custodian)
			}
			who := k.custodian(0)
			bond := k.lease.keepBond()
			k.ask(who)
			a := k.shown(who)
			k.now = k.lease.Question(who, 0).Due + 1
			k.refused("late", Answer{By: who, Shown: a})
			k.tick()
			l := &k.lease
			reward := bond * l.Params.RewardBps / bps
			if k.purse[asker] != stake+reward || k.purse[Insurance] != bond-reward || k.stakeOf(who)+bond != stake || !k.jailed[who] {
				t.Fatalf("the asker has %d, the fund %d, the custodian %d; jailed %v", k.purse[asker], k.purse[Insurance], k.free[who], k.jailed)
			}
			if l.Files.custodian(who) != nil || !slices.Contains(l.Barred, who) {
				t.Fatalf("after %s keep %v, barred %q", who, l.Files.Custodians, l.Barred)
			}
			want := status
			if status == Counted {
				want = Received
			}
			u := &l.Units[0]
			if u.Status != want || u.Keeps(who) {
				t.Fatalf("the unit is %v, attested %v", u.Status, u.Attested)
			}
			if status == Counted {
				k.refused("not a custodian", Attest{who, 0, 0, nil})
				k.pass(1)
				next := k.custodian(len(k.lease.Units[0].Attested) - 1)
				if next == who || slices.Contains(others, next) {
					t.Fatalf("after %s keep %q and %q", who, next, others)
				}
				k.do(Attest{next, 0, 0, nil})
				k.pass(20)
			}
			if u := k.lease.Units[0]; u.Status != Accepted {
				t.Fatalf("the unit is %v", u.Status)
			}
			k.finish()
			var wage uint64 // of its audit, which stands
			if u := &k.lease.Units[0]; slices.ContainsFunc(u.Audits, func(a Audit) bool { return a.Auditor == who && a.Done }) {
				wage = k.lease.Quote.Audit
			}
			if k.purse[who] != wage || k.purse["p0"] == 0 {
				t.Fatalf("the custodian got %d, the provider %d", k.purse[who], k.purse["p0"])
			}
		})
	}
}

// What is void needs no custodians, and nobody has to answer for it.
func TestVoidUnitFreesItsCustodians(t *testing.T) {
	k := newKept(t)
	k.attest(0)
	who := k.custodian(0)
	k.ask(who)
	a := k.shown(who)
	if err := k.challenge(1, UnitTarget(0), "c"); err != nil {
		t.Fatal(err)
	}
	k.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	if k.held[who] != k.inHand(who) || k.purse[asker] != stake || len(k.lease.Questions()) != 0 {
		t.Fatalf("%d held, the asker has %d, %v", k.held[who], k.purse[asker], k.lease.Questions())
	}
	k.refused("not under way", Answer{By: who, Shown: a})
	k.refused("unit 0 is open", Ask{By: asker, Custodian: who, Unit: 0, Attempt: 1})
}

// When nobody is left to keep, the lease ends, and what was accepted is paid.
func TestLeaseWithoutCustodiansStops(t *testing.T) {
	k := newKept(t)
	k.lease.Params.AnswerTime = 5
	for range 3 { // of four
		k.attestAll(0)
		for _, a := range k.lease.Units[0].Attested {
			if a.Stands() {
				k.ask(a.Custodian)
				break
			}
		}
		k.pass(7)
	}
	if left := k.lease.referees(); len(left) != 1 {
		t.Fatalf("%v are left", left)
	}
	k.pass(400)
	if k.lease.Phase != Settled || k.lease.Reason != "too few validators are left that could keep a unit" {
		t.Fatalf("the lease is %v (%s)", k.lease.Phase, k.lease.Reason)
	}
}

// newShared is a world in which one custodian has attested to the first unit, which has
// data, and was drawn for the second, too.
func newShared(t *testing.T) (k *kept, who string) {
	t.Helper()
	m := testMatch()
	m.Validators = append(m.Validators, party("v4", Rates{}), party("v5", Rates{}))
	m.Params.AnswerTime = 5
	k = newKeptOf(t, m)
	k.attestAll(0)
	k.audit(0, true)
	if err := k.assign(1, "p1"); err != nil {
		t.Fatal(err)
	}
	k.submit(k.receipt(1, ""))
	for _, a := range k.lease.Units[1].Attested {
		if k.lease.Units[0].custodian(a.Custodian) != nil {
			return k, a.Custodian // three of five keep each
		}
	}
	t.Fatal("no custodian has both units")
	return nil, ""
}

// convict lets a custodian fail to answer about the first unit.
func (k *kept) convict(who string) {
	k.t.Helper()
	k.ask(who)
	k.now = k.lease.Question(who, 0).Due + 1
	k.tick()
	if !slices.Contains(k.lease.Barred, who) {
		k.t.Fatalf("%s is not convicted", who)
	}
}

// A custodian that is convicted before it has spoken of another unit is replaced there at
// once. Before, that unit waited until it was due, and its provider paid.
func TestConvictedCustodianIsReplacedBeforeItSpeaks(t *testing.T) {
	k, who := newShared(t)
	k.convict(who)
	k.refused("convicted", Attest{who, 1, 0, nil})
	before := len(k.lease.Units[1].Attested)
	k.pass(2)
	u := &k.lease.Units[1]
	if len(u.Attested) != before+1 || k.lease.Sweep != 0 {
		t.Fatalf("of unit 1 keep %v, %d units are to be looked at", u.Attested, k.lease.Sweep)
	}
	if slices.ContainsFunc(u.Attested[:before], func(a Attestation) bool { return a.Custodian == u.Attested[before].Custodian }) {
		t.Fatalf("%s was drawn twice", u.Attested[before].Custodian)
	}
	for _, a := range u.Attested {
		if a.Custodian != who {
			k.do(Attest{a.Custodian, 1, 0, nil})
		}
	}
	k.audit(1, true)
	k.pass(20)
	if u := &k.lease.Units[1]; u.Status != Accepted || u.custodian(who) != nil || k.stakeOf("p1") != stake {
		t.Fatalf("unit 1 is %v, kept by %v", u.Status, u.Attested)
	}
	k.finish()
}

// What a convicted custodian has said of other units counts no more, and another is drawn.
// Its bond there stands until the unit is accepted, so it can be asked.
func TestOtherWordsOfAConvictedCustodian(t *testing.T) {
	for name, c := range map[string]struct{ asked, replaced bool }{
		"replaced":     {false, true},
		"asked again":  {true, true},
		"not replaced": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			k, who := newShared(t)
			said := 0
			for _, a := range slices.Clone(k.lease.Units[1].Attested) { // a quorum with it, none without
				if a.Custodian == who || said == 0 {
					k.do(Attest{a.Custodian, 1, 0, nil})
					if a.Custodian != who {
						said++
					}
				}
			}
			if k.lease.Units[1].Status != Counted {
				t.Fatalf("unit 1 is %v", k.lease.Units[1].Status)
			}
			k.convict(who)
			k.tick()
			if u := &k.lease.Units[1]; u.Status != Received {
				t.Fatalf("by the word of a convicted custodian unit 1 is %v", u.Status)
			}
			if c.asked {
				before, bond := k.stakeOf(who), k.lease.keepBond()
				k.do(Ask{By: asker, Custodian: who, Unit: 1, Attempt: 0})
				k.pass(8)
				if lost := before - k.stakeOf(who); lost != bond {
					t.Fatalf("it lost %d utally by its other word, want %d", lost, bond)
				}
			}
			if !c.replaced {
				k.pass(110)
				if k.stakeOf("p1") != stake || k.lease.Units[1].Status != Open {
					t.Fatalf("unit 1 is %v, its provider lost %d for another's lie", k.lease.Units[1].Status, stake-k.stakeOf("p1"))
				}
				k.compute(1, "p1", "")
				k.finish()
				return
			}
			k.pass(2)
			k.attestAllBut(1, who)
			k.audit(1, true)
			k.pass(20)
			u := &k.lease.Units[1]
			if a := u.custodian(who); u.Status != Accepted || a != nil && !a.Failed {
				t.Fatalf("unit 1 is %v, kept by %v", u.Status, u.Attested)
			}
			k.finish()
			if k.purse["p1"] == 0 || k.stakeOf("p1") != stake {
				t.Fatalf("the provider got %d and has %d staked", k.purse["p1"], k.stakeOf("p1"))
			}
		})
	}
}

// attestAllBut lets every custodian of a unit but one attest that can.
func (w *world) attestAllBut(unit int, but string) {
	w.t.Helper()
	for _, a := range slices.Clone(w.lease.Units[unit].Attested) {
		if !a.Done && a.Custodian != but {
			w.do(Attest{a.Custodian, unit, w.lease.Units[unit].Attempt, nil})
		}
	}
}

// A block looks at so many units after a conviction, however large the order is.
func TestConvictionLooksAtFewUnitsABlock(t *testing.T) {
	m := testMatch()
	m.Order.Problem.Shards, m.Order.Problem.Records, m.Order.Conditions.MaxPrice = 200, 1000, 1<<40
	w := newWorldOf(t, m)
	if w.lease.bar("v2"); w.lease.Sweep != 0 {
		t.Fatal("units are looked at before one was given out")
	}
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	w.lease.bar("v1")
	seen := map[int]bool{}
	for range (200 + sweepUnits - 1) / sweepUnits {
		if w.lease.Wake() > w.now {
			t.Fatal("nothing is due")
		}
		units := w.lease.Touched(Tick{}, w.now).Units
		if len(units) == 0 || len(units) > sweepUnits {
			t.Fatalf("a tick reads %d units", len(units))
		}
		for _, i := range units {
			seen[i] = true
		}
		w.tick()
	}
	if len(seen) != 200 || w.lease.Sweep != 0 {
		t.Fatalf("%d units were looked at, %d are left", len(seen), w.lease.Sweep)
	}
}
