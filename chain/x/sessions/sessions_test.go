package sessions_test

import (
	"context"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/sessions"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// One transaction begins a session and one ends it; what is paid, burnt and given back are exact.
func TestASession(t *testing.T) {
	c := network(t)
	d := dealOf(c, alice, p0)
	b := c.Deliver(alice, d.open())
	if e := chaintest.Events[*sessionsv1.EventSession](t, b); len(e) != 1 || e[0].Phase != sessionsv1.PHASE_OPEN || e[0].Session != d.id.String() {
		t.Errorf("events %v", e)
	}
	if s := d.state(t, c); s.Phase != session.Open || escrow(c) != d.Escrow || c.Balance(alice.Address) != purse-d.Escrow || reserved(t, c, p0) != 8*tally {
		t.Fatalf("%+v, with %d utally in escrow, %d reserved", s, escrow(c), reserved(t, c, p0))
	}
	c.Deliver(p0, d.redeem(p0, 1, 3*tally))
	if s := d.state(t, c); s.Ledger.Burnt != 60_000 || s.Ledger.Paid != 3*tally-60_000 || c.Balance(p0.Address) != purse+s.Ledger.Paid {
		t.Fatalf("%+v", s.Ledger)
	}
	c.Deliver(alice, wire.FundSession(alice.String(), d.id, tally))
	c.Deliver(carol, d.release(carol, 1, 3*tally, 2*tally))
	c.Deliver(p0, d.finish(p0, 5*tally))
	s := d.state(t, c)
	if want := (session.Ledger{Locked: 21 * tally, Paid: 4_900_000, Burnt: 100_000, Refunded: 16 * tally}); s.Ledger != want || s.Phase != session.Ended {
		t.Errorf("it ends as %v with %+v, want %+v", s.Phase, s.Ledger, want)
	}
	if c.Balance(alice.Address) != purse-5*tally || c.Balance(p0.Address) != purse+4_900_000 || escrow(c) != 0 || reserved(t, c, p0) != 0 {
		t.Errorf("alice has %d, p0 %d, %d in escrow, %d reserved", c.Balance(alice.Address), c.Balance(p0.Address), escrow(c), reserved(t, c, p0))
	}
	if r := recordOf(t, c, p0); r != (sessionsv1.Record{Provider: p0.String(), Settled: 1, Paid: 4_900_000}) {
		t.Errorf("record %+v", r)
	}
	pass(c, 23*hour)
	if !d.known(t, c) {
		t.Error("it is forgotten before both sides have seen how it ended")
	}
	if pass(c, 2*hour); d.known(t, c) {
		t.Error("it is never forgotten")
	}
}

// The clock closes a session at the end of its terms, and settles it once both sides have had time to answer.
func TestTheClockEndsSessions(t *testing.T) {
	c := network(t)
	d := dealOf(c, alice, p0)
	c.Deliver(alice, d.open())
	pass(c, hour-10*time.Second)
	if s := d.state(t, c); s.Phase != session.Open {
		t.Fatalf("it is %v before its end", s.Phase)
	}
	pass(c, 10*time.Second)
	if s := d.state(t, c); s.Phase != session.Closing {
		t.Fatalf("it is %v at its end", s.Phase)
	}
	c.Deliver(p0, d.redeem(p0, 1, tally))
	pass(c, 24*hour)
	if s := d.state(t, c); s.Phase != session.Ended || s.Ledger.Refunded != 19*tally || reserved(t, c, p0) != 0 {
		t.Fatalf("%v, %+v", s.Phase, s.Ledger)
	}
	if pass(c, 24*hour); d.known(t, c) {
		t.Error("it is never forgotten")
	}
}

// Who closes alone leaves the other time to answer.
func TestOneSideCloses(t *testing.T) {
	for _, by := range []chaintest.Account{alice, p0} {
		c := network(t)
		d := dealOf(c, alice, p0)
		c.Deliver(alice, d.open())
		c.Refuse(sessions.ErrEvent, carol, wire.CloseSession(carol.String(), d.id))
		c.Deliver(by, wire.CloseSession(by.String(), d.id))
		c.Refuse(sessions.ErrEvent, alice, wire.FundSession(alice.String(), d.id, 1))
		c.Deliver(carol, d.redeem(carol, 1, tally))
		if pass(c, 24*hour); c.Balance(alice.Address) != purse-tally || d.state(t, c).Phase != session.Ended {
			t.Errorf("alice has %d", c.Balance(alice.Address))
		}
	}
}

// A convicted provider loses the whole reserve: to who was cheated, to who has shown it, and to the insurance fund.
func TestAProviderIsConvicted(t *testing.T) {
	for name, convict := range map[string]func(*chaintest.Chain, deal){
		"of two receipts": func(c *chaintest.Chain, d deal) { c.Deliver(carol, d.twoReceipts(carol)) },
		"by a dispute": func(c *chaintest.Chain, d deal) {
			c.Deliver(carol, d.dispute(carol, 0))
			c.Refuse(sessions.ErrEvent, p0, d.finish(p0, 3*tally))
			c.NextBlock(time.Hour) // nobody answers
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := network(t)
			d := dealOf(c, alice, p0)
			c.Deliver(alice, d.open())
			c.Deliver(p0, d.redeem(p0, 1, 3*tally))
			convict(c, d)
			if r := recordOf(t, c, p0); r.Convictions != 1 {
				t.Errorf("record %+v", r)
			}
			c.Refuse(sessions.ErrEvent, p0, d.finish(p0, 3*tally))
			pass(c, 24*hour)
			p, err := c.Provider.Get(c.Ctx(), p0.Address)
			if err != nil || p.Stake != stake-8*tally || p.Reserved != 0 {
				t.Fatalf("%+v, %v", p, err)
			}
			reward := uint64(7 * tally * 4 / 10)
			if c.Balance(alice.Address) != purse-2*tally || c.Balance(carol.Address) != purse+reward || insurance(c) != 7*tally-reward {
				t.Errorf("alice has %d, carol %d, the insurance fund %d", c.Balance(alice.Address), c.Balance(carol.Address), insurance(c))
			}
		})
	}
}

