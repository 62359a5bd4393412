package auction_test

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	errorsmod "cosmossdk.io/errors"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/auction"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/chain/x/provider"
	core "github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

const tally = worktest.Tally

var (
	consumer = worktest.Consumer
	v1       = chaintest.Named("v1")
)

func TestMain(m *testing.M) { chaintest.Main(m, "auction") }

func newChain(t testing.TB, more ...chaintest.Option) *chaintest.Chain {
	return chaintest.New(t, worktest.Network(more...)...)
}

// fast lets a provider have been measured at so many GFLOP/s.
func fast(name string, gigaflops uint64) chaintest.Option {
	return func(g *app.Genesis) {
		for i := range g.Peers {
			if g.Peers[i].Account == chaintest.Named(name).String() {
				g.Peers[i].Pace = providerv1.Pace{Probed: gigaflops * 1e9}
			}
		}
	}
}

// posting is what the market knows of an order.
func posting(t testing.TB, c *chaintest.Chain, o job.Order) marketv1.Posting {
	t.Helper()
	r, err := marketv1.NewQueryClient(c).Order(context.Background(), &marketv1.QueryOrderRequest{Order: o.ID().String()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Order.Posting
}

func batch(nonce uint64, units int, price uint64) job.Order {
	return worktest.Auctioned(nonce, units, price)
}

func sell(name string, lots ...auctionv1.Lot) *auctionv1.MsgSell {
	return &auctionv1.MsgSell{Provider: chaintest.Named(name).String(), Lots: lots}
}

func lot(units, ask uint64) auctionv1.Lot { return auctionv1.Lot{Tier: "C", Units: units, Ask: ask} }

// sellers are a chain where p0 and p1 of v0 and q0 of v1 sell capacity, and v1 leads for the lower fee.
func sellers(t testing.TB, more ...chaintest.Option) *chaintest.Chain {
	c := newChain(t, more...)
	worktest.Offer(c, "v0")
	c.Deliver(v1, &marketv1.MsgPostOffer{Validator: v1.String(), FeeBps: 100, MaxLeases: 8})
	for name, l := range map[string]auctionv1.Lot{"p0": lot(30, 1000), "p1": lot(40, 1500), "q0": lot(100, 4000)} {
		c.Deliver(chaintest.Named(name), sell(name, l))
	}
	return c
}

func clearing(t testing.TB, c *chaintest.Chain) *auctionv1.QueryClearingResponse {
	t.Helper()
	r, err := auctionv1.NewQueryClient(c).Clearing(context.Background(), &auctionv1.QueryClearingRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// result is what came of a clearing, once all who sold have taken the orders on.
type result struct {
	auctionv1.Cleared
	Leased int
}

// sold returns the orders to which something is sold.
func sold(t testing.TB, c *chaintest.Chain) (out []auctionv1.Demand) {
	t.Helper()
	r, err := auctionv1.NewQueryClient(c).Demands(context.Background(), &auctionv1.QueryDemandsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(r.Demands, func(d auctionv1.Demand) bool { return d.Sale == nil })
}

// takeOn is the word of somebody who has sold something to an order.
func takeOn(d auctionv1.Demand, provider string) *auctionv1.MsgTakeOn {
	return &auctionv1.MsgTakeOn{Provider: provider, Clearing: d.Sale.Clearing, Order: hex.EncodeToString(d.Order)}
}

// come lets all who have sold take the orders on, and returns how many leases have begun.
func come(t testing.TB, c *chaintest.Chain) (leased int, blocks []chaintest.Block) {
	t.Helper()
	sales := sold(t, c)
	for _, d := range sales {
		for _, x := range d.Sale.Sellers {
			c.Queue(worktest.Named(t, x.Provider), takeOn(d, x.Provider))
		}
	}
	if len(sales) == 0 {
		return 0, nil
	}
	b := all(t, c.NextBlock(time.Second))
	for _, x := range chaintest.Events[*auctionv1.EventObstacle](t, b) {
		t.Logf("%.8s: %s", x.Order, x.Reason)
	}
	return len(chaintest.Events[*marketv1.EventMatched](t, b)), []chaintest.Block{b}
}

// finish goes on until the clearing under way is over, and returns what came of it.
func finish(t testing.TB, c *chaintest.Chain) result {
	t.Helper()
	r := clear(t, c)
	leased, _ := come(t, c)
	return result{r, leased}
}

// clear goes on until the clearing under way is over.
func clear(t testing.TB, c *chaintest.Chain) auctionv1.Cleared {
	t.Helper()
	b := c.NextBlock(time.Minute)
	for range 20 {
		for _, x := range chaintest.Events[*auctionv1.EventObstacle](t, b) {
			t.Logf("%.8s: %s", x.Order, x.Reason)
		}
		if e := chaintest.Events[*auctionv1.EventCleared](t, b); len(e) > 0 {
			return e[0].Cleared
		}
		b = c.NextBlock(time.Second)
	}
	t.Fatal("the clearing does not end")
	return auctionv1.Cleared{}
}

func capacity(t testing.TB, c *chaintest.Chain, name string) uint64 {
	t.Helper()
	r, err := auctionv1.NewQueryClient(c).Capacities(context.Background(), &auctionv1.QueryCapacitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Capacities {
		if x.Provider == chaintest.Named(name).String() {
			return x.Lots[0].Units
		}
	}
	return 0
}

// Two orders find room and begin, the densest with the cheapest, each at one price; the third loses and grows older.
func TestClearingBeginsLeases(t *testing.T) {
	c := sellers(t)
	rich, fair, poor := batch(1, 5, 2*tally), batch(2, 3, tally/2), batch(3, 4, tally/25)
	for _, o := range []job.Order{rich, fair, poor} {
		c.Deliver(consumer, worktest.Post(o))
	}
	under := clearing(t, c)
	if under.Clearing == nil { // the first was posted in the block that opened one
		t.Fatal("no clearing is under way")
	}
	first := finish(t, c)
	if first.Demands != 1 || first.Leased != 1 {
		t.Fatalf("%+v", first)
	}
	c.NextBlock(auction.DefaultPeriod)
	second := finish(t, c)
	if second.Demands != 1 || second.Trades != 1 || second.Leased != 1 || second.Poster != "" {
		t.Fatalf("%+v", second)
	}
	for _, x := range []struct {
		o      job.Order
		sold   []string // its providers
		dearer uint64   // ask
	}{{rich, []string{"p0", "p1"}, 1500}, {fair, []string{"p1", "q0"}, 4000}} {
		p := worktest.Join(t, c, x.o)
		l := p.State()
		if l.Lead() != v1.String() || l.FeeBps != 100 {
			t.Errorf("%s leads for %d bps", worktest.Named(t, l.Lead()).Name, l.FeeBps)
		}
		var names []string
		for _, y := range l.Providers {
			names = append(names, worktest.Named(t, y.Account).Name)
			if y.Rates != l.Providers[0].Rates || y.Rates.GFLOP < x.dearer {
				t.Errorf("%s gets %+v, the dearest asks %d", y.Account, y.Rates, x.dearer)
			}
			if !slices.Contains(l.Participants(), y.Account) {
				t.Errorf("%s sold capacity to a lease of which it hears nothing", y.Account)
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, x.sold) {
			t.Errorf("order %d is computed by %v, want %v", x.o.Nonce, names, x.sold)
		}
		if b := posting(t, c, x.o); b.Price > x.o.Conditions.MaxPrice || b.Escrow != b.Price+b.Deposit {
			t.Errorf("it costs %d of %d, and %d are locked", b.Price, x.o.Conditions.MaxPrice, b.Escrow)
		}
	}
	if p0, p1, q0 := capacity(t, c, "p0"), capacity(t, c, "p1"), capacity(t, c, "q0"); p0 != 0 || p1 != 0 || q0 != 90 {
		t.Errorf("%d, %d and %d units are left of 30, 40 and 100, after 80 were sold", p0, p1, q0)
	}
	r, err := auctionv1.NewQueryClient(c).Demands(context.Background(), &auctionv1.QueryDemandsRequest{})
	if id := poor.ID(); err != nil || len(r.Demands) != 1 || string(r.Demands[0].Order) != string(id[:]) || r.Demands[0].Age != 0 { // it cannot pay what is asked, and took no part
		t.Errorf("%+v, %v", r, err)
	}
	for clearing(t, c).Clearing != nil {
		c.NextBlock(time.Second)
	}
	c.Deliver(consumer, &marketv1.MsgCancelOrder{Consumer: consumer.String(), Order: poor.ID().String()})
	if p := posting(t, c, poor); p.Status != marketv1.STATUS_CANCELLED || p.Escrow != 0 {
		t.Errorf("%+v: what was cancelled is not refunded", p)
	}
}

// crowd is a chain with a clearing under way, in which the fallback is not the best.
func crowd(t testing.TB) *chaintest.Chain {
	// The densest order leaves too little for the two that together are worth more.
	c := newChain(t, func(g *app.Genesis) {
		g.Auction = auction.DefaultParams()
		g.Auction.PeriodMs, g.Auction.WindowMs = 60_000, 60_000
	})
	worktest.Offer(c, "v0")
	for i, x := range []struct {
		units int
		price uint64
	}{{6, 600_000}, {5, 450_000}, {5, 440_000}} {
		c.Queue(consumer, worktest.Post(batch(uint64(i+1), x.units, x.price)))
	}
	c.Queue(chaintest.Named("p0"), sell("p0", lot(100, 1000)))
	c.NextBlock(time.Second)
	if r := clearing(t, c); r.Clearing == nil || len(r.Clearing.Demands) != 3 {
		t.Fatalf("%+v", r)
	}
	return c
}

// certificate is the clearing under way, cleared by a measure.
func certificate(t testing.TB, c *chaintest.Chain, m core.Measure) *auctionv1.MsgPostClearing {
	t.Helper()
	r := clearing(t, c)
	b, rules, err := wire.BookOf(r.Clearing)
	if err != nil {
		t.Fatal(err)
	}
	_, cert, err := core.Clear(b, rules, m)
	if err != nil {
		t.Fatal(err)
	}
	return &auctionv1.MsgPostClearing{Poster: consumer.String(), Clearing: r.Clearing.Number, Certificate: wire.CertificateToProto(cert)}
}

// Anybody may post a certificate; the best one holds, and a wrong one is refused at once.
func TestPostClearing(t *testing.T) {
	byBid := core.Measure{Shape: core.ByBid, Weight: core.Standard.Weight}
	c := crowd(t)
	good := certificate(t, c, byBid)
	for name, bend := range map[string]func(*auctionv1.MsgPostClearing){
		"welfare": func(m *auctionv1.MsgPostClearing) { m.Certificate.Welfare++ },
		"trades":  func(m *auctionv1.MsgPostClearing) { m.Certificate.Trades++ },
		"order":   func(m *auctionv1.MsgPostClearing) { slices.Reverse(m.Certificate.Demands) },
		"place":   func(m *auctionv1.MsgPostClearing) { m.Certificate.Demands[0] = 1 << 31 },
		"seller":  func(m *auctionv1.MsgPostClearing) { m.Certificate.Sellers[2].At = nil },
		"kinds":   func(m *auctionv1.MsgPostClearing) { m.Certificate.Sellers = m.Certificate.Sellers[1:] },
		"weights": func(m *auctionv1.MsgPostClearing) { m.Certificate.Measure.Weights[0] = 1 << 16 },
		"shape":   func(m *auctionv1.MsgPostClearing) { m.Certificate.Measure.Shape = 256 },
		"none":    func(m *auctionv1.MsgPostClearing) { m.Certificate = auctionv1.Certificate{} },
	} {
		bent := certificate(t, c, byBid)
		if bend(bent); c.Refuse(auction.ErrCertificate, consumer, bent) == "" {
			t.Errorf("%s: no word why", name)
		}
	}
	other := certificate(t, c, byBid)
	other.Clearing++
	c.Refuse(auction.ErrClearing, consumer, other)
	c.Deliver(consumer, good)
	if p := clearing(t, c).Progress; p.Poster != consumer.String() || p.Welfare != good.Certificate.Welfare {
		t.Errorf("%+v", p)
	}
	c.Refuse(auction.ErrCertificate, consumer, good) // no better than itself
	late := certificate(t, c, core.Standard)
	r := finish(t, c)
	if r.Welfare < good.Certificate.Welfare || int(r.Trades) != r.Leased {
		t.Errorf("%+v, though %d was posted", r, good.Certificate.Welfare)
	}
	c.Refuse(auction.ErrClearing, consumer, late)
}

// An order that wins and can have no lease sits out, so that it does not keep what it wins from others.
func TestOrderThatCannotBeLeasedSitsOut(t *testing.T) {
	c := newChain(t)
	v0 := chaintest.Named("v0")
	c.Deliver(v0, &marketv1.MsgPostOffer{Validator: v0.String(), FeeBps: 500, MaxLeases: 1})
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(110, 1000)))
	first, long := batch(9, 1, tally), (40 * time.Minute).Milliseconds()
	first.Conditions.UnitTimeout, first.Conditions.UnitWindow, first.Conditions.Window = long, long, long
	c.Deliver(consumer, worktest.Post(first))
	if r := finish(t, c); r.Leased != 1 {
		t.Fatalf("%+v", r)
	}
	c.Deliver(consumer, worktest.Post(batch(1, 4, tally))) // the only lead leads as much as it offers
	c.NextBlock(auction.DefaultPeriod)
	for failed := uint32(1); failed < 4; failed++ {
		if r := finish(t, c); r.Trades != 1 || r.Leased != 0 {
			t.Fatalf("%+v", r)
		}
		r, err := auctionv1.NewQueryClient(c).Demands(context.Background(), &auctionv1.QueryDemandsRequest{})
		if err != nil || r.Demands[0].Failed != failed {
			t.Fatalf("%+v, %v", r, err)
		}
		until := time.Duration(r.Demands[0].After-module.Now(c.Ctx())) * time.Millisecond
		if want := auction.DefaultPeriod << (failed - 1); until > want || until < want-time.Second {
			t.Errorf("after %d failures it sits out for %v, want %v", failed, until, want)
		}
		for until > time.Second {
			step := min(until-time.Second, 20*time.Second)
			c.NextBlock(step)
			if until -= step; clearing(t, c).Clearing != nil {
				t.Fatalf("it is in a clearing, %v before its time", until)
			}
		}
		c.NextBlock(auction.DefaultPeriod)
		c.NextBlock(time.Second)
	}
	finish(t, c)
	o := batch(1, 4, tally)
	c.Deliver(consumer, &marketv1.MsgCancelOrder{Consumer: consumer.String(), Order: o.ID().String()})
}

// Who sells more than its stake stands for is off sale, and the order loses nothing but a clearing.
func TestSellersWithoutStakeAreTakenOff(t *testing.T) {
	c, p0 := newChain(t), chaintest.Named("p0")
	worktest.Begin(t, c, worktest.Order()).Assign(0, p0.Name) // which takes a part of its stake
	c.Deliver(p0, &providerv1.MsgWithdraw{Account: p0.String(), Amount: 900 * tally})
	dear := batch(1, 1, 3000*tally)
	c.Deliver(consumer, worktest.Post(dear))
	q, err := auctionv1.NewQueryClient(c).Demands(context.Background(), &auctionv1.QueryDemandsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	c.Deliver(p0, sell(p0.Name, lot(100, (q.Demands[0].Budget-q.Demands[0].Fee)/q.Demands[0].Units*9/10))) // of a stranger, whose asks count for a tenth more
	if r := finish(t, c); r.Trades != 1 || r.Leased != 0 || capacity(t, c, "p0") != 0 {
		t.Errorf("%+v, and %d units are on sale", r, capacity(t, c, "p0"))
	}
	r, err := auctionv1.NewQueryClient(c).Demands(context.Background(), &auctionv1.QueryDemandsRequest{})
	if err != nil || r.Demands[0].Failed != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	many := batch(2, 1, tally)
	many.Conditions.Custodians, many.Conditions.Auditors = 16, 1
	c.Deliver(consumer, worktest.Post(many))
	c.Deliver(chaintest.Named("p1"), sell("p1", lot(100, 1000)))
	if x := clearing(t, c).Clearing; x == nil || len(x.Demands) != 1 || x.Demands[0].Number != r.Demands[0].Number {
		t.Errorf("%+v: an order that wants more custodians than there are takes part", x)
	}
}

// What is in a clearing stands until it is over.
func TestBidsStandDuringAClearing(t *testing.T) {
	c := crowd(t)
	p0, o := chaintest.Named("p0"), batch(1, 6, 600_000)
	cancel := &marketv1.MsgCancelOrder{Consumer: consumer.String(), Order: o.ID().String()}
	if said := c.Refuse(auction.ErrClearing, p0, sell("p0")); !strings.Contains(said, "try again once it is over, in about ") {
		t.Errorf("it does not say when: %s", said)
	}
	c.Refuse(auction.ErrClearing, p0, sell("p0", lot(100, 9999)))
	c.Refuse(auction.ErrClearing, consumer, cancel)
	c.Deliver(chaintest.Named("p1"), sell("p1", lot(1, 1))) // it is not in it
	clear(t, c)
	c.Deliver(chaintest.Named("p1"), sell("p1"))
	if capacity(t, c, "p1") != 0 {
		t.Error("what was withdrawn is for sale")
	}
}

// A clearing locked what it could not trade: lots of tiers that nobody wants, and orders of tiers that nobody sells.
func TestAClearingBindsNothingThatItCannotTrade(t *testing.T) {
	c := newChain(t, fast("p1", 5_000))
	worktest.Offer(c, "v0")
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(30, 1000)))
	c.Deliver(chaintest.Named("p1"), sell("p1", auctionv1.Lot{Tier: "B", Units: 100, Ask: 1000}))
	lone, wanted := batch(1, 2, tally), batch(2, 3, tally)
	lone.Conditions.Needs.Tier = "A"
	c.Deliver(consumer, worktest.Post(lone))
	c.Deliver(consumer, worktest.Post(wanted))
	c.NextBlock(time.Minute)
	under := clearing(t, c).Clearing
	if under == nil || len(under.Demands) != 1 || len(under.Sellers) != 1 {
		t.Fatalf("it is of %+v", under)
	}
	c.Refuse(auction.ErrClearing, chaintest.Named("p0"), sell("p0"))
	c.Deliver(chaintest.Named("p1"), sell("p1"))
	c.Deliver(consumer, &marketv1.MsgCancelOrder{Consumer: consumer.String(), Order: lone.ID().String()})
	if r := finish(t, c); r.Leased != 1 {
		t.Errorf("%+v", r)
	}
}

// A provider that runs tells by the count what a person has changed from what a clearing has.
func TestTheChainCountsWhatAProviderSays(t *testing.T) {
	c := sellers(t)
	says := func(want uint64) {
		t.Helper()
		r, err := auctionv1.NewQueryClient(c).Capacity(context.Background(), &auctionv1.QueryCapacityRequest{Provider: chaintest.Named("p0").String()})
		if err != nil || r.Said != want {
			t.Errorf("it has said %d times what it sells, want %d: %v", r.GetSaid(), want, err)
		}
	}
	says(1)
	c.Deliver(consumer, worktest.Post(batch(1, 3, tally)))
	finish(t, c)
	if capacity(t, c, "p0") == 30 {
		t.Error("nothing was sold")
	}
	says(1)
	c.Refuse(auction.ErrCapacity, chaintest.Named("p0"), sell("p0", lot(0, 1)))
	says(1)
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(30, 1000)))
	c.Deliver(chaintest.Named("p0"), sell("p0"))
	says(3)
}

func TestSellRefuses(t *testing.T) {
	c := newChain(t, fast("p0", 5_000))
	for name, x := range map[string]struct {
		who  string
		m    *auctionv1.MsgSell
		says string
		err  *errorsmod.Error
	}{
		"a stranger":     {"consumer", sell("consumer", lot(1, 1)), "", provider.ErrNotRegistered},
		"a validator":    {"v0", sell("v0", lot(1, 1)), "is no provider", auction.ErrCapacity},
		"nothing":        {"p0", sell("p0"), "sells nothing", auction.ErrCapacity},
		"no units":       {"p0", sell("p0", lot(0, 1)), "0 units", auction.ErrCapacity},
		"for too much":   {"p0", sell("p0", lot(1, 1<<41)), "utally", auction.ErrCapacity},
		"too many":       {"p0", sell("p0", lot(1<<41, 1)), "units", auction.ErrCapacity},
		"twice":          {"p0", sell("p0", lot(1, 1), lot(2, 2)), "each once", auction.ErrCapacity},
		"no tier":        {"p0", sell("p0", auctionv1.Lot{Tier: "S", Units: 1, Ask: 1}), "its tiers are A, B, C", auction.ErrCapacity},
		"too fast":       {"p0", sell("p0", auctionv1.Lot{Tier: "A", Units: 1, Ask: 1}), "sell in tier B", auction.ErrCapacity},
		"over already":   {"p0", &auctionv1.MsgSell{Provider: chaintest.Named("p0").String(), Lots: []auctionv1.Lot{lot(1, 1)}, Ends: 1}, "later end", auction.ErrCapacity},
		"before it ends": {"p0", &auctionv1.MsgSell{Provider: chaintest.Named("p0").String(), Ends: -1}, "0 for no end", auction.ErrCapacity},
	} {
		if said := c.Refuse(x.err, chaintest.Named(x.who), x.m); !strings.Contains(said, x.says) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

func TestOrdersThatNoAuctionTakes(t *testing.T) {
	c := newChain(t)
	for says, x := range map[string]struct {
		err  *errorsmod.Error
		bend func(*job.Order)
	}{
		"sells capacity to batches": {market.ErrOrder, func(o *job.Order) { o.Problem = worktest.Order().Problem }},
		"replicas take a standing":  {market.ErrOrder, func(o *job.Order) { o.Conditions.Replicas, o.Conditions.Auditors, o.Conditions.AuditSegments = 2, 0, 0 }},
		"a tier and for nothing":    {market.ErrOrder, func(o *job.Order) { o.Conditions.Needs.Regions = []string{"DE"} }},
		"its tiers are A, B, C":     {auction.ErrDemand, func(o *job.Order) { o.Conditions.Needs.Tier = "S" }},
		"pays nobody":               {auction.ErrDemand, func(o *job.Order) { o.Conditions.MaxPrice = 20 }},
	} {
		o := batch(1, 4, tally)
		x.bend(&o)
		if said := c.Refuse(x.err, consumer, worktest.Post(o)); !strings.Contains(said, says) {
			t.Errorf("want %q: %s", says, said)
		}
	}
}

// Capacity ends by itself, but not what is in a clearing; a provider that has lost its stake or its speed sells nothing.
func TestCapacityEnds(t *testing.T) {
	c := newChain(t, fast("p1", 5_000))
	worktest.Offer(c, "v0")
	until := module.Now(c.Ctx()) + (3 * time.Second).Milliseconds()
	c.Deliver(chaintest.Named("p0"), &auctionv1.MsgSell{Provider: chaintest.Named("p0").String(), Lots: []auctionv1.Lot{lot(100, 1000)}, Ends: until})
	c.Deliver(chaintest.Named("p1"), sell("p1", auctionv1.Lot{Tier: "B", Units: 100, Ask: 1000}))
	b := batch(1, 4, tally)
	b.Conditions.Needs.Tier = "B"
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Discredit(ctx, chaintest.Named("p1").Address) }); err != nil {
		t.Fatal(err)
	}
	c.Deliver(consumer, worktest.Post(b))
	for range 4 {
		c.NextBlock(time.Second)
	}
	if clearing(t, c).Clearing != nil || capacity(t, c, "p0") != 0 {
		t.Error("an offer that has ended, and one of a provider that is not fast any more, make a clearing")
	}
}

// A chain that begins again from an export has all bids, and no clearing.
func TestAuctionsSurviveAnExport(t *testing.T) {
	c := crowd(t)
	out, err := c.Auction.ExportGenesis(c.Ctx())
	if err != nil || auction.ValidateGenesis(out) != nil || len(out.Demands) != 3 || len(out.Capacities) != 1 {
		t.Fatalf("%+v, %v, %v", out, err, auction.ValidateGenesis(out))
	}
	ctx, svc, cdc := chaintest.Store(t)
	again := auction.NewKeeper(cdc, svc, auction.Needs{})
	if err := again.InitGenesis(ctx, out); err != nil {
		t.Fatal(err)
	}
	if second, err := again.ExportGenesis(ctx); err != nil || second.String() != out.String() {
		t.Errorf("%v, %v", second, err)
	}
	for name, bend := range map[string]func(*auctionv1.GenesisState){
		"order twice":    func(g *auctionv1.GenesisState) { g.Demands[1].Number = g.Demands[0].Number },
		"no order":       func(g *auctionv1.GenesisState) { g.Demands[0].Order = nil },
		"no units":       func(g *auctionv1.GenesisState) { g.Demands[0].Units = 0 },
		"fee":            func(g *auctionv1.GenesisState) { g.Demands[0].Fee = g.Demands[0].Budget + 1 },
		"capacity twice": func(g *auctionv1.GenesisState) { g.Capacities = append(g.Capacities, g.Capacities[0]) },
		"no lots":        func(g *auctionv1.GenesisState) { g.Capacities[0].Lots = nil },
		"rule":           func(g *auctionv1.GenesisState) { g.Params.Rule = "literal" },
		"cleared":        func(g *auctionv1.GenesisState) { g.Cleared = []auctionv1.Cleared{{Number: 99}} },
	} {
		g, err := c.Auction.ExportGenesis(c.Ctx())
		if err != nil {
			t.Fatal(err)
		}
		if bend(g); auction.ValidateGenesis(g) == nil {
			t.Errorf("%s: a bent genesis was taken", name)
		}
	}
	// What no genesis of this module alone can tell: a demand of an order that is not there.
	err = c.Do(func(ctx sdk.Context) error {
		_, err := c.Auction.Leave(ctx, out.Demands[0].Number)
		return errors.Join(err, c.CheckInvariants(ctx))
	})
	if err == nil || !strings.Contains(err.Error(), "3 orders wait for auctions, and 2 have a demand") {
		t.Errorf("an order waits for auctions without a demand: %v", err)
	}
}

func TestAuctionRulesThatMayNotBeSet(t *testing.T) {
	for name, bend := range map[string]func(*auctionv1.Params){
		"period":   func(p *auctionv1.Params) { p.PeriodMs = 0 },
		"window":   func(p *auctionv1.Params) { p.WindowMs = p.PeriodMs + 1 },
		"rule":     func(p *auctionv1.Params) { p.Rule = "literal" },
		"demands":  func(p *auctionv1.Params) { p.MaxDemands = 1 << 20 },
		"lots":     func(p *auctionv1.Params) { p.MaxLots = 0 },
		"critical": func(p *auctionv1.Params) { p.Rule = "critical" },
		"ageing":   func(p *auctionv1.Params) { p.AgeStep, p.AgeMost = 1<<31, 1<<31 },
		"fee":      func(p *auctionv1.Params) { p.FeeBps = 10_001 },
		"balance":  func(p *auctionv1.Params) { p.Balance = 1 << 20 },
		"answer":   func(p *auctionv1.Params) { p.AnswerMs = 1 << 40 },
		"no time":  func(p *auctionv1.Params) { p.AnswerMs = 0 },
		"no bond":  func(p *auctionv1.Params) { p.AbsentBps = 0 },
		"bond":     func(p *auctionv1.Params) { p.AbsentBps = 10_001 },
		"doubt":    func(p *auctionv1.Params) { p.DoubtBps = 1 << 20 },
	} {
		p := auction.DefaultParams()
		if bend(&p); auction.CheckParams(p) == nil {
			t.Errorf("%s: %+v may be set", name, p)
		}
	}
	c := newChain(t, chaintest.Authority("consumer"))
	p := auction.DefaultParams()
	p.Rule, p.MaxDemands = "critical", 256
	c.Deliver(consumer, &auctionv1.MsgUpdateParams{Authority: consumer.String(), Params: p})
	c.Refuse(module.ErrAuthority, v1, &auctionv1.MsgUpdateParams{Authority: v1.String(), Params: p})
	r, err := auctionv1.NewQueryClient(c).Params(context.Background(), &auctionv1.QueryParamsRequest{})
	if err != nil || r.Params.Rule != "critical" || r.Authority != consumer.String() {
		t.Errorf("%+v, %v", r, err)
	}
}

// With as many bids as a clearing may have, no block takes more than a few milliseconds for it.
func BenchmarkClearing(b *testing.B) {

	full := &auctionv1.Clearing{Number: 1, Params: auction.DefaultParams(), Tiers: []string{"A", "B", "C"}, OpenedAt: 1, ClosesAt: 2}
	for i := range 1024 {
		id := canon.Sum(canon.DomainDraw, []byte{byte(i), byte(i >> 8)})
		full.Demands = append(full.Demands, auctionv1.Demand{Number: uint64(i), Order: id[:], Units: 1 + uint64(id[0]), Budget: 1e6 + uint64(id[1])*1e4})
		full.Sellers = append(full.Sellers, auctionv1.Seller{Provider: sdk.AccAddress(id[:20]).String(), Account: id[:20], Lots: []auctionv1.SoldLot{{Kind: 2, Units: 100 + uint64(id[2]), Ask: 1000 + uint64(id[3])}}})
	}

	slices.SortFunc(full.Demands, func(x, y auctionv1.Demand) int { return strings.Compare(string(x.Order), string(y.Order)) })
	slices.SortFunc(full.Sellers, func(x, y auctionv1.Seller) int {
		return strings.Compare(string(x.Account), string(y.Account))
	})
	stored, err := full.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	for _, rule := range []core.Rule{core.Midpoint, core.Critical} {
		b.Run(rule.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(len(stored)), "stored-bytes")
			for b.Loop() {
				var read auctionv1.Clearing
				if err := read.Unmarshal(stored); err != nil {
					b.Fatal(err)
				}
				if read.Params.Rule = rule.String(); rule == core.Critical {
					read.Demands = read.Demands[:256]
				}
				book, rules, err := wire.BookOf(&read)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := core.Fallback(book, rules); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
