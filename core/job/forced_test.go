package job

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/proof"
)

// forcedWorld is a world in which attempts are forced, with a pool that earlier
// leases have filled, and a tax that pays every forced attempt of a small order.
func forcedWorld(t fataler) *world {
	t.Helper()
	return forcedWorldOf(t, func(*Match) {})
}

func forcedWorldOf(t fataler, bend func(*Match)) *world {
	t.Helper()
	m := testMatch()
	m.Params = DefaultParams.Quick()
	m.Params.JackpotFactor, m.Params.MinBond = 2, 1
	m.Params.LeadTimeout, m.Params.TaxBps, m.Order.Conditions.MaxPrice = 200, bps, 1<<40
	bend(&m)
	w := newWorldOf(t, m)
	w.pool, w.donated = 1e9, 1e9
	w.check()
	return w
}

// forcedDraw returns a VRF output that forces an attempt, or does not.
func forcedDraw(forced bool) []byte {
	if forced {
		return make([]byte, 64)
	}
	return bytes.Repeat([]byte{0xff}, 64)
}

// truth is what the segments of a unit give from its checkpoints, which no receipt
// of a forced attempt says.
func (w *world) truth(unit int) (out []proof.Outcome) {
	r := w.lease.Units[unit].Receipt
	for _, c := range r.Checkpoints[1:] {
		out = append(out, proof.Outcome{Before: canon.Sum("before", c[:]), End: canon.Sum("truth", c[:])})
	}
	return out
}

func (w *world) proveDraw(unit int, forced bool) error {
	w.t.Helper()
	u := w.lease.Units[unit]
	e := ProveDraw{By: u.Provider, Unit: unit, Attempt: u.Attempt, Output: forcedDraw(forced)}
	if forced {
		e.Truth = w.truth(unit)
	}
	return w.try(e)
}

