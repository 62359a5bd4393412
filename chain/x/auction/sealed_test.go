package auction_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/auction"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/demand"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// Times of clearings with sealed bids here.
const (
	window = 25 * time.Second
	reveal = 25 * time.Second
)

var sealedRules = []string{"mcafee", "sbba", "exponential"}

// sealedBy takes sealed bids by a rule, for lots of 30 units.
func sealedBy(rule string, bend ...func(*auctionv1.Params)) chaintest.Option {
	return auctionRules(func(p *auctionv1.Params) {
		p.Rule, p.PeriodMs, p.WindowMs, p.RevealMs = rule, 60_000, window.Milliseconds(), reveal.Milliseconds()
		p.LotUnits, p.Deposit, p.GridLeast, p.GridStep, p.GridCount = 30, tally, 500, 500, 40
		for _, f := range bend {
			f(p)
		}
	})
}

// bid is a sealed bid: an ask without an order.
type bid struct {
	who   chaintest.Account
	order string
	price uint64
	salt  byte
}

func askOf(name string, price uint64) bid { return bid{who: chaintest.Named(name), price: price} }

func bidFor(o job.Order, price uint64) bid {
	return bid{who: consumer, order: o.ID().String(), price: price}
}

func (b bid) commitment(clearing uint64) []byte {
	x := wire.Bid{Chain: chaintest.ChainID, Clearing: clearing, Bidder: b.who.Address, Price: b.price, Salt: canon.Hash{b.salt}}
	x.Order, _ = canon.ParseHash(b.order)
	h := x.Commitment()
	return h[:]
}

func (b bid) seal(clearing uint64) *auctionv1.MsgSeal {
	m := &auctionv1.MsgSeal{Bidder: b.who.String(), Clearing: clearing, Order: b.order, Commitment: b.commitment(clearing)}
	if b.order == "" {
		m.Tier = "C"
	}
	return m
}

func (b bid) reveal(clearing uint64) *auctionv1.MsgReveal {
	salt := canon.Hash{b.salt}
	return &auctionv1.MsgReveal{Bidder: b.who.String(), Clearing: clearing, Order: b.order, Price: b.price, Salt: salt[:]}
}

// rooms are a chain with a clearing for sealed bids under way: three orders of three, one and two units of ten, and three sellers.
func rooms(t testing.TB, more ...chaintest.Option) (*chaintest.Chain, []job.Order) {
	c := newChain(t, append(more, chaintest.Fund(100*tally, "p0", "p1", "p2", "q0"))...)
	worktest.Offer(c, "v0")
	for _, name := range []string{"p0", "p1", "q0"} {
		c.Queue(chaintest.Named(name), sell(name, lot(50, 0)))
	}
	var orders []job.Order
	for i, units := range []int{3, 1, 2} {
		o := batch(uint64(i+1), units, uint64(units)*tally)
		orders = append(orders, o)
		c.Queue(consumer, worktest.Post(o))
	}
	c.NextBlock(time.Second)
	r := clearing(t, c)
	if r.Progress == nil || r.Progress.RevealsUntil == 0 {
		t.Fatalf("%+v", r)
	}
	return c, orders
}

// bidsOf are bids at which all three pairs could trade.
func bidsOf(o []job.Order) []bid {
	return []bid{askOf("p0", 1000), askOf("p1", 1500), askOf("q0", 4000), bidFor(o[0], 9000), bidFor(o[1], 8000), bidFor(o[2], 7000)}
}

func number(t testing.TB, c *chaintest.Chain) uint64 { return clearing(t, c).Progress.Number }

