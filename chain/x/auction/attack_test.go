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

// Who copies another's commitment bids what it does not know, cannot reveal it, and pays for it.
func TestCopiedCommitmentIsUseless(t *testing.T) {
	c, orders := rooms(t, sealedBy("sbba"))
	n, p1 := number(t, c), chaintest.Named("p1")
	honest, later := askOf("p0", 1000), bidFor(orders[0], 9000)
	copied := askOf("p1", 1000).seal(n)
	copied.Commitment = honest.commitment(n)
	c.Queue(honest.who, honest.seal(n))
	c.Queue(p1, copied)
	forOther := bidFor(orders[1], 9000).seal(n) // one's own, for another order
	forOther.Commitment = later.commitment(n)
	c.Queue(consumer, forOther)
	again := later.seal(n) // one's own, of another clearing
	again.Commitment = later.commitment(n + 1)
	c.Queue(consumer, again)
	all(t, c.NextBlock(time.Second))
	c.NextBlock(window)
	c.Deliver(honest.who, honest.reveal(n))
	c.Refuse(auction.ErrSeal, p1, askOf("p1", 1000).reveal(n))
	theirs := honest.reveal(n)
	theirs.Bidder = p1.String()
	c.Refuse(auction.ErrSeal, p1, theirs)
	c.Refuse(auction.ErrSeal, consumer, bidFor(orders[1], 9000).reveal(n))
	c.Refuse(auction.ErrSeal, consumer, later.reveal(n))
	c.NextBlock(reveal)
	if p := clearing(t, c).Progress; p.Burnt != 3*tally || p.Revealed != 1 {
		t.Errorf("%+v", p)
	}
}

// A price beyond what an order has locked counts as that, and one below what a lot names as that: nobody pays or earns otherwise.
func TestRevealsKeepTheBounds(t *testing.T) {
	c, orders := rooms(t, sealedBy("mcafee"))
	for _, name := range []string{"p0", "p1", "q0"} {
		c.Deliver(chaintest.Named(name), sell(name, lot(50, 4000)))
	}
	r, _ := play(t, c, []bid{askOf("p0", 1), askOf("p1", 1), askOf("q0", 1), bidFor(orders[0], 1<<40), bidFor(orders[1], 1<<39), bidFor(orders[2], 1<<38)})
	if r.Leased != 2 || r.Tiers[2].Low != 4000 {
		t.Errorf("%+v", r)
	}
	for _, o := range orders {
		if p := posting(t, c, o); p.Status == marketv1.STATUS_LEASED && p.Price > o.Conditions.MaxPrice {
			t.Errorf("order %d costs %d of %d", o.Nonce, p.Price, o.Conditions.MaxPrice)
		}
	}
}

// Who is last to reveal does not know the chance: it comes from a later block, even if that is the block's own proposer.
func TestChanceComesAfterReveals(t *testing.T) {
	c, orders := rooms(t, sealedBy("sbba"))
	n, bids := number(t, c), bidsOf(orders)
	for _, b := range bids {
		c.Queue(b.who, b.seal(n))
	}
	all(t, c.NextBlock(time.Second))
	c.NextBlock(window)
	for _, b := range bids {
		c.Queue(b.who, b.reveal(n))
	}
	last := all(t, c.NextBlock(time.Second))
	r := clearing(t, c)
	if known := valueOf(t, c); len(r.Clearing.Seed) != 0 || r.Progress.Closed || r.Progress.RevealedAt == 0 || known == "" {
		t.Fatalf("%+v has chance in the block of the last reveal, %d", r.Progress, len(last.TxResults))
	}
	known := valueOf(t, c)
	c.NextBlock(time.Second) // of no transactions: the clearing alone asks for a value
	if r = clearing(t, c); string(r.Clearing.Seed) == known || string(r.Clearing.Seed) != valueOf(t, c) {
		t.Errorf("the chance is %x, %x was known", r.Clearing.Seed, known)
	}
}

func valueOf(t *testing.T, c *chaintest.Chain) string {
	t.Helper()
	v, _, err := c.Beacon.Value(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	return string(v[:])
}

// A seller that takes its stake out after its reveal is not sold, and the order that it would have got loses a clearing at most.
func TestSealedSellersWithoutStake(t *testing.T) {
	for _, after := range []bool{false, true} { // the reveals are over
		c, orders := rooms(t, sealedBy("exponential", func(p *auctionv1.Params) { p.Epsilon = 100_000 }))
		n, bids := number(t, c), bidsOf(orders)
		p0 := bids[0].who
		for _, b := range bids {
			c.Queue(b.who, b.seal(n))
		}
		all(t, c.NextBlock(time.Second))
		c.NextBlock(window)
		leave := &providerv1.MsgWithdraw{Account: p0.String(), Amount: 1000 * tally}
		for i, b := range bids {
			if c.Queue(b.who, b.reveal(n)); i == 0 && !after {
				c.Queue(p0, leave)
			}
		}
		all(t, c.NextBlock(time.Second))
		if after {
			c.Queue(p0, leave)
		}
		all(t, c.NextBlock(time.Second))
		c.NextBlock(time.Second)
		q, err := auctionv1.NewQueryClient(c).Cleared(t.Context(), &auctionv1.QueryClearedRequest{})
		if err != nil || q.Cleared[0].Number != n || q.Cleared[0].Sales != 2 || after != (q.Cleared[0].Sellers == 3) {
			t.Errorf("after: %v, %+v, %v", after, q, err)
		}
	}
}
