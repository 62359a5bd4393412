package power

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Voters are told whose power is gone.
type Voters interface {
	// Convicted takes back what an account has voted with power that it has no more.
	Convicted(ctx context.Context, account sdk.AccAddress) error
}
