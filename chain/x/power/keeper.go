// Package power says who runs consensus, with how many votes, and how much computing power each account
// has: verified computation, of which half counts after a week.
//
// The validator set is that of genesis. A settled lease credits its workers; a conviction takes all that
// counts.
//
// Call [NewKeeper] and [NewModule]. [Keeper.Credit] and [Keeper.Forfeit] change power,
// [Keeper.Account] tells who a validator of consensus is, and [Keeper.Turns] when it proposes.
//
// Invariants: the set is never empty. Each validator is stored under the address of its
// consensus key. The records of accounts add up to that of all together.
//
// Source: docs/spec/power.md.
package power

import (
	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

// Name is the module's name.
const Name = "power"

// Keeper holds the validator set and the records of computing power.
type Keeper struct {
	validators collections.Map[[]byte, powerv1.Validator] // by consensus address
	records    collections.Map[sdk.AccAddress, powerv1.Record]
	all        collections.Item[powerv1.Record] // of all accounts together
	origin     collections.Item[int64]          // protocol time at which the first hour began, ms
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		validators: collections.NewMap(sb, collections.NewPrefix(0), "validators",
			collections.BytesKey, codec.CollValue[powerv1.Validator](cdc)),
		records: collections.NewMap(sb, collections.NewPrefix(1), "records",
			sdk.AccAddressKey, codec.CollValue[powerv1.Record](cdc)),
		all:    collections.NewItem(sb, collections.NewPrefix(2), "all", codec.CollValue[powerv1.Record](cdc)),
		origin: collections.NewItem(sb, collections.NewPrefix(3), "origin", collections.Int64Value),
	}
	module.Seal(sb)
	return k
}
