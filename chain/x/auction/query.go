package auction

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

type queryServer struct {
	*Keeper
	market Market
}

func (q queryServer) Params(ctx context.Context, _ *auctionv1.QueryParamsRequest) (*auctionv1.QueryParamsResponse, error) {
	p, err := q.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := q.rules.Authority(ctx)
	return &auctionv1.QueryParamsResponse{Params: p, Authority: authority}, err
}

func (q queryServer) Capacities(ctx context.Context, r *auctionv1.QueryCapacitiesRequest) (*auctionv1.QueryCapacitiesResponse, error) {
	all, page, err := query.CollectionPaginate(ctx, q.capacities, r.Pagination,
		func(_ sdk.AccAddress, c auctionv1.Capacity) (auctionv1.Capacity, error) { return c, nil })
	return &auctionv1.QueryCapacitiesResponse{Capacities: all, Pagination: page}, err
}

func (q queryServer) Capacity(ctx context.Context, r *auctionv1.QueryCapacityRequest) (*auctionv1.QueryCapacityResponse, error) {
	account, err := address.Parse(r.Provider)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	c, err := orNone(q.capacities.Get(ctx, account))
	if err != nil {
		return nil, err
	}
	c.Provider = r.Provider
	said, err := orNone(q.said.Get(ctx, account))
	if err != nil {
		return nil, err
	}
	p, under, err := q.underWay(ctx)
	return &auctionv1.QueryCapacityResponse{Capacity: c, Stands: under && p.Number == c.Clearing, Said: said}, err
}

func (q queryServer) Demands(ctx context.Context, r *auctionv1.QueryDemandsRequest) (*auctionv1.QueryDemandsResponse, error) {
	all, page, err := query.CollectionPaginate(ctx, q.demands, r.Pagination,
		func(_ uint64, d auctionv1.Demand) (auctionv1.Demand, error) { return d, nil })
	return &auctionv1.QueryDemandsResponse{Demands: all, Pagination: page}, err
}

func (q queryServer) Clearing(ctx context.Context, _ *auctionv1.QueryClearingRequest) (*auctionv1.QueryClearingResponse, error) {
	params, err := q.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	now := sdk.UnwrapSDKContext(ctx)
	room, referees, err := q.market.Leading(now.WithBlockHeight(now.BlockHeight()+1), params.FeeBps) // of the block that comes
	if err != nil {
		return nil, err
	}
	next, err := orNone(q.after.Get(ctx))
	if err != nil {
		return nil, err
	}
	r := &auctionv1.QueryClearingResponse{NextAt: next, Room: room, Referees: uint32(referees)}
	p, under, err := q.underWay(ctx)
	if err != nil || !under {
		return r, err
	}
	c, err := q.clearing.Get(ctx)
	r.Clearing, r.Progress = &c, &p
	return r, err
}

func (q queryServer) Seals(ctx context.Context, r *auctionv1.QuerySealsRequest) (*auctionv1.QuerySealsResponse, error) {
	all, page, err := query.CollectionPaginate(ctx, q.seals, r.Pagination,
		func(_ bidKey, s auctionv1.Seal) (auctionv1.Seal, error) { return s, nil })
	return &auctionv1.QuerySealsResponse{Seals: all, Pagination: page}, err
}

func (q queryServer) Seal(ctx context.Context, r *auctionv1.QuerySealRequest) (*auctionv1.QuerySealResponse, error) {
	_, key, err := bidder(r.Bidder, r.Order)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	next, err := orNone(q.after.Get(ctx))
	if err != nil {
		return nil, err
	}
	p, under, err := q.underWay(ctx)
	if err != nil || !under {
		return &auctionv1.QuerySealResponse{NextAt: next}, err
	}
	s, err := orNone(q.seals.Get(ctx, key))
	if err != nil {
		return nil, err
	}
	if s.Bidder == "" {
		waits, err := q.cannotBidFor(ctx, key.K1())
		return &auctionv1.QuerySealResponse{Progress: &p, NextAt: next, Waits: waits}, err
	}
	return &auctionv1.QuerySealResponse{Seal: &s, Progress: &p, NextAt: next}, nil
}

// cannotBidFor reports whether no bid is taken for an order now, though it waits for auctions.
func (q queryServer) cannotBidFor(ctx context.Context, order []byte) (bool, error) {
	id, err := canon.HashOf(order)
	if err != nil {
		return false, nil // it is about an ask
	}
	number, _, err := q.market.Posted(ctx, id)
	if err != nil {
		return false, nil // it is not in the book
	}
	d, err := orNone(q.demands.Get(ctx, number))
	return cannotBid(ctx, &d), err
}

func (q queryServer) Sales(ctx context.Context, r *auctionv1.QuerySalesRequest) (*auctionv1.QuerySalesResponse, error) {
	account, err := address.Parse(r.Provider)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	all, page, err := query.CollectionPaginate(ctx, q.sales, r.Pagination, func(at collections.Pair[sdk.AccAddress, uint64], _ collections.NoValue) (x auctionv1.SoldTo, err error) {
		d, err := q.demands.Get(ctx, at.K2())
		if err != nil {
			return x, err
		}
		i := slices.IndexFunc(d.Sale.Sellers, func(s auctionv1.Sold) bool { return s.Provider == r.Provider })
		return auctionv1.SoldTo{Order: orderOf(&d), Clearing: d.Sale.Clearing, Until: d.Sale.Until, Part: d.Sale.Sellers[i]}, nil
	}, query.WithCollectionPaginationPairPrefix[sdk.AccAddress, uint64](account))
	return &auctionv1.QuerySalesResponse{Sales: all, Pagination: page}, err
}

func (q queryServer) Cleared(ctx context.Context, r *auctionv1.QueryClearedRequest) (*auctionv1.QueryClearedResponse, error) {
	all, next, err := query.CollectionPaginate(ctx, q.cleared, module.Newest(r.Pagination), func(_ uint64, c auctionv1.Cleared) (auctionv1.Cleared, error) { return c, nil })
	return &auctionv1.QueryClearedResponse{Cleared: all, Pagination: next}, err
}
