package power

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/address"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

type queryServer struct{ k *Keeper }

// NewQueryServer returns what answers the queries of the module.
func NewQueryServer(k *Keeper) powerv1.QueryServer { return queryServer{k} }

func (q queryServer) Account(ctx context.Context, r *powerv1.QueryAccountRequest) (*powerv1.QueryAccountResponse, error) {
	account, err := address.Parse(r.Account)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	h, err := q.k.Hour(ctx)
	if err != nil {
		return nil, err
	}
	own, err := q.k.Of(ctx, account)
	if err != nil {
		return nil, err
	}
	return &powerv1.QueryAccountResponse{Power: Worth(r.Account, own, h)}, nil
}

func (q queryServer) Accounts(ctx context.Context, r *powerv1.QueryAccountsRequest) (*powerv1.QueryAccountsResponse, error) {
	h, err := q.k.Hour(ctx)
	if err != nil {
		return nil, err
	}
	all, page, err := query.CollectionPaginate(ctx, q.k.records, r.Pagination,
		func(_ sdk.AccAddress, x powerv1.Record) (powerv1.Power, error) {
			own, err := FromProto(&x)
			if err != nil {
				return powerv1.Power{}, err
			}
			return Worth(x.Account, own, h), nil
		})
	return &powerv1.QueryAccountsResponse{Powers: all, Pagination: page}, err
}

func (q queryServer) Total(ctx context.Context, _ *powerv1.QueryTotalRequest) (*powerv1.QueryTotalResponse, error) {
	h, err := q.k.Hour(ctx)
	if err != nil {
		return nil, err
	}
	all, err := q.k.together(ctx)
	if err != nil {
		return nil, err
	}
	third, err := all.Third(h)
	return &powerv1.QueryTotalResponse{Power: Worth("", all, h), Third: third}, err
}
