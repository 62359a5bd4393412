// Package block says what enters a block, and how its time counts.
//
// Every transaction pays at least the price of its gas. The fees are burnt
// (x/supply), so that nobody gets his own back: docs/adr/0020-fees-and-classes.md.
// Protocol time is block time less what does not count of it: see module.Now.
//
// Invariant: protocol time is never ahead of block time.
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

// Keeper holds the rules of blocks. What does not count of their time lies in
// the same store, under prefix 0: see module.Now.
type Keeper struct {
	rules module.Rules[blockv1.Params]
}

// NewKeeper returns a keeper over the store of module.BlockStore.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{rules: module.RulesOf(sb, 1, 2, codec.CollValue[blockv1.Params](cdc), CheckParams)}
	module.Seal(sb)
	return k
}

// Params returns the rules that hold now.
func (k *Keeper) Params(ctx context.Context) (blockv1.Params, error) { return k.rules.Get(ctx) }