// play seals bids, reveals them, and goes on until the clearing is over.
func play(t testing.TB, c *chaintest.Chain, bids []bid, withheld ...int) (result, []chaintest.Block) {
	t.Helper()
	n := number(t, c)
	for _, b := range bids {
		c.Queue(b.who, b.seal(n))
	}
	all(t, c.NextBlock(time.Second))
	c.NextBlock(window)
	for i, b := range bids {
		if !slices.Contains(withheld, i) {
			c.Queue(b.who, b.reveal(n))
		}
	}
	blocks := []chaintest.Block{all(t, c.NextBlock(time.Second))}
	if len(withheld) > 0 {
		blocks = append(blocks, c.NextBlock(reveal))
	}
	for range 5 {
		b := c.NextBlock(time.Second)
		for _, x := range chaintest.Events[*auctionv1.EventObstacle](t, b) {
			t.Logf("%.8s: %s", x.Order, x.Reason)
		}
		blocks = append(blocks, b)
		if e := chaintest.Events[*auctionv1.EventCleared](t, b); len(e) > 0 {
			leased, more := come(t, c)
			return result{e[0].Cleared, leased}, append(blocks, more...)
		}
	}
	t.Fatal("the clearing does not end")
	return result{}, nil
}

// all fails unless all transactions of a block were executed.
func all(t testing.TB, b chaintest.Block) chaintest.Block {
	t.Helper()
	for _, r := range b.TxResults {
		if r.Code != 0 {
			t.Fatal(r.Log)
		}
	}
	return b
}

// quote is what an order costs at a price of a unit, under the one offer there is.
func quote(t testing.TB, c *chaintest.Chain, o job.Order, unit, feeBps uint64) uint64 {
	t.Helper()
	rules, err := c.Work.Rules(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	r, err := demand.Rates(unit, auction.DefaultParams().Balance)
	if err != nil {
		t.Fatal(err)
	}
	q, err := job.NewQuote(&o.Problem, &o.Conditions, r, feeBps, rules.Tariff)
	if err != nil {
		t.Fatal(err)
	}
	return q.Price
}

func burntBy(t testing.TB, module string, blocks []chaintest.Block) (sum uint64) {
	for _, b := range blocks {
		for _, e := range chaintest.Events[*supplyv1.EventBurnt](t, b) {
			if e.Module == module {
				sum += e.Amount
			}
		}
	}
	return sum
}

// Sealed bids become leases of one seller each, at prices that nobody's bound forbids, and every deposit is back.
func TestSealedBidsBecomeLeases(t *testing.T) {
	for _, x := range []struct {
		rule      string
		trades    uint32
		get, pay  uint64 // utally for a unit; of exponential it is drawn
		fewerThan uint64
	}{{"mcafee", 2, 4000, 7000, 0}, {"sbba", 2, 7000, 7000, 0}, {"exponential", 3, 0, 0, 7001}} {
		t.Run(x.rule, func(t *testing.T) {
			c, orders := rooms(t, sealedBy(x.rule, func(p *auctionv1.Params) { p.Epsilon = 100_000 }))
			before := c.Balance(chaintest.Named("p0").Address)
			r, blocks := play(t, c, bidsOf(orders))
			if r.Trades != x.trades || r.Leased != int(x.trades) || r.Withheld != 0 || r.Burnt != 0 || r.Sellers != 3 || r.Demands != 3 {
				t.Fatalf("%+v", r)
			}
			if paid := before - c.Balance(chaintest.Named("p0").Address); paid >= tally {
				t.Errorf("a deposit is not back: %d utally are missing", paid)
			}
			var surplus uint64
			for _, o := range orders {
				p := posting(t, c, o)
				if p.Status != marketv1.STATUS_LEASED {
					continue
				}
				l := worktest.Join(t, c, o).State()
				gets := l.Providers[0].Rates.GFLOP
				if len(l.Providers) != 1 || x.get != 0 && gets != x.get || x.get == 0 && (gets < 4000 || gets > 7000) || gets != r.Tiers[2].Low {
					t.Errorf("order %d is leased to %+v", o.Nonce, l.Providers)
				}
				if x.pay > 0 {
					surplus += quote(t, c, o, x.pay, uint64(l.FeeBps)) - quote(t, c, o, x.get, uint64(l.FeeBps))
				}
			}
			if burnt := burntBy(t, "market", blocks); burnt != surplus {
				t.Errorf("%d utally are burnt, orders pay %d more than is paid out", burnt, surplus)
			}
			for _, o := range orders { // who has lost can leave, and gets all back
				if posting(t, c, o).Status == marketv1.STATUS_OPEN {
					c.Deliver(consumer, &marketv1.MsgCancelOrder{Consumer: consumer.String(), Order: o.ID().String()})
				}
			}
		})
	}
}

// What the block has in which bids are sealed and revealed, and by whom first, changes nothing.
func TestOrderOfSealedBidsChangesNothing(t *testing.T) {
	for _, rule := range sealedRules {
		var want string
		for i := range 3 {
			c, orders := rooms(t, sealedBy(rule))
			bids := bidsOf(orders)
			rand.New(rand.NewPCG(1, uint64(i))).Shuffle(len(bids), func(i, j int) { bids[i], bids[j] = bids[j], bids[i] })
			r, _ := play(t, c, bids)
			got := r.String()
			for _, o := range orders {
				if p := posting(t, c, o); p.Status == marketv1.STATUS_LEASED {
					l := worktest.Join(t, c, o).State()
					got += fmt.Sprintf("\n%d: %+v", o.Nonce, l.Providers)
				}
			}
			if want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s: %s\nwant %s", rule, got, want)
			}
		}
	}
}

