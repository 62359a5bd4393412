package provider

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Bank holds the stakes and the insurance.
type Bank interface {
	SpendableCoin(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, to string, coins sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
	SendCoinsFromModuleToModule(ctx context.Context, from, to string, coins sdk.Coins) error
}
