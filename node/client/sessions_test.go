package client_test

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// What a provider lists is found, a session of it opens by one transaction and ends by another, and both sides see that.
func TestASessionThroughANode(t *testing.T) {
	p := chaintest.Named("p")
	const stake = 1_000_000_000
	c := newChain(t, 20*time.Millisecond, chaintest.Fund(stake, p.Name), chaintest.Validator("v", 10*stake), chaintest.Provider(p.Name, "v", stake, 1))
	send := func(by chaintest.Account, all ...sdk.Msg) {
		t.Helper()
		for _, m := range all {
			if _, err := c.Account(by.Key).Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := session.Listing{Model: canon.Hash{1}, Name: "llm", Prices: session.Prices{Reply: 1_000}, Credit: session.Credit{First: 1_000, Cap: 10_000}, Context: 100, Parallel: 1}
	send(p, wire.ListModels(p.String(), []session.Listing{l}))
	for _, ask := range []struct {
		model canon.Hash
		name  string
		want  int
	}{{canon.Hash{}, "", 1}, {l.Model, "", 1}, {canon.Hash{}, "llm", 1}, {canon.Hash{2}, "", 0}, {canon.Hash{}, "another", 0}} {
		got, err := c.Listings(t.Context(), ask.model, ask.name)
		if err != nil || len(got) != ask.want || ask.want == 1 && (got[0].Listing != l || got[0].Provider != p.String() || got[0].Free != stake) {
			t.Fatalf("%v: %+v, %v", ask, got, err)
		}
	}
	now := c.Head().Time
	terms := session.Terms{
		Chain: chaintest.ChainID, Consumer: session.Party{Account: alice.String(), Key: alice.PeerKey()}, Provider: session.Party{Account: p.String(), Key: p.PeerKey()},
		Model: l.Model, Prices: l.Prices, Credit: l.Credit, Escrow: 50_000, OpenBy: now + 60_000, End: now + 3_600_000,
	}
	id := terms.ID()
	if _, err := c.Session(t.Context(), id); err == nil || !strings.Contains(err.Error(), "NotFound") {
		t.Errorf("a session that nobody has opened: %v", err)
	}
	send(alice, wire.OpenSession(&terms, ed25519.Sign(p.Peer, id[:])), wire.FundSession(alice.String(), id, 1_000))
	f := session.Final{Session: id, Amount: 700}
	of := f.ID()
	send(p, wire.FinishSession(p.String(), &f, ed25519.Sign(alice.Peer, of[:])))
	s, err := c.Session(t.Context(), id)
	if err != nil || s.Phase != session.Ended || s.Claimed() != 700 || s.Ledger.Refunded != 50_300 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, account := range []string{alice.String(), p.String()} {
		if all, err := c.SessionsOf(t.Context(), account); err != nil || len(all) != 1 || all[0].ID() != id {
			t.Errorf("%s has %d sessions, %v", account, len(all), err)
		}
	}
}
