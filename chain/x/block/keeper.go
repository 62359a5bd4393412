// Package block says what enters a block, and how its time counts.
//
// Every transaction pays at least the price of its gas ([Fee]). The fees are burnt
// (x/supply), so that no proposer gets its own back: docs/adr/0020-fees-and-classes.md.
// Protocol time, which all windows and clocks count, is block time less what
// pauses and crowded blocks took from everybody:
// docs/adr/0021-protocol-time.md. The app calls [Keeper.Pass] first in every block;
// modules read the time with module.Now.
//
// Invariants: protocol time never runs backwards, and never ahead of block time;
// a block with nothing to subtract writes nothing.
package block

import (
	"context"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"

	"github.com/cosmos/cosmos-sdk/codec"

	"github.com/tally-network/tally/chain/module"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// Name is the module's name.
const Name = "block"

// Keeper holds the rules of blocks. The time that does not count is in the same
// store, under prefix 0 (module.Lost).
type Keeper struct {
	rules   module.Rules[blockv1.Params]
	crowded collections.Item[bool] // whether the last block was
}

// NewKeeper returns a keeper over the store of module.BlockStore.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		rules:   module.RulesOf(sb, 1, 2, codec.CollValue[blockv1.Params](cdc), mayReplace),
		crowded: collections.NewItem(sb, collections.NewPrefix(3), "crowded", collections.BoolValue),
	}
	module.Seal(sb)
	return k
}

// Pass tells how many milliseconds lie between the last block and this one. If the last
// was crowded, none of them count, otherwise at most Params.MaxGapMs. Pass comes before
// anything else in a block.
func (k *Keeper) Pass(ctx context.Context, ms int64) error {
	p, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	lost := max(0, ms-p.MaxGapMs)
	switch crowded, err := k.crowded.Has(ctx); {
	case err != nil:
		return err
	case crowded:
		lost = max(0, ms)
		if err := k.crowded.Remove(ctx); err != nil {
			return err
		}
	}
	if lost == 0 {
		return nil
	}
	total := module.Lost(ctx) + lost
	module.SetLost(ctx, total)
	return module.Emit(ctx, &blockv1.EventLost{Ms: lost, TotalMs: total})
}

// Crowd says that this block had no room for all moves.
func (k *Keeper) Crowd(ctx context.Context) error { return k.crowded.Set(ctx, true) }

// Params returns the rules that hold now.
func (k *Keeper) Params(ctx context.Context) (blockv1.Params, error) { return k.rules.Get(ctx) }