// Who does not reveal takes no part and loses the deposit, which is burnt; whatever the others bid counts.
func TestWithheldBidsAreBurnt(t *testing.T) {
	for i, withheld := range [][]int{{0}, {3}, {1, 4}, {0, 1, 2}, {3, 4, 5}, {0, 1, 2, 3, 4, 5}} {
		rule := sealedRules[i%len(sealedRules)]
		c, orders := rooms(t, sealedBy(rule))
		r, blocks := play(t, c, bidsOf(orders), withheld...)
		n := uint64(len(withheld))
		if r.Withheld != uint32(n) || r.Burnt != n*tally || burntBy(t, "auction", blocks) != n*tally || r.Demands+r.Sellers != 6-uint32(n) {
			t.Errorf("%s without %v: %+v, %d burnt", rule, withheld, r, burntBy(t, "auction", blocks))
		}
		if n >= 3 && r.Trades != 0 {
			t.Errorf("%s without %v: %+v", rule, withheld, r)
		}
		for _, o := range orders { // none of them is the worse for it
			if s := posting(t, c, o).Status; s != marketv1.STATUS_OPEN && s != marketv1.STATUS_LEASED {
				t.Errorf("%s without %v: order %d is %s", rule, withheld, o.Nonce, s)
			}
		}
	}
}

// A clearing in which nobody bids ends, and the next one comes.
func TestNobodySeals(t *testing.T) {
	c, _ := rooms(t, sealedBy("sbba"))
	first := number(t, c)
	c.NextBlock(window)
	if b := c.NextBlock(time.Second); len(chaintest.Events[*auctionv1.EventCleared](t, b)) == 0 {
		c.NextBlock(time.Second)
	}
	if x := clearing(t, c).Progress; x != nil {
		t.Fatalf("%+v", x)
	}
	for range 4 {
		c.NextBlock(20 * time.Second)
	}
	if x := clearing(t, c).Progress; x == nil || x.Number != first+1 {
		t.Errorf("%+v", x)
	}
}

