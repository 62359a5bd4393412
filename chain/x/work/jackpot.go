package work

import (
	"context"

	errorsmod "cosmossdk.io/errors"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Jackpot names the account that holds the pool out of which forced attempts are
// paid: every lease is taxed for it.
const Jackpot = "jackpot"

// Pool returns the utally in the jackpot pool: what its account holds.
func (k *Keeper) Pool(ctx context.Context) uint64 { return k.balance(ctx, Jackpot) }

// balance returns the utally that a module account holds.
func (k *Keeper) balance(ctx context.Context, name string) uint64 {
	return k.bank.GetBalance(ctx, authtypes.NewModuleAddress(name), coin.Denom).Amount.Uint64()
}

// tax moves a part of an order's escrow into the pool.
func (k *Keeper) tax(ctx context.Context, id canon.Hash, amount uint64) error {
	if amount == 0 {
		return nil
	}
	return k.escrow.Tax(ctx, id, Jackpot, amount)
}

// prize pays somebody out of the pool.
func (k *Keeper) prize(ctx context.Context, id canon.Hash, e job.Effect) error {
	to, err := address.Parse(e.Account)
	if err != nil {
		return err
	}
	if err := k.bank.SendCoinsFromModuleToAccount(ctx, Jackpot, to, coin.Of(e.Amount)); err != nil {
		return errorsmod.Wrapf(err, "pay %d utally of the jackpot pool to %s", e.Amount, e.Account)
	}
	return module.Emit(ctx, &workv1.EventPrize{Order: id.String(), Account: e.Account, Amount: e.Amount})
}

// insure pays somebody out of the insurance fund.
func (k *Keeper) insure(ctx context.Context, id canon.Hash, e job.Effect) error {
	to, err := address.Parse(e.Account)
	if err != nil {
		return err
	}
	if err := k.stakes.Insure(ctx, to, e.Amount); err != nil {
		return err
	}
	return module.Emit(ctx, &workv1.EventProgress{Order: id.String(), What: "insured", Account: e.Account, Number: e.Amount})
}
