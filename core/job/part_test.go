package job

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
)

// inParts stores the lease in parts, applies the event to those that it
// touches, and checks that nothing else was needed: every event of every test
// comes through here.
func (w *world) inParts(e Event, next Lease, effects []Effect, want error) {
	w.t.Helper()
	full := &w.lease
	var part Lease
	load := func(b []byte, v canon.Coded) {
		w.t.Helper()
		if err := canon.Unmarshal(b, v); err != nil {
			w.t.Fatal(err)
		}
	}
	load(canon.Marshal(full.Fixed()), part.Fixed())
	part.Providers, part.Auditors = full.Providers, full.Auditors
	load(canon.Marshal(full.Mutable()), part.Mutable())
	part.MakeSkeleton()
	touched := part.Touched(e, w.now)
	part.See(touched.Units)
	whole := map[int][]canon.Hash{} // checkpoints that are not read
	if touched.SlashPaid {
		part.Ledger.SlashPaid = slices.Clone(full.Ledger.SlashPaid)
	}
	for _, i := range touched.Units {
		part.Units[i] = full.Units[i]
		if !touched.NoPast {
			part.Past[i] = full.Past[i]
		}
		if bare, points := full.Units[i].Split(&full.Order.Problem); touched.NoRoots {
			part.Units[i], whole[i] = bare, points
		}
	}
	for _, i := range touched.Bare {
		part.Units[i], _ = full.Units[i].Split(&full.Order.Problem)
	}
	for _, r := range touched.Merges {
		part.Merges[r] = full.Merges[r]
		if touched.NoRoots {
			part.Merges[r].Inputs = nil
		}
	}
	got, done, err := Apply(part, e, w.now)
	if (err == nil) != (want == nil) || !reflect.DeepEqual(done, effects) {
		w.t.Fatalf("%T with %+v: effects %v, %v; with the whole lease %v, %v", e, touched, done, err, effects, want)
	}
	if err != nil {
		return
	}
	if got.Phase == Settled && !reflect.DeepEqual(got.Settlement(), next.Settlement()) {
		w.t.Fatalf("%T with %+v settles otherwise than with all", e, touched)
	}
	// Write back what was read; the rest must be as the whole lease has it.
	back := next.clone()
	old := full.clone()
	back.Ledger.SlashPaid = got.Ledger.SlashPaid
	if !touched.SlashPaid {
		back.Ledger.SlashPaid = old.Ledger.SlashPaid
		for _, s := range got.Ledger.SlashPaid {
			back.Ledger.SlashPaid = addShare(back.Ledger.SlashPaid, s)
		}
	}
	back.Units, back.Past, back.Merges = old.Units, old.Past, old.Merges
	for _, i := range touched.Units {
		back.Units[i] = got.Units[i]
		if !touched.NoRoots {
			back.Past[i] = got.Past[i]
		}
		if r := got.Units[i].Receipt; r != nil && len(r.Checkpoints) == 1 {
			all := *r
			all.Checkpoints = whole[i]
			back.Units[i].Receipt = &all
		}
		if got.WakeUnit(i) != next.WakeUnit(i) {
			w.t.Fatalf("%T with %+v: unit %d wakes at %d, of the whole lease at %d", e, touched, i, got.WakeUnit(i), next.WakeUnit(i))
		}
	}
	for _, r := range touched.Merges {
		inputs := back.Merges[r].Inputs
		back.Merges[r] = got.Merges[r]
		if touched.NoRoots && got.Merges[r].Inputs == nil && !got.Merges[r].Root.IsZero() {
			back.Merges[r].Inputs = inputs
		}
	}
	if got.WakeSelf() != next.WakeSelf() {
		w.t.Fatalf("%T with %+v: wakes at %d, the whole lease at %d", e, touched, got.WakeSelf(), next.WakeSelf())
	}
	if string(canon.Marshal(&back)) != string(canon.Marshal(&next)) || string(canon.Marshal(got.Mutable())) != string(canon.Marshal(next.Mutable())) {
		w.t.Fatalf("%T with %+v leaves another lease than with all", e, touched)
	}
}

