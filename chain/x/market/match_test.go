package market_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/event"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// An order that nobody meets waits, and the book says why.
func TestExplainSaysWhyNobodyMatches(t *testing.T) {
	free := func(name string, amount uint64) chaintest.Option { // what a peer can still reserve
		return func(g *app.Genesis) {
			for i := range g.Peers {
				if g.Peers[i].Account == chaintest.Named(name).String() {
					g.Peers[i].Stake = amount
				}
			}
			g.Params = provider.DefaultGenesis().Params
			g.Params.MinProviderStake, g.Params.MinValidatorStake = 1, 1
		}
	}
	dear := func(g *app.Genesis) {
		for i := range g.Peers {
			if slices.Contains(g.Peers[i].Roles, providerv1.ROLE_PROVIDER) {
				g.Peers[i].Listing.UnitPrice = wire.MaxPrice
			}
		}
	}
	var poor []chaintest.Option
	for _, p := range worktest.Providers {
		poor = append(poor, free(p, 1))
	}
	lapsed := func(g *app.Genesis) { // so that a lead may lead a sixteenth of its stake
		g.Params.LeadFactor = 1
		for i := range g.Peers {
			g.Peers[i].Lapsed = 937_500_000
		}
	}
	jail := func(t *testing.T, c *chaintest.Chain, names ...string) {
		for _, n := range names {
			if err := c.Do(func(ctx sdk.Context) error {
				return c.Provider.Jail(ctx, chaintest.Named(n).Address, c.Now().Add(time.Hour).UnixMilli())
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, x := range map[string]struct {
		genesis []chaintest.Option
		bend    func(*job.Order)
		prepare func(*testing.T, *chaintest.Chain)
		words   string
	}{
		"price":     {nil, func(o *job.Order) { o.Conditions.MaxPrice = 1000 }, nil, "the order pays at most 1000"},
		"providers": {nil, func(o *job.Order) { o.Conditions.MinProviders = 4 }, nil, "3 providers, the order wants 4"},
		"referees":  {nil, func(o *job.Order) { o.Conditions.Custodians = 4 }, nil, "3 independent validators"},
		"copying auditors": {[]chaintest.Option{worktest.Rules(worktest.Forced)}, func(o *job.Order) {
			o.Conditions.Auditors, o.Conditions.AuditSegments = 2, 3
		}, nil, "2 auditors who each audit 3 of a unit's 3 segments would copy each other"},
		"another validator":   {nil, func(o *job.Order) { o.Conditions.Validator = v1.String() }, nil, "names validator " + v1.String()},
		"price beyond count":  {[]chaintest.Option{dear, worktest.Rules(func(p *job.Params) { *p = p.Quick() })}, func(o *job.Order) { o.Problem.StepFLOPs = 1 << 57 }, nil, "too large"},
		"poor providers":      {poor, nil, nil, "no provider has the"},
		"poor validator":      {[]chaintest.Option{free("v0", 10)}, nil, nil, "has 10 utally of stake free, leading takes"},
		"too little at stake": {[]chaintest.Option{free("v0", 1_200_000), lapsed}, nil, nil, "may lead work of"},
		"jailed validator":    {nil, nil, func(t *testing.T, c *chaintest.Chain) { jail(t, c, "v0") }, "jailed"},
		"jailed providers":    {nil, nil, func(t *testing.T, c *chaintest.Chain) { jail(t, c, "p0", "p1") }, "1 providers, the order wants 2"},
		"jailed referees":     {nil, nil, func(t *testing.T, c *chaintest.Chain) { jail(t, c, "v2") }, "2 independent validators"},
		"busy": {nil, nil, func(t *testing.T, c *chaintest.Chain) {
			c.Deliver(v0, &marketv1.MsgPostOffer{Validator: v0.String(), MaxLeases: 1})
			o := worktest.Order()
			o.Nonce = 77
			c.Deliver(consumer, worktest.Post(o))
			c.NextBlock(time.Second)
		}, "leads 1 leases, as many as it offers"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t, x.genesis...)
			worktest.Offer(c, "v0")
			if x.prepare != nil {
				x.prepare(t, c)
			}
			o := worktest.Order()
			if x.bend != nil {
				x.bend(&o)
			}
			c.Deliver(consumer, worktest.Post(o))
			c.NextBlock(time.Second)
			if p := booked(t, c, o.ID()).Posting; p.Status != marketv1.STATUS_OPEN || p.Escrow != o.Conditions.MaxPrice+p.Deposit {
				t.Fatalf("%+v", p)
			}
			r := explain(t, c, o)
			if len(r.Bids) != 1 || r.Best != "" || !strings.Contains(r.Bids[0].Obstacle, x.words) {
				t.Fatalf("%+v does not say %q", r.Bids, x.words)
			}
		})
	}
}

// An order finds its offer when there is one, however long that takes.
func TestWaitingOrderMeetsALaterOffer(t *testing.T) {
	c := newChain(t)
	o := worktest.Order()
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(time.Minute)
	worktest.Offer(c, "v1")
	if booked(t, c, o.ID()).Posting.Status != marketv1.STATUS_OPEN {
		t.Fatal("met an offer in the block that posted it: its maker saw the order")
	}
	bids := explain(t, c, o).Bids
	c.NextBlock(time.Second)
	p := booked(t, c, o.ID()).Posting
	if len(bids) != 1 || bids[0].Price != p.Price || bids[0].Obstacle != "" || bids[0].Providers == 0 || bids[0].Referees != 3 {
		t.Fatalf("quoted %+v, matched at %d", bids, p.Price)
	}
	if p.Validator != v1.String() {
		t.Fatalf("%+v", p)
	}
}

// A block in which nobody meets an order writes nothing.
func TestWaitingOrderWritesNothing(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v0")
	o := worktest.Order()
	o.Conditions.MinProviders = 9
	c.Deliver(consumer, worktest.Post(o))
	last := c.NextBlock(time.Second).AppHash
	for range 5 {
		if b := c.NextBlock(time.Second); !bytes.Equal(b.AppHash, last) {
			t.Fatal("an empty block changed the app hash")
		}
	}
}

// A provider that asks too much is left out of the team; it spoils no offer.
func TestDearProviderIsLeftOut(t *testing.T) {
	dear := chaintest.Provider("q0", "v0", 1_000*tally, wire.MaxPrice)
	options := []chaintest.Option{func(g *app.Genesis) { // q0 works under v0 now
		g.Peers = slices.DeleteFunc(g.Peers, func(p providerv1.Peer) bool { return p.Account == chaintest.Named("q0").String() })
	}, dear}
	p := worktest.Begin(t, newChain(t, options...), worktest.Order())
	l := p.Lease()
	if len(l.Providers) != 3 || slices.ContainsFunc(l.Providers, func(x workv1.Party) bool { return x.Account == chaintest.Named("q0").String() }) {
		t.Fatalf("the team is %v", l.Providers)
	}
}

func TestQuoteOfADraft(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v0")
	worktest.Offer(c, "v1")
	o := worktest.Order()
	o.Conditions.MaxPrice = 0 // the consumer wants to see prices first
	draft := worktest.Post(o).Order
	r, err := marketv1.NewQueryClient(c).Quote(context.Background(), &marketv1.QueryQuoteRequest{Order: draft})
	if err != nil || len(r.Bids) != 2 || r.Best != v0.String() {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, b := range r.Bids {
		// Four units, four audits of a third of a unit, 2 % to custodians, who are
		// paid for the files like for a unit, 5 % fee, 2 % burnt.
		honest := 4*b.UnitPrice + 4*(b.UnitPrice/3) + 5*b.UnitPrice/50 + b.Fee
		if b.Obstacle != "" || b.Price < honest+b.Burn || b.Price > honest+b.Burn+20 || b.Bond < 2*honest {
			t.Errorf("%+v", b)
		}
	}
	o.Conditions.MaxPrice = r.Bids[0].Price
	c.Deliver(consumer, worktest.Post(o))
}

// leases is a stand-in for x/work in which a lease may not begin.
// noTasks knows no projects.
type noTasks struct{}

func (noTasks) Open(context.Context, *job.Order) error   { return nil }
func (noTasks) Close(context.Context, canon.Hash) error  { return nil }
func (noTasks) Forget(context.Context, canon.Hash) error { return nil }

type leases struct {
	job.Params
	refuse map[string]bool
	begun  []job.Match
	tried  map[canon.Hash]int
}

func (l *leases) Rules(context.Context) (job.Params, error)             { return l.Params, nil }
func (l *leases) Final(context.Context, canon.Hash) (canon.Hash, error) { return canon.Hash{}, nil }

func (l *leases) Retired(context.Context, canon.Hash) (bool, error) { return false, nil }
func (l *leases) Retention(context.Context) (int64, error)          { return 0, nil }

func (l *leases) Leading(context.Context, string) (int, uint64, error) { return 0, 0, nil }
func (l *leases) Begin(_ context.Context, m job.Match) (job.Quote, error) {
	l.tried[m.Order.ID()]++
	if l.refuse[m.Lead] {
		return job.Quote{}, errors.New("it rains")
	}
	l.begun = append(l.begun, m)
	return job.NewQuote(&m.Order.Problem, &m.Order.Conditions, job.Dearest(m.Providers), m.FeeBps, m.Params.Tariff)
}

// endBlock ends the block after that of ctx with l in the place of x/work.
func endBlock(t *testing.T, c *chaintest.Chain, ctx sdk.Context, l *leases) []abci.Event {
	t.Helper()
	l.Params, l.tried = job.DefaultParams, map[canon.Hash]int{}
	ctx = ctx.WithBlockHeight(ctx.BlockHeight() + 1).WithEventManager(sdk.NewEventManager())
	if err := market.NewModule(c.Market, c.Provider, l, c.Dispute, c.Power).EndBlock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Market.Invariant(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx.EventManager().ABCIEvents()
}

// Where a lease cannot begin the order goes to the next best offer, or stays.
func TestLeaseThatCannotBegin(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v0")
	worktest.Offer(c, "v1")
	o := worktest.Order()
	for name, x := range map[string]struct {
		refuse map[string]bool
		winner string
	}{
		"best":      {nil, v0.String()},
		"next best": {map[string]bool{v0.String(): true}, v1.String()},
		"none":      {map[string]bool{v0.String(): true, v1.String(): true}, ""},
	} {
		ctx, l := c.Ctx(), &leases{refuse: x.refuse}
		if _, err := c.Market.PostOrder(ctx, &o, 0); err != nil {
			t.Fatal(err)
		}
		events := endBlock(t, c, ctx, l)
		obstacles, err := event.Of[*marketv1.EventObstacle](events)
		if err != nil || len(obstacles) != len(x.refuse) || len(obstacles) > 0 && !strings.Contains(obstacles[0].Reason, "it rains") {
			t.Errorf("%s: %v, %v", name, obstacles, err)
		}
		_, p, err := c.Market.Order(ctx, o.ID())
		if err != nil || p.Validator != x.winner || (p.Status == marketv1.STATUS_OPEN) != (x.winner == "") {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		for _, m := range l.begun {
			if m.Lead != x.winner || len(m.Validators) != 3 || m.FeeBps != 500 {
				t.Errorf("%s: match %+v", name, m)
			}
		}
	}
}

// When there are more open orders than a block can try, all have their turn.
func TestEveryOpenOrderHasItsTurn(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v0")
	ctx := c.Ctx()
	const n = 600
	for i := range uint64(n) {
		o := worktest.Order()
		o.Nonce, o.Conditions.MaxPrice = i, tally
		if _, err := c.Market.PostOrder(ctx, &o, 0); err != nil {
			t.Fatal(err)
		}
	}
	l := &leases{refuse: map[string]bool{v0.String(): true}}
	block := func(want int) {
		t.Helper()
		endBlock(t, c, ctx, l)
		if len(l.tried) != want {
			t.Fatalf("a block tried %d orders, want %d", len(l.tried), want)
		}
		ctx = ctx.WithBlockHeight(ctx.BlockHeight() + 1)
	}
	tried := map[canon.Hash]bool{}
	for left := n; left > 0; left -= 64 {
		block(min(left, 64))
		for id := range l.tried {
			tried[id] = true
		}
	}
	if len(tried) != n {
		t.Fatalf("%d of %d orders were tried in ten blocks", len(tried), n)
	}
	block(0) // nothing is on offer that they have not seen
	for i := range uint64(20) {
		ctx = ctx.WithBlockTime(ctx.BlockTime().Add(time.Second))
		o := worktest.Order() // however many wait, and are to be tried again, a new one is tried at once
		o.Nonce = n + i
		if _, err := c.Market.PostOrder(ctx, &o, 0); err != nil {
			t.Fatal(err)
		}
		endBlock(t, c, ctx, l)
		if len(l.tried) > 64 || i == 9 && len(l.tried) != 64 { // ten seconds after they were tried
			t.Fatalf("a block tried %d orders", len(l.tried))
		}
		ctx = ctx.WithBlockHeight(ctx.BlockHeight() + 1)
		if l.tried[o.ID()] != 1 {
			t.Fatalf("a block tried the newest order %d times", l.tried[o.ID()])
		}
	}
}

// An order that nobody met is tried again in the block after an offer or a cluster has improved,
// and else ever more seldom.
func TestOrderIsTriedAgainWhenDue(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v0")
	ctx := c.Ctx()
	o := worktest.Order()
	o.Conditions.Expires = time.Hour.Milliseconds()
	id, err := c.Market.PostOrder(ctx, &o, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := &leases{refuse: map[string]bool{v0.String(): true}}
	tries := func(wait time.Duration) int {
		t.Helper()
		ctx = ctx.WithBlockHeight(ctx.BlockHeight() + 1).WithBlockTime(ctx.BlockTime().Add(wait))
		endBlock(t, c, ctx, l)
		return l.tried[id]
	}
	provider, lead := chaintest.Named("p0").Address, chaintest.Named("v0").Address
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, x := range []struct {
		wait time.Duration
		do   func()
		want int
	}{
		{0, nil, 1},
		{time.Second, nil, 0}, // what the genesis had marked is what it was tried with
		{time.Second, nil, 0},
		{time.Second, func() { do(c.Provider.Reserve(ctx, provider, tally)) }, 0},
		{time.Second, func() { do(c.Provider.Release(ctx, provider, tally)) }, 1},
		{time.Second, nil, 0},
		{time.Second, func() { do(c.Provider.Jail(ctx, lead, ctx.BlockTime().Add(time.Minute).UnixMilli())) }, 0},
		{time.Second, func() { do(c.Provider.Suspend(ctx, provider)) }, 0},
		{10 * time.Second, nil, 0}, // the lead is jailed: it is tried, and there is nobody to begin
		{time.Second, func() { do(c.Provider.Resume(ctx, provider)) }, 0},
		{time.Minute, nil, 1}, // the sentence is over
		{11 * time.Second, nil, 0},
		{30 * time.Second, nil, 1},
	} {
		if x.do != nil {
			x.do()
		}
		if got := tries(x.wait); got != x.want {
			t.Errorf("step %d: tried %d times, want %d", i, got, x.want)
		}
	}
}

// What a block's matching takes is bounded, however many orders, offers and providers
// there are, and even if each order is too cheap for most of them. Once 256 orders, 32
// offers and 2,048 providers took 13 s a block.
func TestMatchingIsBounded(t *testing.T) {
	const validators, team = 32, 64
	var crowd []chaintest.Option
	for v := range validators {
		lead := fmt.Sprintf("w%d", v)
		crowd = append(crowd, chaintest.Validator(lead, 10_000*tally))
		for i := range team {
			crowd = append(crowd, chaintest.Provider(fmt.Sprintf("%s-%d", lead, i), lead, 1_000*tally, uint64(1_000+i)))
		}
	}
	c := newChain(t, crowd...)
	ctx := c.Ctx()
	for v := range validators {
		if err := c.Market.PostOffer(ctx, marketv1.Offer{Validator: chaintest.Named(fmt.Sprintf("w%d", v)).String(), MaxLeases: 1}); err != nil {
			t.Fatal(err)
		}
	}
	m := market.NewModule(c.Market, c.Provider, c.Work, c.Dispute, c.Power)
	ctx = ctx.WithBlockHeight(ctx.BlockHeight() + 1)
	took := map[uint64]float64{} // by how many orders are open
	open := uint64(0)
	for _, n := range []uint64{64, 256} {
		for ; open < n; open++ {
			o := worktest.Order()
			o.Nonce, o.Conditions.MaxPrice, o.Conditions.Expires = open+1, 100_000, (24 * time.Hour).Milliseconds()
			if _, err := c.Market.PostOrder(ctx.WithBlockHeight(ctx.BlockHeight()-1), &o, 0); err != nil {
				t.Fatal(err)
			}
		}
		took[n] = testing.AllocsPerRun(1, func() {
			ctx = ctx.WithBlockTime(ctx.BlockTime().Add(time.Hour)) // all of them are due
			if err := m.EndBlock(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
	if took[256] > took[64]*1.2 || took[256] > 300_000 {
		t.Errorf("a block makes %.0f allocations for 64 orders, %.0f for 256", took[64], took[256])
	}
}

// Offers of validators that have taken their stake back are read by no block, and keep nobody's offer from
// its turn. Whoever asks is told of them.
func TestOffersWithoutStakeAreNotRead(t *testing.T) {
	const hollow = 600
	var crowd []chaintest.Option
	for v := range hollow {
		crowd = append(crowd, chaintest.Validator(fmt.Sprintf("f%d", v), 0))
	}
	c := newChain(t, crowd...)
	post := func(ctx sdk.Context, v int) error {
		return c.Market.PostOffer(ctx, marketv1.Offer{Validator: chaintest.Named(fmt.Sprintf("f%d", v)).String(), MaxLeases: 1})
	}
	worktest.Offer(c, "v0")
	if err := c.Do(func(ctx sdk.Context) error { return post(ctx, 0) }); err != nil {
		t.Fatal(err)
	}
	for height := range int64(8) { // wherever the block begins to look
		ctx := c.Ctx()
		for v := range hollow {
			if err := post(ctx, v); err != nil {
				t.Fatal(err)
			}
		}
		o := worktest.Order()
		if _, err := c.Market.PostOrder(ctx, &o, 0); err != nil {
			t.Fatal(err)
		}
		l := &leases{}
		if endBlock(t, c, ctx.WithBlockHeight(ctx.BlockHeight()+height), l); len(l.begun) != 1 {
			t.Fatalf("%d leases began", len(l.begun))
		}
	}
	o := worktest.Order()
	o.Conditions.MaxPrice = 1000 // too little
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(time.Second)
	r := explain(t, c, o)
	if len(r.Bids) != 2 || !slices.ContainsFunc(r.Bids, func(b marketv1.Bid) bool {
		return strings.Contains(b.Obstacle, "its stake is below the minimum")
	}) {
		t.Fatalf("%+v", r.Bids)
	}
}

// Orders with replicas draw from the providers behind all offers, and stood in an index under each: a block
// began four that had 600 parties, and ended five. It begins and ends sixteen.
func TestLeasesOfManyParties(t *testing.T) {
	const leads, orders = 120, 16
	var crowd []chaintest.Option
	for v := range leads {
		lead := fmt.Sprintf("w%d", v)
		crowd = append(crowd, chaintest.Validator(lead, 10_000*tally))
		for p := range 4 {
			crowd = append(crowd, chaintest.Provider(fmt.Sprint(lead, "-p", p), lead, 1_000*tally, uint64(3+v%10)))
		}
	}
	c := newChain(t, crowd...)
	for v := range leads {
		a := chaintest.Named(fmt.Sprintf("w%d", v))
		c.Queue(a, &marketv1.MsgPostOffer{Validator: a.String(), FeeBps: 600, MaxLeases: 8})
	}
	c.Queue(v0, &marketv1.MsgPostOffer{Validator: v0.String(), MaxLeases: 1000})
	c.NextBlock(time.Second)
	c.NextBlock(time.Second)
	var ids []canon.Hash
	for n := range uint64(orders) {
		o := worktest.Order()
		o.Nonce = n
		o.Conditions.Replicas, o.Conditions.Auditors, o.Conditions.AuditSegments = 2, 0, 0
		o.Conditions.MaxPrice, o.Conditions.Validator = 10*tally, v0.String()
		c.Queue(consumer, worktest.Post(o))
		ids = append(ids, o.ID())
	}
	count := func(status marketv1.Status) (n int) {
		for _, id := range ids {
			if booked(t, c, id).Posting.Status == status {
				n++
			}
		}
		return n
	}
	had := 0
	for block := 0; had < orders; block++ {
		c.NextBlock(time.Second)
		now := count(marketv1.STATUS_LEASED)
		if block > 1 {
			t.Fatalf("after %d blocks %d leases of 600 parties have begun", block+1, now)
		}
		had = now
	}
	c.NextBlock(time.Second)
	for _, id := range ids {
		c.Queue(v0, &workv1.MsgDecline{Lead: v0.String(), Order: id.String(), Reason: "busy"})
	}
	had = count(marketv1.STATUS_SETTLED)
	for block := 0; had < orders; block++ {
		c.NextBlock(time.Second)
		now := count(marketv1.STATUS_SETTLED)
		if block > 1 {
			t.Fatalf("after %d blocks %d leases of 600 parties have ended", block+1, now)
		}
		had = now
	}
}

// Orders that expire together are refunded over several blocks, and none of them is
// leased meanwhile.
func TestManyOrdersExpireOverSeveralBlocks(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v0")
	ctx := c.Ctx()
	const n = 300
	for i := range uint64(n) {
		o := worktest.Order()
		o.Nonce, o.Conditions.MaxPrice = i, tally
		if _, err := c.Market.PostOrder(ctx, &o, 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx = ctx.WithBlockTime(ctx.BlockTime().Add(worktest.Expiry))
	for _, want := range []int{128, 128, 44, 0} {
		l := &leases{}
		expired, err := event.Of[*marketv1.EventClosed](endBlock(t, c, ctx, l))
		if err != nil || len(expired) != want || len(l.tried) != 0 {
			t.Fatalf("%d orders expired, %d were tried, want %d and none: %v", len(expired), len(l.tried), want, err)
		}
	}
}

// A book that nothing changes is read, not written.
func BenchmarkEndBlock(b *testing.B) {
	c := newChain(b)
	worktest.Offer(c, "v0")
	worktest.Offer(c, "v1")
	ctx := c.Ctx()
	for i := range uint64(256) {
		o := worktest.Order()
		o.Nonce, o.Conditions.MaxPrice = i, 1 // nobody meets it
		if _, err := c.Market.PostOrder(ctx, &o, 0); err != nil {
			b.Fatal(err)
		}
	}
	m := market.NewModule(c.Market, c.Provider, c.Work, c.Dispute, c.Power)
	ctx = ctx.WithBlockHeight(ctx.BlockHeight() + 1)
	for b.Loop() {
		if err := m.EndBlock(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
