package auction_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
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
	c := newChain(t, fast("p1", 6_000))
	c.Refuse(auction.ErrCapacity, chaintest.Named("p0"), sell("p0", lot(1<<40, 1)))
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(100*4*3600, 1)))
	c.Refuse(auction.ErrCapacity, chaintest.Named("p0"), sell("p0", lot(100*4*3600+1, 1)))
	c.Deliver(chaintest.Named("p1"), sell("p1", lot(6_000*4*3600, 1)))
	two := func(b, c uint64) *auctionv1.MsgSell {
		return sell("p1", auctionv1.Lot{Tier: "B", Units: b, Ask: 1}, auctionv1.Lot{Tier: "C", Units: c, Ask: 1})
	}
	c.Deliver(chaintest.Named("p1"), two(4_000*4*3600, 2_000*4*3600))
	c.Refuse(auction.ErrCapacity, chaintest.Named("p1"), two(4_000*4*3600, 2_000*4*3600+1)) // each is within the bound
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

// Rules that hold for orders of the book hold for those of auctions, when they are posted. An order that could not be leased won, took
// what it won from others, and lost nothing.
func TestUnsuitedOrdersHaveNoLease(t *testing.T) {
	c := newChain(t, worktest.Rules(func(p *job.Params) {
		d := job.DefaultParams
		p.ForcedBps, p.TaxBps, p.JackpotFactor = d.ForcedBps, d.TaxBps, d.JackpotFactor
	}))
	worktest.Offer(c, "v0")
	for says, bend := range map[string]func(*job.Order){
		"would copy each other":          func(o *job.Order) { o.Conditions.Auditors, o.Conditions.AuditSegments = 2, 2 },
		"the unit timeout must be":       func(o *job.Order) { o.Conditions.UnitTimeout = 1000 },
		"names a validator takes a stan": func(o *job.Order) { o.Conditions.Validator = chaintest.Named("p0").String() },
	} {
		o := batch(1, 2, 10*tally)
		bend(&o)
		c.Queue(consumer, worktest.Post(o))
		if r := c.NextBlock(time.Second).TxResults[0]; r.Code == 0 || !strings.Contains(r.Log, says) {
			t.Errorf("want %q: %s", says, r.Log)
		}
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
	if r := clearing(t, c).Clearing; r != nil {
		t.Errorf("it is in a clearing: %+v", r)
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

// A seller that takes its stake out after its reveal is not sold, and the order that it would have got loses a clearing at most. Its
// deposit is burnt. It was back with the reveal: whoever had several names withheld for nothing what did not suit it.
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
		if err != nil || q.Cleared[0].Number != n || q.Cleared[0].Sales != 2 || after != (q.Cleared[0].Sellers == 3) || q.Cleared[0].Burnt != tally {
			t.Errorf("after: %v, %+v, %v", after, q, err)
		}
	}
}

// Whoever fills a clearing with orders of next to nothing, whose deposits come back, kept all others out for some fees. Now an order that
// has locked more takes a place.
func TestSmallOrdersDoNotFillAClearing(t *testing.T) {
	c, orders := rooms(t, sealedBy("mcafee", func(p *auctionv1.Params) { p.MaxDemands = 2 }), chaintest.Fund(100*tally, "squatter"))
	n, squatter := number(t, c), chaintest.Named("squatter")
	var small []bid
	for i := range 2 {
		o := batch(uint64(i+1), 1, tally/2)
		o.Consumer, o.Contact.Key = squatter.String(), squatter.PeerKey()
		c.Queue(squatter, worktest.PostOf(squatter, o))
		small = append(small, bid{who: squatter, order: o.ID().String(), price: 1})
	}
	all(t, c.NextBlock(time.Millisecond))
	for _, b := range small {
		c.Deliver(squatter, b.seal(n))
	}
	held := c.Balance(squatter.Address)
	for _, o := range orders[:1] { // of three tally
		c.Deliver(consumer, bidFor(o, 9000).seal(n))
	}
	if got := c.Balance(squatter.Address); got != held+tally {
		t.Errorf("who has lost its place has %d utally, had %d", got, held)
	}
	c.Deliver(consumer, bidFor(orders[1], 9000).seal(n)) // of one
	if p := clearing(t, c).Progress; p.SealedDemands != 2 {
		t.Errorf("%+v", p)
	}
	if said := c.Refuse(auction.ErrSeal, squatter, small[0].seal(n)); !strings.Contains(said, "bid in the next one") {
		t.Error(said)
	}
	c.Deliver(squatter, &marketv1.MsgCancelOrder{Consumer: squatter.String(), Order: small[0].order}) // it may leave
}

// Whoever reveals a bid for an order has a deposit to lose by the clock, and no stake. While others fill all of the mempool that they
// may, it gets in as parties of leases do.
func TestRevealsLandWhileTheMempoolIsFull(t *testing.T) {
	var spammers []string
	for i := range 40 {
		spammers = append(spammers, fmt.Sprintf("spammer%d", i))
	}
	c, orders := rooms(t, sealedBy("mcafee"), chaintest.Fund(10*tally, spammers...))
	n, b := number(t, c), bidFor(orders[0], 9000)
	c.Deliver(consumer, b.seal(n))
	c.NextBlock(window)
	full := false
	for _, name := range spammers {
		from := chaintest.Named(name)
		acc := c.Accounts.GetAccount(c.Ctx(), from.Address)
		s := app.Signer{ChainID: chaintest.ChainID, Key: from.Key, Number: acc.GetAccountNumber(), Sequence: acc.GetSequence()}
		tx, err := c.Sign(s, app.MaxGas, coin.Fee(100, app.MaxGas), banktypes.NewMsgSend(from.Address, from.Address, coin.Of(1)))
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.CheckTx(&abci.RequestCheckTx{Tx: tx})
		full = full || err == nil && r.Code == sdkerrors.ErrMempoolIsFull.ABCICode()
	}
	c.Queue(consumer, b.reveal(n))
	if r, err := c.CheckTx(&abci.RequestCheckTx{Tx: c.TakeQueue()[0]}); !full || err != nil || r.Code != 0 {
		t.Errorf("full: %v, %v, %v", full, r, err)
	}
	forged := bidFor(orders[1], 9000).reveal(n) // which nobody has sealed
	c.Queue(consumer, forged)
	if r, err := c.CheckTx(&abci.RequestCheckTx{Tx: c.TakeQueue()[0]}); err != nil || r.Code != sdkerrors.ErrMempoolIsFull.ABCICode() {
		t.Errorf("%v, %v", r, err)
	}
}

// A chain that began from an export while a clearing was under way has a number without a row. What is kept of old clearings then grew
// by one, and the next export was none that a chain begins from.
func TestClearingsLeftOutOfAnExport(t *testing.T) {
	c := newChain(t)
	g, err := c.Auction.ExportGenesis(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	g.Cleared = []auctionv1.Cleared{{Number: 1}} // 65 was under way
	for n := uint64(66); n < 129; n++ {
		g.Cleared = append(g.Cleared, auctionv1.Cleared{Number: n})
	}
	g.Next = 129
	if err := auction.ValidateGenesis(g); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(func(ctx sdk.Context) error { return c.Auction.InitGenesis(ctx, g) }); err != nil {
		t.Fatal(err)
	}
	worktest.Offer(c, "v0")
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(30, 1000)))
	c.Deliver(consumer, worktest.Post(batch(1, 1, tally)))
	if r := finish(t, c); r.Number != 129 {
		t.Fatalf("%+v", r)
	}
	if g, err = c.Auction.ExportGenesis(c.Ctx()); err != nil || auction.ValidateGenesis(g) != nil {
		t.Errorf("%d clearings are kept: %v, %v", len(g.Cleared), err, auction.ValidateGenesis(g))
	}
}

