package market

import (
	"context"
	"errors"
	"math"

	"cosmossdk.io/collections"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/book"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

type queryServer struct{ matcher }

func (q queryServer) Offers(ctx context.Context, r *marketv1.QueryOffersRequest) (*marketv1.QueryOffersResponse, error) {
	offers, page, err := query.CollectionPaginate(ctx, q.offers, r.Pagination,
		func(_ sdk.AccAddress, o marketv1.Offer) (marketv1.Offer, error) { return o, nil })
	return &marketv1.QueryOffersResponse{Offers: offers, Pagination: page}, err
}

func (q queryServer) Trades(ctx context.Context, r *marketv1.QueryTradesRequest) (*marketv1.QueryTradesResponse, error) {
	all, next, err := query.CollectionPaginate(ctx, q.trades.of, module.Newest(r.Pagination), func(_ uint64, t marketv1.Trade) (marketv1.Trade, error) { return t, nil })
	return &marketv1.QueryTradesResponse{Trades: all, Pagination: next}, err
}

func (q queryServer) Orders(ctx context.Context, r *marketv1.QueryOrdersRequest) (*marketv1.QueryOrdersResponse, error) {
	var orders []marketv1.BookedOrder
	var page *query.PageResponse
	var err error
	switch {
	case r.Status != marketv1.STATUS_UNSPECIFIED && r.Consumer != "":
		return nil, status.Error(codes.InvalidArgument, "ask by status or by consumer, not by both")
	case r.Status != marketv1.STATUS_UNSPECIFIED:
		orders, page, err = query.CollectionPaginate(ctx, q.byStatus, r.Pagination,
			func(k collections.Pair[int32, uint64], _ collections.NoValue) (marketv1.BookedOrder, error) {
				return q.booked(ctx, k.K2())
			}, query.WithCollectionPaginationPairPrefix[int32, uint64](int32(r.Status)))
	case r.Consumer != "":
		account, bad := address.Parse(r.Consumer)
		if bad != nil {
			return nil, status.Error(codes.InvalidArgument, bad.Error())
		}
		orders, page, err = query.CollectionPaginate(ctx, q.byConsumer, r.Pagination,
			func(k collections.Pair[sdk.AccAddress, uint64], _ collections.NoValue) (marketv1.BookedOrder, error) {
				return q.booked(ctx, k.K2())
			}, query.WithCollectionPaginationPairPrefix[sdk.AccAddress, uint64](account))
	default:
		orders, page, err = query.CollectionPaginate(ctx, q.numbers, r.Pagination,
			func(n uint64, _ []byte) (marketv1.BookedOrder, error) { return q.booked(ctx, n) })
	}
	return &marketv1.QueryOrdersResponse{Orders: orders, Pagination: page}, err
}

func (q queryServer) booked(ctx context.Context, number uint64) (b marketv1.BookedOrder, err error) {
	id, err := q.byNumber(ctx, number)
	if err != nil {
		return b, err
	}
	o, p, err := q.Keeper.Order(ctx, id)
	return marketv1.BookedOrder{Id: id.String(), Order: wire.OrderToProto(&o), Posting: p}, err
}

func (q queryServer) Order(ctx context.Context, r *marketv1.QueryOrderRequest) (*marketv1.QueryOrderResponse, error) {
	id, o, p, err := q.find(ctx, r.Order)
	if err != nil {
		return nil, err
	}
	return &marketv1.QueryOrderResponse{Order: marketv1.BookedOrder{Id: id.String(), Order: wire.OrderToProto(&o), Posting: p}}, nil
}

func (q queryServer) Explain(ctx context.Context, r *marketv1.QueryExplainRequest) (*marketv1.QueryExplainResponse, error) {
	id, o, p, err := q.find(ctx, r.Order)
	if err != nil {
		return nil, err
	}
	if p.Status != marketv1.STATUS_OPEN {
		return nil, status.Errorf(codes.FailedPrecondition, "order %s is %s: only an open order waits for offers", id, wire.NameOf(p.Status))
	}
	bids, best, err := q.explain(ctx, &o)
	return &marketv1.QueryExplainResponse{Bids: bids, Best: best}, err
}

func (q queryServer) Quote(ctx context.Context, r *marketv1.QueryQuoteRequest) (*marketv1.QueryQuoteResponse, error) {
	o, err := wire.OrderFromProto(&r.Order)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	checked := o
	checked.Conditions.MaxPrice = max(checked.Conditions.MaxPrice, 1)
	if err := checked.Check(); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	bids, best, err := q.explain(ctx, &o)
	return &marketv1.QueryQuoteResponse{Bids: bids, Best: best}, err
}

// explain prices all offers for an order and names the one that would win.
func (q queryServer) explain(ctx context.Context, o *job.Order) (out []marketv1.Bid, winner string, err error) {
	s, _, err := q.stock(ctx, math.MaxInt64, turnOf(ctx), q.posted)
	if err != nil {
		return nil, "", err
	}
	var offers []book.Offer
	for _, b := range s.bids(o, true) {
		x := marketv1.Bid{
			Validator: b.Validator, Price: b.Price, UnitPrice: b.quote.Unit, Fee: b.quote.Fee, Burn: b.quote.Burn, Tax: b.quote.Tax,
			Bond: b.bond, Deposit: b.deposit, Providers: uint32(b.Providers), Referees: uint32(b.Referees),
		}
		for _, m := range b.misses {
			x.Misses = append(x.Misses, marketv1.Miss{Condition: m.Condition, Providers: uint32(m.Providers)})
		}
		if b.obstacle != nil {
			x.Obstacle = b.obstacle.Error()
		} else {
			offers = append(offers, b.Offer)
		}
		if x.Credit, err = b.quote.Credited(&o.Problem, &o.Conditions, s.rules.Tariff); err != nil {
			return nil, "", err
		}
		out = append(out, x)
	}
	if best, ok := book.Best(wants(&o.Conditions), offers); ok {
		winner = best.Validator
	}
	return out, winner, nil
}

func (q queryServer) find(ctx context.Context, text string) (id canon.Hash, o job.Order, p marketv1.Posting, err error) {
	if id, err = canon.ParseHash(text); err != nil {
		return id, o, p, status.Error(codes.InvalidArgument, err.Error())
	}
	o, p, err = q.Keeper.Order(ctx, id)
	if errors.Is(err, ErrNoOrder) {
		err = status.Error(codes.NotFound, err.Error())
	}
	return id, o, p, err
}