func TestSealRefuses(t *testing.T) {
	c, orders := rooms(t, sealedBy("sbba", func(p *auctionv1.Params) { p.MaxLots = 2 }))
	n := number(t, c)
	book := batch(9, 1, tally)
	book.Conditions.Auction = false
	c.Deliver(consumer, worktest.Post(book))
	c.Deliver(chaintest.Named("p2"), sell("p2", lot(29, 0)))
	for name, x := range map[string]struct {
		b    bid
		bend func(*auctionv1.MsgSeal)
		says string
		err  *errorsmod.Error
	}{
		"another clearing":    {askOf("p0", 1), func(m *auctionv1.MsgSeal) { m.Clearing++ }, "takes no sealed bids now", auction.ErrClearing},
		"no commitment":       {askOf("p0", 1), func(m *auctionv1.MsgSeal) { m.Commitment = m.Commitment[1:] }, "a commitment of 31 bytes", auction.ErrSeal},
		"no tier":             {askOf("p0", 1), func(m *auctionv1.MsgSeal) { m.Tier = "" }, "one of both", auction.ErrSeal},
		"an order and a tier": {bidFor(orders[0], 1), func(m *auctionv1.MsgSeal) { m.Tier = "C" }, "one of both", auction.ErrSeal},
		"an unknown tier":     {askOf("p0", 1), func(m *auctionv1.MsgSeal) { m.Tier = "S" }, `sells nothing of tier "S"`, auction.ErrSeal},
		"nothing on sale":     {askOf("q1", 1), nil, `sells nothing of tier "C"`, auction.ErrSeal},
		"too little on sale":  {askOf("p2", 1), nil, "it takes 30", auction.ErrSeal},
		"no id":               {bid{who: consumer, order: "12"}, nil, `order "12"`, auction.ErrSeal},
		"another's order":     {bid{who: v1, order: orders[0].ID().String()}, nil, "who alone bids", auction.ErrSeal},
		"an order of offers":  {bidFor(book, 1), nil, "does not wait for auctions", auction.ErrSeal},
	} {
		m := x.b.seal(n)
		if x.bend != nil {
			x.bend(m)
		}
		if said := c.Refuse(x.err, x.b.who, m); !strings.Contains(said, x.says) {
			t.Errorf("%s: %s", name, said)
		}
	}
	c.Refuse(auction.ErrClearing, consumer, bidFor(orders[0], 9).reveal(n)) // others may still bid
	c.Deliver(chaintest.Named("p0"), askOf("p0", 1000).seal(n))
	c.Refuse(auction.ErrSeal, chaintest.Named("p0"), askOf("p0", 2000).seal(n)) // it stands
	c.Refuse(auction.ErrClearing, chaintest.Named("p0"), sell("p0"))            // so does what is on sale
	c.Deliver(chaintest.Named("p1"), askOf("p1", 1000).seal(n))
	if said := c.Refuse(auction.ErrSeal, chaintest.Named("q0"), askOf("q0", 1).seal(n)); !strings.Contains(said, "takes no more") {
		t.Error(said)
	}
	c.Deliver(chaintest.Named("q0"), sell("q0")) // what is not sealed may leave
	c.Refuse(auction.ErrClearing, consumer, &auctionv1.MsgPostClearing{Poster: consumer.String(), Clearing: n, Certificate: auctionv1.Certificate{}})

	c.NextBlock(time.Duration(clearing(t, c).Progress.ClosesAt-module.Now(c.Ctx())) * time.Millisecond)
	c.Refuse(auction.ErrClearing, consumer, bidFor(orders[0], 9).seal(n)) // too late
	for says, m := range map[string]*auctionv1.MsgReveal{
		"is not what was sealed":  {Price: 999, Salt: make([]byte, 32)},
		"a salt of 31":            {Price: 1000, Salt: make([]byte, 31)},
		"a price of 0":            {Salt: make([]byte, 32)},
		"want 1 to 1099511627776": {Price: 1 << 41, Salt: make([]byte, 32)},
	} {
		m.Bidder, m.Clearing = chaintest.Named("p0").String(), n
		if said := c.Refuse(auction.ErrSeal, chaintest.Named("p0"), m); !strings.Contains(said, says) {
			t.Errorf("want %q: %s", says, said)
		}
	}
	c.Refuse(auction.ErrSeal, chaintest.Named("q0"), askOf("q0", 1).reveal(n)) // none was sealed
	c.Deliver(chaintest.Named("p0"), askOf("p0", 1000).reveal(n))
	c.Refuse(auction.ErrSeal, chaintest.Named("p0"), askOf("p0", 1000).reveal(n))
	q, err := auctionv1.NewQueryClient(c).Seals(context.Background(), &auctionv1.QuerySealsRequest{})
	if err != nil || len(q.Seals) != 2 {
		t.Fatalf("%+v, %v", q, err)
	}
	one, err := auctionv1.NewQueryClient(c).Seal(context.Background(), &auctionv1.QuerySealRequest{Bidder: chaintest.Named("p0").String()})
	if err != nil || one.Seal.Price != 1000 || one.Seal.Deposit != tally || one.Progress.Number != n {
		t.Errorf("%+v, %v", one, err)
	}
	c.NextBlock(reveal)
	c.Refuse(auction.ErrClearing, chaintest.Named("p1"), askOf("p1", 1000).reveal(n)) // too late
}

