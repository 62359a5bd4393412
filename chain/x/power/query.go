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

func (q queryServer) Validators(ctx context.Context, r *powerv1.QueryValidatorsRequest) (*powerv1.QueryValidatorsResponse, error) {
	vs, page, err := query.CollectionPaginate(ctx, q.k.validators, r.Pagination,
		func(_ []byte, v powerv1.Validator) (powerv1.Validator, error) { return v, nil })
	return &powerv1.QueryValidatorsResponse{Validators: vs, Pagination: page}, err
}

func (q queryServer) Earned(ctx context.Context, r *powerv1.QueryEarnedRequest) (*powerv1.QueryEarnedResponse, error) {
	account, err := address.Parse(r.Account)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	micro, err := q.k.Earned(ctx, account)
	return &powerv1.QueryEarnedResponse{Earned: powerv1.Earned{Account: r.Account, MicroUt: micro}}, err
}

func (q queryServer) AllEarned(ctx context.Context, r *powerv1.QueryAllEarnedRequest) (*powerv1.QueryAllEarnedResponse, error) {
	es, page, err := query.CollectionPaginate(ctx, q.k.earned, r.Pagination,
		func(a sdk.AccAddress, micro uint64) (powerv1.Earned, error) {
			return powerv1.Earned{Account: a.String(), MicroUt: micro}, nil
		})
	return &powerv1.QueryAllEarnedResponse{Earned: es, Pagination: page}, err
}
