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
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/vrf"
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
	c, err := k.Calendar(ctx)
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
	key, err = k.Key(ctx, account)
	return account, key, err
}

// Key returns the key that counts for an account in this block.
func (k *Keeper) Key(ctx context.Context, account sdk.AccAddress) ([]byte, error) {
	entry, err := k.keys.Get(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("validator %s has no key for the beacon: %w", account, err)
	}
	c, err := k.Calendar(ctx)
	if err != nil {
		return nil, err
	}
	key := current(entry, c.At(sdk.UnwrapSDKContext(ctx).BlockHeight())).Key
	if len(key) == 0 {
		return nil, fmt.Errorf("the key of validator %s counts from epoch %d", account, entry.From)
	}
	return key, nil
}

// Register gives an account a key, and returns the epoch from which it counts. Until it counts, another may take its
// place.
func (k *Keeper) Register(ctx context.Context, account sdk.AccAddress, key []byte) (uint64, error) {
	if err := vrf.CheckKey(key); err != nil {
		return 0, errorsmod.Wrap(ErrKey, err.Error())
	}
	c, err := k.Calendar(ctx)
	if err != nil {
		return 0, err
	}
	epoch := c.At(sdk.UnwrapSDKContext(ctx).BlockHeight())
	entry, err := k.keys.Get(ctx, account)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return 0, err
	}
	if len(entry.Next) > 0 && entry.From == epoch+1 { // else its owner could choose between two outputs in that epoch
		return 0, errorsmod.Wrapf(ErrKey, "another counts from epoch %d: set the next one then", entry.From)
	}
	entry = current(entry, epoch)
	entry.Account, entry.Next, entry.From = account.String(), key, beacon.Counts(epoch)
	return entry.From, errors.Join(k.keys.Set(ctx, account, entry),
		module.Emit(ctx, &beaconv1.EventKey{Account: entry.Account, Key: key, From: entry.From}))
}

// Forget removes the key of an account that validates no more.
func (k *Keeper) Forget(ctx context.Context, account sdk.AccAddress) error {
	return k.keys.Remove(ctx, account)
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

// Calendar returns what numbers epochs.
func (k *Keeper) Calendar(ctx context.Context) (beacon.Calendar, error) {
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
