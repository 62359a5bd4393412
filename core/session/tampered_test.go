package session_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
)

// statement is something signed, as it travels.
type statement struct {
	by        string
	body      []byte
	signature []byte
}

// accepted reports whether somebody would take a voucher or a receipt, from its bytes on.
func accepted(terms *session.Terms, s session.Session, x statement) bool {
	if x.by == terms.Consumer.Account {
		var v session.Voucher
		if canon.Unmarshal(x.body, &v) != nil {
			return false
		}
		_, _, err := session.Apply(s, session.Redeem{Voucher: v, Signature: x.signature}, begin)
		return err == nil || v.Verify(terms, x.signature) == nil
	}
	var r session.Receipt
	return canon.Unmarshal(x.body, &r) == nil && r.Verify(terms, x.signature) == nil
}

// flip flips one bit.
func flip(chance *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	bit := chance.IntN(8 * len(b))
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

// None is accepted of so many vouchers and receipts in which something was changed on the way: a bit of what is said or of the
// signature, the signature of another, or by another. TALLY_TAMPERED=1000000 tries a million.
func TestTamperedWordsAreRefused(t *testing.T) {
	n := 3_000
	if set := os.Getenv("TALLY_TAMPERED"); set != "" {
		var err error
		if n, err = strconv.Atoi(set); err != nil {
			t.Fatal(err)
		}
	}
	terms := termsOf("alice", "bob")
	s, chance := beginOf(t, terms), rand.New(rand.NewPCG(1, 2))
	var words []statement
	for i := range uint64(64) {
		v := session.Voucher{Session: terms.ID(), Number: i + 1, Amount: 100 * (i + 1), Receipts: i, Root: hashOf(strconv.Itoa(int(i)))}
		r := receiptOf(&terms, i, 100+i, 50*i)
		words = append(words,
			statement{"alice", canon.Marshal(&v), sign("alice", v.ID())},
			statement{"bob", canon.Marshal(&r), sign("bob", r.ID())})
	}
	for _, x := range words {
		if !accepted(&terms, s, x) {
			t.Fatal("what was not tampered with is refused")
		}
	}
	strangers := map[string]string{"alice": "bob", "bob": "alice"}
	taken := 0
	for i := range n {
		x := words[chance.IntN(len(words))]
		switch i % 5 {
		case 0, 1:
			x.body = flip(chance, x.body)
		case 2:
			x.signature = flip(chance, x.signature)
		case 3: // that of another word of the same side
			other := words[chance.IntN(len(words))]
			if other.by != x.by || bytes.Equal(other.body, x.body) {
				x.signature = x.signature[:chance.IntN(len(x.signature))]
			} else {
				x.signature = other.signature
			}
		case 4:
			x.signature = sign(strangers[x.by], canon.Sum("test", x.body))
		}
		if accepted(&terms, s, x) {
			taken++
		}
	}
	if taken > 0 {
		t.Errorf("%d of %d are accepted", taken, n)
	}
	t.Logf("%d tampered vouchers and receipts: %d accepted", n, taken)
}

// A word counts in its own session alone, whoever the sides are there.
func TestWordsOfOtherSessions(t *testing.T) {
	here := termsOf("alice", "bob")
	for name, bend := range map[string]func(*session.Terms){
		"chain":    func(x *session.Terms) { x.Chain = "tally-other" },
		"nonce":    func(x *session.Terms) { x.Nonce++ },
		"model":    func(x *session.Terms) { x.Model = hashOf("smaller") },
		"prices":   func(x *session.Terms) { x.Prices.Reply++ },
		"provider": func(x *session.Terms) { x.Provider = partyOf("eve") },
		"escrow":   func(x *session.Terms) { x.Escrow++ },
	} {
		there := termsOf("alice", "bob", bend)
		s := beginOf(t, there)
		v := voucher(&here, 1, 100)
		for _, e := range []session.Event{v, release(&here, 1, 0, 1), final(&here, "alice", "bob", 0)} {
			if _, _, err := session.Apply(s, e, begin); err == nil {
				t.Errorf("%T counts in a session of another %s", e, name)
			}
		}
		if v.Voucher.Verify(&there, v.Signature) == nil {
			t.Errorf("a voucher verifies in a session of another %s", name)
		}
	}
}