// While the sellers of an order are waited for, no bid is taken for it, and the chain tells its home so beforehand.
func TestNoBidIsTakenForAnOrderThatIsSold(t *testing.T) {
	c, orders := rooms(t, sealedBy("sbba", func(p *auctionv1.Params) { p.AnswerMs = 200_000 }))
	n, bids := number(t, c), bidsOf(orders)
	for _, b := range bids {
		c.Queue(b.who, b.seal(n))
	}
	all(t, c.NextBlock(time.Second))
	c.NextBlock(window)
	for _, b := range bids {
		c.Queue(b.who, b.reveal(n))
	}
	all(t, c.NextBlock(time.Second))
	for range 20 {
		if p := clearing(t, c).Progress; p != nil && p.Number > n {
			break
		}
		c.NextBlock(5 * time.Second)
	}
	next, sales := number(t, c), sold(t, c)
	if next == n || len(sales) != 2 {
		t.Fatalf("clearing %d, %+v", next, sales)
	}
	for i, o := range orders {
		r, err := auctionv1.NewQueryClient(c).Seal(context.Background(), &auctionv1.QuerySealRequest{Bidder: consumer.String(), Order: o.ID().String()})
		isSold := posting(t, c, o).Status == marketv1.STATUS_OPEN && slices.ContainsFunc(sales, func(d auctionv1.Demand) bool { return hex.EncodeToString(d.Order) == o.ID().String() })
		if err != nil || r.Waits != isSold {
			t.Errorf("order %d is sold: %v; %+v, %v", i, isSold, r, err)
		}
		if isSold {
			if said := c.Refuse(auction.ErrSeal, consumer, bidFor(o, 9000).seal(next)); !strings.Contains(said, "takes part again in about ") {
				t.Error(said)
			}
		}
	}
}

// Rules of sealed bids say which orders take part when they are posted, not when it is too late.
func TestOrdersThatNoSealedClearingTakes(t *testing.T) {
	c := newChain(t, sealedBy("mcafee"))
	for says, bend := range map[string]func(*job.Order){
		"divide it":         func(o *job.Order) { o.Problem.Shards, o.Problem.Records = 4, 8 },
		"for 220 s at leas": func(o *job.Order) { o.Conditions.Expires = 219_999 },
	} {
		o := batch(1, 3, tally)
		bend(&o)
		if said := c.Refuse(auction.ErrDemand, consumer, worktest.Post(o)); !strings.Contains(said, says) {
			t.Errorf("want %q: %s", says, said)
		}
	}
}

// A vote that opens bids leaves the clearing under way as it began; lots that name no ask then wait.
func TestRuleChangesWhileBidsAreSealed(t *testing.T) {
	c, orders := rooms(t, sealedBy("sbba"), chaintest.Authority("consumer"))
	n := number(t, c)
	bids := bidsOf(orders)
	for _, b := range bids {
		c.Queue(b.who, b.seal(n))
	}
	all(t, c.NextBlock(time.Second))
	open := auction.DefaultParams()
	c.Deliver(consumer, &auctionv1.MsgUpdateParams{Authority: consumer.String(), Params: open})
	c.NextBlock(window)
	for _, b := range bids {
		c.Queue(b.who, b.reveal(n))
	}
	all(t, c.NextBlock(time.Second))
	c.NextBlock(time.Second)
	if b := c.NextBlock(time.Second); chaintest.Events[*auctionv1.EventCleared](t, b)[0].Cleared.Sales != 2 {
		t.Error("a clearing that was under way did not end by its rule")
	}
	if n, _ := come(t, c); n != 2 {
		t.Errorf("%d leases of it began", n)
	}
	for range 5 {
		c.NextBlock(20 * time.Second)
	}
	if x := clearing(t, c).Progress; x != nil {
		t.Errorf("%+v: lots whose asks are sealed are sold by open bids", x)
	}
	c.Deliver(chaintest.Named("p2"), sell("p2", lot(50, 1000)))
	if r := finish(t, c); r.Leased != 1 {
		t.Errorf("%+v", r)
	}
}

