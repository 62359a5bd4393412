package seats

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/power"
)

// Needs is what the module needs of others.
type Needs struct {
	Bank
	Power
	Founders
}

// Bank holds bonds.
type Bank interface {
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, to string, coins sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
	SendCoinsFromModuleToModule(ctx context.Context, from, to string, coins sdk.Coins) error
}

// Power has the records of accounts.
type Power interface {
	Of(ctx context.Context, account sdk.AccAddress) (*power.Record, error)
	Hour(ctx context.Context) (power.Hour, error)
	Forfeit(ctx context.Context, account sdk.AccAddress) error
}

// Founders are the genesis set, and the power that it stands in for.
type Founders interface {
	// Founder returns an account's weight among the founders, 0 if it is none, and that of all together.
	Founder(ctx context.Context, account sdk.AccAddress) (own, all uint64, err error)
	// Base returns the power below which founders have what is missing, in millionths of a ut.
	Base(ctx context.Context) (uint64, error)
}

// Beacon gives draws their chance, and members their turn to prove it.
type Beacon interface {
	Value(ctx context.Context) (value canon.Hash, fresh bool, err error)
	Calendar(ctx context.Context) (beacon.Calendar, error)
	// Register gives an account a key, and returns the epoch from which it counts.
	Register(ctx context.Context, account sdk.AccAddress, key []byte) (from uint64, err error)
	// Key returns the key that counts for an account now.
	Key(ctx context.Context, account sdk.AccAddress) ([]byte, error)
	// Forget removes the key of an account.
	Forget(ctx context.Context, account sdk.AccAddress) error
}
