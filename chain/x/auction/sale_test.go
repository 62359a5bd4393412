package auction_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/auction"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// stake is what a peer has at stake, and what of it is reserved.
func stake(t testing.TB, c *chaintest.Chain, name string) (all, reserved uint64) {
	t.Helper()
	p, err := c.Provider.Get(c.Ctx(), chaintest.Named(name).Address)
	if err != nil {
		t.Fatal(err)
	}
	return p.Stake, p.Reserved
}

// answerTime is how long who has sold has by the default rules.
const answerTime = auction.DefaultAnswer

// trade is a chain on which p0 and p1 have just sold an order of 50 units 30 and 20 of theirs.
func trade(t testing.TB, more ...chaintest.Option) (*chaintest.Chain, job.Order) {
	t.Helper()
	c := newChain(t, more...)
	worktest.Offer(c, "v0")
	c.Queue(chaintest.Named("p0"), sell("p0", lot(30, 1000)))
	c.Queue(chaintest.Named("p1"), sell("p1", lot(40, 1500)))
	o := batch(1, 5, 2*tally)
	c.Queue(consumer, worktest.Post(o))
	all(t, c.NextBlock(time.Second))
	if r := clear(t, c); r.Sales != 1 || len(sold(t, c)) != 1 {
		t.Fatalf("%+v, %+v", r, sold(t, c))
	}
	return c, o
}

// What is sold binds a bond in proportion to what it earns, and the lease begins with the last word of those who sold.
func TestSellersTakeTheOrderOn(t *testing.T) {
	c, o := trade(t)
	d := sold(t, c)[0]
	p0, p1 := chaintest.Named("p0"), chaintest.Named("p1")
	for i, x := range []struct {
		name  string
		units uint64
	}{{"p0", 30}, {"p1", 20}} {
		s := d.Sale.Sellers[i]
		_, reserved := stake(t, c, x.name)
		if s.Units != x.units || s.Bond != (x.units*d.Sale.Price+9)/10 || reserved != s.Bond || d.Sale.Price < 1500 {
			t.Errorf("%s has %d utally reserved for %+v at %d", x.name, reserved, s, d.Sale.Price)
		}
	}
	if p := posting(t, c, o); p.Status != marketv1.STATUS_OPEN || p.Escrow != o.Conditions.MaxPrice+p.Deposit || capacity(t, c, "p0") != 0 || capacity(t, c, "p1") != 20 {
		t.Errorf("%+v before its sellers have come; %d and %d are on sale", p, capacity(t, c, "p0"), capacity(t, c, "p1"))
	}
	for says, m := range map[string]*auctionv1.MsgTakeOn{
		"nothing that clearing 9": {Provider: p0.String(), Clearing: 9, Order: o.ID().String()},
		"has sold nothing":        takeOn(d, chaintest.Named("q0").String()),
		"want 64":                 {Provider: p0.String(), Clearing: d.Sale.Clearing, Order: "7"},
	} {
		if said := c.Refuse(auction.ErrSale, worktest.Named(t, m.Provider), m); !strings.Contains(said, says) {
			t.Errorf("want %q: %s", says, said)
		}
	}
	c.Refuse(auction.ErrCapacity, p1, sell("p1", lot(40, 9000))) // what is sold stands
	c.Refuse(auction.ErrClearing, consumer, &marketv1.MsgCancelOrder{Consumer: consumer.String(), Order: o.ID().String()})
	c.Deliver(p0, takeOn(d, p0.String()))
	if said := c.Refuse(auction.ErrSale, p0, takeOn(d, p0.String())); !strings.Contains(said, "already") {
		t.Error(said)
	}
	q, err := auctionv1.NewQueryClient(c).Sales(context.Background(), &auctionv1.QuerySalesRequest{Provider: p0.String()})
	if err != nil || len(q.Sales) != 1 || q.Sales[0].Order != o.ID().String() || !q.Sales[0].Part.Taken || q.Sales[0].Until != d.Sale.Until {
		t.Errorf("%+v, %v", q, err)
	}
	if posting(t, c, o).Status != marketv1.STATUS_OPEN {
		t.Error("a lease begins without p1")
	}
	c.Deliver(p1, takeOn(d, p1.String()))
	if p := posting(t, c, o); p.Status != marketv1.STATUS_LEASED {
		t.Fatalf("%+v", p)
	}
	if l := worktest.Join(t, c, o).State(); len(l.Providers) != 2 || l.Providers[0].Rates.GFLOP != d.Sale.Price {
		t.Errorf("%+v", l.Providers)
	}
	for i, name := range []string{"p0", "p1"} { // until the lease ends
		if _, reserved := stake(t, c, name); reserved != d.Sale.Sellers[i].Bond {
			t.Errorf("%s has %d utally reserved, want %d", name, reserved, d.Sale.Sellers[i].Bond)
		}
	}
	c.Deliver(p1, sell("p1", lot(40, 9000)))
	c.Refuse(auction.ErrSale, p0, takeOn(d, p0.String()))
}

