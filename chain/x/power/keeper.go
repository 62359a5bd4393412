// Package power says who runs consensus, with how many votes, and how much verified
// computation each account has done.
//
// The validator set is that of genesis. Earned power only grows: a settled
// lease credits its workers, in millionths of a ut (1 ut = 4.32e11 FLOP).
//
// Call [NewKeeper] and [NewModule]. [Keeper.Credit] records work, [Keeper.Account] tells who a
// validator of consensus is, and [Keeper.Turns] when it proposes.
//
// Invariants: the set is never empty. Each validator is stored under the address of its
// consensus key.
//
// Source: docs/spec/lease.md.
package power

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

// Name is the module's name.
const Name = "power"

// FlopsPerMicroUT is the computation that earns one millionth of a ut.
const FlopsPerMicroUT = 432_000

// Keeper holds the validator set and the record of earned power.
type Keeper struct {
	validators collections.Map[[]byte, powerv1.Validator] // by consensus address
	earned     collections.Map[sdk.AccAddress, uint64]    // 10⁻⁶ ut
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		validators: collections.NewMap(sb, collections.NewPrefix(0), "validators",
			collections.BytesKey, codec.CollValue[powerv1.Validator](cdc)),
		earned: collections.NewMap(sb, collections.NewPrefix(1), "earned",
			sdk.AccAddressKey, collections.Uint64Value),
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
	return module.Emit(ctx,
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
