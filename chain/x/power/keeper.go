// Package power says how much computing power each account has: verified computation, of which half counts after
// a week.
//
// A settled lease credits its workers; a conviction takes all that counts.
//
// Call [NewKeeper] and [NewModule]. [Keeper.Credit], [Keeper.CreditDrilling] and [Keeper.Forfeit] change power, and
// whoever [Keeper.Tell] names hears of it. [Keeper.Mark] makes a moment one whose power [Keeper.At] tells later.
//
// Invariants: the records of accounts add up to that of all together. A record of a marked moment goes once nobody
// asks for that moment or an earlier one.
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

// Keeper holds the records of computing power.
type Keeper struct {
	records collections.Map[sdk.AccAddress, powerv1.Record]
	all     collections.Item[powerv1.Record] // of all accounts together
	origin  collections.Item[int64]          // protocol time at which the first hour began, ms
	past    past
	voters  Voters
	rewards Rewards
	seats   Seats
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		records: collections.NewMap(sb, collections.NewPrefix(0), "records",
			sdk.AccAddressKey, codec.CollValue[powerv1.Record](cdc)),
		all:    collections.NewItem(sb, collections.NewPrefix(1), "all", codec.CollValue[powerv1.Record](cdc)),
		origin: collections.NewItem(sb, collections.NewPrefix(2), "origin", collections.Int64Value),
		past: past{
			marks: collections.NewMap(sb, collections.NewPrefix(3), "marks", collections.Uint64Key, collections.Int64Value),
			last:  collections.NewItem(sb, collections.NewPrefix(4), "last_mark", collections.Uint64Value),
			earlier: collections.NewMap(sb, collections.NewPrefix(5), "earlier",
				collections.PairKeyCodec(sdk.AccAddressKey, collections.Uint64Key), codec.CollValue[powerv1.Record](cdc)),
			byMark: collections.NewKeySet(sb, collections.NewPrefix(6), "earlier_by_mark",
				collections.PairKeyCodec(collections.Uint64Key, sdk.AccAddressKey)),
		},
	}
	module.Seal(sb)
	return k
}

// Tell names who is told of convictions, who of credit, and who of every change.
func (k *Keeper) Tell(v Voters, r Rewards, s Seats) { k.voters, k.rewards, k.seats = v, r, s }
