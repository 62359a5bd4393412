package reserve

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/reserve"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
)

type queryServer struct{ *Keeper }

func (q queryServer) Params(ctx context.Context, _ *reservev1.QueryParamsRequest) (*reservev1.QueryParamsResponse, error) {
	p, err := q.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := q.rules.Authority(ctx)
	return &reservev1.QueryParamsResponse{Params: p, Authority: authority}, err
}

// current returns the epoch under way, and what it would pay. What it writes on the way is lost.
func (q queryServer) current(ctx context.Context) (in context.Context, e reserve.Epoch, p reserve.Payout, ends int64, err error) {
	in, _ = sdk.UnwrapSDKContext(ctx).CacheContext()
	if e, err = q.enter(in); err == nil {
		p, err = q.payout(in, &e)
	}
	if err == nil {
		_, ends, err = q.now(in)
	}
	return in, e, p, ends, err
}

func (q queryServer) Status(ctx context.Context, _ *reservev1.QueryStatusRequest) (*reservev1.QueryStatusResponse, error) {
	ctx, e, p, ends, err := q.current(ctx)
	if err != nil {
		return nil, err
	}
	held, err := q.held(ctx)
	if err != nil {
		return nil, err
	}
	params, err := q.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	totals, err := q.totals.Get(ctx)
	return &reservev1.QueryStatusResponse{
		Held: held, Totals: totals, Epoch: epochToProto(e), EndsMs: ends, Budget: rulesOf(params).Budget(held), Pays: payoutToProto(e.Number, &p),
	}, err
}

func (q queryServer) Account(ctx context.Context, r *reservev1.QueryAccountRequest) (*reservev1.QueryAccountResponse, error) {
	account, err := address.Parse(r.Account)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	ctx, e, p, ends, err := q.current(ctx)
	if err != nil {
		return nil, err
	}
	a, err := q.get(ctx, account)
	if err != nil {
		return nil, err
	}
	if err := q.settle(ctx, &a, e.Number); err != nil {
		return nil, err
	}
	shared, err := q.Due(ctx, account)
	if err != nil {
		return nil, err
	}
	out := &reservev1.QueryAccountResponse{Due: a.Due + shared, Weights: a.Weights, EndsMs: ends}
	for kind, w := range weightsOf(a.Weights) {
		pay, _, err := p.Pots[kind].Take(w)
		if err != nil {
			return nil, err
		}
		out.Expected += pay
	}
	return out, nil
}
