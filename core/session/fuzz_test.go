package session_test

import (
	"bytes"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
)

// FuzzWords reads all that is signed or stored from any bytes. What is read is written the same again, and whatever is read
// can be asked for its meaning.
func FuzzWords(f *testing.F) {
	terms := termsOf("alice", "bob")
	v, r := voucher(&terms, 1, 500).Voucher, receiptOf(&terms, 0, 1, 2)
	s, _, err := session.Begin(terms, sign("bob", terms.ID()), rules, begin)
	if err != nil {
		f.Fatal(err)
	}
	tab := session.NewTab(terms)
	for i, x := range []canon.Coded{&terms, &v, &r, &session.Release{Session: terms.ID()}, &session.Final{Session: terms.ID()}, &s, tab} {
		f.Add(uint8(i), canon.Marshal(x))
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		var x canon.Coded
		var ask func()
		switch kind % 7 {
		case 0:
			v := new(session.Terms)
			x, ask = v, func() { _ = v.Check(); v.Deterred(rules); _ = v.Verify(b) }
		case 1:
			v := new(session.Voucher)
			x, ask = v, func() { _ = v.Verify(&terms, b); _ = session.NewTab(terms).Take(v) }
		case 2:
			v := new(session.Receipt)
			x, ask = v, func() { _ = v.Verify(&terms, b); _ = session.NewTab(terms).Add(v) }
		case 3:
			v := new(session.Release)
			x, ask = v, func() { v.ID() }
		case 4:
			v := new(session.Final)
			x, ask = v, func() { v.ID() }
		case 5:
			v := new(session.Session)
			x, ask = v, func() {
				if v.Check() == nil {
					_, _, _ = session.Apply(*v, session.Tick{}, v.Due)
				}
				v.Reserved()
			}
		case 6:
			v := new(session.Tab)
			x, ask = v, func() {
				if next, err := v.Next(len(v.Pending)); err == nil {
					_ = v.Take(&next)
				}
				_ = v.Room()
			}
		}
		if canon.Unmarshal(b, x) != nil {
			return
		}
		if again := canon.Marshal(x); !bytes.Equal(again, b) {
			t.Fatalf("%x is written as %x", b, again)
		}
		ask()
	})
}
