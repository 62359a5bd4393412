package job

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
)

// world is a chain in miniature: it keeps the accounts that effects move money
// between, and checks every invariant after every event.
type world struct {
	t        fataler
	lease    Lease
	keys     map[string]ed25519.PrivateKey
	free     map[string]uint64 // stake not reserved
	held     map[string]uint64 // stake reserved
	purse    map[string]uint64
	pot      uint64 // slashed, not yet awarded
	brought  uint64 // what all had at first, beside the price
	locked   uint64 // fees of questions to custodians
	jailed   map[string]bool
	burnt    uint64
	pool     uint64 // for forced attempts
	donated  uint64 // to the pool, by earlier leases
	flops    map[string]uint64
	inactive map[string]bool   // providers that are jailed
	record   map[string]uint64 // valid units since the last failure
	now      int64
	next     uint64 // dispute
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

const (
	stake = 1_000_000_000 // utally of every peer, and of the asker
	asker = "asker"
)

func testOrder() Order {
	h := func(s string) canon.Hash { return canon.Sum(canon.Domain(s)) }
	return Order{
		Chain: "tally-test", Consumer: "consumer", Nonce: 1, Contact: Contact{Key: testKey("consumer").Public().(ed25519.PublicKey), Addrs: []string{"/ip4/127.0.0.1/tcp/1"}},
		Problem: Problem{
			Kind: "training", Profile: "fp32", Step: h("step"), Merge: h("merge"), Start: h("start"), Data: h("data"),
			Rounds: 3, Shards: 2, Steps: 6, Interval: 2, Batch: 4, Records: 100, Seed: 7,
			StepFLOPs: 5e9, StepBytes: 1e9, MergeFLOPs: 1e6, MergeBytes: 1e6,
			Files: []File{{"model", "cid", 10}},
		},
		Conditions: Conditions{
			MaxPrice: 10_000_000, Expires: 1000, MinProviders: 2, Auditors: 1, AuditSegments: 1, Custodians: 3,
			UnitTimeout: 100, UnitWindow: 10, Window: 50,
		},
	}
}

func testKey(name string) ed25519.PrivateKey {
	h := canon.Sum("key", []byte(name))
	return ed25519.NewKeyFromSeed(h[:])
}

func party(name string, r Rates) Party {
	return Party{Account: name, Key: testKey(name).Public().(ed25519.PublicKey), Rates: r, Weight: stake}
}

func testMatch() Match {
	p := DefaultParams.WithoutForced().Quick()
	p.LeadTimeout, p.AnswerTime, p.MinBond = 200, 20, 1
	return Match{
		Order: testOrder(), Lead: "v0", FeeBps: 500, Params: p, Deposit: 2_000, Affords: upTo(stake),
		Providers:  []Party{party("p0", Rates{1000, 10}), party("p1", Rates{1100, 5}), party("p2", Rates{900, 0})},
		Validators: []Party{party("v1", Rates{}), party("v2", Rates{}), party("v3", Rates{})},
	}
}

// manyRolesMatch is one whose lead provides, as a validator does that judges the others.
func manyRolesMatch() Match {
	m := testMatch()
	m.Providers = []Party{party("p0", Rates{1000, 10}), party("v0", Rates{1100, 5}), party("v1", Rates{900, 0})}
	m.Validators = append(m.Validators, party("v4", Rates{}))
	return m
}

func newWorld(t fataler) *world {
	t.Helper()
	return newWorldOf(t, testMatch())
}

// newWorldOf is newWorld of another match: the files of its order are attested to.
func newWorldOf(t fataler, m Match) *world {
	t.Helper()
	w := beginWorld(t, m)
	w.sayOfFiles(Had)
	return w
}

// sayOfFiles lets a quorum of custodians say a word of the order's files.
func (w *world) sayOfFiles(says Word) {
	w.t.Helper()
	for _, k := range w.lease.Files.Custodians[:w.lease.Order.Conditions.Quorum()] {
		w.do(AttestFiles{By: k.Account, Draw: w.lease.Files.Draws, Says: says})
	}
}

// beginWorld begins a lease, and lets the next block draw who keeps its files. Nothing is known of these yet.
func beginWorld(t fataler, m Match) *world {
	t.Helper()
	w := &world{t: t, jailed: map[string]bool{}, keys: map[string]ed25519.PrivateKey{}, free: map[string]uint64{}, held: map[string]uint64{}, purse: map[string]uint64{}, flops: map[string]uint64{}, record: map[string]uint64{}, now: 1000}
	for _, p := range append(append([]Party{{Account: "v0"}}, m.Providers...), m.Validators...) {
		if w.keys[p.Account] == nil {
			w.brought += stake
		}
		w.keys[p.Account] = testKey(p.Account)
		w.free[p.Account] = stake
	}
	w.purse[asker] = stake
	w.brought += stake
	m.Affords = w.affords
	l, effects, err := NewLease(m, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.lease = l
	w.perform(effects)
	w.check()
	w.tick() // the end of the block of the match
	if len(w.lease.Leads) > 1 || len(w.lease.Files.Custodians) > 0 {
		t.Fatal("drawn in the block of the match")
	}
	w.pass(1)
	return w
}

// affords reports whether an account could put up a bond.
func (w *world) affords(account string, bond uint64) bool { return bond <= w.free[account] }

// perform does what a chain would do.
func (w *world) perform(effects []Effect) {
	w.t.Helper()
	take := func(m map[string]uint64, account string, n uint64) {
		if m[account] < n {
			w.t.Fatalf("%s has %d, %d is taken", account, m[account], n)
		}
		m[account] -= n
	}
	for _, e := range effects {
		switch e.Kind {
		case Reserve:
			take(w.free, e.Account, e.Amount)
			w.held[e.Account] += e.Amount
		case Release:
			take(w.held, e.Account, e.Amount)
			w.free[e.Account] += e.Amount
		case Slash:
			take(w.held, e.Account, e.Amount)
			w.pot += e.Amount
		case Award:
			if w.pot < e.Amount {
				w.t.Fatal("more awarded than slashed")
			}
			w.pot -= e.Amount
			w.purse[e.Account] += e.Amount
		case Pay, Refund:
			w.purse[e.Account] += e.Amount
		case Burn:
			w.burnt += e.Amount
		case Tax:
			w.pool += e.Amount
		case Prize:
			w.pool -= e.Amount
			w.purse[e.Account] += e.Amount
		case Insure:
			take(w.purse, Insurance, e.Amount)
			w.purse[e.Account] += e.Amount
		case Credit:
			w.flops[e.Account] += e.Amount
		case Vouch:
			w.record[e.Account] += e.Amount
		case Discredit:
			w.record[e.Account] = 0
		case Lock:
			take(w.purse, e.Account, e.Amount)
			w.locked += e.Amount
		case Unlock:
			w.locked -= e.Amount
			w.purse[e.Account] += e.Amount
		case Jail, Exclude:
			w.jailed[e.Account] = true
		}
	}
}

func (w *world) check() {
	w.t.Helper()
	if err := w.lease.Check(); err != nil {
		w.t.Fatal(err)
	}
	if w.pot != 0 {
		w.t.Fatalf("%d utally were slashed and awarded to nobody", w.pot)
	}
	reserved := map[string]uint64{}
	for _, s := range w.lease.Reserved() {
		reserved[s.Account] = s.Amount
	}
	for account, n := range w.held {
		if reserved[account] != n {
			w.t.Fatalf("%s has %d reserved, the lease says %d", account, n, reserved[account])
		}
	}
	if w.locked != w.lease.Locked() {
		w.t.Fatalf("%d utally of fees are locked, the lease says %d", w.locked, w.lease.Locked())
	}
	total := w.burnt + w.pool + w.lease.Ledger.Escrow + w.locked
	for _, m := range []map[string]uint64{w.free, w.held, w.purse} {
		for _, n := range m {
			total += n
		}
	}
	if want := w.lease.Quote.Price + w.lease.Deposit + w.brought + w.donated; total != want {
		w.t.Fatalf("there are %d utally, there were %d", total, want)
	}
	w.roundTrip()
}

// roundTrip stores and loads the lease.
func (w *world) roundTrip() {
	w.t.Helper()
	b := canon.Marshal(&w.lease)
	var back Lease
	if err := canon.Unmarshal(b, &back); err != nil {
		w.t.Fatal(err)
	}
	if string(canon.Marshal(&back)) != string(b) {
		w.t.Fatal("a lease changed in storage")
	}
	w.lease = back
}

// try applies an event; a refused one must have changed nothing.
func (w *world) try(e Event) error {
	w.t.Helper()
	next, effects, err := Apply(w.lease, e, w.now)
	w.inParts(e, next, effects, err)
	if err != nil {
		if len(effects) != 0 {
			w.t.Fatal("a refused event has effects")
		}
		return err
	}
	before := w.lease
	w.lease = next
	w.keepsParticipants(&before)
	w.paysVoid(&before, effects)
	w.perform(effects)
	w.check()
	return nil
}

func (w *world) do(e Event) {
	w.t.Helper()
	if err := w.try(e); err != nil {
		w.t.Fatalf("%T: %v", e, err)
	}
}

// pass lets time pass, and checks that Tick has nothing to do before Wake.
func (w *world) pass(ms int64) {
	w.t.Helper()
	for end := w.now + ms; w.lease.Phase != Settled; {
		wake := w.lease.Wake()
		if wake > w.now+1 {
			before := canon.Marshal(&w.lease)
			w.now = min(wake-1, end)
			w.tick()
			if string(canon.Marshal(&w.lease)) != string(before) {
				w.t.Fatalf("Tick did something at %d, Wake said %d", w.now, wake)
			}
		}
		if w.now >= end {
			return
		}
		w.now++
		w.tick()
	}
}

// tick lets a block end.
func (w *world) tick() {
	w.t.Helper()
	w.do(Tick{Seed: canon.Sum("block", []byte(fmt.Sprint(w.now))), Units: w.due(), Affords: w.affords})
}

// submit posts a receipt, and lets the next block draw who audits and keeps it.
func (w *world) submit(s Submit) {
	w.t.Helper()
	w.do(s)
	w.pass(1)
}

// bondOf returns what is reserved behind all units of who has the given one.
func (w *world) bondOf(unit int) uint64 {
	w.t.Helper()
	return w.lease.Reserve.Held(w.lease.Units[unit].Provider, ForWork)
}

func (w *world) assign(unit int, provider string) error {
	w.t.Helper()
	attempt := w.lease.Units[unit].Attempt
	acc := Acceptance{w.lease.Order.ID(), unit, attempt, provider}
	return w.assignSigned(unit, provider, ed25519.Sign(w.keys[provider], acc.SignBytes()))
}

func (w *world) assignSigned(unit int, provider string, signature []byte) error {
	w.t.Helper()
	e := Assign{By: w.lease.Lead(), Units: []Assignment{{unit, w.lease.Units[unit].Attempt, signature, w.standing(provider)}}}
	e.Waiting = w.waiting()
	err := w.try(e)
	if err == nil && w.lease.Forces() {
		w.pass(1) // its forced draw is made
	}
	return err
}

func (w *world) waiting() (out []Standing) {
	for _, q := range w.lease.Queue {
		if !w.inactive[q.Provider] {
			out = append(out, w.standing(q.Provider))
		}
	}
	return out
}

func (w *world) takeLead(by string) TakeLead { return TakeLead{by, w.waiting()} }

func (w *world) standing(provider string) Standing {
	return Standing{Provider: provider, Free: w.free[provider], Record: w.record[provider], Staked: w.free[provider]}
}

// receipt makes the receipt that the provider of a unit would post. The true
// states are named after unit and step alone; lie changes them.
func (w *world) receipt(unit int, lie string) Submit {
	return w.sign(w.receiptOf(unit, w.lease.Units[unit].Provider, lie))
}

func (w *world) receiptOf(unit int, provider, lie string) Receipt {
	p, u := &w.lease.Order.Problem, &w.lease.Units[unit]
	r := Receipt{Order: w.lease.Order.ID(), Unit: unit, Attempt: u.Attempt, Provider: provider, Start: w.lease.RoundStart(unit / p.Shards), FLOPs: p.UnitFLOPs()}
	r.Checkpoints = []canon.Hash{r.Start}
	for s := range p.Segments() {
		r.Checkpoints = append(r.Checkpoints, canon.Sum("state", r.Start[:], []byte(fmt.Sprint(unit, s, lie))))
	}
	return r
}

func (w *world) sign(r Receipt) Submit {
	return Submit{r, ed25519.Sign(w.keys[r.Provider], r.SignBytes())}
}

func (w *world) merge() PostMerge {
	if !w.lease.Order.Problem.Merges() {
		return PostMerge{By: w.lease.Lead(), Round: w.lease.Round, Root: canon.Root(w.lease.Ends(w.lease.Round))}
	}
	var ends []byte
	for _, h := range w.lease.Ends(w.lease.Round) {
		ends = append(ends, h[:]...)
	}
	return PostMerge{By: w.lease.Lead(), Round: w.lease.Round, Root: canon.Sum("merge", ends)}
}

func (w *world) attest(unit int) {
	w.t.Helper()
	u := w.lease.Units[unit]
	for _, k := range u.Attested[:w.lease.Order.Conditions.Quorum()] {
		w.do(Attest{k.Custodian, unit, u.Attempt, w.anyFragment(unit, k.Custodian)})
	}
}

func (w *world) audit(unit int, pass bool) {
	w.t.Helper()
	for _, a := range w.lease.Units[unit].Audits {
		w.do(Report{By: a.Auditor, Unit: unit, Attempt: w.lease.Units[unit].Attempt, Output: []byte(a.Auditor), Pass: pass})
	}
}

// compute brings a unit from open to counted and audited.
func (w *world) compute(unit int, provider, lie string) {
	w.t.Helper()
	if err := w.assign(unit, provider); err != nil {
		w.t.Fatal(err)
	}
	w.submit(w.receipt(unit, lie))
	w.attest(unit)
	w.audit(unit, true)
}

// finishRound computes and merges the round.
func (w *world) finishRound() {
	w.t.Helper()
	for s := range w.lease.Order.Problem.Shards {
		if i := w.lease.Unit(w.lease.Round, s); w.lease.Units[i].Status == Open {
			w.compute(i, []string{"p1", "p2"}[s%2], "")
		}
	}
	w.pass(20)
	w.do(w.merge())
}

func (w *world) finish() {
	w.t.Helper()
	for w.lease.Round < w.lease.Order.Problem.Rounds {
		w.finishRound()
	}
	w.pass(60)
	if w.lease.Phase != Settled {
		w.t.Fatalf("the lease is %v", w.lease.Phase)
	}
}

func TestHonestOrderIsSettled(t *testing.T) {
	w := newWorld(t)
	w.finish()
	l := &w.lease
	if l.Reason != "" || l.FinalRoot().IsZero() {
		t.Fatalf("ended with %q, root %v", l.Reason, l.FinalRoot())
	}
	// p1 and p2 computed three units of 30 GFLOP and 6 GB each.
	if got, want := w.purse["p1"], uint64(3*(30*1100+6*5)); got != want {
		t.Errorf("p1 earned %d, want %d", got, want)
	}
	if got, want := w.purse["p2"], uint64(3*30*900); got != want {
		t.Errorf("p2 earned %d, want %d", got, want)
	}
	if got, want := w.purse["v0"], (w.purse["p1"]+w.purse["p2"])*500/10000; got < want || got > want+1 {
		t.Errorf("the lead earned %d, want %d", got, want)
	}
	if w.flops["p1"] != 3*30e9 || w.burnt == 0 || w.purse["consumer"] == 0 || len(l.Ledger.SlashPaid) != 0 {
		t.Errorf("credit %d, burnt %d, refund %d, slashed %v", w.flops["p1"], w.burnt, w.purse["consumer"], l.Ledger.SlashPaid)
	}
	s := l.Settlement()
	if s.Final != l.FinalRoot() || s.Order != l.Order.ID() {
		t.Error("the settlement speaks of another order")
	}
	if err := w.try(Tick{}); !errors.Is(err, ErrEnded) {
		t.Errorf("an ended lease took an event: %v", err)
	}
}

// The same order, other people, other times: the same final root.
func TestFinalRootDependsOnTheOrderAlone(t *testing.T) {
	a, b := newWorld(t), newWorld(t)
	a.finish()
	b.pass(33)
	b.compute(1, "p0", "")
	b.compute(0, "p0", "lie")
	b.do(OpenDispute{ID: 1, Target: UnitTarget(0), Challenger: "c"})
	b.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	b.finish()
	if a.lease.FinalRoot() != b.lease.FinalRoot() {
		t.Fatal("the final root depends on who computed what, and when")
	}
}

func TestLateFraudVoidsItsDescendantsAtTheCheatersCost(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p0", "lie") // the auditor picked other segments
	w.compute(1, "p1", "")
	w.pass(20)
	w.do(w.merge())
	w.compute(2, "p1", "")
	if err := w.assign(3, "p2"); err != nil {
		t.Fatal(err)
	}
	before := w.held["p0"]
	w.do(OpenDispute{ID: 5, Target: UnitTarget(0), Challenger: "c"})
	w.do(CloseDispute{ID: 5, Loser: dispute.Defender})
	l := &w.lease
	if l.Round != 0 || l.Units[0].Status != Open || l.Units[0].Attempt != 1 || l.Units[1].Status != Accepted || l.Units[2].Status != Open || l.Units[3].Status != Open {
		t.Fatalf("round %d, units %v %v %v %v", l.Round, l.Units[0].Status, l.Units[1].Status, l.Units[2].Status, l.Units[3].Status)
	}
	if l.Ledger.Slashed != before || w.held["p0"] != 0 {
		t.Fatalf("slashed %d of %d", l.Ledger.Slashed, before)
	}
	if got, want := w.purse["p1"], uint64(30*1100+6*5); got != want {
		t.Errorf("p1's voided unit was paid %d, want %d", got, want)
	}
	if got, want := w.purse["c"], (before*4+9)/10; got != want {
		t.Errorf("the challenger got %d of %d", got, before)
	}
	if w.purse[Insurance] == 0 || w.purse["p0"] != 0 {
		t.Errorf("insurance got %d, the cheater %d", w.purse[Insurance], w.purse["p0"])
	}
	if err := w.assign(0, "p0"); err == nil {
		t.Error("the cheater was given the unit again")
	}
	w.finish()
	if w.purse["p0"] != 0 {
		t.Error("the cheater was paid")
	}
}

func TestWrongMergeCostsTheLeadItsOffice(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p1", "")
	w.compute(1, "p2", "")
	w.pass(20)
	m := w.merge()
	right := m.Root
	m.Root = canon.Sum("wrong")
	w.do(m)
	w.compute(2, "p1", "")
	w.do(OpenDispute{ID: 1, Target: MergeTarget(0), Challenger: "c"})
	w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	l := &w.lease
	if l.Lead() != "" || l.Round != 0 || w.held["v0"] != 0 || w.purse["p1"] == 0 {
		t.Fatalf("lead %q, round %d", l.Lead(), l.Round)
	}
	if err := w.try(m); err == nil {
		t.Fatal("the dismissed lead posted again")
	}
	w.do(TakeLead{By: l.Leads[1].Account})
	w.do(PostMerge{By: w.lease.Lead(), Root: right})
	w.finish()
	if w.purse["v0"] != 0 {
		t.Error("the dismissed lead was paid")
	}
}

func TestLostChallengeChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p0", "")
	w.do(OpenDispute{ID: 9, Target: UnitTarget(0), Challenger: "c"})
	w.pass(500) // nothing falls due while a game is played
	if w.lease.Units[0].Status != Counted {
		t.Fatalf("the disputed unit is %v", w.lease.Units[0].Status)
	}
	w.do(CloseDispute{ID: 9, Loser: dispute.Challenger})
	w.pass(1)
	if w.lease.Units[0].Status != Accepted || w.lease.Ledger.Slashed != 0 {
		t.Fatalf("the unit is %v", w.lease.Units[0].Status)
	}
	w.finish()
}

func TestProviderThatVanishesLosesTheUnitAndLittleElse(t *testing.T) {
	w := newWorld(t)
	for try := range 3 {
		if err := w.assign(0, "p0"); err != nil {
			t.Fatal(err)
		}
		late := w.receipt(0, "")
		w.pass(101)
		if u := w.lease.Units[0]; u.Status != Open || u.Attempt != try+1 {
			t.Fatalf("unit is %v, attempt %d", u.Status, u.Attempt)
		}
		if err := w.try(late); err == nil {
			t.Fatal("a receipt of a given-up attempt was taken")
		}
	}
	if lost := stake - w.free["p0"]; lost == 0 || lost > 3*w.lease.Quote.Unit/10 {
		t.Fatalf("three late units cost %d", lost)
	}
	if err := w.assign(0, "p0"); err == nil {
		t.Fatal("a provider that is always late was given another unit")
	}
	w.finish()
}

func TestUnattestedReceiptDoesNotCount(t *testing.T) {
	w := newWorld(t)
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(0, ""))
	w.do(Attest{w.lease.Units[0].Attested[0].Custodian, 0, 0, nil})
	if err := w.try(Attest{w.lease.Units[0].Attested[0].Custodian, 0, 0, nil}); err == nil {
		t.Fatal("one custodian attested twice")
	}
	if err := w.try(Attest{"p1", 0, 0, nil}); err == nil {
		t.Fatal("a stranger attested")
	}
	w.pass(101)
	penalty := w.lease.Quote.Unit * w.lease.Params.LateBps / bps
	if u := w.lease.Units[0]; u.Status != Open || w.held["p0"] != 0 || w.free["p0"] != stake-penalty || w.purse[Insurance] != penalty {
		t.Fatalf("the unit is %v, %d held, %d free", u.Status, w.held["p0"], w.free["p0"])
	}
}

