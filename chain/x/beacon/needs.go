package beacon

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Validators is the set that runs consensus.
type Validators interface {
	// Account returns the account of the validator with a consensus address.
	Account(ctx context.Context, consensus []byte) (sdk.AccAddress, error)
	// Has reports whether an account is that of a validator.
	Has(ctx context.Context, account sdk.AccAddress) (bool, error)
	// Turn returns who proposes so many turns after the first of the chain. Each block is a turn
	// after the one before, and so is each round of a block. It is nil if that would take too long
	// to find out.
	Turn(ctx context.Context, after int64) (sdk.AccAddress, error)
}