// due returns the units whose time has come.
func (w *world) due() (out []int) {
	for i := range w.lease.Units {
		if w.lease.WakeUnit(i) <= w.now {
			out = append(out, i)
		}
	}
	return out
}

// A dispute about a merge that was voided meanwhile still decides over the bond
// of the lead that posted it, so the lease waits for it.
func TestLeaseWaitsForDisputesAboutVoidWork(t *testing.T) {
	for loser, keeps := range map[dispute.Side]bool{dispute.Challenger: true, dispute.Defender: false} {
		w := newWorld(t)
		w.compute(0, "p0", "lie")
		w.compute(1, "p1", "")
		w.pass(20)
		w.do(w.merge())
		w.do(OpenDispute{ID: 1, Target: MergeTarget(0), Challenger: "c"})
		w.do(OpenDispute{ID: 2, Target: UnitTarget(0), Challenger: "c"})
		w.do(CloseDispute{ID: 2, Loser: dispute.Defender})
		for w.lease.Round < w.lease.Order.Problem.Rounds {
			w.finishRound()
		}
		w.pass(500)
		if w.lease.Phase != Closing || w.held["v0"] == 0 {
			t.Fatalf("the lease is %v while a dispute is open", w.lease.Phase)
		}
		w.do(CloseDispute{ID: 1, Loser: loser})
		w.pass(1)
		if w.lease.Phase != Settled || w.held["v0"] != 0 || (w.free["v0"] == stake) != keeps {
			t.Fatalf("%v lost: the lease is %v, %d held, %d free", loser, w.lease.Phase, w.held["v0"], w.free["v0"])
		}
	}
}

// What cannot be encoded must not enter a lease, or nobody could load it again.
func TestOnlyWhatFitsItsEncodingEnters(t *testing.T) {
	long := File{CID: string(make([]byte, maxAccount+1))}
	w := newWorld(t)
	if err := w.assign(0, "p1"); err != nil {
		t.Fatal(err)
	}
	s := w.receipt(0, "")
	s.Receipt.Data = long
	if err := w.try(w.sign(s.Receipt)); err == nil {
		t.Error("a receipt with an endless CID was taken")
	}
	w.submit(w.receipt(0, ""))
	w.attest(0)
	w.audit(0, true)
	w.compute(1, "p2", "")
	w.pass(20)
	m := w.merge()
	m.Data = long
	if err := w.try(m); err == nil {
		t.Error("a merge with an endless CID was taken")
	}
	l := newWorld(t)
	l.do(Decline{"v0", string(make([]byte, MaxText))})
	w.lease.Units[1] = Unit{Status: Open, Attempt: maxAttempt}
	if err := w.assign(1, "p1"); err == nil {
		t.Error("a unit was given out without end")
	}
	for name, bend := range map[string]func(*Order){
		"file":    func(o *Order) { o.Problem.Files = []File{long} },
		"role":    func(o *Order) { o.Problem.Files = []File{{Role: long.CID}} },
		"address": func(o *Order) { o.Contact.Addrs = []string{string(make([]byte, maxAddr+1))} },
		"name":    func(o *Order) { o.Conditions.Validator = long.CID },
	} {
		o := testOrder()
		bend(&o)
		if o.Check() == nil {
			t.Errorf("an order with an endless %s was taken", name)
		}
	}
}

