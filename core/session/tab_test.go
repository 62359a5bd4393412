package session_test

import (
	"reflect"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
)

// Both sides keep the same tab, and read it again after a crash.
func TestTabsOfBothSides(t *testing.T) {
	terms := termsOf("alice", "bob")
	consumer, provider := session.NewTab(terms), session.NewTab(terms)
	for i, want := range []uint64{500, 500 + 400 + 80, 800 + 500 + 160} { // a reply of 1,000 tokens costs 400
		v, err := consumer.Next(len(consumer.Pending))
		if err != nil || v.Amount != want {
			t.Fatalf("voucher %d pays %d, %v: want %d", i, v.Amount, err, want)
		}
		if err := v.Verify(&terms, sign("alice", v.ID())); err != nil {
			t.Fatal(err)
		}
		r := receiptOf(&terms, uint64(i), 0, 1_000)
		if err := r.Verify(&terms, sign("bob", r.ID())); err != nil {
			t.Fatal(err)
		}
		for _, side := range []*session.Tab{consumer, provider} {
			if err := side.Take(&v); err != nil {
				t.Fatal(err)
			}
			if err := side.Add(&r); err != nil {
				t.Fatal(err)
			}
		}
		again, err := session.ReadTab(canon.Marshal(provider))
		if err != nil || !reflect.DeepEqual(again.Voucher, consumer.Voucher) || again.Spent() != consumer.Spent() || again.Room() != consumer.Room() {
			t.Fatalf("read again: %+v, %v: want %+v", again, err, consumer)
		}
		provider = again
	}
	if f := provider.Final(0); f.Amount != 1_200 || provider.Served() != 3 {
		t.Errorf("the final is %d after %d receipts", f.Amount, provider.Served())
	}
	late := receiptOf(&terms, 3, 0, 1)
	v, err := provider.Next(0)
	if err != nil || provider.Add(&late) == nil || provider.Take(&v) == nil {
		t.Errorf("something comes after the final: %v", err)
	}
}

func TestTabsRefuse(t *testing.T) {
	terms, other := termsOf("alice", "bob"), termsOf("alice", "bob", func(x *session.Terms) { x.Nonce = 1 })
	tab := session.NewTab(terms)
	v, err := tab.Next(0)
	if err != nil || tab.Take(&v) != nil {
		t.Fatal(err)
	}
	first := receiptOf(&terms, 0, 0, 1_000)
	if err := tab.Add(&first); err != nil {
		t.Fatal(err)
	}
	next, err := tab.Next(1)
	if err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*session.Voucher){
		"another session":        func(v *session.Voucher) { v.Session = other.ID() },
		"an old number":          func(v *session.Voucher) { v.Number-- },
		"less":                   func(v *session.Voucher) { v.Amount = 499 },
		"more than the escrow":   func(v *session.Voucher) { v.Amount = terms.Escrow + 1 },
		"receipts not yet given": func(v *session.Voucher) { v.Receipts++ },
		"another root":           func(v *session.Voucher) { v.Root = canon.Root(nil) },
		"fewer than its root":    func(v *session.Voucher) { v.Receipts-- },
	} {
		bad := next
		if bend(&bad); tab.Take(&bad) == nil {
			t.Errorf("a voucher for %s is taken", name)
		}
	}
	second := receiptOf(&terms, 1, 0, 1)
	for name, bend := range map[string]func(*session.Receipt){
		"another session":    func(r *session.Receipt) { r.Session = other.ID() },
		"an old number":      func(r *session.Receipt) { r.Number-- },
		"a later number":     func(r *session.Receipt) { r.Number++ },
		"another model":      func(r *session.Receipt) { r.Model = hashOf("smaller") },
		"an unknown kind":    func(r *session.Receipt) { r.Kind = 2 },
		"too many tokens":    func(r *session.Receipt) { r.Reply = session.MaxTokens + 1 },
		"more than was paid": func(r *session.Receipt) { r.Reply = 251 },
	} {
		bad := second
		if bend(&bad); tab.Add(&bad) == nil {
			t.Errorf("a receipt of %s is added", name)
		}
	}
	if _, err := tab.Next(2); err == nil {
		t.Error("a voucher settles two receipts of one")
	}
	if err := tab.Take(&next); err != nil || tab.Settled.N != 1 || len(tab.Pending) != 0 {
		t.Errorf("a good voucher is refused: %v", err)
	}
}

// What a provider lets go of can be paid by no voucher.
func TestReleasesBoundVouchers(t *testing.T) {
	terms := termsOf("alice", "bob")
	tab := session.NewTab(terms)
	v, err := tab.Next(0)
	if err != nil || tab.Take(&v) != nil {
		t.Fatal(err)
	}
	for _, amount := range []uint64{0, terms.Escrow - v.Amount + 1} {
		if _, err := tab.Give(amount); err == nil {
			t.Errorf("%d are given", amount)
		}
	}
	r, err := tab.Give(terms.Escrow - v.Amount)
	if err != nil || r.Claimed != v.Amount || r.Number != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	more := v
	more.Number, more.Amount = 2, v.Amount+1
	if tab.Take(&more) == nil {
		t.Error("a voucher for what was given is taken")
	}
	if next, err := tab.Next(0); err != nil || next.Amount != v.Amount {
		t.Errorf("the next voucher is for %d, %v", next.Amount, err)
	}
}

func TestTabsThatCannotBe(t *testing.T) {
	terms := termsOf("alice", "bob")
	for name, bend := range map[string]func(*session.Tab){
		"spent and not paid":     func(x *session.Tab) { x.Cost = 1 },
		"open and not paid":      func(x *session.Tab) { x.Pending = []session.Line{{Price: 1}} },
		"paid beyond the escrow": func(x *session.Tab) { x.Escrow, x.Voucher.Amount = 1, 2 },
		"of another session":     func(x *session.Tab) { x.Voucher.Session = canon.Hash{} },
		"spent beyond all amounts": func(x *session.Tab) {
			x.Pending = []session.Line{{Price: 1 << 63}, {Price: 1 << 63}}
		},
	} {
		tab := session.NewTab(terms)
		bend(tab)
		if _, err := session.ReadTab(canon.Marshal(tab)); err == nil {
			t.Errorf("a tab is read on which there is something %s", name)
		}
	}
}