// diligent is the report of an auditor that has re-executed a forced receipt.
func (w *world) diligent(unit int, auditor string) Report {
	w.t.Helper()
	u := w.lease.Units[unit]
	segments, err := w.lease.audited(&u, []byte(auditor), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	var outcomes []proof.Outcome
	for _, s := range segments {
		outcomes = append(outcomes, w.truth(unit)[s])
	}
	return Report{By: auditor, Unit: unit, Attempt: u.Attempt, Output: []byte(auditor), Digest: proof.Digest(auditor, u.Receipt.ID(), outcomes)}
}

// present brings a unit to a receipt that counts.
func (w *world) present(unit int, provider string) (auditor string) {
	w.t.Helper()
	if err := w.assign(unit, provider); err != nil {
		w.t.Fatal(err)
	}
	w.submit(w.receipt(unit, "forced"))
	w.attest(unit)
	return w.lease.Units[unit].Audits[0].Auditor
}

// settle lets everything else of the order be done, and time pass.
func (w *world) settle() {
	w.t.Helper()
	for w.lease.Phase == Active && w.lease.Lead() != "" {
		for i := range w.lease.RoundUnits() {
			u := w.lease.Unit(w.lease.Round, i)
			if w.lease.Units[u].Status == Open {
				w.compute(u, []string{"p1", "p2"}[i%2], "")
			}
			w.pass(20)
			if w.lease.Forces() && w.lease.Units[u].Status == Counted && !w.lease.Units[u].Plain {
				if err := w.proveDraw(u, false); err != nil {
					w.t.Fatal(err)
				}
			}
		}
		w.pass(1)
		w.do(w.merge())
	}
	w.pass(60)
	if w.lease.Phase != Settled {
		w.t.Fatalf("the lease is %v", w.lease.Phase)
	}
}

// What an auditor says about a forced receipt, when it is shown, and what comes of
// it: the table of docs/spec/lease.md.
func TestForcedAttempts(t *testing.T) {
	for _, c := range []struct {
		name       string
		says       string // fail, pass, blind fail, nothing
		challenged []string
		refuted    bool // what the provider shows as the truth is refuted
		provider   string
		auditor    string // wage, nothing, slashed
		jackpots   int    // utally in parts of the jackpot over 4
	}{
		{"seen", "fail", nil, false, "paid", "wage", 0},
		{"seen and challenged", "fail", []string{"auditor"}, false, "paid", "wage", 4},
		{"passed", "pass", nil, false, "paid", "slashed", 0},
		{"passed, challenged by another", "pass", []string{"c"}, false, "paid", "slashed", 4},
		{"reported without looking", "blind fail", nil, false, "paid", "slashed", 0},
		{"not answered", "nothing", nil, false, "paid", "nothing", 0},
		{"two challengers share", "fail", []string{"c", "d"}, false, "paid", "wage", 2},
		{"three challengers share", "fail", []string{"c", "d", "e"}, false, "paid", "wage", 1},
		{"garbage, shown as truth", "fail", nil, true, "slashed", "wage", 0},
		{"garbage, passed", "pass", nil, true, "slashed", "wage", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := forcedWorld(t)
			auditor := w.present(0, "p0")
			r := w.diligent(0, auditor)
			switch c.says {
			case "fail":
				w.do(r)
			case "pass", "blind fail":
				r.Digest, r.Pass = canon.Hash{}, c.says == "pass"
				w.do(r)
			}
			for i, who := range c.challenged {
				if who == "auditor" {
					who = auditor
				}
				w.do(OpenDispute{ID: uint64(i + 1), Target: UnitTarget(0), Segment: i % 3, Challenger: who})
			}
			if c.says == "nothing" {
				w.pass(110)
			} else {
				w.pass(20)
			}
			if err := w.proveDraw(0, true); err != nil {
				t.Fatal(err)
			}
			if u := w.lease.Units[0]; u.Status != Open || u.Attempt != 1 || len(w.lease.Faults) != 0 || len(w.lease.Disputes) != 0 {
				t.Fatalf("the unit is %v, attempt %d; faults %v, disputes %v", u.Status, u.Attempt, w.lease.Faults, w.lease.Disputes)
			}
			if c.refuted {
				w.do(OpenDispute{ID: 9, Target: TruthTarget(0, 1), Challenger: "c"})
				w.do(CloseDispute{ID: 9, Loser: dispute.Defender})
			}
			quote, params := w.lease.Quote, w.lease.Params
			w.settle()
			jackpot := quote.Unit * params.JackpotFactor
			pay := uint64(30*1000+6*10) + jackpot
			for range c.challenged {
				pay -= jackpot * uint64(c.jackpots) / 4
			}
			if c.refuted == (w.stakeOf("p0") >= stake) {
				t.Errorf("the provider has a stake of %d", w.stakeOf("p0"))
			}
			share := (quote.Unit*params.VerdictFactor*params.RewardBps + bps - 1) / bps
			want := map[string]uint64{"paid": pay, "slashed": 0}[c.provider]
			if c.auditor == "slashed" {
				want += share
			}
			if got := w.purse["p0"]; got != want {
				t.Errorf("the provider got %d, want %d", got, want)
			}
			if lost := w.stakeOf(auditor) < stake; lost != (c.auditor == "slashed") {
				t.Errorf("the auditor has a stake of %d", w.stakeOf(auditor))
			}
			for i, who := range c.challenged {
				if who != "auditor" && w.purse[who] != jackpot*uint64(c.jackpots)/4 {
					t.Errorf("challenger %d got %d of a jackpot of %d", i, w.purse[who], jackpot)
				}
			}
		})
	}
}

