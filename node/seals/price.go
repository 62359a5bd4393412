package seals

import (
	"context"
	"fmt"

	"github.com/cosmos/gogoproto/grpc"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/demand"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// PriceOfUnit returns what an order bids for a unit of capacity if it costs so much at most, by the rules as they stand.
func PriceOfUnit(ctx context.Context, node grpc.ClientConn, o *job.Order, most uint64) (uint64, error) {
	a, err := auctionv1.NewQueryClient(node).Params(ctx, &auctionv1.QueryParamsRequest{})
	if err != nil {
		return 0, fmt.Errorf("ask for the rules of auctions: %w", err)
	}
	w, err := workv1.NewQueryClient(node).Params(ctx, &workv1.QueryParamsRequest{})
	if err != nil {
		return 0, fmt.Errorf("ask for the rules: %w", err)
	}
	of := *o
	of.Conditions.MaxPrice = most
	d, err := demand.Of(&of, uint64(a.Params.FeeBps), a.Params.Balance, wire.ParamsFromProto(w.Params).Tariff)
	if err != nil {
		return 0, fmt.Errorf("a bid of %d utally: %w", most, err)
	}
	return max((d.Budget-d.Fee)/d.Units, 1), nil
}