// A chain that begins again from an export has no clearing, and everybody its deposit.
func TestSealedBidsSurviveAnExport(t *testing.T) {
	for _, phase := range []string{"sealed", "revealed", "waiting for chance"} {
		c, orders := rooms(t, sealedBy("sbba"))
		n, bids := number(t, c), bidsOf(orders)
		for _, b := range bids {
			c.Queue(b.who, b.seal(n))
		}
		all(t, c.NextBlock(time.Second))
		held := 6
		if phase != "sealed" {
			c.NextBlock(window)
			c.Deliver(chaintest.Named("p0"), bids[0].reveal(n))
		}
		if phase == "waiting for chance" {
			c.NextBlock(reveal)
			if x := clearing(t, c).Progress; x.RevealedAt == 0 || x.Closed {
				t.Fatalf("%+v", x)
			}
			held = 1 // whose ask takes part
		}
		g, err := c.Auction.ExportGenesis(c.Ctx())
		if err != nil || auction.ValidateGenesis(g) != nil || len(g.Seals) != held {
			t.Fatalf("%s: %+v, %v, %v", phase, g, err, auction.ValidateGenesis(g))
		}
		before := c.Balance(chaintest.Named("p0").Address)
		fork := c.Fork()
		if got := fork.Balance(chaintest.Named("p0").Address); got != before+tally {
			t.Errorf("%s: %d after %d", phase, got, before)
		}
		if x := clearing(t, fork).Progress; x != nil && x.Number == n {
			t.Errorf("%s: %+v goes on", phase, x)
		}
		for _, bend := range []func(*auctionv1.Seal){func(x *auctionv1.Seal) { x.Deposit = 0 }, func(x *auctionv1.Seal) { x.Bidder = "" }, func(x *auctionv1.Seal) { x.Order = "x" }} {
			bent := *g
			bent.Seals = slices.Clone(g.Seals)
			if bend(&bent.Seals[0]); auction.ValidateGenesis(&bent) == nil {
				t.Errorf("%s: %+v is taken", phase, bent.Seals[0])
			}
		}
	}
}

// Whatever people do, in whatever order, money is conserved and clearings go on: invariants are checked after each block.
func TestSealedBidsAtRandom(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(7, seed))
		c, orders := rooms(t, sealedBy(sealedRules[seed%3]))
		cleared, sealedSome := 0, 0
		for range 60 {
			x := clearing(t, c)
			for _, b := range bidsOf(orders) {
				b.price, b.salt = 1000+uint64(r.IntN(2))*4000, byte(r.IntN(2))
				if x.Progress == nil || r.IntN(3) > 0 {
					continue
				}
				if r.IntN(2) == 0 {
					c.Queue(b.who, b.seal(x.Progress.Number))
				} else {
					c.Queue(b.who, b.reveal(x.Progress.Number))
				}
			}
			switch r.IntN(8) {
			case 0:
				c.Queue(chaintest.Named("q0"), sell("q0"))
			case 1:
				c.Queue(chaintest.Named("q0"), sell("q0", lot(50, uint64(r.IntN(2)))))
			case 2:
				c.Queue(consumer, &marketv1.MsgCancelOrder{Consumer: consumer.String(), Order: orders[r.IntN(3)].ID().String()})
			case 3:
				o := batch(uint64(10+r.IntN(100)), 1, tally)
				orders[r.IntN(3)] = o
				c.Queue(consumer, worktest.Post(o))
			}
			b := c.NextBlock(time.Duration(r.IntN(20)) * time.Second)
			cleared += len(chaintest.Events[*auctionv1.EventCleared](t, b))
			sealedSome += len(chaintest.Events[*auctionv1.EventSealed](t, b))
		}
		if cleared < 3 || sealedSome == 0 {
			t.Errorf("seed %d: %d clearings, %d bids", seed, cleared, sealedSome)
		}
	}
}