func TestSilentAuditorForfeitsItsWage(t *testing.T) {
	w := newWorld(t)
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(0, ""))
	w.attest(0)
	w.pass(50)
	if w.lease.Units[0].Status != Counted {
		t.Fatal("accepted with an audit outstanding")
	}
	w.pass(60)
	if w.lease.Units[0].Status != Accepted || !w.lease.Units[0].Audits[0].Forfeit {
		t.Fatalf("the unit is %v", w.lease.Units[0].Status)
	}
}

func TestFailedAuditHoldsTheUnitForADispute(t *testing.T) {
	w := newWorld(t)
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(0, "lie"))
	w.attest(0)
	w.audit(0, false)
	w.pass(50)
	if w.lease.Units[0].Status != Counted {
		t.Fatal("accepted although an auditor found a mismatch")
	}
	w.do(OpenDispute{ID: 1, Target: UnitTarget(0), Challenger: w.lease.Units[0].Audits[0].Auditor})
	w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	w.finish()
}

func TestAuditorsAreNeverTheLead(t *testing.T) {
	w := newWorld(t)
	w.lease.LeadIndex = 1 // another validator has taken over
	if pool := w.lease.referees(); len(pool) != 2 || slices.ContainsFunc(pool, func(p Party) bool { return p.Account == w.lease.Lead() }) {
		t.Fatalf("the lead may be drawn: %v", pool)
	}
	if find(w.lease.Auditors, "v0") != nil || w.lease.Files.custodian("v0") != nil {
		t.Fatal("the lead was drawn")
	}
}

