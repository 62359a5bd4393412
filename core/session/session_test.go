package session_test

import (
	"reflect"
	"testing"

	"github.com/tally-network/tally/core/session"
)

// must lets an event happen.
func must(t *testing.T, s session.Session, e session.Event, now int64) (session.Session, []session.Effect) {
	t.Helper()
	next, effects, err := session.Apply(s, e, now)
	if err != nil {
		t.Fatalf("%T: %v", e, err)
	}
	if err := next.Check(); err != nil {
		t.Fatalf("after %T: %v", e, err)
	}
	return next, effects
}

// voucher returns what posts a voucher of so many utally.
func voucher(terms *session.Terms, number, amount uint64) session.Redeem {
	v := session.Voucher{Session: terms.ID(), Number: number, Amount: amount}
	return session.Redeem{Voucher: v, Signature: sign(terms.Consumer.Account, v.ID())}
}

func final(terms *session.Terms, by, other string, amount uint64) session.Finish {
	f := session.Final{Session: terms.ID(), Amount: amount}
	return session.Finish{By: by, Final: f, Signature: sign(other, f.ID())}
}

func release(terms *session.Terms, number, claimed, amount uint64) session.Return {
	r := session.Release{Session: terms.ID(), Number: number, Claimed: claimed, Amount: amount}
	return session.Return{Release: r, Signature: sign(terms.Provider.Account, r.ID())}
}

func TestOneCloses(t *testing.T) {
	terms := termsOf("alice", "bob")
	s := beginOf(t, terms)
	s, paid := must(t, s, voucher(&terms, 1, 999), begin)
	want := []session.Effect{{Kind: session.Pay, Account: "bob", Amount: 979}, {Kind: session.Burn, Amount: 20}} // 19.98, rounded up
	if !reflect.DeepEqual(paid, want) {
		t.Errorf("a voucher of 999 has effects %+v, want %+v", paid, want)
	}
	s, _ = must(t, s, session.Close{By: "alice"}, 5_000)
	if _, _, err := session.Apply(s, session.Close{By: "bob"}, 5_000); err == nil {
		t.Error("it is closed twice")
	}
	s, _ = must(t, s, voucher(&terms, 2, 1_000), 5_001)
	if _, _, err := session.Apply(s, session.Tick{}, 5_000+rules.Challenge-1); err == nil {
		t.Error("it ends before the other could answer")
	}
	s, ended := must(t, s, session.Tick{}, 5_000+rules.Challenge)
	want = []session.Effect{{Kind: session.Refund, Account: "alice", Amount: 19_000}, {Kind: session.FreeStake, Account: "bob", Amount: 16_000}}
	if !reflect.DeepEqual(ended, want) {
		t.Errorf("its end has effects %+v, want %+v", ended, want)
	}
	for _, e := range []session.Event{voucher(&terms, 3, 2_000), session.Fund{Amount: 1}, session.Close{By: "bob"}, session.Tick{}, final(&terms, "alice", "bob", 1_000)} {
		if _, _, err := session.Apply(s, e, end); err == nil {
			t.Errorf("%T happens after the end", e)
		}
	}
}

func TestTimeCloses(t *testing.T) {
	terms := termsOf("alice", "bob")
	s, _ := must(t, beginOf(t, terms), session.Tick{}, end)
	if s.Phase != session.Closing || s.Due != end+rules.Challenge {
		t.Errorf("it is %v until %d", s.Phase, s.Due)
	}
	s, _ = must(t, s, session.Tick{}, s.Due)
	if s.Phase != session.Ended || s.Ledger.Refunded != terms.Escrow {
		t.Errorf("it is %v, %+v", s.Phase, s.Ledger)
	}
}

