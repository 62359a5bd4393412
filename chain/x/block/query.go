package block

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

type queryServer struct{ *Keeper }

func (q queryServer) Params(ctx context.Context, _ *blockv1.QueryParamsRequest) (*blockv1.QueryParamsResponse, error) {
	p, err := q.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := q.rules.Authority(ctx)
	return &blockv1.QueryParamsResponse{Params: p, Authority: authority}, err
}

func (q queryServer) Now(ctx context.Context, _ *blockv1.QueryNowRequest) (*blockv1.QueryNowResponse, error) {
	return &blockv1.QueryNowResponse{
		Height: sdk.UnwrapSDKContext(ctx).BlockHeight(), TimeMs: module.Now(ctx), LostMs: module.Lost(ctx),
	}, nil
}