// Where an audited segment of a forced attempt is right, its end is no secret; what
// lies before tells all the same who has computed it, and who says what another said.
func TestEveryForcedAttemptTellsWhoLooked(t *testing.T) {
	w := forcedWorld(t)
	auditor := w.present(0, "p0")
	u := w.lease.Units[0]
	diligent := w.diligent(0, auditor)
	segments, err := w.lease.audited(&u, diligent.Output, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := Forced{Unit: u, Truth: w.truth(0)}
	for s := range f.Truth {
		f.Truth[s].End = u.Receipt.Checkpoints[s+1]
	}
	digest := func(by string, before func(s int) canon.Hash) canon.Hash {
		var outcomes []proof.Outcome
		for _, s := range segments {
			outcomes = append(outcomes, proof.Outcome{Before: before(s), End: f.Truth[s].End})
		}
		return proof.Digest(by, u.Receipt.ID(), outcomes)
	}
	computed := func(s int) canon.Hash { return f.Truth[s].Before }
	for _, c := range []struct {
		name   string
		digest canon.Hash
		pass   bool
		right  bool
	}{
		{"computed", digest(auditor, computed), true, true},
		{"computed, and reported as wrong", digest(auditor, computed), false, false},
		{"of another auditor", digest("another", computed), true, false},
		{"from the checkpoints", digest(auditor, func(s int) canon.Hash { return u.Receipt.Checkpoints[s] }), true, false},
		{"of nothing", canon.Hash{}, true, false},
	} {
		if got := f.Right(&Audit{Auditor: auditor, Segments: segments, Digest: c.digest, Pass: c.pass}); got != c.right {
			t.Errorf("%s: right is %v", c.name, got)
		}
	}
}

// An auditor whose wage does not come out of escrow gets it all the same: what it
// has in the end differs by the wage from what it has if it does not answer.
func TestWagesOfForcedAttemptsComeFromThePool(t *testing.T) {
	got := map[bool]uint64{}
	for _, answers := range []bool{false, true} {
		w := forcedWorld(t)
		auditor := w.present(0, "p0")
		if answers {
			w.do(w.diligent(0, auditor))
		}
		w.pass(110)
		if err := w.proveDraw(0, true); err != nil {
			t.Fatal(err)
		}
		wage := w.lease.Quote.Audit
		w.settle()
		got[answers] = w.pool
		if answers && got[false]-got[true] != wage {
			t.Errorf("the pool has %d, or %d: want a difference of %d", got[false], got[true], wage)
		}
		if w.lease.Ledger.Tax == 0 {
			t.Error("the lease was not taxed")
		}
	}
}

// An order without auditors has forced attempts, too: whoever challenges may see
// them, and the order is settled.
func TestForcedAttemptWithoutAuditorsIsSettled(t *testing.T) {
	w := forcedWorldOf(t, func(m *Match) { m.Order.Conditions.Auditors, m.Order.Conditions.AuditSegments = 0, 0 })
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(0, "forced"))
	w.attest(0)
	w.pass(20)
	if err := w.proveDraw(0, true); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if w.purse["p0"] == 0 || w.stakeOf("p0") != stake {
		t.Fatalf("p0 earned %d and has %d of %d staked", w.purse["p0"], w.stakeOf("p0"), stake)
	}
}

// wealth is what all have but the insurance fund and the pool.
func (w *world) wealth() (n int64) {
	for _, m := range []map[string]uint64{w.free, w.held, w.purse} {
		for who, x := range m {
			if who != Insurance {
				n += int64(x)
			}
		}
	}
	return n
}

// sellOut plays an order of one person in every role: it forces every attempt that it
// may, and computes none of them. It returns what the person has more than before.
func sellOut(t *testing.T, attempts int) int64 {
	w := forcedWorld(t)
	w.lease.Params.TaxBps = DefaultParams.TaxBps
	before := w.wealth() + int64(w.lease.Quote.Price)
	for i := range attempts {
		p := fmt.Sprintf("p%d", i%3)
		if err := w.assign(0, p); err != nil {
			break // as often as the rules let one unit be given out
		}
		w.submit(w.receipt(0, fmt.Sprint("garbage ", i)))
		w.attest(0) // its own custodians
		w.do(OpenDispute{ID: uint64(i + 1), Target: UnitTarget(0), Attempt: i, Challenger: "c"})
		w.pass(1)
		if err := w.proveDraw(0, true); err != nil {
			t.Fatal(err)
		}
	}
	w.settle()
	return w.wealth() - before
}

// One person in every role gets no more out of the pool than its own lease paid in, and
// not what is burnt, however often it forces.
func TestPoolIsNotDrained(t *testing.T) {
	for _, n := range []int{0, 1, 2, 8} {
		if got := sellOut(t, n); got >= 0 {
			t.Errorf("%d forced attempts in a lease of one's own gain %d utally", n, got)
		}
	}
}

// What is due is cut in proportion, so that who comes first has no more than others.
func TestPrizesAreCutInProportion(t *testing.T) {
	w := forcedWorld(t)
	w.lease.Params.TaxBps, w.lease.Quote.Tax = 50, 10_000 // less than one is due
	auditor := w.present(0, "p0")
	w.do(w.diligent(0, auditor))
	w.pass(20)
	if err := w.proveDraw(0, true); err != nil {
		t.Fatal(err)
	}
	all, _, err := w.lease.prizes(w.lease.Forced()[0])
	if err != nil {
		t.Fatal(err)
	}
	var due []Share // somebody may both audit and keep
	var total uint64
	for _, s := range all {
		due = addShare(due, s)
		total += s.Amount
	}
	pool := w.pool
	w.settle()
	var paid uint64
	for _, s := range w.lease.Ledger.Prizes {
		paid += s.Amount
		for _, d := range due {
			if want := d.Amount * w.lease.Ledger.Tax / total; d.Account == s.Account && s.Amount != want {
				t.Errorf("%s got %d, want %d of %d", s.Account, s.Amount, want, d.Amount)
			}
		}
	}
	if tax := w.lease.Ledger.Tax; paid > tax || paid+10 < tax || w.pool < pool {
		t.Errorf("%d of a tax of %d were paid, the pool went from %d to %d", paid, tax, pool, w.pool)
	}
}

