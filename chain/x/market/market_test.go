package market_test

import (
	"context"
	"strings"
	"testing"
	"time"

	errorsmod "cosmossdk.io/errors"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"github.com/cosmos/cosmos-sdk/types/query"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

const tally = worktest.Tally

var (
	consumer = worktest.Consumer
	v0       = chaintest.Named("v0")
	v1       = chaintest.Named("v1")
)

func newChain(t testing.TB, more ...chaintest.Option) *chaintest.Chain {
	return chaintest.New(t, worktest.Network(more...)...)
}

func booked(t *testing.T, c *chaintest.Chain, id canon.Hash) marketv1.BookedOrder {
	t.Helper()
	r, err := marketv1.NewQueryClient(c).Order(context.Background(), &marketv1.QueryOrderRequest{Order: id.String()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Order
}

func explain(t *testing.T, c *chaintest.Chain, o job.Order) *marketv1.QueryExplainResponse {
	t.Helper()
	r, err := marketv1.NewQueryClient(c).Explain(context.Background(), &marketv1.QueryExplainRequest{Order: o.ID().String()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// deposit of an order of ten tallies.
const deposit = 10 * tally / 100

var escrowAccount = authtypes.NewModuleAddress(market.Name)

func escrow(c *chaintest.Chain) uint64 { return c.Balance(escrowAccount) }

func TestBestOfferWinsAndTheSurplusReturns(t *testing.T) {
	c := newChain(t)
	worktest.Offer(c, "v1")
	worktest.Offer(c, "v0")
	o := worktest.Order()
	b := c.Deliver(consumer, worktest.Post(o))
	posted := chaintest.Events[*marketv1.EventPosted](t, b)
	if len(posted) != 1 || posted[0].Order != o.ID().String() || posted[0].Locked != 10*tally+deposit || posted[0].Deposit != deposit {
		t.Fatalf("events %v", posted)
	}
	matched := chaintest.Events[*marketv1.EventMatched](t, b)
	if len(matched) != 1 || matched[0].Validator != v0.String() {
		t.Fatalf("events %v", matched)
	}
	p := booked(t, c, o.ID()).Posting
	if p.Status != marketv1.STATUS_LEASED || p.Validator != v0.String() || p.Escrow != p.Price+deposit || p.Deposit != deposit || p.Price != matched[0].Price {
		t.Fatalf("%+v", p)
	}
	if left := c.Balance(consumer.Address); left != worktest.Purse-p.Price-deposit || escrow(c) != p.Price+deposit {
		t.Fatalf("the consumer has %d, escrow %d", left, escrow(c))
	}
}

func TestExpiredOrderIsRefunded(t *testing.T) {
	c := newChain(t)
	o := worktest.Order()
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(worktest.Expiry - time.Millisecond)
	if booked(t, c, o.ID()).Posting.Status != marketv1.STATUS_OPEN {
		t.Fatal("expired too early")
	}
	b := c.NextBlock(time.Millisecond)
	closed := chaintest.Events[*marketv1.EventClosed](t, b)
	if len(closed) != 1 || closed[0].Status != marketv1.STATUS_EXPIRED || closed[0].Refund != 10*tally+deposit {
		t.Fatalf("events %v", closed)
	}
	if c.Balance(consumer.Address) != worktest.Purse || escrow(c) != 0 {
		t.Fatal("the price did not return")
	}
	worktest.Offer(c, "v0")
	c.NextBlock(time.Second)
	if booked(t, c, o.ID()).Posting.Status != marketv1.STATUS_EXPIRED {
		t.Fatal("an expired order was matched")
	}
}

func TestCancel(t *testing.T) {
	c := newChain(t)
	o := worktest.Order()
	c.Deliver(consumer, worktest.Post(o))
	cancel := func(a chaintest.Account) *marketv1.MsgCancelOrder {
		return &marketv1.MsgCancelOrder{Consumer: a.String(), Order: o.ID().String()}
	}
	c.Refuse(market.ErrConsumer, worktest.Challenger, cancel(worktest.Challenger))
	c.Deliver(consumer, cancel(consumer))
	if c.Balance(consumer.Address) != worktest.Purse || booked(t, c, o.ID()).Posting.Status != marketv1.STATUS_CANCELLED {
		t.Fatal("the price did not return")
	}
	c.Refuse(market.ErrNotOpen, consumer, cancel(consumer))
	c.Refuse(market.ErrPosted, consumer, worktest.Post(o))
	o.Nonce++
	worktest.Offer(c, "v0")
	c.Deliver(consumer, worktest.Post(o))
	c.NextBlock(time.Second)
	c.Refuse(market.ErrNotOpen, consumer, cancel(consumer))
}

func TestPostOrderRefuses(t *testing.T) {
	c := newChain(t)
	for name, x := range map[string]struct {
		bend  func(*job.Order, *marketv1.MsgPostOrder)
		want  *errorsmod.Error
		words string
	}{
		"another's":      {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Consumer = v0.String() }, market.ErrConsumer, v0.String()},
		"other chain":    {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.ChainId = "other" }, market.ErrOrder, `this is "tally-test"`},
		"unchecked":      {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Problem.Kind = "mining" }, market.ErrOrder, "mining"},
		"no root":        {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Problem.DataRoot = nil }, market.ErrOrder, "data_root"},
		"records":        {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Problem.Records = 1 << 63 }, market.ErrOrder, "records"},
		"another's peer": {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Contact.PeerKey = v0.PeerKey() }, market.ErrContact, "contact"},
		"unsigned peer":  {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Signature = nil }, market.ErrContact, "contact"},
		"registered": {func(o *job.Order, m *marketv1.MsgPostOrder) {
			m.Order.Contact.PeerKey, m.Signature = v0.PeerKey(), v0.Register(providerv1.ROLE_VALIDATOR, 0, providerv1.Listing{}).Signature
		}, market.ErrContact, "contact"},
		"no contact":    {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Contact.PeerKey = nil }, market.ErrOrder, "contact"},
		"no validator":  {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Conditions.Validator = "somebody" }, market.ErrOrder, "validator"},
		"no money":      {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Conditions.MaxPrice = worktest.Purse + 1 }, sdkerrors.ErrInsufficientFunds, "lock the maximum price"},
		"long segments": {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Problem.StepFlops = 4e11 }, market.ErrOrder, "put checkpoints at most 1 steps apart"},
		"all money":     {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Conditions.MaxPrice = 1<<64 - 1 }, market.ErrOrder, "more than there is"},
		"no deposit":    {func(o *job.Order, m *marketv1.MsgPostOrder) { m.Order.Conditions.MaxPrice = worktest.Purse - 1 }, sdkerrors.ErrInsufficientFunds, "a deposit of 50000000"},
	} {
		o := worktest.Order()
		m := worktest.Post(o)
		x.bend(&o, m)
		if log := c.Refuse(x.want, consumer, m); !strings.Contains(log, x.words) {
			t.Errorf("%s: %q does not say %q", name, log, x.words)
		}
	}
	// A message that names another account must carry that account's signature.
	c.Refuse(sdkerrors.ErrInvalidPubKey, worktest.Challenger, worktest.Post(worktest.Order()))
	if c.Balance(consumer.Address) != worktest.Purse {
		t.Fatal("a refused order cost something")
	}
}