// A convicted consumer loses as much of the escrow as an instalment can be.
func TestAConsumerIsConvicted(t *testing.T) {
	c := network(t)
	d := dealOf(c, alice, p0)
	c.Deliver(alice, d.open())
	b := c.Deliver(p0, d.twoVouchers(p0))
	if e := chaintest.Events[*sessionsv1.EventConvicted](t, b); len(e) != 1 || e[0].Convict != alice.String() || e[0].By != p0.String() {
		t.Errorf("events %v", e)
	}
	pass(c, 24*hour)
	if c.Balance(alice.Address) != purse-tally || c.Balance(p0.Address) != purse+400_000 || insurance(c) != 600_000 || reserved(t, c, p0) != 0 {
		t.Errorf("alice has %d, p0 %d, the insurance fund %d", c.Balance(alice.Address), c.Balance(p0.Address), insurance(c))
	}
	if r := recordOf(t, c, p0); r.Settled != 0 || r.Convictions != 0 {
		t.Errorf("record %+v", r)
	}
}

// A chain goes on from an export with every session, and ends each when it is due.
func TestSessionsOutliveAnExport(t *testing.T) {
	c := network(t)
	open, closing, over := dealOf(c, alice, p0, nonce(1)), dealOf(c, alice, p0, nonce(2)), dealOf(c, anna, p1)
	c.Deliver(alice, open.open(), closing.open())
	c.Deliver(anna, over.open())
	c.Deliver(p0, closing.redeem(p0, 1, tally), wire.CloseSession(p0.String(), closing.id))
	c.Deliver(anna, over.finish(anna, tally))
	c.Deliver(p0, wire.ListModels(p0.String(), []session.Listing{listing("a")}))
	g, err := c.Sessions.ExportGenesis(c.Ctx())
	if err != nil || sessions.ValidateGenesis(g) != nil || len(g.Sessions) != 3 || len(g.Offers) != 1 || len(g.Records) != 1 {
		t.Fatalf("%v: %v", g, err)
	}
	fork := c.Fork()
	if again, err := fork.Sessions.ExportGenesis(fork.Ctx()); err != nil || again.String() != g.String() {
		t.Errorf("%v becomes %v, %v", g, again, err)
	}
	fork.NextBlock(25 * hour)
	for range 4 {
		fork.NextBlock(24 * hour)
	}
	if open.known(t, fork) || closing.known(t, fork) || over.known(t, fork) || escrow(fork) != 0 || fork.Balance(alice.Address) != purse-tally {
		t.Errorf("after days %d utally are in escrow, alice has %d", escrow(fork), fork.Balance(alice.Address))
	}
	for name, bend := range map[string]func(*sessionsv1.GenesisState){
		"a session twice":     func(g *sessionsv1.GenesisState) { g.Sessions[1] = g.Sessions[0] },
		"a session cut":       func(g *sessionsv1.GenesisState) { g.Sessions[0] = g.Sessions[0][:40] },
		"nobody's offer":      func(g *sessionsv1.GenesisState) { g.Offers[0].Provider = "p0" },
		"an offer of nothing": func(g *sessionsv1.GenesisState) { g.Offers[0].Listings = nil },
		"an offer for ever":   func(g *sessionsv1.GenesisState) { g.Offers[0].UntilMs = 0 },
		"nobody's record":     func(g *sessionsv1.GenesisState) { g.Records[0].Provider = "" },
		"all is burnt":        func(g *sessionsv1.GenesisState) { g.Params.BurnBps = 10_000 },
	} {
		bent, err := c.Sessions.ExportGenesis(c.Ctx())
		if err != nil {
			t.Fatal(err)
		}
		if bend(bent); sessions.ValidateGenesis(bent) == nil {
			t.Errorf("a genesis with %s is taken", name)
		}
	}
}