// A receipt that no quorum of custodians has attested to cannot be disputed, so that its
// forced draw cannot be shown, and nothing be paid for it.
func TestUnattestedReceiptIsNotDisputed(t *testing.T) {
	w := forcedWorld(t)
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	w.do(w.receipt(0, "garbage"))
	if err := w.try(OpenDispute{ID: 1, Target: UnitTarget(0), Challenger: "c"}); err == nil || !strings.Contains(err.Error(), "once a quorum of custodians has attested") {
		t.Fatalf("a dispute about a receipt without attestations: %v", err)
	}
	if err := w.proveDraw(0, true); err == nil {
		t.Fatal("a forced draw was shown of a receipt without attestations")
	}
}

func TestRevealsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(w *world)
		bend    func(e *ProveDraw)
		why     string
	}{
		{"by a stranger", nil, func(e *ProveDraw) { e.By = "p1" }, "is p0's"},
		{"of another attempt", nil, func(e *ProveDraw) { e.Attempt = 1 }, "not under way"},
		{"of no unit", nil, func(e *ProveDraw) { e.Unit = 99 }, "no unit 99"},
		{"of a unit that nobody computes", nil, func(e *ProveDraw) { e.Unit = 1 }, "is open"},
		{"truth where nothing was forced", nil, func(e *ProveDraw) { e.Output = forcedDraw(false) }, "was not forced"},
		{"no truth", nil, func(e *ProveDraw) { e.Truth = nil }, "show the truth of its 3 segments"},
		{"no more truth than the receipt could say", nil, func(e *ProveDraw) {
			for i := range e.Truth {
				e.Truth[i].Before = canon.Hash{}
			}
		}, "show the state before its last step"},
		{"a state before the only step", func(w *world) { w.lease.Order.Problem.Steps = 5 }, func(*ProveDraw) {}, "the state before it is"},
		{"too much truth", nil, func(e *ProveDraw) { e.Truth = append(e.Truth, e.Truth[0]) }, "not of 4"},
		{"of what was shown", func(w *world) { w.do(ProveDraw{By: "p0", Output: forcedDraw(false)}) }, func(*ProveDraw) {}, "shown already"},
		{"after acceptance", func(w *world) {
			w.do(ProveDraw{By: "p0", Output: forcedDraw(false)})
			w.pass(1)
		}, func(*ProveDraw) {}, "accepted"},
		{"where nothing is ever forced", func(w *world) { w.lease.Params = w.lease.Params.WithoutForced() }, func(*ProveDraw) {}, "no attempt of this lease"},
	} {
		w := forcedWorld(t)
		auditor := w.present(0, "p0")
		r := w.diligent(0, auditor)
		r.Pass = true
		w.do(r)
		w.pass(20)
		e := ProveDraw{By: "p0", Output: forcedDraw(true), Truth: w.truth(0)}
		if c.prepare != nil {
			c.prepare(w)
		}
		c.bend(&e)
		if _, _, err := Apply(w.lease, e, w.now); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.why)
		}
	}
}

// A forced draw that was shown early would tell auditors and challengers what to say.
func TestForcedDrawsAreShownAtTheirTime(t *testing.T) {
	w := forcedWorld(t)
	auditor := w.present(0, "p0")
	for _, early := range []func(){func() {}, func() { w.pass(20) }} { // before the audits, within the window
		early()
		if w.proveDraw(0, true) == nil || w.proveDraw(0, false) == nil {
			t.Fatal("a forced draw was shown before the audits were answered")
		}
	}
	w.do(w.diligent(0, auditor))
	if err := w.proveDraw(0, true); err != nil {
		t.Fatal(err)
	}
	// A dispute ends the secret at once, even before anybody has audited it.
	if err := w.assign(1, "p1"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(1, ""))
	w.attest(1)
	if w.proveDraw(1, false) == nil {
		t.Fatal("a forced draw was shown of a receipt that nobody had audited")
	}
	w.do(OpenDispute{ID: 1, Target: UnitTarget(1), Challenger: "c"})
	if err := w.proveDraw(1, true); err != nil {
		t.Fatal(err)
	}
	if f := w.lease.Forced()[1]; len(f.Challengers) != 0 {
		t.Fatalf("%v challenged in the block in which the forced draw was shown, and gets a jackpot", f.Challengers)
	}
	w.settle()
}

