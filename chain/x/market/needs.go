package market

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Bank holds the escrow.
type Bank interface {
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, to string, coins sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
	SendCoinsFromModuleToModule(ctx context.Context, from, to string, coins sdk.Coins) error
}

// Burner destroys tokens of a module's account.
type Burner interface {
	Burn(ctx context.Context, from string, amount uint64) error
}

// Projects takes the orders that are tasks of drilling. Of others it does nothing.
type Projects interface {
	// Open takes an order as a task, unless its project does not.
	Open(ctx context.Context, o *job.Order) error
	// Close tells that an order has left the market, Forget that the book forgets it.
	Close(ctx context.Context, order canon.Hash) error
	Forget(ctx context.Context, order canon.Hash) error
}

// Registry knows the peers.
type Registry interface {
	Params(ctx context.Context) (providerv1.Params, error)
	Get(ctx context.Context, account sdk.AccAddress) (providerv1.Peer, error)
	// Candidate returns a validator as a candidate.
	Candidate(ctx context.Context, validator sdk.AccAddress) (providerv1.Candidate, error)
	// Leads visits the validators with the least stake or more, from an account on until before another.
	Leads(ctx context.Context, from, until sdk.AccAddress, visit func(sdk.AccAddress) (stop bool, err error)) error
	// Providers returns those with the least stake or more: at most so many, from an account on and
	// then from the first. Validators returns at most so many of those with the most stake.
	Providers(ctx context.Context, validator, from sdk.AccAddress, most int) ([]providerv1.Candidate, error)
	Validators(ctx context.Context, most int) ([]providerv1.Candidate, error)
	Free(ctx context.Context, c providerv1.Candidate) bool
	// MarkImproved marks a cluster, of which an order may want what it did not want. TakeImproved
	// takes marked ones, of which it returns at most so many, and whether all are to be tried.
	MarkImproved(ctx context.Context, validator sdk.AccAddress) error
	TakeImproved(ctx context.Context, from sdk.AccAddress, most int) ([]sdk.AccAddress, bool, error)
}

// Leases begins leases and knows the rules for them.
type Leases interface {
	Rules(ctx context.Context) (job.Params, error)
	// Leading returns how many leases that are not settled an account leads, and their prices together.
	Leading(ctx context.Context, account string) (leases int, worth uint64, err error)
	Begin(ctx context.Context, m job.Match) (job.Quote, error)
	// Retired reports whether an order was settled once, if its lease is pruned or not.
	Retired(ctx context.Context, order canon.Hash) (bool, error)
	// Retention returns for how long ended orders stay, in ms of protocol time; 0: for good.
	Retention(ctx context.Context) (int64, error)
	// Final returns the state root that a settled order ended in.
	Final(ctx context.Context, order canon.Hash) (canon.Hash, error)
}

// Auction takes the orders that ask for it, by their numbers.
type Auction interface {
	Enter(ctx context.Context, number uint64, o *job.Order) error
	// Leave returns how many sales to the order have come to nothing because somebody who had sold was absent.
	Leave(ctx context.Context, number uint64) (absent uint32, err error)
	// MayLeave returns an error while the order is in a clearing, or its sellers are waited for.
	MayLeave(ctx context.Context, number uint64) error
}

// Powers knows the computing power of accounts, in millionths of a ut.
type Powers interface {
	Effective(ctx context.Context, account sdk.AccAddress) (uint64, error)
}

// Games knows the rules by which work is disputed.
type Games interface {
	Rules(ctx context.Context) (dispute.Rules, error)
}