// The id of an order is that of core, whatever way it came.
func TestOrderKeepsItsIdentity(t *testing.T) {
	o := worktest.Order()
	o.Problem.Recipe = []byte("recipe")
	m := worktest.Post(o)
	back, err := wire.OrderFromProto(&m.Order)
	if err != nil || back.ID() != o.ID() {
		t.Fatalf("%v: %+v", err, back)
	}
	c := newChain(t)
	c.Deliver(consumer, m)
	got := booked(t, c, o.ID())
	if again, err := wire.OrderFromProto(&got.Order); err != nil || again.ID() != o.ID() || got.Id != o.ID().String() {
		t.Fatalf("%v: the book has another order", err)
	}
}

func TestOffers(t *testing.T) {
	c := newChain(t)
	p0 := chaintest.Named("p0")
	offer := func(a chaintest.Account, fee, leases uint32) *marketv1.MsgPostOffer {
		return &marketv1.MsgPostOffer{Validator: a.String(), FeeBps: fee, MaxLeases: leases}
	}
	c.Refuse(market.ErrOffer, p0, offer(p0, 1, 1))
	c.Refuse(provider.ErrNotRegistered, consumer, offer(consumer, 1, 1))
	c.Refuse(market.ErrOffer, v0, offer(v0, 10_001, 1))
	c.Refuse(market.ErrOffer, v0, offer(v0, 1, 0))
	c.Refuse(market.ErrNoOffer, v0, &marketv1.MsgWithdrawOffer{Validator: v0.String()})
	c.Deliver(v0, offer(v0, 100, 1))
	c.Deliver(v1, offer(v1, 100, 1))
	c.Deliver(v0, offer(v0, 200, 3))
	q := marketv1.NewQueryClient(c)
	r, err := q.Offers(context.Background(), &marketv1.QueryOffersRequest{})
	if err != nil || len(r.Offers) != 2 {
		t.Fatalf("%v, %v", r, err)
	}
	for _, o := range r.Offers {
		if o.Validator == v0.String() && (o.FeeBps != 200 || o.MaxLeases != 3) {
			t.Fatalf("%+v", o)
		}
	}
	c.Deliver(v0, &marketv1.MsgWithdrawOffer{Validator: v0.String()})
	if r, err = q.Offers(context.Background(), &marketv1.QueryOffersRequest{}); err != nil || len(r.Offers) != 1 {
		t.Fatalf("%v, %v", r, err)
	}
}

