package job

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/dispute"
)

// outcome is what a unit's people have in the end, beside what the rest of the
// order earns them.
type outcome struct {
	provider string // "paid", "slashed"
	auditor  string // "wage", "nothing", "slashed"
	finder   string // "reward", "nothing": who disputed
	redone   bool
}

// Every combination of what a receipt is, what its auditor says, and who is
// challenged, and what it comes to: the table of docs/spec/lease.md. The referee
// is right, so a challenge is lost by whoever is wrong.
func TestSettlementOfEveryCombination(t *testing.T) {
	for _, c := range []struct {
		name      string
		sound     bool   // the receipt
		verdict   string // pass, fail, none; "elsewhere": pass, about other segments than the forged one
		challenge []string
		want      outcome
	}{
		{"true, passed", true, "pass", nil, outcome{"paid", "wage", "nothing", false}},
		{"true, passed, receipt challenged", true, "pass", []string{"receipt"}, outcome{"paid", "wage", "nothing", false}},
		{"true, passed, verdict challenged", true, "pass", []string{"verdict"}, outcome{"paid", "wage", "nothing", false}},
		{"true, passed, both challenged", true, "pass", []string{"receipt", "verdict"}, outcome{"paid", "wage", "nothing", false}},
		{"true, failed", true, "fail", nil, outcome{"paid", "slashed", "nothing", false}},
		{"true, failed, receipt challenged", true, "fail", []string{"receipt"}, outcome{"paid", "slashed", "nothing", false}},
		{"true, not audited", true, "none", nil, outcome{"paid", "nothing", "nothing", false}},
		{"true, not audited, receipt challenged", true, "none", []string{"receipt"}, outcome{"paid", "nothing", "nothing", false}},
		{"false, passed", false, "pass", nil, outcome{"paid", "wage", "nothing", false}},
		{"false, passed, receipt challenged", false, "pass", []string{"receipt"}, outcome{"slashed", "wage", "reward", true}},
		{"false, passed, verdict challenged", false, "pass", []string{"verdict"}, outcome{"paid", "slashed", "reward", false}},
		{"false, passed, receipt then verdict challenged", false, "pass", []string{"receipt", "verdict"}, outcome{"slashed", "slashed", "reward", true}},
		{"false, passed, verdict then receipt challenged", false, "pass", []string{"verdict", "receipt"}, outcome{"slashed", "slashed", "reward", true}},
		{"false, passed elsewhere, receipt challenged", false, "elsewhere", []string{"receipt"}, outcome{"slashed", "wage", "reward", true}},
		{"false, failed", false, "fail", nil, outcome{"paid", "slashed", "nothing", false}},
		{"false, failed, receipt challenged", false, "fail", []string{"receipt"}, outcome{"slashed", "wage", "reward", true}},
		{"false, not audited", false, "none", nil, outcome{"paid", "nothing", "nothing", false}},
		{"false, not audited, receipt challenged", false, "none", []string{"receipt"}, outcome{"slashed", "nothing", "reward", true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.assign(0, "p0"); err != nil {
				t.Fatal(err)
			}
			w.submit(w.receipt(0, map[bool]string{false: "lie"}[c.sound]))
			w.attestAll(0) // the auditor may be among them
			auditor := w.lease.Units[0].Audits[0].Auditor
			if bond := w.lease.verdictBond(); !w.lease.Units[0].Audits[0].Bonded || w.held[auditor] < bond {
				t.Fatalf("the auditor has %d reserved before it answers", w.held[auditor])
			}
			if c.verdict != "none" {
				w.audit(0, c.verdict != "fail")
			}
			forged := 0
			if a := w.lease.Units[0].Audits[0]; a.Done {
				forged = a.Segments[0]
			}
			if c.verdict == "elsewhere" {
				forged = (forged + 1) % w.lease.Order.Problem.Segments()
			}
			loser := map[bool]dispute.Side{true: dispute.Challenger, false: dispute.Defender}[c.sound]
			for id, what := range c.challenge {
				target := UnitTarget(0)
				if what == "verdict" {
					target = VerdictTarget(0, auditor)
				}
				w.do(OpenDispute{ID: uint64(id + 1), Target: target, Attempt: 0, Segment: forged, Challenger: "finder"})
				w.do(CloseDispute{ID: uint64(id + 1), Loser: loser})
			}
			got := outcome{auditor: "nothing", finder: "nothing", redone: w.lease.Units[0].Attempt > 0}
			got.provider = map[bool]string{true: "slashed", false: "paid"}[w.stakeOf("p0") < stake]
			if w.purse["finder"] > 0 {
				got.finder = "reward"
			}
			// What came of the unit so far; the rest of the order goes to others.
			wageAtOnce := w.purse[auditor]
			w.pass(250)
			paid := w.lease.Units[0].Status == Accepted && w.lease.Units[0].Attempt == 0 && !got.redone
			switch earned, err := w.lease.earnings(0, false); {
			case err != nil:
				t.Fatal(err)
			case w.stakeOf(auditor) < stake:
				got.auditor = "slashed"
			case wageAtOnce >= w.lease.Quote.Audit || paid && slices.ContainsFunc(earned, func(s Share) bool { return s.Account == auditor && s.Amount == w.lease.Quote.Audit }):
				got.auditor = "wage"
			}
			if got.provider == "paid" && !paid {
				t.Fatalf("the unit is %v", w.lease.Units[0].Status)
			}
			if got != c.want {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
			for w.lease.Phase == Active && w.lease.Lead() != "" {
				w.finishRound()
			}
			w.pass(60)
			if w.lease.Phase != Settled {
				t.Fatalf("the lease is %v", w.lease.Phase)
			}
		})
	}
}

// stakeOf returns all that an account has staked, reserved or not.
func (w *world) stakeOf(account string) uint64 { return w.free[account] + w.held[account] }

func TestVerdictChallengesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p0", "lie")
	a := w.lease.Units[0].Audits[0]
	target := VerdictTarget(0, a.Auditor)
	other := (a.Segments[0] + 1) % w.lease.Order.Problem.Segments()
	for name, e := range map[string]OpenDispute{
		"another segment": {Target: target, Segment: other, Challenger: "c"},
		"itself":          {Target: target, Segment: a.Segments[0], Challenger: a.Auditor},
		"another attempt": {Target: target, Attempt: 1, Segment: a.Segments[0], Challenger: "c"},
		"a stranger":      {Target: VerdictTarget(0, "p1"), Challenger: "c"},
		"no unit":         {Target: VerdictTarget(99, a.Auditor), Challenger: "c"},
		"an open unit":    {Target: VerdictTarget(1, a.Auditor), Challenger: "c"},
	} {
		if w.try(e) == nil {
			t.Errorf("a challenge about %s was taken", name)
		}
	}
	good := OpenDispute{ID: 1, Target: target, Segment: a.Segments[0], Challenger: "c"}
	w.do(good)
	w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	if err := w.try(good); err == nil {
		t.Fatal("a refuted verdict was challenged again")
	}
	if slices.ContainsFunc(w.lease.referees(), func(p Party) bool { return p.Account == a.Auditor }) {
		t.Fatal("an auditor whose verdict was refuted may be drawn again")
	}
}