// Who challenges after the window saw the provider's transaction, perhaps.
func TestLateChallengersGetNoJackpot(t *testing.T) {
	w := forcedWorld(t)
	w.do(w.diligent(0, w.present(0, "p0")))
	w.pass(20)
	w.do(OpenDispute{ID: 1, Target: UnitTarget(0), Challenger: "c"})
	w.pass(1)
	if err := w.proveDraw(0, true); err != nil {
		t.Fatal(err)
	}
	if f := w.lease.Forced()[0]; len(f.Challengers) != 0 {
		t.Fatalf("jackpots for %v", f.Challengers)
	}
}

// Whoever makes a block after the first challenge may see the forced draw before it is in one:
// it is too late to share the jackpot.
func TestWhoChallengesAfterAnotherGetsNoJackpot(t *testing.T) {
	w := forcedWorld(t)
	w.do(w.diligent(0, w.present(0, "p0")))
	for id, who := range []string{"c", "d", "late"} {
		if who == "late" {
			w.pass(1)
		}
		w.do(OpenDispute{ID: uint64(id + 1), Target: UnitTarget(0), Challenger: who})
	}
	w.pass(1)
	if err := w.proveDraw(0, true); err != nil {
		t.Fatal(err)
	}
	if f := w.lease.Forced()[0]; !slices.Equal(f.Challengers, []string{"c", "d"}) {
		t.Fatalf("jackpots for %v", f.Challengers)
	}
}

// A provider that does not show its forced draw has the unit taken from it, for the penalty
// of a late one; nothing that might be wrong on purpose is ever accepted.
func TestUnitIsNotAcceptedBeforeItsForcedDrawIsShown(t *testing.T) {
	w := forcedWorld(t)
	w.do(w.diligent(0, w.present(0, "p0")))
	w.pass(90)
	if u := w.lease.Units[0]; u.Status != Counted {
		t.Fatalf("the unit is %v", u.Status)
	}
	w.pass(50)
	if u := w.lease.Units[0]; u.Status != Open || len(w.lease.Faults) != 1 || w.stakeOf("p0") >= stake {
		t.Fatalf("the unit is %v, faults %v, the stake is %d", u.Status, w.lease.Faults, w.stakeOf("p0"))
	}
	w.settle()
	if w.purse["p0"] != 0 {
		t.Error("the provider was paid")
	}
}