// The bounds of rules of sealed bids hold while bids are open, so that a vote needs to set the rule alone.
func TestSealedRulesThatMayNotBeSet(t *testing.T) {
	for name, bend := range map[string]func(*auctionv1.Params){
		"reveal": func(p *auctionv1.Params) { p.RevealMs = 0 }, "long": func(p *auctionv1.Params) { p.RevealMs = p.PeriodMs + 1 },
		"deposit": func(p *auctionv1.Params) { p.Deposit = 1 }, "dear": func(p *auctionv1.Params) { p.Deposit = 1 << 40 },
		"lot": func(p *auctionv1.Params) { p.LotUnits = 0 }, "epsilon": func(p *auctionv1.Params) { p.Epsilon = 0 },
		"grid": func(p *auctionv1.Params) { p.GridCount = 0 }, "step": func(p *auctionv1.Params) { p.GridStep = 0 }, "least": func(p *auctionv1.Params) { p.GridLeast = 0 },
	} {
		p := auction.DefaultParams()
		if bend(&p); auction.CheckParams(p) == nil {
			t.Errorf("%s: %+v may be set", name, p)
		}
	}
	for _, rule := range sealedRules {
		p := auction.DefaultParams()
		if p.Rule = rule; auction.CheckParams(p) != nil {
			t.Errorf("%s: %v", rule, auction.CheckParams(p))
		}
	}
}

// A bid for an order that no validator may lead any more takes no part. It was revealed, so its deposit comes back.
func TestASealedBidThatNobodyMayLead(t *testing.T) {
	c, orders := rooms(t, sealedBy("sbba"))
	v0 := chaintest.Named("v0")
	c.Deliver(v0, &marketv1.MsgWithdrawOffer{Validator: v0.String()})
	before := c.Balance(consumer.Address)
	r, _ := play(t, c, bidsOf(orders))
	if r.Demands != 0 || r.Trades != 0 || r.Withheld != 0 || r.Burnt != 0 {
		t.Errorf("%+v", r)
	}
	for _, o := range orders {
		if s := posting(t, c, o).Status; s != marketv1.STATUS_OPEN {
			t.Errorf("order %d is %s", o.Nonce, s)
		}
	}
	if after := c.Balance(consumer.Address); after+tally <= before {
		t.Errorf("the consumer had %d utally, and has %d", before, after)
	}
}

// Where the rule can sell nothing no clearing begins, so nobody locks a deposit in vain: a devnet's only seller sealed an ask every
// seven seconds.
func TestNothingIsSealedWhereNothingCanBeSold(t *testing.T) {
	for rule, enough := range map[string][]string{"sbba": {"p0", "p1"}, "exponential": {"p0"}} {
		c := newChain(t, sealedBy(rule), chaintest.Fund(100*tally, "p0", "p1"))
		worktest.Offer(c, "v0")
		c.Deliver(consumer, worktest.Post(batch(1, 1, tally)))
		c.Deliver(chaintest.Named("p0"), sell("p0", lot(29, 0))) // less than a lot has
		begins := func(want bool, why string) {
			t.Helper()
			for range 3 {
				c.NextBlock(30 * time.Second)
			}
			if p := clearing(t, c).Progress; (p != nil) != want {
				t.Errorf("%s, %s: %+v", rule, why, p)
			}
		}
		begins(false, "with a lot that is too small")
		for i, name := range enough {
			if i > 0 {
				begins(false, "with one lot")
			}
			c.Deliver(chaintest.Named(name), sell(name, lot(30, 0)))
		}
		begins(true, "with lots enough")
	}
}
