package beacon

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
)

type queryServer struct{ k *Keeper }

func (q queryServer) Value(ctx context.Context, _ *beaconv1.QueryValueRequest) (*beaconv1.QueryValueResponse, error) {
	state, err := q.k.state.Get(ctx)
	if err != nil {
		return nil, err
	}
	calendar, err := q.k.calendar.Get(ctx)
	if err != nil {
		return nil, err
	}
	c, err := q.k.Calendar(ctx)
	if err != nil {
		return nil, err
	}
	whole, err := q.k.Whole(ctx)
	return &beaconv1.QueryValueResponse{
		State: state, Calendar: calendar, Epoch: c.At(sdk.UnwrapSDKContext(ctx).BlockHeight()), Whole: whole[:],
	}, err
}

func (q queryServer) Keys(ctx context.Context, r *beaconv1.QueryKeysRequest) (*beaconv1.QueryKeysResponse, error) {
	keys, page, err := query.CollectionPaginate(ctx, q.k.keys, r.Pagination,
		func(_ sdk.AccAddress, k beaconv1.Key) (beaconv1.Key, error) { return k, nil })
	return &beaconv1.QueryKeysResponse{Keys: keys, Pagination: page}, err
}