// A verdict in dispute outlives the unit that it is about, whatever becomes of it.
func TestDisputedVerdictOutlivesItsUnit(t *testing.T) {
	for _, loser := range []dispute.Side{dispute.Challenger, dispute.Defender} {
		w := newWorld(t)
		w.compute(0, "p0", "lie")
		w.compute(1, "p1", "")
		w.pass(20)
		w.do(w.merge())
		w.compute(2, "p1", "")
		a := w.lease.Units[2].Audits[0]
		w.do(OpenDispute{ID: 1, Target: VerdictTarget(2, a.Auditor), Segment: a.Segments[0], Challenger: "c"})
		if err := w.challenge(2, UnitTarget(0), "c"); err != nil {
			t.Fatal(err)
		}
		w.do(CloseDispute{ID: 2, Loser: dispute.Defender}) // voids unit 2
		if len(w.lease.Verdicts()) == 0 || w.lease.Units[2].Status != Open {
			t.Fatal("the verdict is gone with its unit")
		}
		before := w.stakeOf(a.Auditor)
		w.do(CloseDispute{ID: 1, Loser: loser})
		if lost := w.stakeOf(a.Auditor) < before; lost != (loser == dispute.Defender) {
			t.Fatalf("%v lost, the auditor was slashed: %v", loser, lost)
		}
		w.finish()
	}
}

// A verdict about void work is let go of with the last dispute about it: its bond is free,
// and no event about another unit reads what befell this one.
func TestClearedVerdictIsLetGo(t *testing.T) {
	w := newWorld(t)
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(0, ""))
	w.tick()
	w.audit(0, true)
	a := w.lease.Units[0].Audits[0]
	w.do(OpenDispute{ID: 1, Target: VerdictTarget(0, a.Auditor), Segment: a.Segments[0], Challenger: "c"})
	w.do(OpenDispute{ID: 2, Target: VerdictTarget(0, a.Auditor), Segment: a.Segments[0], Challenger: "d"})
	w.pass(w.lease.Units[0].Due - w.now + 5)
	if u := w.lease.Units[0]; u.Status != Open || len(u.Withheld) != 1 {
		t.Fatalf("%+v", u)
	}
	for _, e := range []Event{Ask{Unit: 1}, Answer{Unit: 1}, Attest{Unit: 1}, Report{Unit: 1}, ProveDraw{Unit: 1}, OpenDispute{Target: UnitTarget(1)}, TakeLead{}, Ready{}, MissAnswer{}} {
		if p := w.lease.Touched(e, w.now); slices.Contains(p.Units, 0) {
			t.Errorf("%T about another unit reads all that befell unit 0", e)
		}
	}
	w.do(CloseDispute{ID: 1, Loser: dispute.Challenger})
	if len(w.lease.Verdicts()) != 1 {
		t.Fatal("the verdict is gone while it is in dispute")
	}
	held := w.held[a.Auditor]
	w.do(CloseDispute{ID: 2, Loser: dispute.Challenger})
	if len(w.lease.Verdicts()) != 0 || w.held[a.Auditor] != held-w.lease.verdictBond() {
		t.Fatalf("%d verdicts stand, %s has %d reserved of %d", len(w.lease.Verdicts()), a.Auditor, w.held[a.Auditor], held)
	}
}