func TestBothFinish(t *testing.T) {
	terms := termsOf("alice", "bob")
	for _, by := range [][2]string{{"alice", "bob"}, {"bob", "alice"}} {
		s, _ := must(t, beginOf(t, terms), voucher(&terms, 1, 400), begin)
		for name, e := range map[string]session.Event{
			"less than was claimed":  final(&terms, by[0], by[1], 399),
			"more than there is":     final(&terms, by[0], by[1], terms.Escrow+1),
			"only its own signature": final(&terms, by[0], by[0], 500),
			"a stranger":             final(&terms, "carol", by[1], 500),
		} {
			if _, _, err := session.Apply(s, e, begin); err == nil {
				t.Errorf("%s finishes it with %s", by[0], name)
			}
		}
		s, _ = must(t, s, final(&terms, by[0], by[1], 500), begin)
		if l := s.Ledger; s.Phase != session.Ended || l.Paid+l.Burnt != 500 || l.Refunded != terms.Escrow-500 || s.ForgetAt() != begin+rules.Challenge {
			t.Errorf("it is %v, %+v, forgotten at %d", s.Phase, l, s.ForgetAt())
		}
	}
}

func TestEscrowGoesBackByConsent(t *testing.T) {
	terms := termsOf("alice", "bob")
	s := beginOf(t, terms)
	if _, _, err := session.Apply(s, release(&terms, 1, 500, 1_000), begin); err == nil {
		t.Error("escrow goes back before the voucher that it waits for")
	}
	s, _ = must(t, s, voucher(&terms, 1, 500), begin)
	forged := release(&terms, 1, 0, 1_000)
	forged.Signature = sign("alice", forged.Release.ID())
	for name, e := range map[string]session.Event{"the consumer's word": forged, "more than there is": release(&terms, 1, 500, terms.Escrow), "nothing": release(&terms, 1, 0, 0)} {
		if _, _, err := session.Apply(s, e, begin); err == nil {
			t.Errorf("escrow goes back by %s", name)
		}
	}
	s, _ = must(t, s, release(&terms, 2, 500, 1_000), begin)
	for _, number := range []uint64{1, 2} {
		if _, _, err := session.Apply(s, release(&terms, number, 0, 1), begin); err == nil {
			t.Errorf("release %d counts after release 2", number)
		}
	}
	s, _ = must(t, s, session.Fund{Amount: 300}, begin)
	s, _ = must(t, s, voucher(&terms, 2, 1<<60), begin) // more than the escrow: what is there
	if s.Ledger.Escrow != 0 || s.Claimed() != terms.Escrow-1_000+300 {
		t.Errorf("%+v", s.Ledger)
	}
	if _, _, err := session.Apply(s, session.Fund{}, begin); err == nil {
		t.Error("nothing is added")
	}
	if _, _, err := session.Apply(s, session.Fund{Amount: 1<<64 - 1}, begin); err == nil {
		t.Error("more is added than amounts can be")
	}
}

func TestStrangersDoNotClose(t *testing.T) {
	s := beginOf(t, termsOf("alice", "bob"))
	if _, _, err := session.Apply(s, session.Close{By: "carol"}, begin); err == nil {
		t.Error("a stranger closes it")
	}
	closing, _ := must(t, s, session.Close{By: "bob"}, begin)
	if _, _, err := session.Apply(closing, session.Fund{Amount: 1}, begin); err == nil {
		t.Error("it is funded while it closes")
	}
}

// equivocations returns what shows that either side has signed a number twice.
func equivocations(terms *session.Terms, by string) (vouchers session.TwoVouchers, receipts session.TwoReceipts) {
	vouchers.By, receipts.By = by, by
	for i := range 2 {
		v := session.Voucher{Session: terms.ID(), Number: 1, Amount: uint64(100 + i)}
		r := receiptOf(terms, 0, 0, uint64(1+i))
		vouchers.Vouchers[i], vouchers.Signatures[i] = v, sign(terms.Consumer.Account, v.ID())
		receipts.Receipts[i], receipts.Signatures[i] = r, sign(terms.Provider.Account, r.ID())
	}
	return vouchers, receipts
}