func TestOrderQueries(t *testing.T) {
	c := newChain(t)
	q, ctx := marketv1.NewQueryClient(c), context.Background()
	var ids []string
	for n := range uint64(5) {
		o := worktest.Order()
		o.Nonce = n
		c.Deliver(consumer, worktest.Post(o))
		ids = append(ids, o.ID().String())
	}
	c.Deliver(consumer, &marketv1.MsgCancelOrder{Consumer: consumer.String(), Order: ids[1]})
	for name, x := range map[string]struct {
		request marketv1.QueryOrdersRequest
		want    []string
	}{
		"all":         {marketv1.QueryOrdersRequest{}, ids},
		"open":        {marketv1.QueryOrdersRequest{Status: marketv1.STATUS_OPEN}, []string{ids[0], ids[2], ids[3], ids[4]}},
		"cancelled":   {marketv1.QueryOrdersRequest{Status: marketv1.STATUS_CANCELLED}, ids[1:2]},
		"by consumer": {marketv1.QueryOrdersRequest{Consumer: consumer.String()}, ids},
		"by others":   {marketv1.QueryOrdersRequest{Consumer: v0.String()}, nil},
	} {
		var got []string
		for page := (&query.PageRequest{Limit: 2}); page != nil; {
			x.request.Pagination = page
			r, err := q.Orders(ctx, &x.request)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, o := range r.Orders {
				got = append(got, o.Id)
			}
			if page = nil; len(r.Pagination.NextKey) > 0 {
				page = &query.PageRequest{Limit: 2, Key: r.Pagination.NextKey}
			}
		}
		if strings.Join(got, " ") != strings.Join(x.want, " ") {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
	for name, x := range map[string]struct {
		call func() error
		want codes.Code
	}{
		"both": {func() error {
			_, err := q.Orders(ctx, &marketv1.QueryOrdersRequest{Status: 1, Consumer: consumer.String()})
			return err
		}, codes.InvalidArgument},
		"no address": {func() error {
			_, err := q.Orders(ctx, &marketv1.QueryOrdersRequest{Consumer: "x"})
			return err
		}, codes.InvalidArgument},
		"no id": {func() error {
			_, err := q.Order(ctx, &marketv1.QueryOrderRequest{Order: "x"})
			return err
		}, codes.InvalidArgument},
		"unknown": {func() error {
			_, err := q.Order(ctx, &marketv1.QueryOrderRequest{Order: strings.Repeat("0", 64)})
			return err
		}, codes.NotFound},
		"not open": {func() error {
			_, err := q.Explain(ctx, &marketv1.QueryExplainRequest{Order: ids[1]})
			return err
		}, codes.FailedPrecondition},
		"bad draft": {func() error {
			_, err := q.Quote(ctx, &marketv1.QueryQuoteRequest{})
			return err
		}, codes.InvalidArgument},
	} {
		if err := x.call(); status.Code(err) != x.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Escrow is paid out of leased orders only, and never more than there is.
func TestEscrowRefuses(t *testing.T) {
	c := newChain(t)
	p := worktest.Begin(t, c, worktest.Order())
	open := worktest.Order()
	open.Nonce = 99
	c.Deliver(v0, &marketv1.MsgWithdrawOffer{Validator: v0.String()})
	c.Deliver(consumer, worktest.Post(open))
	c.Deliver(consumer, &marketv1.MsgCancelOrder{Consumer: consumer.String(), Order: open.ID().String()})
	held := booked(t, c, p.ID).Posting.Escrow
	for name, f := range map[string]func(sdk.Context) error{
		"too much":  func(ctx sdk.Context) error { return c.Market.Pay(ctx, p.ID, v0.String(), held+1) },
		"burn":      func(ctx sdk.Context) error { return c.Market.Burn(ctx, p.ID, held+1) },
		"early":     func(ctx sdk.Context) error { return c.Market.Settle(ctx, p.ID, held-1) },
		"cancelled": func(ctx sdk.Context) error { return c.Market.Pay(ctx, open.ID(), v0.String(), 1) },
		"ended":     func(ctx sdk.Context) error { return c.Market.Settle(ctx, open.ID(), 0) },
		"nobody":    func(ctx sdk.Context) error { return c.Market.Pay(ctx, p.ID, "x", 1) },
		"unknown":   func(ctx sdk.Context) error { return c.Market.Burn(ctx, canon.Hash{}, 1) },
	} {
		if err := f(c.Ctx()); err == nil {
			t.Errorf("%s: escrow was paid out", name)
		}
	}
}

// What goes astray in the escrow breaks an invariant.
func TestInvariantSeesFaults(t *testing.T) {
	c := newChain(t)
	p := worktest.Begin(t, c, worktest.Order())
	for name, fault := range map[string]func(sdk.Context) error{
		"money leaves": func(ctx sdk.Context) error {
			return c.Bank.SendCoinsFromModuleToAccount(ctx, market.Name, consumer.Address, coin.Of(1))
		},
		"money enters": func(ctx sdk.Context) error {
			return c.Bank.SendCoinsFromAccountToModule(ctx, consumer.Address, market.Name, coin.Of(1))
		},
		"paid behind the lease's back": func(ctx sdk.Context) error { return c.Market.Pay(ctx, p.ID, v0.String(), 1) },
		"a bond behind its back":       func(ctx sdk.Context) error { return c.Provider.Reserve(ctx, v0.Address, 1) },
	} {
		ctx := c.Ctx()
		if err := fault(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.CheckInvariants(ctx); err == nil {
			t.Errorf("%s: no invariant is broken", name)
		}
	}
}
