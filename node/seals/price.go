package seals

import (
	"context"
	"fmt"

	"github.com/cosmos/gogoproto/grpc"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/demand"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// PriceOfUnit returns what an order bids for a unit of capacity if it costs so much at most, by the rules as they stand.
func PriceOfUnit(ctx context.Context, node grpc.ClientConn, o *job.Order, most uint64) (uint64, error) {
	of := *o
	of.Conditions.MaxPrice = most
	terms, err := TermsOf(ctx, node)
	if err != nil {
		return 0, err
	}
	d, err := terms.Of(&of)
	if err != nil {
		return 0, fmt.Errorf("a bid of %d utally: %w", most, err)
	}
	return max((d.Budget-d.Fee)/d.Units, 1), nil
}

// Rules asks whether bids at auctions are sealed, and what each of them deposits then, in utally.
func Rules(ctx context.Context, node grpc.ClientConn) (sealed bool, deposit uint64, err error) {
	r, err := auctionv1.NewQueryClient(node).Params(ctx, &auctionv1.QueryParamsRequest{})
	if err != nil {
		return false, 0, fmt.Errorf("ask for the rules of auctions: %w", err)
	}
	return wire.SealedBids(&r.Params), r.Params.Deposit, nil
}

// TermsOf asks for the rules by which orders take part in auctions.
func TermsOf(ctx context.Context, node grpc.ClientConn) (*demand.Terms, error) {
	a, err := auctionv1.NewQueryClient(node).Params(ctx, &auctionv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the rules of auctions: %w", err)
	}
	w, err := workv1.NewQueryClient(node).Params(ctx, &workv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the rules: %w", err)
	}
	r, err := providerv1.NewQueryClient(node).Params(ctx, &providerv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the rules of stakes: %w", err)
	}
	rules := wire.ParamsFromProto(w.Params)
	return &demand.Terms{FeeBps: uint64(a.Params.FeeBps), Balance: a.Params.Balance, Rules: &rules, Stake: r.Params.MinProviderStake}, nil
}
