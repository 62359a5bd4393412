package auction

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Needs is what auctions need of others.
type Needs struct {
	Bank     Bank
	Burner   Burner
	Registry Registry
	Leases   Leases
	Beacon   Beacon
}

// Bank holds the deposits of sealed bids.
type Bank interface {
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, to string, coins sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
}

// Burner destroys tokens of a module's account.
type Burner interface {
	Burn(ctx context.Context, from string, amount uint64) error
}

// Beacon gives what draws follow from, and says whether this block gave it.
type Beacon interface {
	Value(ctx context.Context) (value canon.Hash, fresh bool, err error)
}

// Registry knows the peers.
type Registry interface {
	Params(ctx context.Context) (providerv1.Params, error)
	Get(ctx context.Context, account sdk.AccAddress) (providerv1.Peer, error)
	// Seller returns a provider as a candidate, one that nobody wants if it is none, and its record of valid units.
	Seller(ctx context.Context, provider sdk.AccAddress) (c providerv1.Candidate, record uint64, err error)
	Free(ctx context.Context, c providerv1.Candidate) bool
	// Affords reports whether what an account can put up suffices for a bond.
	Affords(ctx context.Context, account sdk.AccAddress, bond uint64) (bool, error)
	Reserve(ctx context.Context, account sdk.AccAddress, amount uint64) error
	Release(ctx context.Context, account sdk.AccAddress, amount uint64) error
	Slash(ctx context.Context, account sdk.AccAddress, reserved, free uint64, payouts []providerv1.Payout) error
}

// Leases knows the rules for leases.
type Leases interface {
	Rules(ctx context.Context) (job.Params, error)
}

// Market has the orders, and begins their leases.
type Market interface {
	// Lends returns lend, which begins the lease of an open order with providers who sold to it. It takes the offer with the
	// smallest fee, at most feeBps, and reserves the bonds. able is false if no provider can take a unit. What the order pays
	// above its cost is burnt. room reports whether the block has time for another.
	Lends(ctx context.Context) (lend Lender, room func() bool, err error)
	// Posted returns the number of an order in the book, and who posted it.
	Posted(ctx context.Context, order canon.Hash) (number uint64, consumer string, err error)
	// Referees returns how many owners of active validators an order has beside the lead's, at most.
	Referees(ctx context.Context) (int, error)
	// Leading returns the highest price, in utally, of an order that some validator may lead now for a fee of at most feeBps, and as
	// Referees does.
	Leading(ctx context.Context, feeBps uint32) (room uint64, referees int, err error)
	// Auctioned returns how many open orders ask for auctions, and whether the one of a number is this one, and does.
	Auctioned(ctx context.Context) (int, error)
	Asks(ctx context.Context, number uint64, order canon.Hash) (bool, error)
}
