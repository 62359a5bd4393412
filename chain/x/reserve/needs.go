package reserve

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// Needs is what the module needs of others.
type Needs struct {
	Bank
	Seats
	Beacon
	Leases
}

// Bank holds the reserve.
type Bank interface {
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
	SendCoinsFromModuleToModule(ctx context.Context, from, to string, coins sdk.Coins) error
}

// Seats is the set that runs consensus.
type Seats interface {
	// Seat returns the account of the validator with a consensus address, and its part of all votes, of whatever scale.
	Seat(ctx context.Context, consensus []byte) (sdk.AccAddress, uint64, error)
	// Share takes from a reward for a member's seats what belongs to those whose power counts for it, and returns the rest.
	Share(ctx context.Context, account sdk.AccAddress, pay uint64) (rest uint64, err error)
	// Due returns what an account may take of such shares, and Take pays it.
	Due(ctx context.Context, account sdk.AccAddress) (uint64, error)
	Take(ctx context.Context, account sdk.AccAddress) (uint64, error)
	// MemberOf returns the member for which an account's power counts, nil if there is none.
	MemberOf(ctx context.Context, account sdk.AccAddress) (sdk.AccAddress, error)
}

// Beacon says whether a block gave a value, as all do in which something happens.
type Beacon interface {
	Value(ctx context.Context) (value canon.Hash, fresh bool, err error)
}

// Leases knows what credit burns.
type Leases interface {
	Rules(ctx context.Context) (job.Params, error)
}
