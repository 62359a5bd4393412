package market

import (
	"math"
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"pgregory.net/rapid"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/demand"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// wanted is an order of 12 GFLOP in 3 units.
func wanted(tier string, price uint64) *job.Order {
	o := &job.Order{Problem: job.Problem{Kind: job.Batch, Rounds: 1, Shards: 3, Steps: 4, Interval: 1, Batch: 4, Records: 45, StepFLOPs: 1e9}}
	c := &o.Conditions
	c.Auditors, c.AuditSegments, c.Custodians, c.Auction, c.MaxPrice, c.Needs.Tier, c.Expires = 1, 1, 3, true, price, tier, 1000
	return o
}

// onSale is an auction of tier C: 10 units at 100 utally, and 10 at 300. Where bids are sealed, there are three lots of 100.
func onSale(rule string) *sale {
	size := uint64(10)
	if wire.SealedBids(&auctionv1.Params{Rule: rule}) {
		size = 100
	}
	seller := func(n byte, units, ask uint64) auctionv1.Capacity {
		return auctionv1.Capacity{Provider: sdk.AccAddress{19: n}.String(), Lots: []auctionv1.Lot{{Tier: "C", Units: units, Ask: ask}}}
	}
	return &sale{
		terms:  &terms,
		params: auctionv1.Params{Rule: rule, PeriodMs: 1, WindowMs: 1, MaxDemands: 10, MaxLots: 10, LotUnits: 100, Epsilon: 1000, GridLeast: 1, GridStep: 1, GridCount: 2},
		tiers:  []providerv1.Tier{{Label: "B", Speed: 5e12}, {Label: "C"}},
		sold:   []auctionv1.Capacity{seller(1, size, 100), seller(2, size, 300), seller(3, size, 0)}, // the last by sealed bids alone
		room:   1e9, referees: 3,
	}
}

var terms = demand.Terms{Rules: &job.DefaultParams, Stake: math.MaxUint64}

func TestAnOrderForeseesWhatKeepsItFromAnAuction(t *testing.T) {
	for name, x := range map[string]struct {
		rule   string
		order  *job.Order
		change func(*sale)
		want   string // in the obstacle; empty: there is none
	}{
		"it wins":               {"midpoint", wanted("", 1_000_000), nil, ""},
		"nobody sells its tier": {"midpoint", wanted("B", 1_000_000), nil, "nobody sells tier B"},
		"there is no such tier": {"midpoint", wanted("Z", 1_000_000), nil, "no tier"},
		"too few units":         {"midpoint", wanted("C", 1_000_000), func(s *sale) { s.sold = append(s.sold[:1], s.sold[2]) }, "12 units of tier C, all or none, and 10"},
		"a low bid":             {"midpoint", wanted("C", 5_000), nil, "asks 300"},
		"a bid for nothing":     {"midpoint", wanted("C", 1), nil, "raise it"},
		"it expires too soon":   {"midpoint", wanted("C", 1_000_000), func(s *sale) { s.params.PeriodMs = 600 }, "has to wait for 2 s"},
		"others bid more": {"midpoint", wanted("C", 1_000_000), func(s *sale) {
			s.demands = []auctionv1.Demand{{Order: make([]byte, 32), Units: 15, Budget: 1e9}}
		}, "others bid more"},
		"sealed bids":          {"sbba", wanted("C", 1_000_000), nil, ""},
		"too much for one lot": {"sbba", wanted("C", 1_000_000), func(s *sale) { s.params.LotUnits = 11 }, "divide it"},
		"sealed, alone":        {"mcafee", wanted("C", 1_000_000), nil, "before 2 want it and 2 sell it, and 1 and 3 do now"},
		"lots that are too small": {"sbba", wanted("C", 1_000_000), func(s *sale) {
			for i := range s.sold {
				s.sold[i].Lots[0].Units = 99
			}
		}, "nobody sells"},
		"nobody may lead it":    {"midpoint", wanted("C", 1_000_000), func(s *sale) { s.room = 999_999 }, "the largest may be of 0.999999 TALLY"},
		"nobody could judge it": {"midpoint", wanted("C", 1_000_000), func(s *sale) { s.referees = 2 }, "it wants 3 validators of other owners"},
		"one seller":            {"sbba", wanted("C", 1_000_000), func(s *sale) { s.sold = s.sold[:1] }, "before 1 want it and 2 sell it, and 1 and 1 do now"},
		"two want it": {"mcafee", wanted("C", 1_000_000), func(s *sale) {
			s.demands = []auctionv1.Demand{{Order: make([]byte, 32), Units: 5}}
		}, ""},
		"sealed, and none sold": {"sbba", wanted("B", 1_000_000), nil, "nobody sells"},
	} {
		s := onSale(x.rule)
		if x.change != nil {
			x.change(s)
		}
		out, err := s.outlook(x.order, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if x.want == "" && out.Obstacle != "" || !strings.Contains(out.Obstacle, x.want) {
			t.Errorf("%s: obstacle %q, want %q", name, out.Obstacle, x.want)
		}
		if known := out.Price > 0; known != (out.Obstacle == "" && !out.Sealed) {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// Whatever an order bids, it pays no more than its maximum price, and wins from the least maximum price on.
func TestAnOrderForeseesItsPrice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.Uint64Range(1, 1e9).Draw(t, "price")
		s := onSale(rapid.SampledFrom([]string{"midpoint", "critical"}).Draw(t, "rule"))
		if s.params.Rule == "midpoint" {
			s.params.DoubtBps = rapid.Uint32Range(0, 10_000).Draw(t, "doubt")
		}
		out, err := s.outlook(wanted("C", price), 0)
		if err != nil {
			t.Fatal(err)
		}
		if out.Price > price {
			t.Fatalf("it pays %d, at most %d", out.Price, price)
		}
		if out.Least > 0 && price >= out.Least && out.Price == 0 {
			t.Fatalf("%d is at least %d, and it does not win: %+v", price, out.Least, out)
		}
		if out.Price > 0 && price < out.Least {
			t.Fatalf("it wins with %d, and the least is %d: %+v", price, out.Least, out)
		}
	})
}

// Lots that the rule does not sell are told apart from what is on sale.
func TestTheBookCountsWhatTheRuleSells(t *testing.T) {
	sold := []auctionv1.Capacity{{Lots: []auctionv1.Lot{{Tier: "C", Units: 99, Ask: 5}}}, {Lots: []auctionv1.Lot{{Tier: "C", Units: 250}, {Tier: "B", Units: 7}}}}
	for _, x := range []struct {
		rule          string
		sellers, idle int
		offered, ask  uint64
		why           string
	}{
		{"midpoint", 1, 1, 99, 5, "needs a price"},
		{"sbba", 1, 1, 100, 0, "100 units at least"},
	} {
		p := onSale(x.rule).params
		books, err := tierBooks(nil, sold, []providerv1.Tier{{Label: "A"}, {Label: "B"}, {Label: "C"}}, &p)
		if err != nil || len(books) != 2 {
			t.Fatalf("%s: %+v, %v", x.rule, books, err)
		}
		b, c := books[0], books[1]
		if c.Sellers != x.sellers || c.Idle != x.idle || c.Offered != x.offered || c.Ask != x.ask || !strings.Contains(c.Unsold, x.why) {
			t.Errorf("%s: %+v", x.rule, c)
		}
		if b.Sellers != 0 || b.Idle != 1 || !strings.Contains(b.Unsold, x.why) {
			t.Errorf("%s: %+v", x.rule, b)
		}
	}
}

// A secret bid is what counts where bids are sealed, and where they are open it is no bid at all.
func TestASecretBid(t *testing.T) {
	const most = 1_000_000
	sealed, err := onSale("sbba").outlook(wanted("C", most), most/2)
	all, other := onSale("sbba").outlook(wanted("C", most), 0)
	if err != nil || other != nil || sealed.Bid >= all.Bid || sealed.Bid == 0 || sealed.Obstacle != "" {
		t.Errorf("a bid of half counts as %d, all as %d; %+v, %v", sealed.Bid, all.Bid, sealed, err)
	}
	open, err := onSale("midpoint").outlook(wanted("C", most), most/2)
	if err != nil || !strings.Contains(open.Obstacle, "leave the line bid out") || open.Price != 0 {
		t.Errorf("%+v, %v", open, err)
	}
}

// The gravest obstacle is told: what no waiting mends comes before what may pass.
func TestTheGravestObstacleIsTold(t *testing.T) {
	for name, x := range map[string]struct {
		rule string
		bid  uint64
		bend func(*sale)
		want string
	}{
		"a bid where bids are open, and too low": {"midpoint", 1, func(s *sale) { s.sold = nil }, "leave the line bid out"},
		"too large, and nobody may lead it":      {"sbba", 0, func(s *sale) { s.params.LotUnits, s.room = 11, 1 }, "divide it"},
		"no lead, and nothing on sale":           {"midpoint", 0, func(s *sale) { s.sold, s.room = nil, 0 }, "no validator offers now"},
		"a bid of nearly nothing":                {"sbba", 1, nil, "a bid of 0.000001 TALLY"},
	} {
		s := onSale(x.rule)
		if x.bend != nil {
			x.bend(s)
		}
		if out, err := s.outlook(wanted("C", 1_000_000), x.bid); err != nil || !strings.Contains(out.Obstacle, x.want) {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

// Nobody is told that less would win if others bid more than that.
func TestARivalMakesAnOrderWorthItsPrice(t *testing.T) {
	s := onSale("midpoint")
	s.demands = []auctionv1.Demand{{Order: make([]byte, 32), Units: 12, Budget: 1e6}}
	out, err := s.outlook(wanted("C", 5_000_000), 0)
	if err != nil || out.Price <= dear*out.Least || out.Dear != "" {
		t.Errorf("%+v, %v", out, err)
	}
}

// Who would pay many times what it needs to is told.
func TestADearOrderIsWarned(t *testing.T) {
	for price, want := range map[uint64]bool{5_000_000: true, 12_000: false} {
		out, err := onSale("midpoint").outlook(wanted("C", price), 0)
		if err != nil || out.Price == 0 || (out.Dear != "") != want {
			t.Errorf("at most %d: %q, %+v, %v", price, out.Dear, out, err)
		}
	}
}
