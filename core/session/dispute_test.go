package session_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
)

// While a reply is disputed its session is not settled. Who loses as its provider is convicted, once.
func TestDisputesHoldASessionOpen(t *testing.T) {
	terms := termsOf("alice", "bob")
	s := beginOf(t, terms)
	s, _ = must(t, s, voucher(&terms, 1, 1_000), begin)
	for range 3 {
		s, _ = must(t, s, disputed(&terms), begin)
	}
	if _, _, err := session.Apply(s, final(&terms, "alice", "bob", 1_000), begin); err == nil || !strings.Contains(err.Error(), "disputed") {
		t.Errorf("it is settled at once: %v", err)
	}
	s, _ = must(t, s, session.Close{By: "bob"}, begin)
	late := s.Due
	s, got := must(t, s, session.Tick{}, late)
	if _, _, err := session.Apply(s, disputed(&terms), late); err == nil {
		t.Error("a reply is disputed after the time to answer, for another game holds the session")
	}
	if len(got) > 0 || s.Phase != session.Closing || s.Due <= late || s.Reserved() == 0 {
		t.Fatalf("%v, %v, due %d", got, s.Phase, s.Due)
	}
	var back session.Session
	if err := canon.Unmarshal(canon.Marshal(&s), &back); err != nil || back.Disputes != 3 || back.Check() != nil {
		t.Errorf("it reads again with %d disputes, %v", back.Disputes, err)
	}
	s, _ = must(t, s, session.CloseDispute{By: "carol"}, late)
	s, _ = must(t, s, session.CloseDispute{Lost: true, By: "carol"}, late)
	over, _ := must(t, s, session.Tick{}, s.Due) // one conviction decides
	if over.Phase != session.Ended || over.Check() != nil {
		t.Errorf("after a conviction it waits for other games: %v, %v", over.Phase, over.Check())
	}
	if over, _ = must(t, over, session.CloseDispute{Lost: true, By: "dave"}, late); over.Disputes != 0 || over.Convictions.OfProvider != "carol" {
		t.Errorf("%+v", over)
	}
	s, _ = must(t, s, session.CloseDispute{Lost: true, By: "dave"}, late)
	if s.Convictions != (session.Convictions{OfProvider: "carol"}) {
		t.Errorf("%+v", s.Convictions)
	}
	if _, _, err := session.Apply(s, session.CloseDispute{}, late); err == nil {
		t.Error("a fourth game of three is over")
	}
	_, got = must(t, s, session.Tick{}, s.Due)
	want := session.Effect{Kind: session.SlashStake, Account: "bob", Amount: 16_000, Shares: []session.Share{{Account: "alice", Amount: 1_000}, {Account: "carol", Amount: 6_000}}}
	if !reflect.DeepEqual(got[len(got)-1], want) {
		t.Errorf("effects %+v\nwant %+v", got, want)
	}
}

// A provider that wins goes free.
func TestWonDisputesCostNothing(t *testing.T) {
	terms := termsOf("alice", "bob")
	s, _ := must(t, beginOf(t, terms), disputed(&terms), begin)
	s, _ = must(t, s, session.CloseDispute{By: "carol"}, begin)
	_, got := must(t, s, final(&terms, "alice", "bob", 1_000), begin)
	if last := got[len(got)-1]; last.Kind != session.FreeStake || last.Amount != 16_000 {
		t.Errorf("%+v", got)
	}
}

func TestWhatCannotBeDisputed(t *testing.T) {
	terms, other := termsOf("alice", "bob"), termsOf("alice", "carol")
	open := beginOf(t, terms)
	closing, _ := must(t, open, session.Close{By: "bob"}, begin)
	over, _ := must(t, open, final(&terms, "alice", "bob", 0), begin)
	for what, x := range map[string]struct {
		in   session.Session
		bend func(e *session.OpenDispute)
		at   int64
	}{
		"a check":                {open, func(e *session.OpenDispute) { e.Receipt.Kind = session.OfCheck }, begin},
		"another session":        {open, func(e *session.OpenDispute) { e.Receipt.Session = other.ID() }, begin},
		"another model":          {open, func(e *session.OpenDispute) { e.Receipt.Model = hashOf("another") }, begin},
		"after its time":         {closing, func(*session.OpenDispute) {}, closing.Due},
		"a session that is over": {over, func(*session.OpenDispute) {}, begin},
	} {
		e := disputed(&terms)
		x.bend(&e)
		e.Signature = sign("bob", e.Receipt.ID())
		if _, _, err := session.Apply(x.in, e, x.at); err == nil {
			t.Errorf("%s is disputed", what)
		}
	}
	forged := disputed(&terms)
	forged.Signature = sign("alice", forged.Receipt.ID())
	if _, _, err := session.Apply(open, forged, begin); err == nil {
		t.Error("a receipt that the consumer has signed is disputed")
	}
	if _, _, err := session.Apply(closing, disputed(&terms), closing.Due-1); err != nil {
		t.Errorf("in the last millisecond: %v", err)
	}
}

// A claim is of the model that the receipt names, and a bond pays for computing the reply again.
func TestClaimsAndBonds(t *testing.T) {
	m := dispute.Model{Layers: 2, Chunks: 4, Steps: hashOf("steps"), Assets: hashOf("assets")}
	terms := termsOf("alice", "bob", func(x *session.Terms) { x.Model, x.Prices.Reply, x.Credit.Cap = m.Root(), session.MaxPrice, 2_000_000 })
	r := receiptOf(&terms, 0, 100, 50)
	c, err := r.Claim(&terms, m)
	if err != nil || *c.Sequence != (dispute.Sequence{Model: m, Request: r.Request, Prompt: 100, Reply: 50, Tokens: r.Tokens, Pages: r.Pages, Key: canon.Hash(terms.Provider.Key)}) {
		t.Errorf("%+v, %v", c.Sequence, err)
	}
	m.Chunks++
	if _, err := r.Claim(&terms, m); err == nil {
		t.Error("a claim of another model")
	}
	m.Chunks--
	for _, tokens := range []uint64{0, 4*128 + 1, session.MaxTokens, 1 << 63} {
		if r.Reply = tokens; tokens > 0 {
			r.Prompt = 1
		}
		if _, err := r.Claim(&terms, m); err == nil {
			t.Errorf("a claim about a reply of %d tokens", tokens)
		}
	}
	s := beginOf(t, terms)
	for _, x := range []struct{ reply, want uint64 }{{0, 1_000_000}, {1, 2_000_000}, {50, 16_000_000}} {
		r := receiptOf(&terms, 0, 0, x.reply)
		if got, err := s.Bond(&r); err != nil || got != x.want {
			t.Errorf("a bond of %d for %d tokens, %v: want %d", got, x.reply, err, x.want)
		}
	}
}
