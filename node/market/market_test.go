package market

import (
	"math"
	"testing"

	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

func provider(under string, price uint64) providerv1.Peer {
	return providerv1.Peer{Listing: providerv1.Listing{Validator: under, UnitPrice: price}}
}

func open(id string, price, gflop uint64) (o marketv1.BookedOrder) {
	o.Id, o.Order.Conditions.MaxPrice = id, price
	o.Order.Problem = marketv1.Problem{Kind: "training", StepFlops: gflop * 1e9, Steps: 1, Rounds: 1, Shards: 1}
	return o
}

func TestOffersStandBestFirst(t *testing.T) {
	b := Book{
		Offers: []marketv1.Offer{
			{Validator: "empty", MaxLeases: 9},
			{Validator: "dear", FeeBps: 1000, MaxLeases: 1, Since: 1},
			{Validator: "young", MaxLeases: 2, Since: 8},
			{Validator: "old", MaxLeases: 4, Since: 3},
		},
		Peers:  []providerv1.Peer{provider("dear", 100), provider("young", 100), provider("old", 100), provider("old", 300), provider("gone", 1)},
		Leased: []marketv1.BookedOrder{{Posting: marketv1.Posting{Validator: "old"}}, {Posting: marketv1.Posting{Validator: "dear"}}, {Posting: marketv1.Posting{Validator: "dear"}}},
	}
	v := b.View()
	for i, want := range []Offer{
		{Validator: "old", Ask: 100, Dearest: 300, Providers: 2, Leads: 1, Free: 3, Since: 3},
		{Validator: "young", Ask: 100, Dearest: 100, Providers: 1, Free: 2, Since: 8},
		{Validator: "dear", FeeBps: 1000, Ask: 110, Dearest: 110, Providers: 1, Leads: 2, Since: 1},
		{Validator: "empty", Free: 9},
	} {
		got := v.Offers[i]
		if math.Abs(got.Ask-want.Ask) > 1e-9 || math.Abs(got.Dearest-want.Dearest) > 1e-9 {
			t.Errorf("%d: asks %v to %v, want %v to %v", i, got.Ask, got.Dearest, want.Ask, want.Dearest)
		}
		if got.Ask, got.Dearest = want.Ask, want.Dearest; got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
}

// Demand grows as the price falls, supply as it rises; the ends of the table are those of the book.
func TestDepth(t *testing.T) {
	b := Book{
		Offers: []marketv1.Offer{{Validator: "a", MaxLeases: 2}, {Validator: "b", MaxLeases: 3}},
		Peers:  []providerv1.Peer{provider("a", 100), provider("b", 400)},
		Open:   []marketv1.BookedOrder{open("low", 2000, 10), open("high", 16_000, 20)}, // 200 and 800 a GFLOP
	}
	auctioned := open("auctioned", 99_000, 10)
	auctioned.Posting.Auction = true
	b.Open = append(b.Open, auctioned)
	v := b.View()
	if len(v.Orders) != 2 || v.Orders[0].Order != "high" || v.Orders[0].Bid != 800 {
		t.Fatalf("%+v", v.Orders)
	}
	first, last := v.Depth[0], v.Depth[len(v.Depth)-1]
	if first != (Level{800, 20, 5}) || last != (Level{100, 30, 2}) {
		t.Fatalf("from %+v to %+v", first, last)
	}
	for i, l := range v.Depth[1:] {
		if before := v.Depth[i]; l.Price >= before.Price || l.Demand < before.Demand || l.Supply > before.Supply {
			t.Errorf("%+v after %+v", l, before)
		}
	}
	if got := (&Book{}).View(); len(got.Depth) != 0 {
		t.Errorf("%+v of an empty book", got.Depth)
	}
}

func TestPrices(t *testing.T) {
	b := Book{Rules: providerv1.Params{Tiers: []providerv1.Tier{{Label: "A", Speed: 20e12}, {Label: "B", Speed: 5e12}, {Label: "C"}}}}
	for n := range uint64(10) { // 100, 200, … utally a GFLOP; tokens of half of them
		trade := marketv1.Trade{Kind: "batch", Price: 1000 * (n + 1), Flops: 10e9}
		if n%2 == 0 {
			trade.Kind, trade.Records, trade.RecordBytes = "training", 10, 4*11
		}
		b.Trades = append(b.Trades, trade)
	}
	p := b.View().Prices
	if p.GFLOP != (Quantiles{10, 100, 500, 900}) || p.Token != (Quantiles{5, 10, 50, 90}) {
		t.Fatalf("%+v", p)
	}
	if len(p.Hours) != 2 || p.Hours[1] != (Hour{"B", 5e12, 5000 * 3600 * 500}) {
		t.Fatalf("%+v", p.Hours)
	}
	if p := (&Book{Rules: b.Rules}).View().Prices; p.GFLOP != (Quantiles{}) || p.Hours != nil {
		t.Fatalf("%+v of no trades", p)
	}
}

func TestClearingsTellWhatTheyDo(t *testing.T) {
	const closes, reveals = 100, 200
	for _, x := range []struct {
		p     auctionv1.Progress
		now   int64
		want  State
		until int64
	}{
		{auctionv1.Progress{ClosesAt: closes}, 50, Open, closes},
		{auctionv1.Progress{ClosesAt: closes, Closed: true}, 150, Closed, 0},
		{auctionv1.Progress{ClosesAt: closes, RevealsUntil: reveals}, 50, Sealed, closes},
		{auctionv1.Progress{ClosesAt: closes, RevealsUntil: reveals}, 150, Revealing, reveals},
		{auctionv1.Progress{ClosesAt: closes, RevealsUntil: reveals, RevealedAt: 7}, 150, Waiting, 0},
		{auctionv1.Progress{ClosesAt: closes, RevealsUntil: reveals, RevealedAt: 7, Closed: true}, 250, Closed, 0},
	} {
		if got, until := stateOf(&x.p, x.now); got != x.want || until != x.until {
			t.Errorf("%+v at %d: %s until %d, want %s until %d", x.p, x.now, got, until, x.want, x.until)
		}
	}
}

// What somebody ordered from itself moves no price, and who may get no work is not counted behind an offer.
func TestPricesAreOfStrangers(t *testing.T) {
	trade := func(price uint64, own bool) marketv1.Trade { return marketv1.Trade{Price: price, Flops: 1e9, Own: own} }
	b := Book{Trades: []marketv1.Trade{trade(100, false), trade(9_000, true), trade(100, false)}}
	if v := b.View(); v.Prices.Trades != 2 || v.Prices.GFLOP.P90 != 100 || len(v.Trades) != 3 {
		t.Errorf("%+v", v)
	}
	b = Book{Offers: []marketv1.Offer{{Validator: "a", MaxLeases: 1}}, Peers: []providerv1.Peer{provider("a", 5), provider("a", 7)}, Rules: providerv1.Params{MinProviderStake: 10}, Now: 1}
	for i := range b.Peers {
		b.Peers[i].Roles, b.Peers[i].Stake = []providerv1.Role{providerv1.ROLE_PROVIDER}, uint64(9+i)
	}
	if o := b.View().Offers[0]; o.Providers != 1 || o.Ask != 7 {
		t.Errorf("%+v", o)
	}
}
