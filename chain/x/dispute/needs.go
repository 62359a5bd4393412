package dispute

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/session"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Bank holds the bonds.
type Bank interface {
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, to string, coins sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
	SendCoinsFromModuleToModule(ctx context.Context, from, to string, coins sdk.Coins) error
}

// Stakes is the registry, for bonds of those that have stake.
type Stakes interface {
	// Affords reports whether an account can put up a bond; no, if it is no peer.
	Affords(ctx context.Context, account sdk.AccAddress, bond uint64) (bool, error)
	Reserve(ctx context.Context, account sdk.AccAddress, amount uint64) error
	Release(ctx context.Context, account sdk.AccAddress, amount uint64) error
	Slash(ctx context.Context, account sdk.AccAddress, reserved, free uint64, payouts []providerv1.Payout) error
}

// Replies knows the sessions whose replies can be disputed, and is told what came of it.
type Replies interface {
	// OpenDispute verifies a receipt, and holds its session open.
	OpenDispute(ctx context.Context, r session.Receipt, signature []byte, m dispute.Model) (session.Contested, error)
	// CloseDispute returns who has lost: nobody, if the provider was convicted before.
	CloseDispute(ctx context.Context, id canon.Hash, loser dispute.Side, by string) (dispute.Side, error)
}

// Work knows what can be disputed, and is told what came of it.
type Work interface {
	// Claim also returns the bond that a challenger of a segment locks, in utally.
	Claim(ctx context.Context, order canon.Hash, t job.Target, attempt, segment int) (dispute.Claim, uint64, error)
	// OpenDispute also returns whether the challenger's word as an auditor stands behind
	// the game, in place of a bond.
	OpenDispute(ctx context.Context, order canon.Hash, e job.OpenDispute) (defender string, pledged bool, err error)
	told
}

// told is told what becomes of a game about an order, or about a reply of a session.
type told interface {
	// CloseDispute returns who has lost: nobody, if what the dispute was about is gone.
	CloseDispute(ctx context.Context, order canon.Hash, id uint64, loser dispute.Side, silent bool) (dispute.Side, error)
	MissAnswer(ctx context.Context, order canon.Hash, id uint64, missed bool) error
	Substitute(ctx context.Context, order canon.Hash, id uint64, by string) error
}
