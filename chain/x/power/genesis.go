package power

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/crypto/ed25519"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/core/power"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

// maxTotal is CometBFT's limit on the votes of a validator set.
const maxTotal = math.MaxInt64 / 8

// DefaultGenesis has no validators, so a chain needs a genesis of its own.
func DefaultGenesis() *powerv1.GenesisState { return &powerv1.GenesisState{} }

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *powerv1.GenesisState) error {
	if len(g.Validators) == 0 {
		return fmt.Errorf("power genesis: name at least one validator")
	}
	total, seen := int64(0), map[string]bool{}
	for i, v := range g.Validators {
		switch _, err := address.Parse(v.Account); {
		case err != nil:
			return fmt.Errorf("power genesis: validator %d: %w", i, err)
		case vrf.CheckKey(v.ConsensusKey) != nil:
			return fmt.Errorf("power genesis: validator %s: consensus_key: %w", v.Account, vrf.CheckKey(v.ConsensusKey))
		case v.Power < 1 || v.Power > maxTotal-total:
			return fmt.Errorf("power genesis: validator %s: power %d: want at least 1, and at most %d in all", v.Account, v.Power, maxTotal)
		case seen[v.Account] || seen[string(v.ConsensusKey)]:
			return fmt.Errorf("power genesis: validator %s: account and consensus_key must be unique", v.Account)
		}
		total += v.Power
		seen[v.Account], seen[string(v.ConsensusKey)] = true, true
	}
	clear(seen)
	for i, r := range g.Records {
		if _, err := address.Parse(r.Account); err != nil {
			return fmt.Errorf("power genesis: record %d: %w", i, err)
		}
		if seen[r.Account] {
			return fmt.Errorf("power genesis: account %s has two records", r.Account)
		}
		seen[r.Account] = true
	}
	return nil
}

// InitGenesis stores a state. ValidatorUpdates then tells consensus of the set.
func (k *Keeper) InitGenesis(ctx context.Context, g *powerv1.GenesisState) error {
	for _, v := range g.Validators {
		if err := k.validators.Set(ctx, ed25519.PubKey(v.ConsensusKey).Address(), v); err != nil {
			return err
		}
	}
	origin := g.OriginMs
	if origin == 0 {
		origin = module.Now(ctx)
	}
	if err := k.origin.Set(ctx, origin); err != nil {
		return err
	}
	h, err := k.hour(ctx)
	if err != nil {
		return err
	}
	var all power.Record
	for i := range g.Records {
		r := &g.Records[i]
		account, err := address.Parse(r.Account)
		if err != nil {
			return err
		}
		own, err := fromProto(r)
		if err != nil {
			return err
		}
		if err := errors.Join(own.Drilling.Check(h), own.Training.Check(h)); err != nil {
			return fmt.Errorf("power genesis: %s: %w", r.Account, err)
		}
		if err := errors.Join(all.Join(own), k.records.Set(ctx, account, *r)); err != nil {
			return err
		}
	}
	return errors.Join(k.all.Set(ctx, toProto("", &all)), k.past.load(ctx, g))
}

// ValidatorUpdates returns the whole set as consensus wants it at genesis.
func (k *Keeper) ValidatorUpdates(ctx context.Context) ([]abci.ValidatorUpdate, error) {
	var updates []abci.ValidatorUpdate
	err := k.validators.Walk(ctx, nil, func(_ []byte, v powerv1.Validator) (bool, error) {
		updates = append(updates, abci.Ed25519ValidatorUpdate(v.ConsensusKey, v.Power))
		return false, nil
	})
	return updates, err
}

// ExportGenesis is the inverse of InitGenesis, in store order.
func (k *Keeper) ExportGenesis(ctx context.Context) (*powerv1.GenesisState, error) {
	g := &powerv1.GenesisState{}
	err := k.validators.Walk(ctx, nil, func(_ []byte, v powerv1.Validator) (bool, error) {
		g.Validators = append(g.Validators, v)
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	if g.OriginMs, err = k.origin.Get(ctx); err != nil {
		return nil, err
	}
	err = k.records.Walk(ctx, nil, func(_ sdk.AccAddress, r powerv1.Record) (bool, error) {
		g.Records = append(g.Records, r)
		return false, nil
	})
	return g, errors.Join(err, k.past.save(ctx, g))
}

// Invariant: the set is not empty, each validator is stored under the address of its key, and records
// add up.
func (k *Keeper) Invariant(ctx context.Context) error {
	n := 0
	err := k.validators.Walk(ctx, nil, func(a []byte, v powerv1.Validator) (bool, error) {
		n++
		if !bytes.Equal(a, ed25519.PubKey(v.ConsensusKey).Address()) {
			return true, fmt.Errorf("validator %s is stored under %X", v.Account, a)
		}
		return false, nil
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("no validators: %w", collections.ErrNotFound)
	}
	return errors.Join(err, k.addUp(ctx), k.past.check(ctx))
}

// addUp returns an error unless the records of accounts add up to that of all.
func (k *Keeper) addUp(ctx context.Context) error {
	var sum power.Record
	err := k.records.Walk(ctx, nil, func(a sdk.AccAddress, r powerv1.Record) (bool, error) {
		own, err := fromProto(&r)
		if err == nil && r.Account != a.String() {
			err = fmt.Errorf("the record of %s is that of %s", a, r.Account)
		}
		if err == nil {
			err = sum.Join(own)
		}
		return err != nil, err
	})
	if err != nil {
		return err
	}
	all, err := k.together(ctx)
	if err != nil {
		return err
	}
	if got, want := toProto("", all), toProto("", &sum); got.String() != want.String() {
		return fmt.Errorf("the records add up to %v, and all together have %v", want, got)
	}
	return nil
}
