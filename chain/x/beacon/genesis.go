package beacon

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/core/beacon"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
)

// DefaultGenesis has epochs of 1,200 blocks, ten minutes of a busy chain, and no keys: a
// chain needs a genesis of its own.
func DefaultGenesis() *beaconv1.GenesisState { return &beaconv1.GenesisState{EpochBlocks: 1_200} }

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *beaconv1.GenesisState) error {
	if err := (beacon.Calendar{Epoch: g.Epoch, Length: g.EpochBlocks}).Check(); err != nil {
		return fmt.Errorf("beacon genesis: epoch_blocks: %w", err)
	}
	if g.State != nil {
		s, err := stateFromProto(g.State)
		if err != nil {
			return fmt.Errorf("beacon genesis: %w", err)
		}
		if s.Height != 0 {
			return fmt.Errorf("beacon genesis: the value is of block %d, which this chain does not have: want 0", s.Height)
		}
	}
	seen := map[string]bool{}
	for i, k := range g.Keys {
		switch _, err := address.Parse(k.Account); {
		case err != nil:
			return fmt.Errorf("beacon genesis: key %d: %w", i, err)
		case seen[k.Account]:
			return fmt.Errorf("beacon genesis: %s has two keys: want one, and at most one next", k.Account)
		case len(k.Key) > 0 && vrf.CheckKey(k.Key) != nil:
			return fmt.Errorf("beacon genesis: key of %s: %w", k.Account, vrf.CheckKey(k.Key))
		case len(k.Next) > 0 && vrf.CheckKey(k.Next) != nil:
			return fmt.Errorf("beacon genesis: next key of %s: %w", k.Account, vrf.CheckKey(k.Next))
		case len(k.Key)+len(k.Next) == 0 || len(k.Next) == 0 && k.From != 0:
			return fmt.Errorf("beacon genesis: %s has no key, or none that counts from epoch %d", k.Account, k.From)
		}
		seen[k.Account] = true
	}
	return nil
}

// InitGenesis stores a state.
func (k *Keeper) InitGenesis(ctx context.Context, g *beaconv1.GenesisState) error {
	c := sdk.UnwrapSDKContext(ctx)
	first := max(c.BlockHeight(), 1)
	state := beacon.Begin(c.ChainID())
	if g.State != nil {
		var err error
		if state, err = stateFromProto(g.State); err != nil {
			return err
		}
	}
	err := errors.Join(
		k.state.Set(ctx, stateToProto(&state)),
		k.calendar.Set(ctx, beaconv1.Calendar{Epoch: g.Epoch, Height: first, Blocks: g.EpochBlocks}),
	)
	if err != nil {
		return err
	}
	for _, key := range g.Keys {
		account, err := address.Parse(key.Account)
		if err != nil {
			return err
		}
		if err := k.keys.Set(ctx, account, key); err != nil {
			return err
		}
	}
	return nil
}

// ExportGenesis is what another chain goes on from: in the same epoch, which begins anew.
func (k *Keeper) ExportGenesis(ctx context.Context) (*beaconv1.GenesisState, error) {
	state, err := k.state.Get(ctx)
	if err != nil {
		return nil, err
	}
	c, err := k.Calendar(ctx)
	if err != nil {
		return nil, err
	}
	state.Height = 0
	g := &beaconv1.GenesisState{EpochBlocks: c.Length, Epoch: c.At(sdk.UnwrapSDKContext(ctx).BlockHeight()), State: &state}
	err = k.keys.Walk(ctx, nil, func(_ sdk.AccAddress, key beaconv1.Key) (bool, error) {
		g.Keys = append(g.Keys, key)
		return false, nil
	})
	return g, err
}

// Invariant: the beacon is whole, no block before now was left out of its count, and every
// key can be proved with.
func (k *Keeper) Invariant(ctx context.Context) error {
	s, err := k.get(ctx)
	if err != nil {
		return err
	}
	if now := sdk.UnwrapSDKContext(ctx).BlockHeight(); s.Height > now {
		return fmt.Errorf("the beacon has the value of block %d at block %d", s.Height, now)
	}
	c, err := k.Calendar(ctx)
	if err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	return k.keys.Walk(ctx, nil, func(a sdk.AccAddress, key beaconv1.Key) (bool, error) {
		if key.Account != a.String() {
			return true, fmt.Errorf("the key of %s is stored under %s", key.Account, a)
		}
		return false, nil
	})
}