// What cannot be recorded is refused before it is stored, or paid to the insurance fund.
func TestListsEndWhereReadingDoes(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p0", "lie")
	for i := range maxDisputes {
		w.lease.Disputes = append(w.lease.Disputes, Dispute{ID: uint64(i + 1), Target: UnitTarget(0), Challenger: fmt.Sprint(i)})
	}
	if err := w.try(OpenDispute{ID: 1 << 20, Target: UnitTarget(0), Challenger: "c"}); err == nil {
		t.Error("a dispute was opened beyond the limit")
	}
	w.lease.Disputes[0].Segment = MaxSegments + 1
	if _, err := canon.Encoded(w.lease.Mutable()); err == nil {
		t.Error("a dispute about a segment that no unit has is stored")
	}
	l := w.lease.clone()
	l.Disputes = nil
	for i := range maxRecords {
		if _, err := l.Reserve.hold("p0", ForWork, 1000); err != nil {
			t.Fatal(err)
		}
		shares, err := l.divide(1000, fmt.Sprintf("stranger %05d", i), []Share{{"p1", 10}})
		if err != nil {
			t.Fatal(err)
		}
		l.slash("p0", ForWork, 1000, shares)
	}
	if _, err := canon.Encoded(&l); err != nil {
		t.Errorf("after %d bonds were shared: %v", maxRecords, err)
	}
}

func TestLeasesOfManyParties(t *testing.T) {
	m := testMatch()
	for i := range MaxParties - len(m.Validators) {
		m.Validators = append(m.Validators, party(fmt.Sprintf("w%04d", i), Rates{}))
	}
	l, _, err := NewLease(m, 1)
	if err == nil {
		l, _, err = Apply(l, Tick{Affords: m.Affords}, 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := canon.Unmarshal(canon.Marshal(&l), new(Lease)); err != nil || len(l.Auditors) != MaxParties || len(l.Leads) != MaxLine+1 {
		t.Fatalf("%d auditors, %d leads: %v", len(l.Auditors), len(l.Leads), err)
	}
	if n, most := len(l.Participants()), 2+MaxLine+m.Order.Conditions.Custodians; n > most {
		t.Errorf("%d participants of a lease that has begun, want at most %d", n, most)
	}
	for what, add := range map[string]func(m *Match){
		"providers":  func(m *Match) { m.Providers = append(m.Providers, make([]Party, MaxParties-2)...) },
		"validators": func(m *Match) { m.Validators = append(m.Validators, party("x", Rates{})) },
	} {
		m := m
		add(&m)
		if _, _, err := NewLease(m, 1); err == nil || !strings.Contains(err.Error(), "a lease has at most") {
			t.Errorf("too many %s for one lease: %v", what, err)
		}
	}
}

func TestParamsCheck(t *testing.T) {
	p := DefaultParams
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*Params){
		"burn":      func(p *Params) { p.BurnBps = bps + 1 },
		"reward":    func(p *Params) { p.RewardBps = bps / 2 },
		"bond":      func(p *Params) { p.BondFactor = 0 },
		"its own":   func(p *Params) { p.BondFactor = 1 },
		"two bonds": func(p *Params) { p.BondFactor = bps + 1 },
		"no bond":   func(p *Params) { p.MinBond = 0 },
		"least":     func(p *Params) { p.MinBond = maxQuantity + 1 },
		"open":      func(p *Params) { p.MaxOpen = 0 },
		"late":      func(p *Params) { p.MaxLate = -1 },
		"timeout":   func(p *Params) { p.LeadTimeout = 0 },
		"challenge": func(p *Params) { p.ChallengeBond = 0 },
	} {
		p := DefaultParams
		bend(&p)
		if p.Check() == nil {
			t.Errorf("%s: bent rules were taken", name)
		}
	}
}

// keepsParticipants: whoever has had a part in a lease stays among its participants, and whoever has
// stake reserved or computes, keeps, audits or leads is one.
func (w *world) keepsParticipants(before *Lease) {
	w.t.Helper()
	is := w.lease.Participants()
	must := append(before.Participants(), w.lease.Order.Consumer, w.lease.Lead())
	for _, s := range w.lease.Reserved() {
		must = append(must, s.Account)
	}
	for i := range w.lease.Units {
		u := &w.lease.Units[i]
		must = append(append(must, u.computers()...), u.custodians()...)
		for _, a := range u.Audits {
			must = append(must, a.Auditor)
		}
	}
	for _, account := range must {
		if account != "" && !slices.Contains(is, account) {
			w.t.Fatalf("%s has a part in the lease, participants are %v", account, is)
		}
	}
}