// Who has sold and does not come in time loses its bond and sells nothing. Whoever came has all as it was, and the order
// waits for the next clearing with its money and a clearing older.
func TestAbsentSellersLoseTheirBond(t *testing.T) {
	for _, x := range []struct{ comes, absent []string }{{nil, []string{"p0", "p1"}}, {[]string{"p0"}, []string{"p1"}}, {[]string{"p1"}, []string{"p0"}}} {
		c, o := trade(t)
		c.Deliver(chaintest.Named("p2"), sell("p2", lot(10, 3000)))
		d := sold(t, c)[0]
		before := map[string]uint64{}
		for _, s := range d.Sale.Sellers {
			name := worktest.Named(t, s.Provider).Name
			before[name], _ = stake(t, c, name)
			if slices.Contains(x.comes, name) {
				c.Deliver(chaintest.Named(name), takeOn(d, s.Provider))
			}
		}
		b := c.NextBlock(answerTime)
		gone := chaintest.Events[*auctionv1.EventAbsent](t, b)
		if len(gone) != len(x.absent) || len(sold(t, c)) != 0 {
			t.Fatalf("%v: %+v", x.absent, gone)
		}
		for _, s := range d.Sale.Sellers {
			name := worktest.Named(t, s.Provider).Name
			lost, units := uint64(0), map[string]uint64{"p0": 30, "p1": 40}[name]
			if slices.Contains(x.absent, name) {
				lost, units = s.Bond, 0
				c.Refuse(auction.ErrSale, chaintest.Named(name), takeOn(d, s.Provider)) // too late
				c.Deliver(chaintest.Named(name), sell(name, lot(5, 1000)))              // and may sell again
				units = 5
			}
			if has, reserved := stake(t, c, name); has != before[name]-lost || reserved != 0 || capacity(t, c, name) != units {
				t.Errorf("%v came: %s has %d of %d, %d reserved, and sells %d, want %d", x.comes, name, has, before[name], reserved, capacity(t, c, name), units)
			}
		}
		r, err := auctionv1.NewQueryClient(c).Demands(context.Background(), &auctionv1.QueryDemandsRequest{})
		if err != nil || len(r.Demands) != 1 || r.Demands[0].Age != d.Age+1 || r.Demands[0].Absent != 1 || r.Demands[0].Failed != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if p := posting(t, c, o); p.Status != marketv1.STATUS_OPEN || p.Escrow != o.Conditions.MaxPrice+p.Deposit {
			t.Errorf("%+v", p)
		}
		c.Deliver(chaintest.Named("q0"), sell("q0", lot(100, 2000)))
		c.NextBlock(auction.DefaultPeriod)
		if r := finish(t, c); r.Leased != 1 {
			t.Errorf("%+v", r)
		}
	}
}

// An order ends when it says, while its sellers are still waited for: that is nobody's fault, and all is as it was.
func TestOrdersEndWhileSellersAreWaitedFor(t *testing.T) {
	c := newChain(t, auctionRules(func(p *auctionv1.Params) { p.AnswerMs = p.PeriodMs }))
	worktest.Offer(c, "v0")
	o := batch(1, 3, tally)
	o.Conditions.Expires = (80 * time.Second).Milliseconds()
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(19 * time.Second)
	c.NextBlock(18 * time.Second)
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(40, 1000)))
	had, _ := stake(t, c, "p0")
	c.NextBlock(30 * time.Second) // a late block: else its sellers' time is over before its own
	c.NextBlock(time.Second)
	d := sold(t, c)
	if len(d) != 1 || d[0].Sale.Until < d[0].ExpiresAt || capacity(t, c, "p0") != 10 {
		t.Fatalf("%+v", d)
	}
	c.NextBlock(20 * time.Second)
	if p := posting(t, c, o); p.Status != marketv1.STATUS_EXPIRED || p.Escrow != 0 || p.Absent != 0 {
		t.Errorf("%+v", p)
	}
	if has, reserved := stake(t, c, "p0"); has != had || reserved != 0 || capacity(t, c, "p0") != 40 {
		t.Errorf("%d of %d utally are left, %d reserved, and %d of 40 units are on sale", has, had, reserved, capacity(t, c, "p0"))
	}
	c.Refuse(auction.ErrSale, chaintest.Named("p0"), takeOn(d[0], chaintest.Named("p0").String()))
}

