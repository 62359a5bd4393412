package work

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Jackpot names the account that holds the pool out of which forced attempts are
// paid: every lease is taxed for it.
const Jackpot = "jackpot"

// Pool returns the utally in the jackpot pool.
func (k *Keeper) Pool(ctx context.Context) (uint64, error) {
	n, err := k.pool.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return n, err
}

// tax moves a part of an order's escrow into the pool.
func (k *Keeper) tax(ctx context.Context, id canon.Hash, amount uint64) error {
	if amount == 0 {
		return nil
	}
	if err := k.escrow.Tax(ctx, id, Jackpot, amount); err != nil {
		return err
	}
	pool, err := k.Pool(ctx)
	if err != nil {
		return err
	}
	return k.pool.Set(ctx, pool+amount)
}

// prize pays somebody out of the pool.
func (k *Keeper) prize(ctx context.Context, id canon.Hash, e job.Effect) error {
	pool, err := k.Pool(ctx)
	if err != nil {
		return err
	}
	if e.Amount > pool {
		return fmt.Errorf("the jackpot pool is %d utally, %d are to be paid", pool, e.Amount)
	}
	to, err := address.Parse(e.Account)
	if err != nil {
		return err
	}
	if err := k.bank.SendCoinsFromModuleToAccount(ctx, Jackpot, to, coin.Of(e.Amount)); err != nil {
		return errorsmod.Wrapf(err, "pay %d utally of the jackpot pool to %s", e.Amount, e.Account)
	}
	if err := k.pool.Set(ctx, pool-e.Amount); err != nil {
		return err
	}
	return emit(ctx, &workv1.EventPrize{Order: id.String(), Account: e.Account, Amount: e.Amount})
}

// checkPool: the pool is what its account holds.
func (k *Keeper) checkPool(ctx context.Context) error {
	pool, err := k.Pool(ctx)
	if err != nil {
		return err
	}
	held := k.bank.GetBalance(ctx, authtypes.NewModuleAddress(Jackpot), coin.Denom).Amount
	if !held.IsUint64() || held.Uint64() != pool {
		return fmt.Errorf("the jackpot pool is %d utally, its account holds %s", pool, held)
	}
	return nil
}
