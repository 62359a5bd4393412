package session_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/session"
)

func TestTermsAreChecked(t *testing.T) {
	good := termsOf("alice", "bob")
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*session.Terms){
		"no chain":        func(x *session.Terms) { x.Chain = "" },
		"a long chain":    func(x *session.Terms) { x.Chain = strings.Repeat("x", 65) },
		"no account":      func(x *session.Terms) { x.Provider.Account = "" },
		"a long account":  func(x *session.Terms) { x.Consumer.Account = strings.Repeat("x", 129) },
		"a short key":     func(x *session.Terms) { x.Consumer.Key = x.Consumer.Key[:31] },
		"oneself":         func(x *session.Terms) { x.Provider.Account = x.Consumer.Account },
		"a large price":   func(x *session.Terms) { x.Prices.Reply = session.MaxPrice + 1 },
		"odds above one":  func(x *session.Terms) { x.CheckBps = money.Bps + 1 },
		"no escrow":       func(x *session.Terms) { x.Escrow = 0 },
		"a negative time": func(x *session.Terms) { x.OpenBy = -1 },
		"no time":         func(x *session.Terms) { x.End = x.OpenBy },
		"no instalment":   func(x *session.Terms) { x.Credit.First = 0 },
		"a low cap":       func(x *session.Terms) { x.Credit.Cap = x.Credit.First - 1 },
		"wild growth":     func(x *session.Terms) { x.Credit.GrowthBps = money.Bps + 1 },
		"a cap beyond":    func(x *session.Terms) { x.Credit.Cap = math.MaxUint64 },
		"a reserve beyond": func(x *session.Terms) {
			x.Credit.Cap, x.CheckBps = math.MaxUint64/4, 1
		},
	} {
		bad := termsOf("alice", "bob", bend)
		if bad.Check() == nil {
			t.Errorf("%s is accepted", name)
		}
		if _, _, err := session.Begin(bad, sign("bob", bad.ID()), rules, begin); err == nil {
			t.Errorf("a session of %s begins", name)
		}
	}
}

func TestSessionsBeginByConsent(t *testing.T) {
	good := termsOf("alice", "bob")
	other := termsOf("alice", "bob", func(x *session.Terms) { x.Nonce = 1 })
	long := termsOf("alice", "bob", func(x *session.Terms) { x.End = 2 * rules.MaxLength })
	for name, x := range map[string]struct {
		terms     session.Terms
		signature []byte
		now       int64
	}{
		"another's signature":        {good, sign("alice", good.ID()), begin},
		"no signature":               {good, nil, begin},
		"a signature of other terms": {other, sign("bob", good.ID()), begin},
		"terms that are stale":       {good, sign("bob", good.ID()), good.OpenBy + 1},
		"terms without end":          {long, sign("bob", long.ID()), begin},
	} {
		if _, _, err := session.Begin(x.terms, x.signature, rules, x.now); err == nil {
			t.Errorf("it begins by %s", name)
		}
	}
}

// The reserve is 2·cap/p, rounded up, and what it deters is never below the cap, whoever gets the reward.
func TestReservesDeter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := termsOf("alice", "bob", func(x *session.Terms) {
			x.CheckBps = rapid.Uint64Range(0, money.Bps).Draw(t, "odds")
			x.Credit.Cap = rapid.Uint64Range(500, 1<<48).Draw(t, "cap")
		})
		r := rules
		r.RewardBps = rapid.Uint64Range(0, money.Bps/2-1).Draw(t, "reward")
		reserve, err := x.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		if x.CheckBps == 0 {
			if reserve != 2*x.Credit.Cap || x.Deterred(r) != 0 {
				t.Fatalf("without checks %d are reserved, and deter %d", reserve, x.Deterred(r))
			}
			return
		}
		if reserve < 2*x.Credit.Cap || reserve-1 > 2*x.Credit.Cap*money.Bps/x.CheckBps {
			t.Fatalf("cap %d at %d: reserve %d", x.Credit.Cap, x.CheckBps, reserve)
		}
		if x.Deterred(r) < x.Credit.Cap {
			t.Fatalf("cap %d at %d, reward %d: deterred %d", x.Credit.Cap, x.CheckBps, r.RewardBps, x.Deterred(r))
		}
	})
}

