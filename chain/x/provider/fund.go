package provider

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
)

// fund is what slashes leave to the insurance account: what is forfeit in this block, and then what
// that account holds. A block may slash hundreds, and makes one send of it.
type fund struct {
	bank    Bank
	forfeit collections.Item[uint64] // utally of this block
}

// add adds to what is forfeit.
func (f fund) add(ctx context.Context, amount uint64) error {
	if amount == 0 {
		return nil
	}
	sum, err := f.owed(ctx)
	if err != nil {
		return err
	}
	return f.forfeit.Set(ctx, sum+amount) // no overflow: it is part of the supply
}

// owed returns what is forfeit.
func (f fund) owed(ctx context.Context) (uint64, error) {
	sum, err := f.forfeit.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return sum, err
}

// collect moves what is forfeit to the insurance account.
func (f fund) collect(ctx context.Context) error {
	sum, err := f.owed(ctx)
	if err != nil || sum == 0 {
		return err
	}
	if err := f.bank.SendCoinsFromModuleToModule(ctx, Name, Insurance, coin.Of(sum)); err != nil {
		return errorsmod.Wrapf(err, "move %d forfeit utally to the insurance account", sum)
	}
	return f.forfeit.Remove(ctx)
}

// Insure pays an account out of what slashes have left.
func (f fund) Insure(ctx context.Context, account sdk.AccAddress, amount uint64) error {
	if err := f.collect(ctx); err != nil {
		return err
	}
	if err := f.bank.SendCoinsFromModuleToAccount(ctx, Insurance, account, coin.Of(amount)); err != nil {
		return errorsmod.Wrapf(err, "pay %d utally of the insurance fund to %s", amount, account)
	}
	return nil
}
