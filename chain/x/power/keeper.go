// Package power says who runs consensus, with how many votes, how much verified
// computation each account has done, and what random draws start from.
//
// The validator set is that of genesis. Earned power only grows: a settled
// lease credits its workers, in millionths of a ut (1 ut = 4.32e11 FLOP).
// The fees of a block go to its proposer at the block's end. The seed is the
// hash of the last earlier block with transactions. A block without
// transactions writes neither.
package power

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

// Name is the module's name.
const Name = "power"

// FlopsPerMicroUT is the computation that earns one millionth of a ut.
const FlopsPerMicroUT = 432_000

// Keeper holds the validator set and the record of earned power.
type Keeper struct {
	bank       Bank
	validators collections.Map[[]byte, powerv1.Validator] // by consensus address
	earned     collections.Map[sdk.AccAddress, uint64]    // 10⁻⁶ ut
	seed       collections.Item[[]byte]
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, bank Bank) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		bank: bank,
		validators: collections.NewMap(sb, collections.NewPrefix(0), "validators",
			collections.BytesKey, codec.CollValue[powerv1.Validator](cdc)),
		earned: collections.NewMap(sb, collections.NewPrefix(1), "earned",
			sdk.AccAddressKey, collections.Uint64Value),
		seed: collections.NewItem(sb, collections.NewPrefix(2), "seed", collections.BytesValue),
	}
	module.Seal(sb)
	return k
}

// Credit adds verified computation to an account. Less than one millionth of a
// ut counts as nothing.
func (k *Keeper) Credit(ctx context.Context, account sdk.AccAddress, flops uint64) error {
	more := flops / FlopsPerMicroUT
	if more == 0 {
		return nil
	}
	total, err := k.Earned(ctx, account)
	if err != nil {
		return err
	}
	if total+more < total {
		return fmt.Errorf("credit %d FLOP to %s: the record is full", flops, account)
	}
	if err := k.earned.Set(ctx, account, total+more); err != nil {
		return err
	}
	return sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(
		&powerv1.EventCredited{Account: account.String(), Flops: flops, MicroUt: total + more})
}

// Earned returns the power an account has earned, in millionths of a ut.
func (k *Keeper) Earned(ctx context.Context, account sdk.AccAddress) (uint64, error) {
	total, err := k.earned.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return total, err
}

// Seed returns what draws in this block start from: the hash of the last earlier
// block with transactions. It is known before the block is made, so nobody can
// try transactions until a draw suits him; but who waits may choose among the
// seeds that come, and the proposer of that earlier block had some say in it.
// (The SDK's header has no hash of the block before.)
func (k *Keeper) Seed(ctx context.Context) (canon.Hash, error) {
	seed, err := k.seed.Get(ctx)
	if err != nil {
		return canon.Hash{}, err
	}
	return canon.HashOf(seed)
}

// EndBlock pays the block's fees and makes its hash the seed of the blocks to
// come, if it has transactions. It must come after all modules that draw.
func (k *Keeper) EndBlock(ctx context.Context) error {
	if c := sdk.UnwrapSDKContext(ctx); c.TxCount() > 0 {
		if err := k.seed.Set(ctx, c.HeaderHash()); err != nil {
			return err
		}
	}
	return k.payFees(ctx)
}

// payFees pays what the ante handlers collected to the block's proposer. One
// that has just left the set leaves it to the next.
func (k *Keeper) payFees(ctx context.Context) error {
	fees := k.bank.GetAllBalances(ctx, authtypes.NewModuleAddress(authtypes.FeeCollectorName))
	if fees.IsZero() {
		return nil
	}
	sdkCtx := sdk.UnwrapSDKContext(ctx)
	v, err := k.validators.Get(ctx, sdkCtx.BlockHeader().ProposerAddress)
	if errors.Is(err, collections.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	account, err := address.Parse(v.Account)
	if err != nil {
		return err
	}
	if err := k.bank.SendCoinsFromModuleToAccount(ctx, authtypes.FeeCollectorName, account, fees); err != nil {
		return errorsmod.Wrapf(err, "pay fees to proposer %s", v.Account)
	}
	return sdkCtx.EventManager().EmitTypedEvent(&powerv1.EventFees{Account: v.Account, Amount: coin.Amount(fees)})
}