// The chain compares what a segment gives by the game; so what a provider shows as
// truth can be disputed, a segment at a time, until the lease ends.
func TestTruthIsDisputed(t *testing.T) {
	w := forcedWorld(t)
	auditor := w.present(0, "p0")
	w.do(w.diligent(0, auditor))
	w.pass(20)
	truth, r := w.truth(0), w.lease.Units[0].Receipt
	if err := w.proveDraw(0, true); err != nil {
		t.Fatal(err)
	}
	p, f := &w.lease.Order.Problem, w.lease.Forced()[0]
	for _, c := range []struct {
		name          string
		before        canon.Hash
		steps, within int // of the unit; between the claim's checkpoints
		points        []canon.Hash
	}{
		{"audited", truth[1].Before, 8, 3, []canon.Hash{r.Checkpoints[1], truth[1].Before, truth[1].End}},
		{"not audited", canon.Hash{}, 8, 4, []canon.Hash{r.Checkpoints[1], truth[1].End}},
		{"of one step", r.Checkpoints[1], 5, 1, []canon.Hash{r.Checkpoints[1], truth[1].End}},
	} {
		interval, steps := p.Interval, p.Steps
		p.Interval, p.Steps, f.Truth[1].Before = 4, c.steps, c.before
		s, err := w.lease.Subject(TruthTarget(0, 1), 0)
		if err != nil {
			t.Fatal(err)
		}
		if claim := s.Claim; claim.Inputs[0] != r.Checkpoints[1] || claim.Steps != c.steps-4 || claim.Interval != c.within || claim.Batch.First != 4 ||
			claim.Segments()+1 != len(c.points) || claim.Checkpoints != canon.Root(c.points) || claim.End != truth[1].End {
			t.Errorf("%s: claim %+v", c.name, s.Claim)
		}
		p.Interval, p.Steps, f.Truth[1].Before = interval, steps, truth[1].Before
	}
	for name, e := range map[string]OpenDispute{
		"no segment":        {Target: TruthTarget(0, 3), Challenger: "c"},
		"another attempt":   {Target: TruthTarget(0, 0), Attempt: 1, Challenger: "c"},
		"another unit":      {Target: TruthTarget(1, 0), Challenger: "c"},
		"no steps":          {Target: TruthTarget(0, 0), Segment: 2, Challenger: "c"},
		"of the challenger": {Target: TruthTarget(0, 0), Challenger: "p0"},
	} {
		if w.try(e) == nil {
			t.Errorf("a dispute about the truth of %s began", name)
		}
	}
	for id := range uint64(3) { // the next attempt goes on meanwhile
		w.do(OpenDispute{ID: id + 1, Target: TruthTarget(0, int(id)), Challenger: fmt.Sprint("c", id)})
	}
	w.compute(0, "p1", "")
	w.do(CloseDispute{ID: 1, Loser: dispute.Challenger})
	if len(w.lease.Forced()) != 1 {
		t.Fatal("a lost dispute ended the claim")
	}
	w.do(CloseDispute{ID: 2, Loser: dispute.Defender})
	if len(w.lease.Forced()) != 0 || len(w.lease.Disputes) != 0 || !slices.Contains(w.lease.Barred, "p0") {
		t.Fatalf("forced %v, disputes %v, barred %v", w.lease.Forced(), w.lease.Disputes, w.lease.Barred)
	}
	w.settle()
	if w.purse["p0"] != 0 || w.purse["c1"] == 0 {
		t.Errorf("the provider has %d, the challenger %d", w.purse["p0"], w.purse["c1"])
	}
}

// The rules of a new chain are in equilibrium; each condition is one that rules can
// break, and the refusal shows its numbers.
func TestEquilibrium(t *testing.T) {
	if err := DefaultParams.Equilibrium(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		bend func(p *Params)
		why  string
	}{
		{"no forced errors", func(p *Params) { *p = p.WithoutForced() }, "forced_bps is 0"},
		{"nothing but forced errors", func(p *Params) { p.ForcedBps = bps }, "forced_bps is 10000"},
		{"rarer", func(p *Params) { p.ForcedBps = 199 }, "199 · 100 = 19900 < 20000"},
		{"smaller bonds of auditors", func(p *Params) { p.VerdictFactor = 99 }, "200 · 99 = 19800 < 20000"},
		{"a larger jackpot", func(p *Params) { p.JackpotFactor = 3 }, "210 · 9800 < forced_bps · (1 + jackpot_factor) · 10000 = 200 · 4 · 10000"},
		{"a small tax", func(p *Params) { p.TaxBps = 204 }, "204 · 9800 < forced_bps · (1 + jackpot_factor) · 10000 = 200 · 1 · 10000"},
		{"late for little", func(p *Params) { p.LateBps, p.JackpotFactor, p.TaxBps = 399, 2, 625 }, "late_bps = 399 < forced_bps · jackpot_factor = 200 · 2"},
		{"half of a bond", func(p *Params) { p.RewardBps = 5000 }, "2 · 5000 ≥ 10000"},
		{"a small bond of custodians", func(p *Params) { p.KeepFactor = 1 }, "1 · 6000 ≤ 10000 + custodian_bps = 10200"},
	} {
		p := DefaultParams
		c.bend(&p)
		if err := p.Equilibrium(); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.why)
		}
	}
}

// An order may not ask of several auditors so much that copying would pay; alone, or
// where nothing is forced, an auditor has nobody to copy, or no reason.
func TestOrdersSuitTheRules(t *testing.T) {
	for _, c := range []struct {
		auditors, audited, top, steps, interval int
		why                                     string
	}{
		{2, 2, 0, 6, 2, ""},
		{2, 3, 0, 6, 2, "2 auditors who each audit 3 of a unit's 3 segments would copy each other: forced_bps · verdict_factor · (3 − 3) = 0 < 3 · 10000"},
		{3, 2, 1, 8, 2, "(4 − 3) = 20000 < 3 · 10000"},
		{2, 3, 9, 8, 2, "(4 − 4) = 0 < 4 · 10000"},
		{1, 3, 0, 6, 2, ""},
		{2, 2, 0, 4, 1, ""},
		{2, 3, 0, 4, 1, "(4 − 3) = 20000 < 4 · 10000"},
	} {
		o := testOrder()
		o.Conditions.Auditors, o.Conditions.AuditSegments, o.Conditions.TopSegments = c.auditors, c.audited, c.top
		o.Problem.Steps, o.Problem.Interval = c.steps, c.interval
		p := DefaultParams.Quick()
		if err := p.Suits(&o); (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: got %v", c, err)
		}
		if p = p.WithoutForced(); p.Suits(&o) != nil {
			t.Errorf("%+v: refused where nothing is forced", c)
		}
	}
}

