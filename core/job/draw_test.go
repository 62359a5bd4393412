package job

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
)

// drawWorld has nine validators to draw from.
func drawWorld(t *testing.T) *world {
	t.Helper()
	m := testMatch()
	for i := range 6 {
		m.Validators = append(m.Validators, party(fmt.Sprint("w", i), Rates{}))
	}
	return newWorldOf(t, m)
}

// deliver brings the first unit to its receipt.
func (w *world) deliver(provider string) {
	w.t.Helper()
	if err := w.assign(0, provider); err != nil {
		w.t.Fatal(err)
	}
	w.do(w.receipt(0, ""))
}

// drawn returns who keeps and audits a unit.
func (w *world) drawn(unit int) string {
	var out []string
	for _, a := range w.lease.Units[unit].Attested {
		out = append(out, a.Custodian)
	}
	for _, a := range w.lease.Units[unit].Audits {
		out = append(out, a.Auditor)
	}
	return strings.Join(out, " ")
}

// Nobody knows who will audit and keep an attempt before its receipt is on chain: not
// from the lease, not from the attempt's number, and not in the receipt's own block.
func TestDrawsComeAfterTheReceipt(t *testing.T) {
	draws := map[string]bool{}
	for i := range 20 {
		w := drawWorld(t)
		w.deliver("p0")
		w.tick() // the end of the receipt's block
		if who := w.drawn(0); who != "" {
			t.Fatalf("drawn in the receipt's block: %s", who)
		}
		w.now++
		w.do(Tick{Seed: canon.Sum("seed", []byte{byte(i)}), Units: w.due(), Affords: w.affords})
		u := &w.lease.Units[0]
		if len(u.Attested) != 3 || len(u.Audits) != 1 || u.Due != w.now+2*w.lease.Params.AnswerTime {
			t.Fatalf("drawn: %s, due %d", w.drawn(0), u.Due)
		}
		for _, a := range u.Attested {
			if w.lease.Reserve.Held(a.Custodian, ForData) != w.lease.keepBond() || w.held[a.Custodian] < w.lease.keepBond() {
				t.Fatalf("%s keeps without a bond", a.Custodian)
			}
		}
		if a := u.Audits[0]; !a.Bonded || w.lease.Reserve.Held(a.Auditor, ForVerdict) != w.lease.Params.VerdictFactor*w.lease.Quote.Unit {
			t.Fatalf("%s audits without a bond", a.Auditor)
		}
		draws[w.drawn(0)] = true
	}
	if len(draws) < 10 {
		t.Fatalf("20 blocks drew %d sets", len(draws))
	}
}

// Only who can put up the bond is drawn: who has staked or lent out everything could
// not lock it, and would let forged work pass.
func TestOnlyWhoCanBondIsDrawn(t *testing.T) {
	w := drawWorld(t)
	for _, p := range w.lease.Auditors {
		if !slices.Contains([]string{"w0", "w1", "w2"}, p.Account) {
			w.free[p.Account], w.brought = 0, w.brought-w.free[p.Account]
		}
	}
	w.deliver("p0")
	w.pass(1)
	for _, a := range strings.Fields(w.drawn(0)) {
		if !strings.HasPrefix(a, "w") || w.held[a] == 0 {
			t.Fatalf("%s was drawn, and has nothing", a)
		}
	}
	w.attest(0)
	w.audit(0, true)
	w.pass(20)
	if w.lease.Units[0].Status != Accepted {
		t.Fatalf("the unit is %v", w.lease.Units[0].Status)
	}
}

// Where nobody can be drawn the unit is done again, and its provider is not to blame.
func TestUndrawnUnitIsNobodysFault(t *testing.T) {
	w := drawWorld(t)
	for _, p := range w.lease.Auditors {
		w.free[p.Account], w.brought = 0, w.brought-w.free[p.Account]
	}
	w.deliver("p0")
	w.pass(50)
	if u := &w.lease.Units[0]; u.Status != Received || w.drawn(0) != "" {
		t.Fatalf("the unit is %v, drawn %s", u.Status, w.drawn(0))
	}
	w.pass(52)
	if u := &w.lease.Units[0]; u.Status != Open || u.Attempt != 1 || len(u.Withheld) > 0 || w.free["p0"] != stake || len(w.lease.Faults) > 0 {
		t.Fatalf("%+v, p0 has %d", u, w.free["p0"])
	}
}

// A verdict's bond is free once nobody can dispute it any more, and not only when the
// lease ends: else the verdicts of a month would exhaust whoever audits.
func TestVerdictBondsAreFreeAfterTheirWindow(t *testing.T) {
	for _, disputed := range []bool{false, true} {
		w := drawWorld(t)
		w.compute(0, "p0", "")
		a := w.lease.Units[0].Audits[0]
		w.pass(11)
		if u := &w.lease.Units[0]; u.Status != Accepted || !u.Audits[0].Bonded {
			t.Fatalf("the unit is %v, its verdict %+v", u.Status, u.Audits[0])
		}
		open := OpenDispute{ID: 1, Target: VerdictTarget(0, a.Auditor), Segment: a.Segments[0], Challenger: "c"}
		if disputed {
			w.do(open)
			w.pass(30)
			if !w.lease.Units[0].Audits[0].Bonded {
				t.Fatal("the bond of a disputed verdict is free")
			}
			w.do(CloseDispute{ID: 1, Loser: dispute.Challenger})
		}
		w.pass(12)
		if w.lease.Units[0].Audits[0].Bonded || w.lease.Reserve.Held(a.Auditor, ForVerdict) != 0 {
			t.Fatalf("%d utally are held for a verdict that nobody can dispute", w.held[a.Auditor])
		}
		if err := w.try(open); err == nil {
			t.Fatal("a verdict was disputed whose bond is free")
		}
		w.finish()
	}
}

// A validator is drawn in proportion to its stake, first and as each next one.
func TestStakeDecidesDraws(t *testing.T) {
	const runs = 4_000
	pool := []Party{{Account: "large", Weight: 6}, {Account: "a", Weight: 1}, {Account: "b", Weight: 1}, {Account: "c", Weight: 2}, {Account: "none"}}
	first := map[string]int{}
	for i := range uint64(runs) {
		seed := canon.Sum("seed", binary.LittleEndian.AppendUint64(nil, i))
		drawn, err := weighted(beacon.Draw(seed, beacon.Auditors, nil), pool, len(pool))
		if err != nil || len(drawn) != 4 {
			t.Fatalf("drawn %v, %v", drawn, err)
		}
		first[drawn[0].Account]++
	}
	for _, p := range pool {
		want := float64(runs*p.Weight) / 10
		if got := float64(first[p.Account]); math.Abs(got-want) > 5*math.Sqrt(want+1) {
			t.Errorf("%s, with %d of 10, is drawn first %.0f times of %d", p.Account, p.Weight, got, runs)
		}
	}
	m := testMatch()
	m.Validators[0].Weight, m.Validators[1].Weight = math.MaxUint64, 1
	if _, _, err := NewLease(m, 0); err == nil {
		t.Error("stakes that do not add up were taken")
	}
}

// upTo lets all accounts put up so much.
func upTo(most uint64) func(string, uint64) bool {
	return func(_ string, bond uint64) bool { return bond <= most }
}
