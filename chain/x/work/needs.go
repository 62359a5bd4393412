package work

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Bank holds the fees of questions to custodians, and the jackpot pool.
type Bank interface {
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, to string, coins sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
}

// Escrow pays out what the consumers have locked.
type Escrow interface {
	Escrow(ctx context.Context, order canon.Hash) (uint64, error)
	Pay(ctx context.Context, order canon.Hash, account string, amount uint64) error
	Burn(ctx context.Context, order canon.Hash, amount uint64) error
	Tax(ctx context.Context, order canon.Hash, to string, amount uint64) error
	Settle(ctx context.Context, order canon.Hash, refund uint64) error
	// Forget removes an order that has ended.
	Forget(ctx context.Context, order canon.Hash) error
}

// Stakes is the registry of peers and their stakes.
type Stakes interface {
	Get(ctx context.Context, account sdk.AccAddress) (providerv1.Peer, error)
	WithRole(ctx context.Context, role providerv1.Role) ([]providerv1.Peer, error)
	Active(ctx context.Context, p providerv1.Peer) (bool, error)
	// Means returns what an account can put up as a bond, in utally.
	Means(ctx context.Context, account sdk.AccAddress) (uint64, error)
	// Affords reports whether these suffice for a bond.
	Affords(ctx context.Context, account sdk.AccAddress, bond uint64) (bool, error)
	Reserve(ctx context.Context, account sdk.AccAddress, amount uint64) error
	Release(ctx context.Context, account sdk.AccAddress, amount uint64) error
	Insure(ctx context.Context, account sdk.AccAddress, amount uint64) error
	Slash(ctx context.Context, account sdk.AccAddress, reserved, free uint64, payouts []providerv1.Payout) error
	Jail(ctx context.Context, account sdk.AccAddress, until int64) error
	// Exclude keeps new work from a peer for good, and from all that an owner has: itself, if it is the peer.
	Exclude(ctx context.Context, peer, owner sdk.AccAddress) error
	// Falter tells that a validator did not do what was due as a lead, Mend that it led to the end what so much was paid for.
	Falter(ctx context.Context, validator sdk.AccAddress) error
	Mend(ctx context.Context, validator sdk.AccAddress, paid uint64) error
	Vouch(ctx context.Context, account sdk.AccAddress, units uint64) error
	// Time adds verified FLOP to what an account has done, and ms to the time in which it had that work.
	Time(ctx context.Context, account sdk.AccAddress, flops, ms uint64) error
	Discredit(ctx context.Context, account sdk.AccAddress) error
	Suspend(ctx context.Context, account sdk.AccAddress) error
	Resume(ctx context.Context, account sdk.AccAddress) error
}

// Games are the disputes as they are played.
type Games interface {
	// Drop ends the game of a dispute that its lease has ended: nobody has lost it.
	Drop(ctx context.Context, id uint64, why string) error
	// Forget removes up to so many games about an order, which are all over, and returns how many.
	Forget(ctx context.Context, order canon.Hash, most int) (int, error)
}

// Bonds knows the stake that others than leases reserve, by account, in utally.
type Bonds interface {
	Reserved(ctx context.Context) (map[string]uint64, error)
}

// Beacon gives what draws follow from, and says whether this block gave it.
type Beacon interface {
	Value(ctx context.Context) (value canon.Hash, fresh bool, err error)
}

// Power records verified computation on an order, and takes away what counts of a convict's.
type Power interface {
	Credit(ctx context.Context, order canon.Hash, account sdk.AccAddress, flops uint64) error
	Forfeit(ctx context.Context, account sdk.AccAddress) error
}