func TestDoublesConvict(t *testing.T) {
	terms := termsOf("alice", "bob")
	two, both := equivocations(&terms, "carol")
	s := beginOf(t, terms)

	s, _ = must(t, s, two, begin)
	if s.Phase != session.Closing {
		t.Errorf("it is %v", s.Phase)
	}
	s, _ = must(t, s, both, begin)
	for _, e := range []session.Event{two, both, disputed(&terms), session.CloseDispute{Lost: true, By: "dave"}, final(&terms, "alice", "bob", 1_000)} {
		if _, _, err := session.Apply(s, e, begin); err == nil {
			t.Errorf("%T happens after both were convicted", e)
		}
	}
	s, _ = must(t, s, voucher(&terms, 3, 1_000), begin) // the provider had it from before
	_, got := must(t, s, session.Tick{}, s.Due)
	want := []session.Effect{
		{Kind: session.Pay, Account: "carol", Amount: 800}, {Kind: session.Insure, Amount: 1_200}, // of the cap, 2,000
		{Kind: session.Refund, Account: "alice", Amount: 17_000},
		{Kind: session.SlashStake, Account: "bob", Amount: 16_000, Shares: []session.Share{{Account: "alice", Amount: 1_000}, {Account: "carol", Amount: 6_000}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("effects %+v\nwant %+v", got, want)
	}
}

func TestOneWordConvictsNobody(t *testing.T) {
	terms, other := termsOf("alice", "bob"), termsOf("alice", "bob", func(x *session.Terms) { x.Chain = "tally-other" })
	s := beginOf(t, terms)
	two, both := equivocations(&terms, "carol")
	for name, bend := range map[string]func(*session.TwoVouchers, *session.TwoReceipts){
		"the same twice": func(v *session.TwoVouchers, r *session.TwoReceipts) {
			v.Vouchers[1], v.Signatures[1], r.Receipts[1], r.Signatures[1] = v.Vouchers[0], v.Signatures[0], r.Receipts[0], r.Signatures[0]
		},
		"two numbers": func(v *session.TwoVouchers, r *session.TwoReceipts) {
			v.Vouchers[1].Number, r.Receipts[1].Number = 2, 2
			v.Signatures[1], r.Signatures[1] = sign("alice", v.Vouchers[1].ID()), sign("bob", r.Receipts[1].ID())
		},
		"one of another chain": func(v *session.TwoVouchers, r *session.TwoReceipts) {
			v.Vouchers[1].Session, r.Receipts[1].Session = other.ID(), other.ID()
			v.Signatures[1], r.Signatures[1] = sign("alice", v.Vouchers[1].ID()), sign("bob", r.Receipts[1].ID())
		},
		"one that is forged": func(v *session.TwoVouchers, r *session.TwoReceipts) {
			v.Signatures[1], r.Signatures[1] = sign("carol", v.Vouchers[1].ID()), sign("carol", r.Receipts[1].ID())
		},
		"no reporter": func(v *session.TwoVouchers, r *session.TwoReceipts) { v.By, r.By = "", "" },
	} {
		v, r := two, both
		bend(&v, &r)
		for _, e := range []session.Event{v, r} {
			if _, _, err := session.Apply(s, e, begin); err == nil {
				t.Errorf("%T convicts by %s", e, name)
			}
		}
	}
}

// A convict that has shown its own lie, with the consumer as its friend, still loses three tenths of the reserve.
func TestConvictingOneselfCosts(t *testing.T) {
	terms := termsOf("alice", "bob", func(x *session.Terms) { x.CheckBps = 10_000 })
	s, _ := must(t, beginOf(t, terms), voucher(&terms, 1, terms.Escrow), begin)
	s, _ = must(t, s, disputed(&terms), begin)
	s, _ = must(t, s, session.CloseDispute{Lost: true, By: "bob"}, begin)
	_, got := must(t, s, session.Tick{}, s.Due)
	slash := got[len(got)-1]
	if lost := slash.Amount - slash.Shares[0].Amount - slash.Shares[1].Amount; slash.Amount != 4_000 || lost*10 < slash.Amount*3 {
		t.Errorf("of %d utally %d are lost: %+v", slash.Amount, lost, slash.Shares)
	}
}