// Challenging receipts blindly loses, whatever the rules are.
func TestJackpotIsNoMoreThanBlindChallengersLose(t *testing.T) {
	for _, factor := range []uint64{1, 50, bps} {
		for _, forced := range []uint64{1, 200, 9999} {
			w := forcedWorld(t)
			w.lease.Params.JackpotFactor, w.lease.Params.ForcedBps = factor, forced
			j, err := w.lease.jackpot()
			if err != nil {
				t.Fatal(err)
			}
			if gain, loss := j*forced, w.lease.Params.ChallengeBond*(bps-forced); gain > loss {
				t.Errorf("%d times the unit, %d bps: gain %d, loss %d", factor, forced, gain, loss)
			}
		}
	}
}

// blind shows a forced attempt of a unit that its auditor passed without looking, or
// that its provider lies about: the chain cannot tell which.
func (w *world) blind(unit int, provider string) (auditor string) {
	w.t.Helper()
	auditor = w.present(unit, provider)
	w.do(Report{By: auditor, Unit: unit, Attempt: w.lease.Units[unit].Attempt, Output: []byte(auditor), Pass: true})
	w.pass(20)
	if err := w.proveDraw(unit, true); err != nil {
		w.t.Fatal(err)
	}
	return auditor
}

// What is shown of several attempts of a unit is disputed one beside the other: a
// dispute about the first keeps nobody from one about the second.
func TestTruthOfEachAttemptIsDisputedByItself(t *testing.T) {
	w := forcedWorld(t)
	w.blind(0, "p0")
	w.do(OpenDispute{ID: 1, Target: TruthTarget(0, 1), Challenger: "c"})
	w.blind(0, "p0")
	if !w.lease.Disputed("c", TruthTarget(0, 1), 0) || !w.lease.TruthDisputed("d", w.lease.Forced()[0]) {
		t.Error("the dispute about the first attempt is not seen")
	}
	if w.lease.Disputed("c", TruthTarget(0, 1), 1) || w.lease.TruthDisputed("d", w.lease.Forced()[1]) || len(w.lease.DisputesAbout(TruthTarget(0, 1), 1)) != 0 {
		t.Error("a dispute about the first attempt passes for one about the second")
	}
	w.do(OpenDispute{ID: 2, Target: TruthTarget(0, 1), Attempt: 1, Challenger: "c"})
	w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	w.do(CloseDispute{ID: 2, Loser: dispute.Defender})
	if len(w.lease.Forced()) != 0 {
		t.Fatalf("%d truths stand", len(w.lease.Forced()))
	}
	w.settle()
}

// Who waits for the outcome of another's dispute, which may be lost on purpose, still
// disputes before the lease ends.
func TestAnothersDisputeIsWaitedForUntilTheWindow(t *testing.T) {
	w := forcedWorld(t)
	w.blind(0, "p0")
	w.do(OpenDispute{ID: 1, Target: TruthTarget(0, 1), Challenger: "friend"})
	f := w.lease.Forced()[0]
	if !w.lease.TruthDisputed("auditor", f) {
		t.Error("another's dispute is not waited for")
	}
	w.lease.Phase = Closing
	if w.lease.TruthDisputed("auditor", f) || !w.lease.TruthDisputed("friend", f) {
		t.Error("in the closing phase there is no time to wait, nor to dispute twice")
	}
}

