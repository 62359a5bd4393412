package market_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/event"
	"github.com/tally-network/tally/chain/x/market"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// rivals are two validators, v1 and v2, whose providers ask the same.
func rivals(t testing.TB) *chaintest.Chain {
	return newChain(t, chaintest.Provider("r0", "v2", 1_000*tally, 2000), chaintest.Provider("r1", "v2", 1_000*tally, 2000))
}

func offerMsg(v chaintest.Account, fee, leases uint32, ends int64) *marketv1.MsgPostOffer {
	return &marketv1.MsgPostOffer{Validator: v.String(), FeeBps: fee, MaxLeases: leases, Ends: ends}
}

// winner posts an order for one provider, and says who leads it.
func winner(t *testing.T, c *chaintest.Chain, nonce uint64) string {
	t.Helper()
	o := worktest.Order()
	o.Nonce, o.Conditions.MinProviders = nonce, 1
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(time.Second)
	return booked(t, c, o.ID()).Posting.Validator
}

// Of offers that ask the same the older wins, whichever account comes first; what it keeps of its time
// when it is replaced follows from how.
func TestPriceTimePriority(t *testing.T) {
	v1, v2 := chaintest.Named("v1"), chaintest.Named("v2")
	for _, pair := range [][2]chaintest.Account{{v1, v2}, {v2, v1}} {
		first, second := pair[0], pair[1]
		for name, x := range map[string]struct {
			fee, leases uint32
			ends        time.Duration
			wins        chaintest.Account
		}{
			"the same again": {500, 8, 0, first},
			"smaller":        {500, 7, 0, first},
			"with an end":    {500, 8, time.Hour, first},
			"larger":         {500, 9, 0, second},
			"dearer":         {501, 8, 0, second},
			"cheaper":        {499, 8, 0, first},
		} {
			t.Run(fmt.Sprint(name, " of ", first.Name), func(t *testing.T) {
				c := rivals(t)
				c.Deliver(first, offerMsg(first, 500, 8, 0))
				c.Deliver(second, offerMsg(second, 500, 8, 0))
				var ends int64
				if x.ends > 0 {
					ends = c.Now().Add(x.ends).UnixMilli()
				}
				c.Deliver(first, offerMsg(first, x.fee, x.leases, ends))
				if got := winner(t, c, 1); got != x.wins.String() {
					t.Fatalf("%s leads it", worktest.Named(t, got).Name)
				}
			})
		}
	}
}

// A price that was lower for a while has left its place.
func TestOfferThatComesBackStandsLast(t *testing.T) {
	c := rivals(t)
	v1, v2 := chaintest.Named("v1"), chaintest.Named("v2")
	for _, x := range []struct {
		who chaintest.Account
		fee uint32
	}{{v1, 500}, {v2, 500}, {v1, 400}, {v1, 500}} {
		c.Deliver(x.who, offerMsg(x.who, x.fee, 8, 0))
	}
	if got := winner(t, c, 1); got != v2.String() {
		t.Fatalf("%s leads it", worktest.Named(t, got).Name)
	}
}

// An offer is matched until its end, and no order meets it from then on, swept or not.
func TestOfferEnds(t *testing.T) {
	c := rivals(t)
	v1 := chaintest.Named("v1")
	c.Refuse(market.ErrOffer, v1, offerMsg(v1, 500, 8, c.Now().UnixMilli()))
	c.Refuse(market.ErrOffer, v1, offerMsg(v1, 500, 8, -1))
	c.Deliver(v1, offerMsg(v1, 500, 8, c.Now().Add(time.Minute).UnixMilli()))
	if got := winner(t, c, 1); got != v1.String() {
		t.Fatalf("%q leads it", got)
	}
	b := c.NextBlock(2 * time.Minute)
	gone, err := event.Of[*marketv1.EventOfferWithdrawn](b.Events)
	if err != nil || len(gone) != 1 || gone[0].Validator != v1.String() || !gone[0].Ended {
		t.Fatalf("%+v, %v", gone, err)
	}
	if got := winner(t, c, 2); got != "" {
		t.Fatalf("%q leads it", got)
	}
	c.Refuse(market.ErrNoOffer, v1, &marketv1.MsgWithdrawOffer{Validator: v1.String()})
	c.Deliver(v1, offerMsg(v1, 500, 8, 0))
	if got := winner(t, c, 3); got != v1.String() {
		t.Fatalf("%q leads it", got)
	}
}

