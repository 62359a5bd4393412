package sessions

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Needs is what sessions need of others, and the account to which what convicts lose goes at last.
type Needs struct {
	Bank      Bank
	Burner    Burner
	Registry  Registry
	Insurance string
}

// Games are the disputes about replies.
type Games interface {
	// Forget removes up to so many games about a session, which are all over, and returns how many.
	Forget(ctx context.Context, id canon.Hash, most int) (int, error)
}

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

// Registry knows the peers, and holds their stakes.
type Registry interface {
	Get(ctx context.Context, account sdk.AccAddress) (providerv1.Peer, error)
	// Active reports whether a peer may get new work.
	Active(ctx context.Context, p providerv1.Peer) (bool, error)
	Reserve(ctx context.Context, account sdk.AccAddress, amount uint64) error
	Release(ctx context.Context, account sdk.AccAddress, amount uint64) error
	Slash(ctx context.Context, account sdk.AccAddress, reserved, free uint64, payouts []providerv1.Payout) error
}
