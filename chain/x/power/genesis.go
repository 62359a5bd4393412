package power

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/power"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

// DefaultGenesis has no records.
func DefaultGenesis() *powerv1.GenesisState { return &powerv1.GenesisState{} }

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *powerv1.GenesisState) error {
	seen := map[string]bool{}
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

// InitGenesis stores a state.
func (k *Keeper) InitGenesis(ctx context.Context, g *powerv1.GenesisState) error {
	origin := g.OriginMs
	if origin == 0 {
		origin = module.Now(ctx)
	}
	if err := k.origin.Set(ctx, origin); err != nil {
		return err
	}
	h, err := k.Hour(ctx)
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
		own, err := FromProto(r)
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
	return errors.Join(k.all.Set(ctx, ToProto("", &all)), k.past.load(ctx, g))
}

// ExportGenesis is the inverse of InitGenesis, in store order.
func (k *Keeper) ExportGenesis(ctx context.Context) (*powerv1.GenesisState, error) {
	g := &powerv1.GenesisState{}
	var err error
	if g.OriginMs, err = k.origin.Get(ctx); err != nil {
		return nil, err
	}
	err = k.records.Walk(ctx, nil, func(_ sdk.AccAddress, r powerv1.Record) (bool, error) {
		g.Records = append(g.Records, r)
		return false, nil
	})
	return g, errors.Join(err, k.past.save(ctx, g))
}

// Invariant: the records add up.
func (k *Keeper) Invariant(ctx context.Context) error {
	return errors.Join(k.addUp(ctx), k.past.check(ctx))
}

// addUp returns an error unless the records of accounts add up to that of all.
func (k *Keeper) addUp(ctx context.Context) error {
	var sum power.Record
	err := k.records.Walk(ctx, nil, func(a sdk.AccAddress, r powerv1.Record) (bool, error) {
		own, err := FromProto(&r)
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
	if got, want := ToProto("", all), ToProto("", &sum); got.String() != want.String() {
		return fmt.Errorf("the records add up to %v, and all together have %v", want, got)
	}
	return nil
}
