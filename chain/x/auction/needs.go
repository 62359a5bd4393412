package auction

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Registry knows the peers.
type Registry interface {
	Params(ctx context.Context) (providerv1.Params, error)
	Get(ctx context.Context, account sdk.AccAddress) (providerv1.Peer, error)
	// Seller returns a provider as a candidate, one that nobody wants if it is none, and its record of valid units.
	Seller(ctx context.Context, provider sdk.AccAddress) (c providerv1.Candidate, record uint64, err error)
	Free(ctx context.Context, c providerv1.Candidate) bool
}

// Leases knows the rules for leases.
type Leases interface {
	Rules(ctx context.Context) (job.Params, error)
}

// Market has the orders, and begins their leases.
type Market interface {
	// Lends returns what a block begins leases by. lend begins that of an open order, with these providers at their
	// prices, under the offer with the smallest fee, of at most so many bps; able is false if none of the providers can take a
	// unit. room reports whether the block has time for another.
	Lends(ctx context.Context) (lend func(ctx context.Context, order canon.Hash, sellers []providerv1.Candidate, feeBps uint32) (able bool, err error), room func() bool, err error)
	// Referees returns how many owners of active validators an order has beside the lead's, at most.
	Referees(ctx context.Context) (int, error)
	// Auctioned returns how many open orders ask for auctions, and whether the one of a number is this one, and does.
	Auctioned(ctx context.Context) (int, error)
	Asks(ctx context.Context, number uint64, order canon.Hash) (bool, error)
}