func TestIdleLeadIsReplacedInDrawnOrder(t *testing.T) {
	w := newWorld(t)
	first, second := w.lease.Leads[1].Account, w.lease.Leads[2].Account
	w.pass(99)
	w.do(Ready{Provider: "p0"})
	if err := w.try(w.takeLead(first)); err == nil {
		t.Fatal("the lead was taken before its time ran out")
	}
	w.pass(101)
	if err := w.try(w.takeLead(second)); err == nil {
		t.Fatal("the second in line came first")
	}
	w.do(w.takeLead(first))
	w.do(Ready{Provider: "p0", Withdraw: true})
	if w.lease.Lead() != first || w.lease.Ledger.Slashed == 0 {
		t.Fatalf("%s leads, %d slashed", w.lease.Lead(), w.lease.Ledger.Slashed)
	}
	w.finish()
	if w.purse["v0"] != 0 || w.purse[first] == 0 {
		t.Error("the fee went to the wrong lead")
	}
}

func TestAbandonedOrderPaysWhatWasDoneAndRefundsTheRest(t *testing.T) {
	w := newWorld(t)
	w.finishRound()
	w.pass(200 * 10)
	if w.lease.Phase != Settled || w.lease.Reason == "" {
		t.Fatalf("the lease is %v (%s)", w.lease.Phase, w.lease.Reason)
	}
	if w.purse["p1"] == 0 || w.purse["consumer"] < w.lease.Quote.Price/2 {
		t.Fatalf("p1 got %d, the consumer %d of %d", w.purse["p1"], w.purse["consumer"], w.lease.Quote.Price)
	}
}

