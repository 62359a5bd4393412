package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
)

// A provider that sells at auctions says by itself that it takes the order on, and computes it; its bond is free in the end.
func TestSellerTakesTheOrderOn(t *testing.T) {
	t.Parallel()
	_, draft := batchDraft(t, func(c *consume.SpecConditions) { c.Auction, c.Providers = true, 1 })
	n := nettest.Start(t, nettest.Options{Draft: draft, Sell: map[string][]string{"provider-0": {"A:7@1", "C:1000@1"}}}) // it was not measured as one of A
	l := n.Settle(n.Post(nil))
	if len(l.Providers) != 1 || n.Name(l.Providers[0].Account) != "provider-0" || l.Reason != "" {
		t.Errorf("%s: %+v", l.Reason, l.Providers)
	}
	taken := n.Count(func(e events.Event) bool { return e.Kind == events.Sells && strings.Contains(e.Text, "takes them on") })
	if taken != 1 {
		t.Errorf("it was said %d times that an order is taken on", taken)
	}
	if err := n.Check(l); err != nil {
		t.Error(err)
	}
}

// Where bids are sealed, sellers and the consumer's home seal and reveal by themselves. By sbba the cheaper seller gets what the next one
// asks, and all have their deposits back.
func TestSealedBidsBidByThemselves(t *testing.T) {
	t.Parallel()
	_, draft := batchDraft(t, func(c *consume.SpecConditions) {
		c.Auction, c.Providers, c.Expires = true, 1, consume.Duration(5*time.Minute)
	})
	n := nettest.Start(t, nettest.Options{
		Draft: draft, Sell: map[string][]string{"provider-0": {"C:1000@500"}, "provider-1": {"C:1000@300"}},
		Config: func(c *devnet.Config) {
			c.Auction = devnet.Default().Auction
			c.Auction.Rule, c.Auction.LotUnits, c.Auction.Deposit = "sbba", 100, 10_000
		},
	})
	l := n.Settle(n.Post(nil))
	if len(l.Providers) != 1 || n.Name(l.Providers[0].Account) != "provider-1" || l.Reason != "" {
		t.Errorf("%s: %+v", l.Reason, l.Providers)
	}
	r, err := auctionv1.NewQueryClient(n.Consumer.Env.Chain.Conn).Cleared(t.Context(), &auctionv1.QueryClearedRequest{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Cleared, func(c auctionv1.Cleared) bool { return c.Trades > 0 })
	if i < 0 || r.Cleared[i].Withheld != 0 || r.Cleared[i].Tiers[2].Low != 500 {
		t.Errorf("%+v", r.Cleared)
	}
	if err := n.Check(l); err != nil {
		t.Error(err)
	}
}

// An order whose seller is off goes on with the next one, without being posted anew, and knows that somebody did not come.
func TestOrderGoesOnWithoutItsSeller(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	_, draft := batchDraft(t, func(c *consume.SpecConditions) {
		c.Auction, c.Providers, c.Expires = true, 1, consume.Duration(5*time.Minute)
	})
	n := nettest.Start(t, nettest.Options{Draft: draft, Sell: map[string][]string{"provider-0": {"C:1000@1"}, "provider-1": {"C:1000@2"}}})
	for _, name := range []string{"provider-0", "provider-1"} {
		n.Await(name+" to sell", func(e events.Event) bool { return e.Kind == events.Sells && e.Role == name })
	}
	n.End("provider-0")
	id := n.Post(nil)
	n.Lease(id, "a lease", func(l *job.Lease) bool {
		return len(l.Providers) == 1 && n.Name(l.Providers[0].Account) == "provider-1"
	})
	r, err := marketv1.NewQueryClient(n.Consumer.Env.Chain.Conn).Order(t.Context(), &marketv1.QueryOrderRequest{Order: id.String()})
	if err != nil || r.Order.Posting.Absent != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if l := n.Lease(id, "settlement", func(l *job.Lease) bool { return l.Phase == job.Settled }); l.Reason != "" {
		t.Error(l.Reason)
	}
}
