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
	// Turns returns who proposes in the first n rounds of a block. There is none if that would take too long to
	// find out.
	Turns(ctx context.Context, height int64, n int) ([]sdk.AccAddress, error)
}
