// Package beacon keeps the value from which all draws of the chain follow, and the keys that
// its validators prove values with.
//
// A block with transactions, or in which a draw waits, begins with its proposer's proof
// (MsgProve), which gives the next value. The app demands it, and admits it nowhere else. Epochs
// are counted in blocks. What rules are pure is in core/beacon.
//
// Call [NewKeeper] and [NewModule]. [Keeper.Value] gives what draws of a block follow from,
// [Keeper.Whole] what draws for its epoch do, and [Keeper.Input] and [Keeper.KeyOf] what its
// proposer proves.
//
// Invariants: a block gives at most one value. A validator has one key at a time, which was
// known two epochs before it counts, or at genesis. A block without a proof writes nothing here.
//
// Source: docs/spec/beacon.md.
package beacon

import (
	"context"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
)

// Name is the module's name.
const Name = "beacon"

// Keeper holds the beacon and the keys of validators.
type Keeper struct {
	state    collections.Item[beaconv1.State]
	calendar collections.Item[beaconv1.Calendar]
	keys     collections.Map[sdk.AccAddress, beaconv1.Key]

	validators Validators
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, validators Validators) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		state:      collections.NewItem(sb, collections.NewPrefix(0), "state", codec.CollValue[beaconv1.State](cdc)),
		calendar:   collections.NewItem(sb, collections.NewPrefix(1), "calendar", codec.CollValue[beaconv1.Calendar](cdc)),
		keys:       collections.NewMap(sb, collections.NewPrefix(2), "keys", sdk.AccAddressKey, codec.CollValue[beaconv1.Key](cdc)),
		validators: validators,
	}
	module.Seal(sb)
	return k
}

// Value returns what draws follow from. It is fresh if this block gave it: whatever an earlier
// block holds was there before anybody but its proposer knew it.
func (k *Keeper) Value(ctx context.Context) (value canon.Hash, fresh bool, err error) {
	s, err := k.get(ctx)
	return s.Value, s.Height == sdk.UnwrapSDKContext(ctx).BlockHeight(), err
}

// Whole returns what draws for the whole epoch of this block follow from.
func (k *Keeper) Whole(ctx context.Context) (canon.Hash, error) {
	s, err := k.get(ctx)
	if err != nil {
		return canon.Hash{}, err
	}
	c, err := k.epochs(ctx)
	return s.Whole(c, sdk.UnwrapSDKContext(ctx).BlockHeight()), err
}

// Input returns what the proposer of this block evaluates its VRF on.
func (k *Keeper) Input(ctx context.Context) ([]byte, error) {
	s, err := k.get(ctx)
	return s.Input(sdk.UnwrapSDKContext(ctx).BlockHeight()), err
}

// KeyOf returns the account of a validator, and the key with which it proves in this block. A
// validator whose key does not count yet has none.
func (k *Keeper) KeyOf(ctx context.Context, consensus []byte) (account sdk.AccAddress, key []byte, err error) {
	if account, err = k.validators.Account(ctx, consensus); err != nil {
		return nil, nil, err
	}
	entry, err := k.keys.Get(ctx, account)
	if err != nil {
		return nil, nil, fmt.Errorf("validator %s has no key for the beacon: %w", account, err)
	}
	c, err := k.epochs(ctx)
	if err != nil {
		return nil, nil, err
	}
	if key = current(entry, c.At(sdk.UnwrapSDKContext(ctx).BlockHeight())).Key; len(key) == 0 {
		return nil, nil, fmt.Errorf("the key of validator %s counts from epoch %d", account, entry.From)
	}
	return account, key, nil
}

// current returns a key as it stands in an epoch.
func current(k beaconv1.Key, epoch uint64) beaconv1.Key {
	if len(k.Next) > 0 && epoch >= k.From {
		k.Key, k.Next, k.From = k.Next, nil, 0
	}
	return k
}

func (k *Keeper) get(ctx context.Context) (beacon.State, error) {
	s, err := k.state.Get(ctx)
	if err != nil {
		return beacon.State{}, err
	}
	return stateFromProto(&s)
}

func (k *Keeper) epochs(ctx context.Context) (beacon.Calendar, error) {
	c, err := k.calendar.Get(ctx)
	return beacon.Calendar{Epoch: c.Epoch, Height: c.Height, Length: c.Blocks}, err
}

func stateFromProto(p *beaconv1.State) (s beacon.State, err error) {
	if s.Value, err = canon.HashOf(p.Value); err != nil {
		return s, fmt.Errorf("value of the beacon: %w", err)
	}
	s.Height = p.Height
	for _, f := range p.Folds {
		v, err := canon.HashOf(f.Value)
		if err != nil {
			return s, fmt.Errorf("fold of the beacon: %w", err)
		}
		s.Folds = append(s.Folds, beacon.Fold{From: f.From, Value: v})
	}
	return s, s.Check()
}

func stateToProto(s *beacon.State) beaconv1.State {
	p := beaconv1.State{Value: s.Value[:], Height: s.Height}
	for _, f := range s.Folds {
		p.Folds = append(p.Folds, beaconv1.Fold{From: f.From, Value: f.Value[:]})
	}
	return p
}
