package seats

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/address"
	powermodule "github.com/tally-network/tally/chain/x/power"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

type queryServer struct{ *Keeper }

func (q queryServer) Params(ctx context.Context, _ *seatsv1.QueryParamsRequest) (*seatsv1.QueryParamsResponse, error) {
	p, err := q.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := q.rules.Authority(ctx)
	return &seatsv1.QueryParamsResponse{Params: p, Authority: authority}, err
}

func (q queryServer) Status(ctx context.Context, _ *seatsv1.QueryStatusRequest) (*seatsv1.QueryStatusResponse, error) {
	out := &seatsv1.QueryStatusResponse{}
	var err error
	if out.Set, err = q.current(ctx); err != nil {
		return nil, err
	}
	if out.Epoch, err = q.epoch(ctx); err != nil {
		return nil, err
	}
	if out.LastDrawEpoch, err = q.drawn.Get(ctx); err != nil {
		return nil, err
	}
	if out.Totals, err = q.totals.Get(ctx); err != nil {
		return nil, err
	}
	d, err := q.drawing.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return out, nil
	}
	out.Draw = &d
	return out, err
}

func (q queryServer) Members(ctx context.Context, r *seatsv1.QueryMembersRequest) (*seatsv1.QueryMembersResponse, error) {
	all, page, err := query.CollectionPaginate(ctx, q.members, r.Pagination,
		func(_ sdk.AccAddress, m seatsv1.Member) (seatsv1.Member, error) { return m, nil })
	return &seatsv1.QueryMembersResponse{Members: all, Pagination: page}, err
}

func (q queryServer) Member(ctx context.Context, r *seatsv1.QueryMemberRequest) (*seatsv1.QueryMemberResponse, error) {
	account, err := address.Parse(r.Account)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	m, err := q.Get(ctx, account)
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	_, sum, err := q.sum(ctx, account)
	if err != nil {
		return nil, err
	}
	h, err := q.Hour(ctx)
	if err != nil {
		return nil, err
	}
	held, err := q.unbonding.Of(ctx, account)
	return &seatsv1.QueryMemberResponse{Member: m, Power: powermodule.Worth(r.Account, sum, h), Unbonding: held}, err
}

func (q queryServer) Delegation(ctx context.Context, r *seatsv1.QueryDelegationRequest) (*seatsv1.QueryDelegationResponse, error) {
	account, err := address.Parse(r.Account)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	to, err := q.MemberOf(ctx, account)
	return &seatsv1.QueryDelegationResponse{Member: to.String()}, err
}