func TestRulesAreChecked(t *testing.T) {
	if err := session.DefaultRules.Check(); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*session.Rules){
		"all burnt":       func(r *session.Rules) { r.BurnBps = money.Bps },
		"half to oneself": func(r *session.Rules) { r.RewardBps = money.Bps / 2 },
		"a reward beyond": func(r *session.Rules) { r.RewardBps = math.MaxUint64/2 + 2 },
		"no time":         func(r *session.Rules) { r.Challenge = 0 },
		"years":           func(r *session.Rules) { r.Challenge = 1 << 40 },
		"no length":       func(r *session.Rules) { r.MaxLength = 0 },
		"no end":          func(r *session.Rules) { r.MaxLength = math.MaxInt64 },
	} {
		r := session.DefaultRules
		bend(&r)
		if r.Check() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestPrices(t *testing.T) {
	x := termsOf("alice", "bob", func(x *session.Terms) { x.Prices = session.Prices{Prompt: 3, Reply: 700_000, Check: 999_999} })
	check := func(r session.Receipt) session.Receipt { r.Kind = session.OfCheck; return r }
	for _, c := range []struct {
		r    session.Receipt
		want uint64
	}{
		{receiptOf(&x, 0, 0, 0), 0},
		{receiptOf(&x, 0, 1, 0), 1}, // 3 millionths, in favour of the provider
		{receiptOf(&x, 0, 0, 10), 7},
		{receiptOf(&x, 0, 1, 10), 8},
		{check(receiptOf(&x, 0, 1, 1)), 2},
		{check(receiptOf(&x, 0, 500_000, 500_000)), 999_999},
	} {
		if got, err := c.r.Price(&x); err != nil || got != c.want {
			t.Errorf("%d and %d tokens cost %d, %v: want %d", c.r.Prompt, c.r.Reply, got, err, c.want)
		}
	}
	x.Prices.Prompt = session.MaxPrice
	most := receiptOf(&x, 0, session.MaxTokens, session.MaxTokens)
	if _, err := most.Price(&x); err != nil {
		t.Error(err)
	}
	for _, r := range []session.Receipt{receiptOf(&x, 0, session.MaxTokens+1, 0), receiptOf(&x, 0, 0, math.MaxUint64)} {
		if _, err := r.Price(&x); err == nil {
			t.Errorf("%d and %d tokens have a price", r.Prompt, r.Reply)
		}
	}
	x.Prices.Prompt++
	if _, err := most.Price(&x); err == nil {
		t.Error("a price that is too large is charged")
	}
}

// Instalments grow with what was settled, never beyond the cap, and by no more than was settled.
func TestInstalmentsGrow(t *testing.T) {
	amount := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 1<<20))
	rapid.Check(t, func(t *rapid.T) {
		c := session.Credit{History: amount.Draw(t, "history"), GrowthBps: rapid.Uint64Range(0, money.Bps).Draw(t, "growth"), Cap: amount.Draw(t, "cap") | 1}
		c.First = 1 + rapid.Uint64Range(0, c.Cap-1).Draw(t, "first")
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		a, b := amount.Draw(t, "a"), amount.Draw(t, "b")
		if a > b {
			a, b = b, a
		}
		x, y := c.Instalment(a), c.Instalment(b)
		if x > y || y > c.Cap || x < c.First {
			t.Fatalf("%+v: %d after %d, %d after %d", c, x, a, y, b)
		}
		if gain := y - c.First; b <= math.MaxUint64-c.History && gain > b+c.History {
			t.Fatalf("%+v: an instalment of %d after %d", c, y, b)
		}
	})
}
