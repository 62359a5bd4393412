package policy

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Needs is what the module needs of others.
type Needs struct {
	Bank
	Burner
	Power
	Router
}

// Bank holds deposits.
type Bank interface {
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, to string, coins sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
}

// Burner destroys tokens of a module's account.
type Burner interface {
	Burn(ctx context.Context, from string, amount uint64) error
}

// Power tells the computing power of moments.
type Power interface {
	Mark(ctx context.Context) (mark, total uint64, err error)
	Unmark(ctx context.Context, mark uint64) error
	At(ctx context.Context, account sdk.AccAddress, mark uint64) (uint64, error)
}

// Router finds what executes a message, nil if nothing does.
type Router interface {
	Handler(m sdk.Msg) func(sdk.Context, sdk.Msg) (*sdk.Result, error)
}