// An order for which nobody comes ends at its own time, has all its money back, and says why.
func TestOrdersSayThatNobodyCame(t *testing.T) {
	c, o := trade(t)
	had := c.Balance(consumer.Address)
	c.NextBlock(answerTime)
	for range 25 {
		c.NextBlock(29 * time.Second)
	}
	if p := posting(t, c, o); p.Status != marketv1.STATUS_EXPIRED || p.Escrow != 0 || p.Absent != 1 {
		t.Errorf("%+v", p)
	}
	if p := posting(t, c, o); c.Balance(consumer.Address) != had+o.Conditions.MaxPrice+p.Deposit {
		t.Errorf("%d of %d are back", c.Balance(consumer.Address)-had, o.Conditions.MaxPrice+p.Deposit)
	}
}

// A seller that is jailed after its word loses no bond by that, and the order no more than a clearing.
func TestSellersThatAreJailedMeanwhile(t *testing.T) {
	c, o := trade(t)
	d := sold(t, c)[0]
	p0, p1 := chaintest.Named("p0"), chaintest.Named("p1")
	had, _ := stake(t, c, "p0")
	c.Deliver(p0, takeOn(d, p0.String()))
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Jail(ctx, p0.Address, module.Now(ctx)+1<<30) }); err != nil {
		t.Fatal(err)
	}
	b := all(t, deliver(c, p1, takeOn(d, p1.String())))
	if x := chaintest.Events[*auctionv1.EventObstacle](t, b); len(x) != 1 || !strings.Contains(x[0].Reason, "of 50 units that were sold to it 20 are left") {
		t.Errorf("%+v", x)
	}
	if has, reserved := stake(t, c, "p0"); has != had || reserved != 0 || capacity(t, c, "p1") != 40 {
		t.Errorf("%d of %d utally are left, %d reserved; p1 sells %d", has, had, reserved, capacity(t, c, "p1"))
	}
	c.Deliver(chaintest.Named("q0"), sell("q0", lot(100, 2000)))
	c.NextBlock(auction.DefaultPeriod)
	if r := finish(t, c); r.Leased != 1 || capacity(t, c, "p0") != 0 {
		t.Errorf("%+v", r)
	}
	if l := worktest.Join(t, c, o).State(); l.Phase != job.Active {
		t.Errorf("%+v", l.Phase)
	}
}

// Who is absent sells nothing in a clearing either that was under way then.
func TestAbsentSellersSellNothingElse(t *testing.T) {
	c := newChain(t, auctionRules(func(p *auctionv1.Params) { p.PeriodMs, p.WindowMs, p.AnswerMs = 20_000, 20_000, 10_000 }))
	worktest.Offer(c, "v0")
	c.Queue(chaintest.Named("p0"), sell("p0", lot(100, 1000)))
	c.Queue(consumer, worktest.Post(batch(1, 3, tally)))
	all(t, c.NextBlock(time.Second))
	c.NextBlock(20 * time.Second)
	c.NextBlock(time.Second)
	c.Deliver(consumer, worktest.Post(batch(2, 3, tally)))
	if x := clearing(t, c).Clearing; x == nil || len(x.Demands) != 1 || len(sold(t, c)) != 1 {
		t.Fatalf("%+v, %+v", x, sold(t, c))
	}
	if b := c.NextBlock(12 * time.Second); len(chaintest.Events[*auctionv1.EventAbsent](t, b)) != 1 || capacity(t, c, "p0") != 0 {
		t.Fatalf("p0 sells %d", capacity(t, c, "p0"))
	}
	if r := clear(t, c); r.Trades != 1 || r.Sales != 0 || len(sold(t, c)) != 0 {
		t.Errorf("%+v, %+v", r, sold(t, c))
	}
}

func deliver(c *chaintest.Chain, who chaintest.Account, m sdk.Msg) chaintest.Block {
	c.Queue(who, m)
	return c.NextBlock(time.Second)
}

// The bond of a sale is at most a tenth of the least stake. A buyer made it more than the sellers' stake by a high price, and had them
// taken off sale: no other was served any more. By sealed bids their deposits were burnt.
func TestNoBuyerMakesABondThatSellersCannotPutUp(t *testing.T) {
	c := newChain(t, auctionRules(func(p *auctionv1.Params) { p.AbsentBps = 10_000 }))
	worktest.Offer(c, "v0")
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(2000, 1_400_000)))
	c.Deliver(consumer, worktest.Post(batch(1, 100, 4900*tally))) // 1,000 units: more than all its stake
	if r := finish(t, c); r.Sales != 1 || r.Leased != 1 || capacity(t, c, "p0") != 1000 {
		t.Errorf("%+v, and %d units are on sale", r, capacity(t, c, "p0"))
	}
}

