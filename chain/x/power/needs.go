package power

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Bank holds the fees that the ante handler collects.
type Bank interface {
	BlockedAddr(sdk.AccAddress) bool
	GetAllBalances(ctx context.Context, account sdk.AccAddress) sdk.Coins
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
}
