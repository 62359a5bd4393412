package power

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/power"
)

// Rewards are told of work.
type Rewards interface {
	// Credited counts work that an account was credited with, by what it was credited with before; in millionths
	// of a ut.
	Credited(ctx context.Context, account sdk.AccAddress, drilling bool, micro, before uint64) error
}

// Voters are told whose power is gone.
type Voters interface {
	// Convicted takes back what an account has voted with power that it has no more.
	Convicted(ctx context.Context, account sdk.AccAddress) error
}

// Seats are told whose record changes.
type Seats interface {
	// Moved counts what an account has now in place of what it had.
	Moved(ctx context.Context, account sdk.AccAddress, had, has *power.Record) error
}