// Nobody can put tokens where the deposits are, so that they do not add up.
func TestNobodyPaysIntoDeposits(t *testing.T) {
	c := newChain(t)
	c.Refuse(sdkerrors.ErrUnauthorized, consumer, banktypes.NewMsgSend(consumer.Address, authtypes.NewModuleAddress(auction.Name), coin.Of(1)))
}

// An order whose unit takes a bond that no seller has won in each clearing and was never leased. That was taken for the sellers' fault:
// their lots were off sale, and the order took part in the next one. It lost nothing.
func TestOrdersWhoseBondNobodyHas(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v0")
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(20_000, 1000)))
	o := batch(1, 1, 100*tally)
	o.Problem.Steps, o.Problem.Records, o.Problem.StepFLOPs = 200, 200, 5e10 // one of 200 segments is audited
	long := (20 * time.Minute).Milliseconds()
	o.Conditions.UnitTimeout, o.Conditions.UnitWindow, o.Conditions.Window = long, long, long
	c.Deliver(consumer, worktest.Post(o))
	for range 2 {
		c.NextBlock(auction.DefaultPeriod)
		if r := clearing(t, c).Clearing; r != nil || capacity(t, c, "p0") != 20_000 {
			t.Errorf("it is in a clearing: %+v; %d units are left of 20,000", r, capacity(t, c, "p0"))
		}
	}
	o.Nonce, o.Conditions.AuditSegments = 2, 190 // more is audited, and so less is behind it
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(auction.DefaultPeriod)
	finish(t, c)
	if p := posting(t, c, o); p.Status != marketv1.STATUS_LEASED {
		t.Errorf("%+v", p)
	}
}

