package drilling

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Bank holds the deposits.
type Bank interface {
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, to string, coins sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
}

// Power records verified computation as training or as drilling, and takes away what counts of a convict's.
type Power interface {
	Credit(ctx context.Context, account sdk.AccAddress, flops uint64) error
	CreditDrilling(ctx context.Context, account sdk.AccAddress, flops uint64) error
	Forfeit(ctx context.Context, account sdk.AccAddress) error
}
