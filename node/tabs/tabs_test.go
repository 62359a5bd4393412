package tabs

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/model/lm"
)

func key(name string) ed25519.PrivateKey {
	seed := canon.Sum("test", []byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func terms() session.Terms {
	party := func(name string) session.Party {
		return session.Party{Account: name, Key: key(name).Public().(ed25519.PublicKey)}
	}
	return session.Terms{
		Chain: "test", Consumer: party("consumer"), Provider: party("provider"), Model: canon.Sum("test"), Prices: session.Prices{Prompt: 1_000_000, Reply: 2_000_000, Check: 1_000_000},
		CheckBps: 10_000, Credit: session.Credit{First: 100, GrowthBps: 5000, Cap: 1000}, Escrow: 5000, OpenBy: 1, End: 2,
	}
}

// sides are both tabs of a session.
type sides struct {
	t        *testing.T
	dirs     [2]string
	consumer *Tab
	provider *Tab
}

func both(t *testing.T) *sides {
	s := &sides{t: t, dirs: [2]string{t.TempDir(), t.TempDir()}}
	s.again()
	return s
}

// again opens both from the disk.
func (s *sides) again() {
	s.t.Helper()
	for i, to := range []**Tab{&s.consumer, &s.provider} {
		store, err := Open(s.dirs[i])
		if err != nil {
			s.t.Fatal(err)
		}
		if *to, err = store.Begin(terms(), nil, session.OfReply); err != nil {
			s.t.Fatal(err)
		}
	}
}

// pay has the consumer pay, and the provider take it.
func (s *sides) pay(need uint64) session.Voucher {
	s.t.Helper()
	v, signature, err := s.consumer.Pay(need, key("consumer"))
	if err == nil {
		err = s.provider.Take(&v, signature)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// serve has the provider reply to a question of so many tokens with as many.
func (s *sides) serve(tokens int) Signed {
	s.t.Helper()
	r := lm.Request{Prompt: make([]int32, tokens), MaxTokens: tokens, Seed: draw()}
	q := Question{Request: r}
	if err := s.consumer.Ask(q.ID(), uint64(3*tokens)); err != nil {
		s.t.Fatal(err)
	}
	held, err := s.provider.Hold(uint64(3 * tokens))
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := s.provider.Bill(session.Receipt{Request: q.ID(), Prompt: uint64(tokens), Reply: uint64(tokens)}, canon.Sum("test"), key("provider"), held)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

var drawn uint64

func draw() uint64 { drawn++; return drawn }

// Both sides can be killed after any step: they have the same tab afterwards, and every number is signed once.
func TestTabsSurviveKills(t *testing.T) {
	s := both(t)
	signed := map[uint64]canon.Hash{}
	once := func(v session.Voucher) {
		if id, ok := signed[v.Number]; ok && id != v.ID() {
			t.Fatalf("voucher %d is signed twice", v.Number)
		}
		signed[v.Number] = v.ID()
	}
	for i := range 20 {
		once(s.pay(12))
		s.again()
		b := s.serve(4)
		s.again()
		if err := s.consumer.Accept(&b, nil); err != nil {
			t.Fatal(err)
		}
		s.again()
		if err := s.consumer.Accept(&b, nil); err != nil { // it comes again
			t.Fatal(err)
		}
		if err := s.consumer.Approve(b.Receipt.Number); err != nil {
			t.Fatal(err)
		}
		s.again()
		once(s.pay(12))
		a, p := s.consumer.State(), s.provider.State()
		if a.Spent != uint64(12*(i+1)) || a.Spent != p.Spent || a.Paid != p.Paid || a.Held+p.Held != 0 || a.Pending != 0 {
			t.Fatalf("after %d: %+v and %+v", i+1, a, p)
		}
	}
}

// A provider does no work that is not paid, and what is held counts until it is billed or free.
func TestHolding(t *testing.T) {
	s := both(t)
	if _, err := s.provider.Hold(1); !errors.Is(err, ErrUnpaid) {
		t.Error(err)
	}
	s.pay(1)
	first, err := s.provider.Hold(60)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.provider.Hold(41); !errors.Is(err, ErrUnpaid) {
		t.Error(err)
	}
	first.Free()
	first.Free()
	var none *Held
	none.Free()
	if s.provider.State().Room() != 100 {
		t.Errorf("%+v", s.provider.State())
	}
	n, held, err := s.provider.HoldUpTo(50, func(tokens int) uint64 { return 10 + 2*uint64(tokens) })
	if err != nil || n != 45 || s.provider.State().Held != 100 {
		t.Errorf("%d, %v, %+v", n, err, s.provider.State())
	}
	held.Free()
	if n, held, err := s.provider.HoldUpTo(50, func(int) uint64 { return 101 }); err == nil || n != 0 {
		t.Errorf("%d, %v, %v", n, held, err)
	}
}

// A consumer owes what it has asked for, once, and nothing else.
func TestWhatIsOwed(t *testing.T) {
	s := both(t)
	s.pay(1)
	b := s.serve(4)
	foreign := b
	foreign.Receipt.Request = canon.Sum("other")
	id := foreign.Receipt.ID()
	foreign.Signature = ed25519.Sign(key("provider"), id[:])
	forged := b
	forged.Signature = ed25519.Sign(key("consumer"), id[:])
	for says, x := range map[string]Signed{"nobody has asked for": foreign, "sign": forged} {
		if err := s.consumer.Accept(&x, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if err := s.consumer.Accept(&b, nil); err != nil {
		t.Fatal(err)
	}
	// Answers that did not come are paid now and then, and not all the time.
	lost := 0
	for ; lost < 30; lost++ {
		b := s.serve(1)
		if err := s.consumer.AcceptLost(&b); err != nil {
			break
		}
	}
	if lost == 0 || lost == 30 {
		t.Errorf("%d lost answers were paid", lost)
	}
}

// Of a consumer's approval follows what is settled: all receipts up to the first that is open.
func TestSettlingInOrder(t *testing.T) {
	s := both(t)
	s.pay(1)
	var bills []Signed
	for range 3 {
		b := s.serve(4)
		if err := s.consumer.Accept(&b, nil); err != nil {
			t.Fatal(err)
		}
		bills = append(bills, b)
	}
	approve := func(i int) {
		if err := s.consumer.Approve(bills[i].Receipt.Number); err != nil {
			t.Fatal(err)
		}
	}
	approve(1)
	if v := s.pay(1); v.Receipts != 0 {
		t.Errorf("%d receipts are settled, and the first is open", v.Receipts)
	}
	approve(0)
	if v := s.pay(1); v.Receipts != 2 {
		t.Errorf("%d receipts are settled, of two that are right", v.Receipts)
	}
	if _, ok := s.provider.Pages(bills[0].Receipt.Number); ok {
		t.Error("what is settled is still kept")
	}
	if left := s.provider.Since(0, 10); len(left) != 1 || left[0].Receipt != bills[2].Receipt {
		t.Errorf("%+v", left)
	}
}

// A tab that cannot be read is never taken for a new one.
func TestDamagedTabs(t *testing.T) {
	s := both(t)
	s.pay(1)
	for _, dir := range s.dirs {
		all, err := os.ReadDir(dir)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		path := filepath.Join(dir, all[0].Name())
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "money may be lost") {
			t.Error(err)
		}
	}
	if all, err := Read(filepath.Join(t.TempDir(), "none")); err != nil || all != nil {
		t.Error(all, err)
	}
}

// What reads as a message is what writing it gives.
func FuzzMessages(f *testing.F) {
	r := lm.Request{Prompt: []int32{1, 2}, MaxTokens: 3, Seed: 4}
	f.Add(0, canon.Marshal(&Question{Request: r, Reply: []int32{5}}))
	f.Add(1, canon.Marshal(&Piece{Tokens: []lm.Token{{ID: 1, LogProb: -1, Likeliest: []lm.Candidate{{ID: 2, LogProb: -3}}, Reason: lm.Stop}}, Wrong: 2, Bill: &Signed{}}))
	f.Add(2, canon.Marshal(&Standing{From: 3}))
	f.Add(3, canon.Marshal(&Bills{Receipts: []Signed{{}}}))
	f.Add(4, canon.Marshal(&Ending{}))
	f.Add(5, canon.Marshal(&PartOf{File: 1, At: 2}))
	f.Fuzz(func(t *testing.T, which int, b []byte) {
		all := []canon.Coded{&Question{}, &Piece{}, &Standing{}, &Bills{}, &Ending{}, &PartOf{}, &kept{}}
		m := all[uint(which)%uint(len(all))]
		if canon.UnmarshalWithin(b, m, 64<<20) != nil {
			return
		}
		if again := canon.Marshal(m); !bytes.Equal(again, b) {
			t.Fatalf("%T %x is written as %x", m, b, again)
		}
	})
}