// A seller whose owner has to judge the order, since there are few validators, kept every lease from beginning that it had sold a unit
// to. That was taken for the order's fault, which sat out ever longer, while its lot stood.
func TestSellersWhoseOwnersHaveToJudge(t *testing.T) {
	for _, alone := range []bool{true, false} {
		c := newChain(t, chaintest.Fund(tally, "p0", "v2"))
		worktest.Offer(c, "v0")
		p0, v2 := chaintest.Named("p0"), chaintest.Named("v2")
		c.QueueOf([]chaintest.Account{p0, v2}, &providerv1.MsgDeclareOwner{Account: p0.String(), Owner: v2.String()})
		all(t, c.NextBlock(time.Second))
		c.Queue(p0, sell("p0", lot(20, 100)))
		if !alone {
			c.Queue(chaintest.Named("p1"), sell("p1", lot(20, 1000)))
		}
		o := batch(1, 3, 3*tally) // of 30 units
		if alone {
			o = batch(1, 2, 2*tally)
		}
		c.Queue(consumer, worktest.Post(o)) // three custodians, and there are three validators beside the lead
		all(t, c.NextBlock(time.Second))
		r := finish(t, c)
		q, err := auctionv1.NewQueryClient(c).Demands(t.Context(), &auctionv1.QueryDemandsRequest{})
		switch {
		case err != nil || r.Trades != 1:
			t.Fatalf("%+v, %v", r, err)
		case !alone:
			if l := worktest.Join(t, c, o).State(); len(l.Providers) != 1 || l.Providers[0].Account != chaintest.Named("p1").String() {
				t.Errorf("it is leased to %+v", l.Providers)
			}
		case len(q.Demands) != 1 || q.Demands[0].Failed != 0 || capacity(t, c, "p0") != 0:
			t.Errorf("%+v, %d units of who may not compute it are on sale", q.Demands, capacity(t, c, "p0"))
		}
	}
}

// An order that costs more than any validator may lead won all that was on sale in each clearing, and was never leased. It lost fees
// alone: it sat out, and its consumer posted another in its place.
func TestOrdersThatNobodyMayLead(t *testing.T) {
	mallory := chaintest.Named("mallory")
	c := newChain(t, chaintest.Fund(60_000*tally, "mallory"), chaintest.Validator("lead", 1_000*tally))
	worktest.Offer(c, "lead")
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(20_000, 1000)))
	evil := batch(100, 2_000, 30_000*tally)
	evil.Consumer, evil.Contact.Key = mallory.String(), mallory.PeerKey()
	c.Deliver(mallory, worktest.PostOf(mallory, evil))
	honest := batch(1, 1, tally/10)
	c.Deliver(consumer, worktest.Post(honest))
	c.NextBlock(auction.DefaultPeriod)
	if r := finish(t, c); r.Demands != 1 || r.Leased != 1 || posting(t, c, honest).Status != marketv1.STATUS_LEASED {
		t.Errorf("%+v", r)
	}
}

// Orders that cannot pay what is asked took the turns of others, as long as they were in the book. They are in no clearing.
func TestOrdersThatBidBelowAllAsksTakeNoTurn(t *testing.T) {
	const most = 4
	c := newChain(t, auctionRules(func(p *auctionv1.Params) { p.MaxDemands = most }))
	worktest.Offer(c, "v0")
	for n := range uint64(3 * most) {
		c.Queue(consumer, worktest.Post(batch(1000+n, 1, 60_000)))
	}
	all(t, c.NextBlock(time.Second))
	c.Deliver(chaintest.Named("p0"), sell("p0", lot(1_000_000, 20_000)))
	honest := batch(1, 1, tally)
	c.Deliver(consumer, worktest.Post(honest))
	c.NextBlock(auction.DefaultPeriod)
	if r := finish(t, c); r.Demands != 1 || posting(t, c, honest).Status != marketv1.STATUS_LEASED {
		t.Errorf("%+v", r)
	}
}