// The word of a provider that was convicted judges nobody, and earns it nothing: an
// honest auditor whose time did not suffice to refute it keeps its bond.
func TestTruthOfTheConvictedCountsForNothing(t *testing.T) {
	w := forcedWorld(t)
	auditor := w.blind(0, "p0")
	w.do(w.diligent(1, w.present(1, "p0")))
	w.do(OpenDispute{ID: 1, Target: UnitTarget(1), Challenger: "c"})
	w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	left := w.stakeOf("p0") - w.lease.Reserve.Held("p0", ForWork) // a convict loses all of it
	w.settle()
	if w.stakeOf(auditor) != stake {
		t.Errorf("%s lost %d utally by the word of who was convicted", auditor, stake-w.stakeOf(auditor))
	}
	if w.purse["p0"] != 0 || w.stakeOf("p0") != left {
		t.Errorf("the convicted got %d utally, and has %d staked, want %d", w.purse["p0"], w.stakeOf("p0"), left)
	}
}

// A truth by which an auditor would lose its bond can be disputed for as long as a
// mismatch that it reports: also where the lease's window is shorter.
func TestContradictedTruthHoldsTheSettlement(t *testing.T) {
	for _, lies := range []bool{false, true} {
		w := forcedWorld(t)
		if lies {
			w.blind(0, "p0")
		} else {
			w.do(w.diligent(0, w.present(0, "p0")))
			w.pass(20)
			if err := w.proveDraw(0, true); err != nil {
				t.Fatal(err)
			}
		}
		shown := w.now
		w.lease.stop(w.now, "it rains")
		w.pass(2)
		if w.lease.Phase != Closing {
			t.Fatalf("the lease is %v", w.lease.Phase)
		}
		c := &w.lease.Order.Conditions
		if want := shown + c.UnitTimeout; lies && w.lease.Windows.End != want || !lies && w.lease.Windows.End >= want {
			t.Errorf("contradicted %v: the window ends at %d, shown at %d", lies, w.lease.Windows.End, shown)
		}
		if !lies {
			continue
		}
		w.pass(c.UnitTimeout - 5)
		w.do(OpenDispute{ID: 1, Target: TruthTarget(0, 1), Challenger: "c"})
		w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
		if w.stakeOf("p0") >= stake {
			t.Error("a false truth cost nothing")
		}
	}
}

// A forced draw follows from a block after the assignment: nobody knows it, not even the
// provider, when it is decided who gets the unit; and who has it cannot be in a hurry.
func TestForcedDrawsComeAfterTheAssignment(t *testing.T) {
	w := forcedWorld(t)
	acc := Acceptance{w.lease.Order.ID(), 0, 0, "p0"}
	w.do(Assign{By: "v0", Units: []Assignment{{0, 0, ed25519.Sign(w.keys["p0"], acc.SignBytes()), w.standing("p0")}}})
	if u := &w.lease.Units[0]; !u.Seed.IsZero() || w.lease.ForcedDrawn(0) {
		t.Fatal("the forced draw is known with the assignment")
	}
	if err := w.try(w.receipt(0, "")); err == nil || !strings.Contains(err.Error(), "is made in a later block") {
		t.Fatalf("a receipt before the forced draw is made: %v", err)
	}
	w.pass(1)
	first := w.lease.Units[0].Seed
	if first.IsZero() {
		t.Fatalf("the forced draw follows from %v", first.Short())
	}
	w.pass(10)
	if w.lease.Units[0].Seed != first {
		t.Fatal("the forced draw is made twice")
	}
	w.pass(200) // late
	if err := w.assign(0, "p1"); err != nil {
		t.Fatal(err)
	}
	if again := w.lease.Units[0].Seed; again.IsZero() || again == first {
		t.Fatalf("the next attempt's forced draw follows from %v", again.Short())
	}
	if w := newWorld(t); w.assign(0, "p0") != nil || !w.lease.ForcedDrawn(0) || w.lease.Units[0].Attend != 0 {
		t.Fatal("there are forced draws where nothing is forced")
	}
}

// What was asked about an attempt that turns out to be forced is not kept with it.
func TestForcedAttemptIsAskedNothing(t *testing.T) {
	w := forcedWorld(t)
	auditor := w.present(0, "p0")
	w.do(Ask{By: asker, Custodian: w.lease.Units[0].Attested[0].Custodian, Unit: 0})
	w.do(w.diligent(0, auditor))
	w.pass(w.lease.Units[0].WindowEnd - w.now + 1)
	if err := w.proveDraw(0, true); err != nil {
		t.Fatal(err)
	}
	if f := w.lease.Forced()[0]; len(f.Unit.Questions) > 0 || f.Unit.Attend != 0 {
		t.Errorf("%+v", f.Unit)
	}
	w.settle()
}
