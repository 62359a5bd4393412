package market_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/match"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// declare lets a peer say something of itself from genesis on, with a pace as if it had worked.
func declare(name string, d providerv1.Declared, pace providerv1.Pace) chaintest.Option {
	return func(g *app.Genesis) {
		for i := range g.Peers {
			if g.Peers[i].Account == chaintest.Named(name).String() {
				g.Peers[i].Listing.Declared, g.Peers[i].Pace = d, pace
			}
		}
	}
}

// at returns the pace of a provider that has worked for an hour at so many GFLOP/s.
func at(gigaflops uint64) providerv1.Pace {
	return providerv1.Pace{Probed: gigaflops * 1e9}
}

// Of the providers under v0 each lacks something else, p2 nothing.
func conditions(t *testing.T) *chaintest.Chain {
	gdpr := []string{"gdpr"}
	c := newChain(t,
		declare("p0", providerv1.Declared{Region: "US", Tags: gdpr, Memory: 64e9}, at(25_000)),
		declare("p1", providerv1.Declared{Region: "DE", Memory: 8e9, Privacy: 1}, at(4_999)),
		declare("p2", providerv1.Declared{Region: "DE", Tags: gdpr, Memory: 64e9, Privacy: 2}, at(5_000)),
	)
	worktest.Offer(c, "v0")
	return c
}

// An order is leased to those of the providers behind an offer that have what it needs, and to no others.
func TestOrderIsLeasedToWhomItFits(t *testing.T) {
	account := func(names ...string) (out []string) {
		for _, n := range names {
			out = append(out, chaintest.Named(n).String())
		}
		slices.Sort(out)
		return out
	}
	for name, x := range map[string]struct {
		needs match.Needs
		fit   []string
		words string // why nobody is, if nobody is
	}{
		"nothing":         {match.Needs{}, account("p0", "p1", "p2"), ""},
		"region":          {match.Needs{Regions: []string{"DE", "FR"}}, account("p1", "p2"), ""},
		"no such region":  {match.Needs{Excluded: []string{"DE"}}, account("p0"), ""},
		"tag":             {match.Needs{Tags: []string{"gdpr"}}, account("p0", "p2"), ""},
		"memory":          {match.Needs{Memory: 64e9}, account("p0", "p2"), ""},
		"privacy":         {match.Needs{Privacy: match.Enclosed}, account("p2"), ""},
		"tier":            {match.Needs{Tier: "B"}, account("p0", "p2"), ""},
		"region and tier": {match.Needs{Tier: "B", Regions: []string{"DE"}}, account("p2"), ""},
		"named":           {match.Needs{Accounts: account("p0", "q0")}, account("p0"), ""},
		"a few":           {match.Needs{Most: 2}, account("p0", "p1"), ""}, // the cheapest
		"together":        {match.Needs{Throughput: 34_999e9}, account("p0", "p1", "p2"), ""},
		"too fast":        {match.Needs{Throughput: 35_000e9}, nil, "measured at 34999 together"},
		"deadline":        {match.Needs{Deadline: 60_000}, account("p0", "p1", "p2"), ""},
		"power":           {match.Needs{Power: 1}, nil, "0 providers, the order wants 1: 3 providers do not fit (power 3)"},
		"no tier":         {match.Needs{Tier: "S"}, nil, "its tiers are A, B, C"},
		"nobody": {match.Needs{Tier: "A", Regions: []string{"DE"}}, nil,
			"3 providers do not fit (regions 1, speed 2), for example regions: the order wants DE, the provider has US"},
	} {
		t.Run(name, func(t *testing.T) {
			c := conditions(t)
			o := worktest.Order()
			o.Conditions.MinProviders, o.Conditions.Needs = 1, x.needs
			c.Deliver(consumer, worktest.Post(o))
			c.NextBlock(time.Second)
			if x.fit == nil {
				r := explain(t, c, o)
				if len(r.Bids) != 1 || r.Best != "" || !strings.Contains(r.Bids[0].Obstacle, x.words) {
					t.Fatalf("%+v does not say %q", r.Bids, x.words)
				}
				return
			}
			if p := booked(t, c, o.ID()).Posting; p.Status != marketv1.STATUS_LEASED {
				t.Fatalf("%+v: %+v", p, explain(t, c, o))
			}
			r, err := workv1.NewQueryClient(c).Lease(context.Background(), &workv1.QueryLeaseRequest{Order: o.ID().String()})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range r.Lease.Providers {
				got = append(got, p.Account)
			}
			if !slices.Equal(got, x.fit) {
				t.Errorf("leased to %v, want %v", got, x.fit)
			}
		})
	}
}

// People see how many providers lack what before they post an order.
func TestQuoteCountsWhatProvidersLack(t *testing.T) {
	c := conditions(t)
	o := worktest.Order()
	o.Conditions.MinProviders, o.Conditions.Needs = 1, match.Needs{Tier: "A", Tags: []string{"gdpr"}, Memory: 9e9}
	quote := func() *marketv1.Bid {
		r, err := marketv1.NewQueryClient(c).Quote(context.Background(), &marketv1.QueryQuoteRequest{Order: worktest.Post(o).Order})
		if err != nil || len(r.Bids) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		return &r.Bids[0]
	}
	if got := fmt.Sprint(quote().Misses); got != "[{tags 1} {memory 1} {speed 2}]" || quote().Obstacle != "" {
		t.Errorf("%s: %s", got, quote().Obstacle)
	}
	o.Conditions.Needs = match.Needs{}
	if m := quote().Misses; m != nil {
		t.Errorf("nothing is asked, and %v is missing", m)
	}
}