// A block ends no more sessions than it has time for, and forgets none.
func TestABlockEndsABoundedNumber(t *testing.T) {
	c := network(t)
	const many = 150
	var all []deal
	for n := range uint64(many) {
		d := dealOf(c, alice, p0, nonce(n), func(t *session.Terms) { t.Credit.Cap, t.Credit.First, t.Escrow, t.CheckBps = 1000, 1000, 1000, 0 })
		c.Queue(alice, d.open())
		all = append(all, d)
		if n%16 == 15 {
			c.NextBlock(0)
		}
	}
	c.NextBlock(0)
	closing := func() (n int) {
		for _, d := range all {
			if d.state(t, c).Phase != session.Open {
				n++
			}
		}
		return n
	}
	c.NextBlock(hour)
	if n := closing(); n != 128 {
		t.Errorf("a block has closed %d", n)
	}
	if c.NextBlock(0); closing() != many {
		t.Errorf("two blocks have closed %d", closing())
	}
}

// A session for which time cannot pass holds up no other, and is tried again.
func TestTimeThatCannotPass(t *testing.T) {
	c := network(t)
	c.Unchecked = true
	stuck, other := dealOf(c, alice, p0), dealOf(c, anna, p1)
	c.Deliver(alice, stuck.open())
	c.Deliver(anna, other.open(), other.redeem(anna, 1, tally))
	release := func(amount uint64, do func(ctx context.Context, account sdk.AccAddress, amount uint64) error) {
		t.Helper()
		if err := c.Do(func(ctx sdk.Context) error { return do(ctx, p0.Address, amount) }); err != nil {
			t.Fatal(err)
		}
	}
	release(tally, c.Provider.Release)
	c.NextBlock(hour)
	b := c.NextBlock(24 * hour)
	if e := chaintest.Events[*sessionsv1.EventStuck](t, b); len(e) != 1 || e[0].Session != stuck.id.String() {
		t.Fatalf("events %v", e)
	}
	if other.state(t, c).Phase != session.Ended || stuck.state(t, c).Phase != session.Closing {
		t.Fatalf("%v and %v", other.state(t, c).Phase, stuck.state(t, c).Phase)
	}
	if g, err := c.Sessions.ExportGenesis(c.Ctx()); err != nil || len(g.Sessions) != 2 {
		t.Fatal(g, err)
	}
	release(tally, c.Provider.Reserve)
	pass(c, 2*time.Minute)
	if s := stuck.state(t, c); s.Phase != session.Ended {
		t.Fatalf("it is %v", s.Phase)
	}
	if err := c.CheckInvariants(c.Ctx()); err != nil {
		t.Fatal(err)
	}
}

// Rules hold for sessions that begin after them.
func TestRules(t *testing.T) {
	c := network(t)
	d := dealOf(c, alice, p0)
	c.Deliver(alice, d.open())
	p := sessions.DefaultParams()
	p.BurnBps = 1000
	c.Refuse(module.ErrAuthority, alice, &sessionsv1.MsgUpdateParams{Authority: alice.String(), Params: p})
	c.Deliver(carol, &sessionsv1.MsgUpdateParams{Authority: carol.String(), Params: p})
	after := dealOf(c, anna, p1)
	c.Deliver(anna, after.open())
	c.Deliver(p0, d.redeem(p0, 1, tally), after.redeem(p0, 1, tally))
	if a, b := d.state(t, c).Ledger.Burnt, after.state(t, c).Ledger.Burnt; a != 20_000 || b != 100_000 {
		t.Errorf("%d and %d are burnt", a, b)
	}
	p.RewardBps = 5000
	c.Refuse(module.ErrRules, carol, &sessionsv1.MsgUpdateParams{Authority: carol.String(), Params: p})
	r, err := sessionsv1.NewQueryClient(c).Params(context.Background(), &sessionsv1.QueryParamsRequest{})
	if err != nil || r.Params.BurnBps != 1000 || r.Authority != carol.String() {
		t.Errorf("%v, %v", r, err)
	}
}

func TestSessionsOf(t *testing.T) {
	c := network(t)
	for n := range uint64(3) {
		c.Deliver(alice, dealOf(c, alice, p0, nonce(n)).open())
	}
	c.Deliver(anna, dealOf(c, anna, p0).open())
	for account, want := range map[string]int{alice.String(): 3, anna.String(): 1, p0.String(): 4, p1.String(): 0} {
		r, err := sessionsv1.NewQueryClient(c).SessionsOf(context.Background(), &sessionsv1.QuerySessionsOfRequest{Account: account})
		if err != nil || len(r.Sessions) != want {
			t.Errorf("%s has %d sessions, want %d; %v", account, len(r.Sessions), want, err)
		}
	}
}
