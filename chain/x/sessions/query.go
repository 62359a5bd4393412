package sessions

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

type queryServer struct{ k *Keeper }

func (q queryServer) Session(ctx context.Context, r *sessionsv1.QuerySessionRequest) (*sessionsv1.QuerySessionResponse, error) {
	id, err := canon.ParseHash(r.Session)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	s, err := q.k.Get(ctx, id)
	if errors.Is(err, ErrNoSession) {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if err != nil {
		return nil, err
	}
	return &sessionsv1.QuerySessionResponse{Session: wire.SessionToProto(&s)}, nil
}

func (q queryServer) SessionsOf(ctx context.Context, r *sessionsv1.QuerySessionsOfRequest) (*sessionsv1.QuerySessionsOfResponse, error) {
	account, err := address.Parse(r.Account)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	all, page, err := query.CollectionPaginate(ctx, q.k.byParty, r.Pagination,
		func(at collections.Pair[sdk.AccAddress, []byte], _ collections.NoValue) (sessionsv1.Session, error) {
			s, err := q.k.Get(ctx, canon.Hash(at.K2()))
			if err != nil {
				return sessionsv1.Session{}, err
			}
			return wire.SessionToProto(&s), nil
		}, query.WithCollectionPaginationPairPrefix[sdk.AccAddress, []byte](account))
	return &sessionsv1.QuerySessionsOfResponse{Sessions: all, Pagination: page}, err
}

// Listings pages through providers: each has at most 16 listings, and each that matches is shown.
func (q queryServer) Listings(ctx context.Context, r *sessionsv1.QueryListingsRequest) (*sessionsv1.QueryListingsResponse, error) {
	var all [][]sessionsv1.Listed
	var page *query.PageResponse
	var err error
	switch {
	case len(r.Model) > 0 && r.Name != "":
		return nil, status.Error(codes.InvalidArgument, "ask by model or by name, not by both")
	case len(r.Model) > 0:
		model, bad := canon.HashOf(r.Model)
		if bad != nil {
			return nil, status.Error(codes.InvalidArgument, bad.Error())
		}
		all, page, err = indexed(ctx, q.k, q.k.byModel, r.Pagination, model[:], ofModel(model))
	case r.Name != "":
		all, page, err = indexed(ctx, q.k, q.k.byName, r.Pagination, r.Name, named(r.Name))
	default:
		any := func(*sessionsv1.Listing) bool { return true }
		all, page, err = query.CollectionFilteredPaginate(ctx, q.k.offers.all, r.Pagination,
			func(account sdk.AccAddress, _ sessionsv1.Offer) (bool, error) { return q.k.shows(ctx, account, any) },
			func(account sdk.AccAddress, _ sessionsv1.Offer) ([]sessionsv1.Listed, error) {
				return q.k.listed(ctx, account, any)
			})
	}
	return &sessionsv1.QueryListingsResponse{Listings: slices.Concat(all...), Pagination: page}, err
}

// indexed pages through the providers that an index has under a key.
func indexed[K any](ctx context.Context, k *Keeper, index collections.KeySet[collections.Pair[K, sdk.AccAddress]], asked *query.PageRequest, under K,
	match func(*sessionsv1.Listing) bool,
) ([][]sessionsv1.Listed, *query.PageResponse, error) {
	return query.CollectionFilteredPaginate(ctx, index, asked,
		func(at collections.Pair[K, sdk.AccAddress], _ collections.NoValue) (bool, error) {
			return k.shows(ctx, at.K2(), match)
		},
		func(at collections.Pair[K, sdk.AccAddress], _ collections.NoValue) ([]sessionsv1.Listed, error) {
			return k.listed(ctx, at.K2(), match)
		}, query.WithCollectionPaginationPairPrefix[K, sdk.AccAddress](under))
}

// shows reports whether a provider has a listing to show.
func (k *Keeper) shows(ctx context.Context, account sdk.AccAddress, match func(*sessionsv1.Listing) bool) (bool, error) {
	some, err := k.listed(ctx, account, match)
	return len(some) > 0, err
}

func (q queryServer) Record(ctx context.Context, r *sessionsv1.QueryRecordRequest) (*sessionsv1.QueryRecordResponse, error) {
	account, err := address.Parse(r.Provider)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	record, err := q.k.Record(ctx, account)
	return &sessionsv1.QueryRecordResponse{Record: record}, err
}

func (q queryServer) Params(ctx context.Context, _ *sessionsv1.QueryParamsRequest) (*sessionsv1.QueryParamsResponse, error) {
	p, err := q.k.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := q.k.rules.Authority(ctx)
	return &sessionsv1.QueryParamsResponse{Params: p, Authority: authority}, err
}
