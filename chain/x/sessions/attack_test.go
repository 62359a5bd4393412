package sessions_test

import (
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/sessions"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// What strangers and sides send that should not be taken: it is refused, and nobody's money or stake moves.
func TestHostileTransactions(t *testing.T) {
	c := network(t)
	d := dealOf(c, alice, p0)
	other := dealOf(c, alice, p0, nonce(1))
	c.Deliver(alice, d.open(), other.open())
	c.Deliver(p0, d.redeem(p0, 5, 2*tally))

	foreign := dealOf(c, alice, p0, nonce(2), func(t *session.Terms) { t.Provider.Key = carol.PeerKey() })
	foreign.provider.Peer = carol.Peer
	elsewhere := dealOf(c, alice, p0, nonce(3), func(t *session.Terms) { t.Chain = "tally-other" })
	unsigned := dealOf(c, alice, p0, nonce(4)).open()
	unsigned.Terms.Signature = sign(wallet(alice), d.id)
	stolen := dealOf(c, alice, p0, nonce(5)).open()
	stolen.Consumer = carol.String()
	stale := dealOf(c, alice, p0, nonce(6), func(t *session.Terms) { t.OpenBy = now(c) - 1 })
	forged := d.redeem(p0, 6, 19*tally)
	forged.Voucher.Signature = sign(p0.Peer, d.id)
	another := d.redeem(p0, 6, 3*tally)
	another.Voucher = other.redeem(p0, 1, 3*tally).Voucher
	another.Voucher.Statement[0] ^= 1 // names neither
	swapped := d.redeem(p0, 6, 3*tally)
	swapped.Voucher.Signature = other.redeem(p0, 6, 3*tally).Voucher.Signature
	alone := d.finish(p0, 20*tally)
	f := session.Final{Session: d.id, Amount: 20 * tally}
	alone.Final.Signature = sign(p0.Peer, f.ID())
	same := d.twoReceipts(carol)
	same.Second = same.First
	mixed := d.twoVouchers(carol)
	mixed.Second = other.twoVouchers(carol).Second
	long := d.redeem(carol, 6, 3*tally)
	long.Voucher.Statement = append(long.Voucher.Statement, make([]byte, 60_000)...)

	before := map[string]uint64{}
	people := []chaintest.Account{alice, carol, p0}
	for _, a := range people {
		before[a.Name] = c.Balance(a.Address)
	}
	for _, x := range []struct {
		name string
		want *errorsmod.Error
		by   chaintest.Account
		msg  sdk.Msg
	}{
		{"terms by a key that is not the peer's", sessions.ErrTerms, alice, foreign.open()},
		{"terms of another chain", sessions.ErrTerms, alice, elsewhere.open()},
		{"terms that the provider has not signed", sessions.ErrTerms, alice, unsigned},
		{"terms of somebody else", sessions.ErrTerms, carol, stolen},
		{"terms that are too old", sessions.ErrTerms, alice, stale.open()},
		{"terms that have begun a session", sessions.ErrTerms, alice, d.open()},
		{"a stranger's money", sessions.ErrEvent, carol, wire.FundSession(carol.String(), d.id, 1)},
		{"a voucher that the provider has signed", sessions.ErrEvent, p0, forged},
		{"a voucher of no session", sessions.ErrNoSession, p0, another},
		{"a signature of another session's voucher", sessions.ErrEvent, p0, swapped},
		{"a voucher twice", sessions.ErrEvent, carol, d.redeem(carol, 5, 2*tally)},
		{"a smaller voucher", sessions.ErrEvent, carol, d.redeem(carol, 6, tally)},
		{"a final of one side", sessions.ErrEvent, p0, alone},
		{"a final of a stranger", sessions.ErrEvent, carol, d.finish(carol, 3*tally)},
		{"a final below what is claimed", sessions.ErrEvent, alice, d.finish(alice, tally)},
		{"one receipt twice", sessions.ErrEvent, carol, same},
		{"vouchers of two sessions", sessions.ErrEvent, carol, mixed},
		{"a release before it is claimed", sessions.ErrEvent, alice, d.release(alice, 1, 3*tally, tally)},
		{"a release of more than there is", sessions.ErrEvent, alice, d.release(alice, 1, 2*tally, 19*tally)},
		{"a long statement", sessions.ErrStatement, carol, long},
		{"no id", sessions.ErrNoSession, alice, &sessionsv1.MsgClose{Sender: alice.String(), Session: []byte{1}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c.Refuse(x.want, x.by, x.msg)
		})
	}
	for _, a := range people {
		if got := c.Balance(a.Address); got != before[a.Name] {
			t.Errorf("%s has %d utally, had %d", a.Name, got, before[a.Name])
		}
	}
	if escrow(c) != 38*tally || reserved(t, c, p0) != 16*tally {
		t.Errorf("%d utally in escrow, %d reserved", escrow(c), reserved(t, c, p0))
	}
}

// One stake stands behind one session: the second that wants it is refused, though the account could deposit more.
func TestOneStakeIsNotSoldTwice(t *testing.T) {
	c := network(t)
	large := func(t *session.Terms) { t.Credit.Cap = 75 * tally } // reserves 600 tally of 1,000
	first, second := dealOf(c, alice, p0, large), dealOf(c, anna, p0, large)
	c.Deliver(alice, first.open())
	c.Refuse(sessions.ErrStake, anna, second.open())
	if c.Balance(anna.Address) != purse || c.Balance(p0.Address) != purse || reserved(t, c, p0) != 600*tally {
		t.Errorf("anna has %d, p0 %d, %d are reserved", c.Balance(anna.Address), c.Balance(p0.Address), reserved(t, c, p0))
	}
	c.Deliver(alice, first.finish(alice, 0))
	c.Deliver(anna, second.open())
}

// A provider takes its stake back only when its sessions are over.
func TestReservedStakeStays(t *testing.T) {
	c := network(t)
	d := dealOf(c, alice, p0)
	c.Deliver(alice, d.open())
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Withdraw(ctx, p0.Address, stake-8*tally+1) }); !errorsmod.IsOf(err, provider.ErrFreeStake) {
		t.Fatal(err)
	}
	c.Deliver(carol, d.twoReceipts(carol))
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Withdraw(ctx, p0.Address, stake-8*tally) }); err != nil {
		t.Fatal(err)
	}
	if pass(c, 24*hour); d.state(t, c).Phase != session.Ended || reserved(t, c, p0) != 0 {
		t.Errorf("%d are reserved", reserved(t, c, p0))
	}
}

