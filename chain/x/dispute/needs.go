package dispute

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
)

// Bank holds the bonds.
type Bank interface {
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, to string, coins sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
	SendCoinsFromModuleToModule(ctx context.Context, from, to string, coins sdk.Coins) error
}

// Work knows what can be disputed, and is told what came of it.
type Work interface {
	// Claim also returns the bond that a challenger of a segment locks, in utally.
	Claim(ctx context.Context, order canon.Hash, t job.Target, attempt, segment int) (dispute.Claim, uint64, error)
	OpenDispute(ctx context.Context, order canon.Hash, e job.OpenDispute) (defender string, err error)
	// CloseDispute returns who has lost: nobody, if what the dispute was about is gone.
	CloseDispute(ctx context.Context, order canon.Hash, id uint64, loser dispute.Side) (dispute.Side, error)
	MissAnswer(ctx context.Context, order canon.Hash, id uint64, missed bool) error
	// Dropped returns, once, at most so many disputes that ended otherwise: nobody has
	// lost them.
	Dropped(ctx context.Context, most int) ([]work.Ended, error)
	// Drops reports whether a dispute is among those that Dropped will return.
	Drops(ctx context.Context, id uint64) (bool, error)
	Substitute(ctx context.Context, order canon.Hash, id uint64, by string) error
}