// However many offers end at once, a block removes few of them, and none is matched meanwhile.
func TestManyOffersEnd(t *testing.T) {
	const many = 150
	var crowd []chaintest.Option
	for v := range many {
		lead := fmt.Sprintf("w%d", v)
		crowd = append(crowd, chaintest.Validator(lead, 10_000*tally), chaintest.Provider("p-"+lead, lead, 1_000*tally, 5))
	}
	c := newChain(t, crowd...)
	ends := c.Now().Add(time.Minute).UnixMilli()
	if err := c.Do(func(ctx sdk.Context) error {
		for v := range many {
			if err := c.Market.PostOffer(ctx, marketv1.Offer{Validator: chaintest.Named(fmt.Sprintf("w%d", v)).String(), MaxLeases: 1, Ends: ends}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	o := worktest.Order()
	o.Conditions.MinProviders = 1
	c.Queue(consumer, worktest.Post(o))
	var removed []int
	for range 4 {
		gone, err := event.Of[*marketv1.EventOfferWithdrawn](c.NextBlock(2 * time.Minute).Events)
		if err != nil {
			t.Fatal(err)
		}
		removed = append(removed, len(gone))
	}
	if fmt.Sprint(removed) != "[64 64 22 0]" {
		t.Fatalf("blocks removed %v offers", removed)
	}
	if p := booked(t, c, o.ID()).Posting; p.Validator != "" {
		t.Fatalf("%+v", p)
	}
}

// What was paid is there for everybody to see: the last trades, newest first, in a new chain too.
func TestTrades(t *testing.T) {
	c := rivals(t)
	v1 := chaintest.Named("v1")
	c.Deliver(v1, offerMsg(v1, 500, 8, 0))
	for nonce := range uint64(3) {
		if got := winner(t, c, nonce); got != v1.String() {
			t.Fatalf("%q leads order %d", got, nonce)
		}
	}
	q := marketv1.NewQueryClient(c)
	r, err := q.Trades(context.Background(), &marketv1.QueryTradesRequest{Pagination: &query.PageRequest{Limit: 2}})
	if err != nil || len(r.Trades) != 2 || len(r.Pagination.NextKey) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	o := worktest.Order()
	o.Nonce, o.Conditions.MinProviders = 2, 1
	p := booked(t, c, o.ID()).Posting
	units := uint64(o.Problem.Units())
	want := marketv1.Trade{
		Number: 3, Order: o.ID().String(), At: r.Trades[0].At, Kind: o.Problem.Kind, Price: p.Price,
		Flops: units * o.Problem.UnitFLOPs(), Bytes: units * uint64(o.Problem.Steps) * o.Problem.StepBytes, Steps: units * uint64(o.Problem.Steps),
		Records: units * uint64(o.Problem.Steps*o.Problem.Batch), RecordBytes: r.Trades[0].RecordBytes, Validator: v1.String(), Providers: 2, Copies: 1,
	}
	if r.Trades[0] != want || r.Trades[1].Number != 2 || want.At <= r.Trades[1].At {
		t.Fatalf("%+v\nwant\n%+v", r.Trades[0], want)
	}
	next, err := q.Trades(context.Background(), &marketv1.QueryTradesRequest{Pagination: &query.PageRequest{Limit: 2, Key: r.Pagination.NextKey}})
	if err != nil || len(next.Trades) != 1 || next.Trades[0].Number != 1 {
		t.Fatalf("%+v, %v", next, err)
	}
}

// The ring holds the last trades alone, and survives an export.
func TestTradesAreARing(t *testing.T) {
	ctx, svc, cdc := chaintest.Store(t)
	k := market.NewKeeper(cdc, svc, chaintest.NewBank(), nil, nil)
	g := market.DefaultGenesis()
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	o := worktest.Order()
	for n := range market.MaxTrades + 3 {
		ctx = ctx.WithBlockTime(ctx.BlockTime().Add(time.Second))
		if err := k.Record(ctx, &o, v1.String(), 2, uint64(n), false); err != nil {
			t.Fatal(err)
		}
		if n%100 == 0 || n > market.MaxTrades-3 {
			if err := k.Invariant(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := k.ExportGenesis(ctx)
	if err != nil || len(out.Trades) != market.MaxTrades || out.Trades[0].Number != 4 || out.NextTrade != market.MaxTrades+4 {
		t.Fatalf("%d trades from %d, next %d: %v", len(out.Trades), out.Trades[0].Number, out.NextTrade, err)
	}
	if err := market.ValidateGenesis(out); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*marketv1.GenesisState){
		"gap":      func(g *marketv1.GenesisState) { g.Trades[5].Number++ },
		"too few":  func(g *marketv1.GenesisState) { g.Trades = g.Trades[1:] },
		"number":   func(g *marketv1.GenesisState) { g.NextTrade++ },
		"no order": func(g *marketv1.GenesisState) { g.Trades[5].Order = "x" },
		"no lead":  func(g *marketv1.GenesisState) { g.Trades[5].Validator = "x" },
		"time":     func(g *marketv1.GenesisState) { g.Trades[5].At = 0 },
	} {
		bent := *out
		bent.Trades = append([]marketv1.Trade(nil), out.Trades...)
		if bend(&bent); market.ValidateGenesis(&bent) == nil {
			t.Errorf("%s: a bent genesis was taken", name)
		}
	}
	ctx2, svc2, cdc2 := chaintest.Store(t)
	again := market.NewKeeper(cdc2, svc2, chaintest.NewBank(), nil, nil)
	if err := again.InitGenesis(ctx2, out); err != nil {
		t.Fatal(err)
	}
	if back, err := again.ExportGenesis(ctx2); err != nil || back.String() != out.String() {
		t.Fatalf("%v: another genesis came back", err)
	}
}