// A waiting order is tried again when a provider comes to have what it needs.
func TestWaitingOrderMeetsAProviderThatComesToFit(t *testing.T) {
	c := conditions(t)
	o := worktest.Order()
	o.Conditions.MinProviders, o.Conditions.Needs = 1, match.Needs{Regions: []string{"FR"}}
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(time.Second)
	p0 := chaintest.Named("p0")
	peer, err := providerv1.NewQueryClient(c).Peer(context.Background(), &providerv1.QueryPeerRequest{Account: p0.String()})
	if err != nil || peer.Tier != "A" || peer.Speed != 25_000e9 {
		t.Fatalf("%+v, %v", peer, err)
	}
	l := peer.Peer.Listing
	l.Declared.Region = "FR"
	c.Deliver(p0, &providerv1.MsgUpdate{Account: p0.String(), Listing: l, Roles: peer.Peer.Roles})
	c.NextBlock(time.Second)
	if p := booked(t, c, o.ID()).Posting; p.Status != marketv1.STATUS_LEASED {
		t.Errorf("%+v", p)
	}
}

// Work that is verified and paid for makes a pace; a conviction takes it away.
func TestPaceFollowsWork(t *testing.T) {
	c := newChain(t)
	p := worktest.Begin(t, c, worktest.Order())
	p.Finish()
	pace := func(name string) providerv1.Pace {
		peer, err := c.Provider.Get(c.Ctx(), chaintest.Named(name).Address)
		if err != nil {
			t.Fatal(err)
		}
		return peer.Pace
	}
	units := 2 * worktest.Order().Problem.Shards / 2 // each of two providers does one in each of two rounds
	if got := pace("p0"); got.Work != uint64(units)*30e9 || got.TimeMs == 0 || got.TimeMs > 60_000 {
		t.Errorf("p0 did %d units: %+v", units, got)
	}
	if got, later := pace("p0"), pace("p1"); later.Work != got.Work || later.TimeMs <= got.TimeMs {
		t.Errorf("p1 had its units after p0: %+v, %+v", got, later)
	}
	if got := pace("p2"); got != (providerv1.Pace{}) {
		t.Errorf("p2 did nothing: %+v", got)
	}
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Discredit(ctx, chaintest.Named("p0").Address) }); err != nil {
		t.Fatal(err)
	}
	if got := pace("p0"); got != (providerv1.Pace{}) {
		t.Errorf("p0 was convicted: %+v", got)
	}
}

// After an order's deadline nothing more is given out; what is under way is finished, paid, and the rest
// of the price goes back.
func TestDeadlineEndsAnOrder(t *testing.T) {
	c := newChain(t, declare("p0", providerv1.Declared{}, at(1000)))
	o := worktest.Order()
	o.Conditions.Needs.Deadline = worktest.UnitTimeout.Milliseconds()
	p := worktest.Begin(t, c, o)
	p.Compute(0, "p0")
	p.Assign(1, "p1")
	p.NextBlock(worktest.UnitTimeout - 20*time.Second)
	p.Submit(1)
	p.NextBlock(10 * time.Second)
	if l := p.Lease(); l.Phase != workv1.PHASE_STOPPING || !strings.Contains(l.Reason, "deadline is over") {
		t.Fatalf("%v: %s", l.Phase, l.Reason)
	}
	p.Attest(1)
	p.Audit(1, true)
	p.NextBlock(worktest.UnitWindow)
	p.Deliver(p.Lead(), p.MergeMsg())
	p.NextBlock(worktest.Window)
	r, err := p.Work.Settlement(context.Background(), &workv1.QuerySettlementRequest{Order: p.ID.String()})
	if err != nil {
		t.Fatal(err)
	}
	paid := map[string]bool{}
	for _, s := range r.Settlement.Ledger.Paid {
		paid[s.Account] = true
	}
	if !paid[chaintest.Named("p0").String()] || !paid[chaintest.Named("p1").String()] || r.Settlement.Ledger.Refund < o.Conditions.MaxPrice/100 {
		t.Errorf("%+v", r.Settlement.Ledger)
	}
}

// An order says no more than a chain reads, and its identity holds its needs.
func TestNeedsAreChecked(t *testing.T) {
	c := conditions(t)
	for words, n := range map[string]match.Needs{
		"two letters":        {Regions: []string{"Bavaria"}},
		"privacy":            {Privacy: 9},
		"upper bound":        {Most: 1},
		"33 tags, want":      {Tags: make([]string, 33)},
		"a deadline of 5 ms": {Deadline: 5},
	} {
		o := worktest.Order()
		o.Conditions.Needs = n
		m := worktest.Post(o)
		if log := c.Refuse(market.ErrOrder, consumer, m); !strings.Contains(log, words) {
			t.Errorf("%+v: refused with %q, want %q", n, log, words)
		}
	}
	seen := map[canon.Hash]bool{}
	for _, n := range []match.Needs{{}, {Most: 3}, {Tier: "A"}, {Regions: []string{"DE"}}, {Excluded: []string{"DE"}}} {
		o := worktest.Order()
		o.Conditions.Needs = n
		seen[o.ID()] = true
	}
	if len(seen) != 5 {
		t.Errorf("5 orders have %d identities", len(seen))
	}
}
