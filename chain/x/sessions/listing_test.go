package sessions_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/sessions"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// listing returns what somebody serves under a name.
func listing(name string) session.Listing {
	return session.Listing{
		Model: canon.Sum("test", []byte(name)), Name: name, Prices: session.Prices{Prompt: 1, Reply: 2, Check: 3},
		Credit: session.Credit{First: 1000, GrowthBps: 1000, Cap: tally}, Context: 4096, Parallel: 4, MinCheckBps: 100,
	}
}

// listed asks for listings, page by page of one provider each.
func listed(t testing.TB, c *chaintest.Chain, ask sessionsv1.QueryListingsRequest) (out []wire.Listed) {
	t.Helper()
	ask.Pagination = &query.PageRequest{Limit: 1}
	for {
		r, err := sessionsv1.NewQueryClient(c).Listings(context.Background(), &ask)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Listings {
			l, err := wire.ListedFromProto(&r.Listings[i])
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, l)
		}
		if len(r.Pagination.NextKey) == 0 {
			return out
		}
		ask.Pagination = &query.PageRequest{Limit: 1, Key: r.Pagination.NextKey}
	}
}

// What is listed is found by its model, by its name and among all, with what one must know of its provider.
func TestListings(t *testing.T) {
	c := network(t)
	a, b := listing("a"), listing("b")
	twin := listing("other")
	twin.Name = "a"
	c.Deliver(p0, wire.ListModels(p0.String(), []session.Listing{b, a, twin}))
	c.Deliver(p1, wire.ListModels(p1.String(), []session.Listing{a}))
	for _, x := range []struct {
		name string
		ask  sessionsv1.QueryListingsRequest
		want int
	}{
		{"all", sessionsv1.QueryListingsRequest{}, 4},
		{"a model", sessionsv1.QueryListingsRequest{Model: a.Model[:]}, 2},
		{"another", sessionsv1.QueryListingsRequest{Model: b.Model[:]}, 1},
		{"a name", sessionsv1.QueryListingsRequest{Name: "a"}, 3},
		{"part of one", sessionsv1.QueryListingsRequest{Name: "othe"}, 0},
	} {
		if got := listed(t, c, x.ask); len(got) != x.want {
			t.Errorf("%s: %d listings, want %d: %v", x.name, len(got), x.want, got)
		}
	}
	got := listed(t, c, sessionsv1.QueryListingsRequest{Model: b.Model[:]})[0]
	if got.Listing != b || got.Provider != p0.String() || string(got.PeerKey) != string(p0.PeerKey()) || got.Free != stake || got.Record.Provider != p0.String() {
		t.Errorf("%+v", got)
	}
	c.Deliver(p0, wire.ListModels(p0.String(), []session.Listing{b}))
	if n := len(listed(t, c, sessionsv1.QueryListingsRequest{Name: "a"})); n != 1 {
		t.Errorf("what was replaced is still listed: %d", n)
	}
	c.Deliver(p0, wire.ListModels(p0.String(), nil))
	if n := len(listed(t, c, sessionsv1.QueryListingsRequest{})); n != 1 {
		t.Errorf("what was withdrawn is still listed: %d", n)
	}
}

// A listing stands for a week unless it is renewed.
func TestListingsLapse(t *testing.T) {
	c := network(t)
	all := []session.Listing{listing("a")}
	c.Deliver(p0, wire.ListModels(p0.String(), all))
	c.Deliver(p1, wire.ListModels(p1.String(), all))
	c.NextBlock(6 * 24 * hour)
	c.Deliver(p1, wire.ListModels(p1.String(), all))
	c.NextBlock(24*hour - 5*time.Second)
	if n := len(listed(t, c, sessionsv1.QueryListingsRequest{})); n != 2 {
		t.Errorf("%d stand before a week is over", n)
	}
	b := c.NextBlock(5 * time.Second)
	if e := chaintest.Events[*sessionsv1.EventOffer](t, b); len(e) != 1 || e[0].Offer.Provider != p0.String() || len(e[0].Offer.Listings) != 0 {
		t.Errorf("events %v", e)
	}
	if got := listed(t, c, sessionsv1.QueryListingsRequest{}); len(got) != 1 || got[0].Provider != p1.String() {
		t.Errorf("%v", got)
	}
}

// What nobody could begin a session of is not shown: of who is jailed, or has its stake bound.
func TestWhoCannotServeIsNotShown(t *testing.T) {
	for name, hinder := range map[string]func(sdk.Context, *chaintest.Chain) error{
		"jailed": func(ctx sdk.Context, c *chaintest.Chain) error { return c.Provider.Jail(ctx, p0.Address, wire.Forever) },
		"excluded": func(ctx sdk.Context, c *chaintest.Chain) error {
			return c.Provider.Exclude(ctx, p0.Address, p0.Address)
		},
		"without stake": func(ctx sdk.Context, c *chaintest.Chain) error { return c.Provider.Withdraw(ctx, p0.Address, stake) },
	} {
		t.Run(name, func(t *testing.T) {
			c := network(t)
			c.Deliver(p0, wire.ListModels(p0.String(), []session.Listing{listing("a")}))
			if err := c.Do(func(ctx sdk.Context) error { return hinder(ctx, c) }); err != nil {
				t.Fatal(err)
			}
			if got := listed(t, c, sessionsv1.QueryListingsRequest{}); len(got) != 0 {
				t.Errorf("%v", got)
			}
			c.Refuse(sessions.ErrProvider, p0, wire.ListModels(p0.String(), []session.Listing{listing("b")}))
			c.Refuse(sessions.ErrProvider, alice, dealOf(c, alice, p0).open())
			c.Deliver(p0, wire.ListModels(p0.String(), nil))
		})
	}
	t.Run("all stake bound", func(t *testing.T) {
		c := network(t)
		c.Deliver(p0, wire.ListModels(p0.String(), []session.Listing{listing("a")}))
		c.Deliver(alice, dealOf(c, alice, p0, func(x *session.Terms) { x.Credit.Cap = (stake - tally) / 8 }).open())
		if got := listed(t, c, sessionsv1.QueryListingsRequest{}); len(got) != 0 {
			t.Errorf("%v, with %d of %d reserved", got, reserved(t, c, p0), stake)
		}
	})
}

// What is listed is bounded, of a provider, and means something.
func TestListingSpam(t *testing.T) {
	c := network(t)
	var many []session.Listing
	for i := range session.MaxListings + 1 {
		many = append(many, listing(fmt.Sprint("model ", i)))
	}
	c.Refuse(sessions.ErrListing, p0, wire.ListModels(p0.String(), many))
	c.Deliver(p0, wire.ListModels(p0.String(), many[:session.MaxListings]))
	c.Refuse(sessions.ErrListing, p0, wire.ListModels(p0.String(), []session.Listing{many[0], many[0]}))
	c.Refuse(sessions.ErrListing, p0, &sessionsv1.MsgList{Provider: p0.String(), Listings: make([]sessionsv1.Listing, 1)})
	unsorted := wire.ListModels(p0.String(), many[:2])
	unsorted.Listings[0], unsorted.Listings[1] = unsorted.Listings[1], unsorted.Listings[0]
	c.Refuse(sessions.ErrListing, p0, unsorted)
	c.Refuse(sessions.ErrProvider, v0, wire.ListModels(v0.String(), many[:1]))
	c.Refuse(provider.ErrNotRegistered, alice, wire.ListModels(alice.String(), many[:1]))
	if n := len(listed(t, c, sessionsv1.QueryListingsRequest{})); n != session.MaxListings {
		t.Errorf("%d listings", n)
	}
}