// A chain that begins again from an export has its sales, with bonds and words, and goes on with them.
func TestSalesSurviveAnExport(t *testing.T) {
	for _, comes := range []bool{false, true} {
		c, o := trade(t)
		d := sold(t, c)[0]
		p0, p1 := chaintest.Named("p0"), chaintest.Named("p1")
		c.Deliver(p0, takeOn(d, p0.String()))
		fork := c.Fork()
		if x := sold(t, fork); len(x) != 1 || x[0].Sale.String() != sold(t, c)[0].Sale.String() {
			t.Fatalf("%+v", x)
		}
		if comes {
			fork.Deliver(p1, takeOn(d, p1.String()))
			if posting(t, fork, o).Status != marketv1.STATUS_LEASED {
				t.Error("no lease begins after an export")
			}
			continue
		}
		if b := fork.NextBlock(answerTime); len(chaintest.Events[*auctionv1.EventAbsent](t, b)) != 1 || capacity(t, fork, "p0") != 30 {
			t.Errorf("p1 is not absent, or p0 sells %d of 30", capacity(t, fork, "p0"))
		}
		for name, bend := range map[string]func(*auctionv1.Sale){
			"no clearing": func(x *auctionv1.Sale) { x.Clearing = 0 }, "no tier": func(x *auctionv1.Sale) { x.Tier = "" },
			"no price": func(x *auctionv1.Sale) { x.Price = 0 }, "pays less": func(x *auctionv1.Sale) { x.Pays = x.Price - 1 },
			"nobody": func(x *auctionv1.Sale) { x.Sellers = nil }, "twice": func(x *auctionv1.Sale) { x.Sellers[1] = x.Sellers[0] },
			"no units": func(x *auctionv1.Sale) { x.Sellers[0].Units = 0 }, "who": func(x *auctionv1.Sale) { x.Sellers[0].Provider = "p0" },
		} {
			g, err := c.Auction.ExportGenesis(c.Ctx())
			if err != nil {
				t.Fatal(err)
			}
			if bend(g.Demands[0].Sale); auction.ValidateGenesis(g) == nil {
				t.Errorf("%s: %+v is taken", name, g.Demands[0].Sale)
			}
		}
	}
}

// Whoever comes or not, in whatever order: money is conserved, no bond is left behind, and clearings go on. Invariants are checked
// after each block.
func TestSalesAtRandom(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(11, seed))
		c := newChain(t, auctionRules(func(p *auctionv1.Params) { p.PeriodMs, p.WindowMs = 20_000, 5_000 }))
		worktest.Offer(c, "v0")
		names, orders := []string{"p0", "p1", "q0"}, []job.Order{batch(1, 1, tally)}
		absent, leased := 0, 0
		for n := range 80 {
			for _, name := range names {
				if r.IntN(4) == 0 {
					c.Queue(chaintest.Named(name), sell(name, lot(10+uint64(r.IntN(40)), 1000*(1+uint64(r.IntN(3))))))
				}
			}
			for _, d := range sold(t, c) {
				for _, x := range d.Sale.Sellers {
					if r.IntN(3) == 0 {
						c.Queue(worktest.Named(t, x.Provider), takeOn(d, x.Provider))
					}
				}
			}
			switch r.IntN(6) {
			case 0:
				c.Queue(consumer, &marketv1.MsgCancelOrder{Consumer: consumer.String(), Order: orders[r.IntN(len(orders))].ID().String()})
			case 1, 2:
				o := batch(uint64(10+n), 1+r.IntN(5), tally)
				o.Conditions.Expires = 60_000 + int64(r.IntN(60_000))
				orders = append(orders, o)
				c.Queue(consumer, worktest.Post(o))
			case 3:
				name := names[r.IntN(3)]
				c.Queue(chaintest.Named(name), &providerv1.MsgWithdraw{Account: chaintest.Named(name).String(), Amount: uint64(r.IntN(300)) * tally})
			}
			b := c.NextBlock(time.Duration(r.IntN(12)) * time.Second)
			absent += len(chaintest.Events[*auctionv1.EventAbsent](t, b))
			leased += len(chaintest.Events[*marketv1.EventMatched](t, b))
		}
		for len(sold(t, c)) > 0 {
			c.NextBlock(20 * time.Second)
		}
		bonds, err := c.Auction.Reserved(c.Ctx())
		if err != nil || len(bonds) > 0 || absent == 0 || leased == 0 {
			t.Errorf("seed %d: %d were absent, %d leases began, %v are bound, %v", seed, absent, leased, bonds, err)
		}
	}
}
