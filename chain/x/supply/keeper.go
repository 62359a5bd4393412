// Package supply guards the number of tokens: all of them exist from genesis,
// and only [Keeper.Burn] destroys any. It takes the fees of each block at its end.
// Call [NewKeeper] and [NewModule].
//
// Invariants: minted − burnt = the bank's supply = the sum of all balances. The
// ledgers of the other modules (stakes, escrow, bonds) each add up to the
// balance of their module's account, so nothing is counted twice or lost.
//
// Source: docs/adr/0020-fees-and-classes.md for the fees.
package supply

import (
	"context"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	errorsmod "cosmossdk.io/errors"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
)

// Name is the module's name and that of the account through which it burns.
const Name = "supply"

// Keeper counts what was minted and burnt.
type Keeper struct {
	bank   Bank
	minted collections.Item[uint64] // utally, set at genesis
	burnt  collections.Item[uint64] // utally
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(svc store.KVStoreService, bank Bank) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		bank:   bank,
		minted: collections.NewItem(sb, collections.NewPrefix(0), "minted", collections.Uint64Value),
		burnt:  collections.NewItem(sb, collections.NewPrefix(1), "burnt", collections.Uint64Value),
	}
	module.Seal(sb)
	return k
}

// Burn destroys amount utally of a module's account.
func (k *Keeper) Burn(ctx context.Context, from string, amount uint64) error {
	if amount == 0 {
		return nil
	}
	// Only this module's account may burn, so the tokens pass through it.
	if err := k.bank.SendCoinsFromModuleToModule(ctx, from, Name, coin.Of(amount)); err != nil {
		return errorsmod.Wrapf(err, "burn %d utally of %s", amount, from)
	}
	if err := k.bank.BurnCoins(ctx, Name, coin.Of(amount)); err != nil {
		return errorsmod.Wrapf(err, "burn %d utally of %s", amount, from)
	}
	burnt, err := k.burnt.Get(ctx)
	if err != nil {
		return err
	}
	if err := k.burnt.Set(ctx, burnt+amount); err != nil {
		return err
	}
	return module.Emit(ctx, &supplyv1.EventBurnt{Module: from, Amount: amount})
}

// burnFees destroys what the block's transactions paid. If a proposer got it, he
// could fill his own blocks for nothing.
func (k *Keeper) burnFees(ctx context.Context) error {
	fees := k.bank.GetBalance(ctx, authtypes.NewModuleAddress(authtypes.FeeCollectorName), coin.Denom)
	return k.Burn(ctx, authtypes.FeeCollectorName, fees.Amount.Uint64())
}

// Burnt returns the utally destroyed so far.
func (k *Keeper) Burnt(ctx context.Context) (uint64, error) { return k.burnt.Get(ctx) }
