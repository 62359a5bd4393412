package supply

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Bank holds all balances.
type Bank interface {
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	GetSupply(ctx context.Context, denom string) sdk.Coin
	IterateAllBalances(ctx context.Context, stop func(sdk.AccAddress, sdk.Coin) bool)
	SendCoinsFromModuleToModule(ctx context.Context, from, to string, coins sdk.Coins) error
	BurnCoins(ctx context.Context, module string, coins sdk.Coins) error
}

// Check evaluates the invariants of every module; an error says which ledger
// does not add up.
type Check func(context.Context) error
