package auction_test

import (
	"testing"
	"time"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/auction"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// Attacks that were played against auctions, and what stops them.

func auctionRules(bend func(*auctionv1.Params)) chaintest.Option {
	return func(g *app.Genesis) {
		g.Auction = auction.DefaultParams()
		bend(&g.Auction)
	}
}

// Whoever sells for next to nothing and then takes its stake out does not stand before the others for good.
func TestDeadLotsMakeRoom(t *testing.T) {
	c := newChain(t, auctionRules(func(p *auctionv1.Params) { p.MaxLots = 1 }))
	worktest.Offer(c, "v0")
	p0 := chaintest.Named("p0")
	c.Deliver(p0, sell("p0", lot(30, 1)))
	c.Deliver(p0, &providerv1.MsgWithdraw{Account: p0.String(), Amount: 1000 * tally})
	c.Refuse(auction.ErrCapacity, p0, sell("p0", lot(30, 2))) // without stake nobody sells
	c.Deliver(chaintest.Named("p1"), sell("p1", lot(30, 1000)))
	o := batch(1, 1, tally)
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(auction.DefaultPeriod)
	if r := finish(t, c); r.Leased != 1 || capacity(t, c, "p0") != 0 {
		t.Errorf("%+v", r)
	}
}

// An order that will be gone before a clearing ends takes no part in it: it would win and leave.
func TestOrdersThatAreGoneSoonTakeNoPart(t *testing.T) {
	c := newChain(t)
	o := batch(1, 1, tally)
	o.Conditions.Expires = 5_000
	c.Refuse(auction.ErrDemand, consumer, worktest.Post(o))
	o.Conditions.Expires = (2 * time.Minute).Milliseconds()
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(80 * time.Second) // no more than half a minute passes for the chain
	for range 3 {
		c.NextBlock(25 * time.Second)
	}
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(30, 1)))
	if x := clearing(t, c).Clearing; x != nil {
		t.Errorf("%+v", x)
	}
}

// Nobody sells everything to everybody.
func TestNobodySellsMoreThanItComputes(t *testing.T) {
	c := newChain(t, fast("p1", 1_000))
	c.Refuse(auction.ErrCapacity, chaintest.Named("p0"), sell("p0", lot(1<<40, 1)))
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(100*4*3600, 1)))
	c.Refuse(auction.ErrCapacity, chaintest.Named("p0"), sell("p0", lot(100*4*3600+1, 1)))
	c.Deliver(chaintest.Named("p1"), sell("p1", lot(1_000*4*3600, 1)))
}

// What others sold is not left to whoever sold a crumb of it.
func TestCrumbIsNotTheWholeLease(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v0")
	p0 := chaintest.Named("p0")
	c.Deliver(p0, sell("p0", lot(9_990, 100)))
	c.Deliver(chaintest.Named("p1"), sell("p1", lot(10, 101)))
	o := batch(1, 1_000, 1000*tally)
	c.Deliver(consumer, worktest.Post(o))
	c.Deliver(p0, &providerv1.MsgWithdraw{Account: p0.String(), Amount: 1000 * tally})
	if r := finish(t, c); r.Trades != 1 || r.Leased != 0 || capacity(t, c, "p0") != 0 || capacity(t, c, "p1") != 10 {
		t.Errorf("%+v, %d and %d units are left", r, capacity(t, c, "p0"), capacity(t, c, "p1"))
	}
}

// However little that is.
func TestCrumbOfLittleIsNotTheWholeLease(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v0")
	p0 := chaintest.Named("p0")
	c.Deliver(p0, sell("p0", lot(9, 100)))
	c.Deliver(chaintest.Named("p1"), sell("p1", lot(1, 101)))
	c.Deliver(consumer, worktest.Post(batch(1, 1, tally)))
	c.Deliver(p0, &providerv1.MsgWithdraw{Account: p0.String(), Amount: 1000 * tally})
	if r := finish(t, c); r.Trades != 1 || r.Leased != 0 {
		t.Errorf("%+v", r)
	}
}

// Rules that hold for orders of the book hold for those of auctions.
func TestUnsuitedOrdersHaveNoLease(t *testing.T) {
	c := newChain(t, worktest.Rules(func(p *job.Params) {
		d := job.DefaultParams
		p.ForcedBps, p.TaxBps, p.JackpotFactor = d.ForcedBps, d.TaxBps, d.JackpotFactor
	}))
	worktest.Offer(c, "v0")
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(300, 1000)))
	o := batch(1, 2, 10*tally)
	o.Conditions.Auditors, o.Conditions.AuditSegments = 2, 2 // they would copy from one another
	c.Deliver(consumer, worktest.Post(o))
	if r := finish(t, c); r.Trades != 1 || r.Leased != 0 || posting(t, c, o).Status != marketv1.STATUS_OPEN {
		t.Errorf("%+v", r)
	}
}

// An order of next to no work cannot bid high for nothing.
func TestOrdersOfNothingPayNothing(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v0")
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(300, 100_000)))
	o := batch(1, 1, tally)
	o.Problem.Steps, o.Problem.Records, o.Problem.StepFLOPs = 1, 1, 1
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(auction.DefaultPeriod)
	if r := finish(t, c); r.Trades != 0 {
		t.Errorf("%+v", r)
	}
}