// A lead that has taken an order on by its offer pays to get out of it, whatever is said
// of the files by then: declining once was free.
func TestDecliningCosts(t *testing.T) {
	w := newWorld(t)
	if err := w.try(Decline{"v1", "why"}); err == nil {
		t.Fatal("a stranger declined the order")
	}
	w.do(Decline{"v0", "the files do not match the order"})
	w.pass(2)
	if w.lease.Phase != Settled || w.purse["consumer"] != w.lease.Quote.Price+w.lease.Deposit || w.free["v0"] != stake-w.purse[Insurance] || w.purse[Insurance] == 0 {
		t.Fatalf("the lease is %v, the consumer got %d of %d, the lead has %d of %d", w.lease.Phase, w.purse["consumer"], w.lease.Quote.Price, w.free["v0"], uint64(stake))
	}
	w = newWorld(t)
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	if err := w.try(Decline{"v0", "changed my mind"}); err == nil {
		t.Fatal("the lead declined with a unit under way")
	}
}

func TestEventsAreRefused(t *testing.T) {
	w := newWorld(t)
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	good := w.receipt(0, "")
	resign := func(r Receipt) Submit { return Submit{r, ed25519.Sign(w.keys["p0"], r.SignBytes())} }
	bend := func(f func(*Receipt)) Submit {
		r := good.Receipt
		r.Checkpoints = slices.Clone(r.Checkpoints)
		f(&r)
		return resign(r)
	}
	for want, e := range map[string]Event{
		"another order":        bend(func(r *Receipt) { r.Order[0] ^= 1 }),
		"no unit 99":           bend(func(r *Receipt) { r.Unit = 99 }),
		"is not under way":     bend(func(r *Receipt) { r.Attempt = 3 }),
		"assigned to p0":       bend(func(r *Receipt) { r.Provider = "p1" }),
		"starts from":          bend(func(r *Receipt) { r.Start[0] ^= 1 }),
		"checkpoints":          bend(func(r *Receipt) { r.Checkpoints = r.Checkpoints[:2] }),
		"FLOPs":                bend(func(r *Receipt) { r.FLOPs++ }),
		"not signed":           Submit{good.Receipt, make([]byte, 64)},
		"unit 1 is open":       bend(func(r *Receipt) { r.Unit = 1 }),
		"does not lead":        Assign{By: "v1"},
		"no unit is assigned":  Assign{By: "v0"},
		"is not a provider":    Assign{By: "v0", Units: []Assignment{{Unit: 1, Standing: Standing{Provider: "stranger"}}}},
		"belongs to round 1":   Assign{By: "v0", Units: []Assignment{{Unit: 2, Standing: Standing{Provider: "p1"}}}},
		"acceptance":           Assign{By: "v0", Units: []Assignment{{Unit: 1, Standing: Standing{Provider: "p1"}, Signature: make([]byte, 64)}}},
		"is not next in line":  TakeLead{By: "v0"},
		"no merged round":      Halt{},
		"no dispute 7":         CloseDispute{ID: 7},
		"no receipt":           OpenDispute{ID: 1, Target: UnitTarget(0), Challenger: "c"},
		"round 0 is not":       OpenDispute{ID: 1, Target: MergeTarget(0), Challenger: "c"},
		"is not drawn":         Report{By: "p1"},
		"round 2 cannot":       PostMerge{By: "v0", Round: 2},
		"the merge has":        PostMerge{By: "v0"},
		"merged when all":      PostMerge{By: "v0", Root: canon.Sum("x")},
		"v1 does not lead":     PostMerge{By: "v1"},
		"unit 0 is assigned, ": Attest{"v1", 0, 0, nil},
	} {
		if want == "is not drawn" {
			continue // needs a receipt; below
		}
		if err := w.try(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
	w.submit(good)
	if err := w.try(good); err == nil {
		t.Error("a receipt was replayed")
	}
	if err := w.try(Report{By: "p1"}); err == nil || !strings.Contains(err.Error(), "not drawn") {
		t.Errorf("a stranger audited: %v", err)
	}
	if err := w.try(OpenDispute{ID: 1, Target: UnitTarget(0), Challenger: "p0"}); err == nil {
		t.Error("a provider challenged itself")
	}
	if err := w.try(OpenDispute{ID: 1, Target: UnitTarget(0), Attempt: 4, Challenger: "c"}); err == nil {
		t.Error("an attempt that does not stand was disputed")
	}
	w.audit(0, true)
	if err := w.try(Report{By: w.lease.Units[0].Audits[0].Auditor}); err == nil {
		t.Error("an auditor answered twice")
	}
}

func TestMatchIsRefused(t *testing.T) {
	for want, bend := range map[string]func(*Match){
		"costs":       func(m *Match) { m.Order.Conditions.MaxPrice = 10 },
		"independent": func(m *Match) { m.Validators = m.Validators[:2] },
		"too large":   func(m *Match) { m.Providers[0].GFLOP = 1 << 62 },
		"at nothing":  func(m *Match) { m.Providers = []Party{party("p0", Rates{})} },
	} {
		m := testMatch()
		bend(&m)
		if _, _, err := NewLease(m, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
}

// games returns which of the given disputes are still open.
func (w *world) games(ids []uint64) []uint64 {
	return slices.DeleteFunc(ids, func(id uint64) bool {
		_, err := w.lease.dispute(id)
		return err != nil
	})
}

// Any sequence of events, honest or not, keeps every invariant, and the lease
// can always be brought to its end.
func TestAnyHistoryKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		switch rapid.IntRange(0, 5).Draw(t, "world") {
		case 0:
			w = forcedWorld(t)
		case 1:
			w = beginWorld(t, testMatch())
		case 2:
			w = batchWorld(t)
		case 3:
			w = newWorldOf(t, speculativeMatch(rapid.IntRange(1, 3).Draw(t, "rounds ahead")))
		case 4:
			w = newWorldOf(t, manyRolesMatch())
		}
		var games []uint64
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			unit := rapid.IntRange(0, len(w.lease.Units)-1).Draw(t, "unit")
			u := w.lease.Units[unit]
			p := rapid.SampledFrom(w.lease.Providers).Draw(t, "provider").Account
			v := rapid.SampledFrom([]string{"v1", "v2", "v3"}).Draw(t, "validator")
			lie := rapid.SampledFrom([]string{"", "", "lie"}).Draw(t, "lie")
			switch rapid.IntRange(0, 14).Draw(t, "event") {
			case 0, 1:
				if w.lease.Lead() != "" {
					_ = w.assign(unit, p)
				}
			case 2:
				if u.Status == Assigned {
					_ = w.try(w.receipt(unit, lie))
				}
			case 3:
				_ = w.try(Attest{v, unit, u.Attempt, nil})
			case 4:
				_ = w.try(Report{By: v, Unit: unit, Attempt: u.Attempt, Output: []byte(v), Pass: lie == ""})
			case 5:
				target, attempt := UnitTarget(unit), u.Attempt
				w.next++
				if rapid.Bool().Draw(t, "merge") {
					target, attempt = MergeTarget(unit), w.lease.Merges[min(unit, len(w.lease.Merges)-1)].Attempt
				} else if rapid.Bool().Draw(t, "verdict") {
					target, attempt = VerdictTarget(unit, v), max(u.Attempt-rapid.IntRange(0, 1).Draw(t, "ago"), 0)
				}
				if len(w.lease.Forced()) > 0 && rapid.Bool().Draw(t, "truth") {
					f := rapid.SampledFrom(w.lease.Forced()).Draw(t, "forced attempt")
					target, attempt = TruthTarget(f.Index, rapid.IntRange(0, 3).Draw(t, "of")), f.Unit.Attempt
				}
				segment := rapid.IntRange(0, 2).Draw(t, "segment")
				who := rapid.SampledFrom([]string{"c", "d", "e"}).Draw(t, "challenger")
				if w.try(OpenDispute{ID: w.next, Target: target, Attempt: attempt, Segment: segment, Challenger: who}) == nil {
					games = append(games, w.next)
				}
			case 6:
				if len(games) > 0 {
					i := rapid.IntRange(0, len(games)-1).Draw(t, "game")
					if rapid.IntRange(0, 4).Draw(t, "answer") == 0 {
						w.do(MissAnswer{games[i], rapid.Bool().Draw(t, "missed")})
						continue
					}
					w.do(CloseDispute{ID: games[i], Loser: dispute.Side(rapid.IntRange(1, 2).Draw(t, "loser"))})
					games = w.games(games)
				}
			case 7:
				if w.lease.Phase == Active && w.lease.Round < len(w.lease.Merges) && !slices.ContainsFunc(w.lease.round(w.lease.Round), func(u Unit) bool { return u.Receipt == nil }) {
					_ = w.try(w.merge())
				}
			case 8:
				_ = w.try(w.takeLead(v))
			case 9:
				_ = w.try(Ready{p, rapid.Bool().Draw(t, "withdraw")})
			case 10:
				_ = w.try(Ask{By: asker, Custodian: v, Unit: unit, Attempt: u.Attempt})
			case 11:
				_ = w.try(Answer{By: v, Unit: unit, Attempt: u.Attempt})
			case 12:
				if u.Receipt != nil {
					_ = w.proveDraw(unit, rapid.Bool().Draw(t, "forced"))
				}
			case 13:
				_ = w.try(AttestFiles{v, w.lease.Files.Draws, Word(rapid.IntRange(1, 2).Draw(t, "says"))})
			case 14:
				if w.lease.Phase != Settled {
					w.pass(rapid.Int64Range(1, 150).Draw(t, "ms"))
				}
			}
			if w.lease.Phase == Settled {
				break
			}
			games = w.games(games)
		}
		for len(games) > 0 {
			w.do(CloseDispute{ID: games[0], Loser: dispute.Challenger})
			games = w.games(games)
		}
		for range 40 { // nobody does anything any more: time ends it
			if w.lease.Phase == Settled {
				break
			}
			w.pass(300)
		}
		if w.lease.Phase != Settled {
			t.Fatalf("the lease is still %v", w.lease.Phase)
		}
		for account, n := range w.held {
			if n != 0 {
				t.Fatalf("%s still has %d reserved", account, n)
			}
		}
	})
}