// Releases count once, in their order, whoever posts them.
func TestReleasesAreNotReordered(t *testing.T) {
	c := network(t)
	d := dealOf(c, alice, p0)
	c.Deliver(alice, d.open())
	c.Deliver(carol, d.release(carol, 2, 0, tally))
	for _, number := range []uint64{0, 1, 2} {
		c.Refuse(sessions.ErrEvent, alice, d.release(alice, number, 0, 2*tally))
	}
	if c.Balance(alice.Address) != purse-19*tally {
		t.Errorf("alice has %d", c.Balance(alice.Address))
	}
}

// Nothing happens to a session that is over, until nobody knows it any more; and its terms begin no other.
func TestNothingAfterTheEnd(t *testing.T) {
	c := network(t)
	d := dealOf(c, alice, p0, func(t *session.Terms) { t.OpenBy = now(c) + (2 * 24 * hour).Milliseconds(); t.End = t.OpenBy + 1000 })
	c.Deliver(alice, d.open())
	c.Deliver(alice, d.finish(alice, tally))
	try := func(want *errorsmod.Error) {
		t.Helper()
		for _, m := range []sdk.Msg{d.redeem(alice, 9, 5*tally), d.twoReceipts(alice), d.twoVouchers(alice), d.release(alice, 1, 0, 1), d.finish(alice, 2*tally),
			wire.CloseSession(alice.String(), d.id), wire.FundSession(alice.String(), d.id, 1)} {
			c.Refuse(want, alice, m)
		}
		c.Refuse(sessions.ErrTerms, alice, d.open())
	}
	try(sessions.ErrEvent)
	pass(c, 47*hour)
	if !d.known(t, c) {
		t.Fatal("it is forgotten while its terms could begin another")
	}
	try(sessions.ErrEvent)
	pass(c, 2*hour)
	try(sessions.ErrNoSession)
}

// Whoever would fill a block with sessions pays for what their ends cost: each takes some of a block's gas.
func TestWhoOpensPaysForTheEnd(t *testing.T) {
	c := network(t)
	open := c.Deliver(alice, dealOf(c, alice, p0).open()).TxResults[0].GasUsed
	d := dealOf(c, alice, p0, nonce(1))
	c.Deliver(alice, d.open())
	redeem := c.Deliver(p0, d.redeem(p0, 1, tally)).TxResults[0].GasUsed
	list := c.Deliver(p0, wire.ListModels(p0.String(), []session.Listing{listing("a")})).TxResults[0].GasUsed
	closes := c.Deliver(alice, wire.CloseSession(alice.String(), d.id)).TxResults[0].GasUsed
	two := c.Deliver(alice, d.twoVouchers(alice)).TxResults[0].GasUsed
	finish := c.Deliver(alice, dealOf(c, alice, p0, nonce(2)).open(), dealOf(c, alice, p0, nonce(2)).finish(alice, tally)).TxResults[0].GasUsed
	t.Logf("gas: open %d, redeem %d, list %d, close %d, convict %d, open and finish %d", open, redeem, list, closes, two, finish)
	if open < 150_000+redeem/2 || open > 500_000 || redeem > 250_000 || list > 250_000 {
		t.Errorf("gas: open %d, redeem %d, list %d", open, redeem, list)
	}
}
