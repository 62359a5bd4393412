package probe

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/canon"
	probev1 "github.com/tally-network/tally/gen/tally/probe/v1"
)

// DefaultGenesis has no probes.
func DefaultGenesis() *probev1.GenesisState { return &probev1.GenesisState{} }

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *probev1.GenesisState) error {
	seen := map[string]bool{}
	for i := range g.Probes {
		p := &g.Probes[i]
		if _, err := address.Parse(p.Account); err != nil || seen[p.Account] {
			return fmt.Errorf("probe genesis: probe %d is of %.80q: want an account, once", i, p.Account)
		}
		seen[p.Account] = true
		drawn := len(p.Seed) > 0
		if p.Opened < 0 || p.DrawnMs < 0 || drawn && len(p.Seed) != len(canon.Hash{}) || !drawn && p.DrawnMs != 0 {
			return fmt.Errorf("probe genesis: the probe of %s was opened at height %d, and has a seed of %d bytes since %d ms: want a height, and a seed of %d bytes or none", p.Account, p.Opened, len(p.Seed), p.DrawnMs, len(canon.Hash{}))
		}
	}
	stands := map[string]bool{}
	for i, x := range g.Standing {
		if _, err := address.Parse(x.Account); err != nil || stands[x.Account] || x.UntilMs < 0 {
			return fmt.Errorf("probe genesis: speed %d is of %.80q, until %d ms: want an account, once, and a time", i, x.Account, x.UntilMs)
		}
		stands[x.Account] = true
	}
	return nil
}

// InitGenesis loads a state. A probe that still waits was opened before the chain's first block.
func (k *Keeper) InitGenesis(ctx context.Context, g *probev1.GenesisState) error {
	for _, p := range g.Probes {
		account, err := address.Parse(p.Account)
		if err != nil {
			return err
		}
		if _, err := k.registry.Get(ctx, account); err != nil { // what it shows could not be recorded, and its lease not settle
			return fmt.Errorf("probe genesis: %s: %w", p.Account, err)
		}
		if len(p.Seed) == 0 {
			p.Opened = 0
			err = k.waiting.Set(ctx, account)
		}
		if err := errors.Join(err, k.probes.Set(ctx, account, p)); err != nil {
			return err
		}
	}
	for _, x := range g.Standing {
		account, err := address.Parse(x.Account)
		if err == nil {
			_, err = k.registry.Get(ctx, account)
		}
		if err := errors.Join(err, k.stand(ctx, account, x.UntilMs)); err != nil {
			return fmt.Errorf("probe genesis: %s: %w", x.Account, err)
		}
	}
	return nil
}

// ExportGenesis is the inverse of InitGenesis: heights of this chain say nothing in another.
func (k *Keeper) ExportGenesis(ctx context.Context) (*probev1.GenesisState, error) {
	g := DefaultGenesis()
	err := k.probes.Walk(ctx, nil, func(_ sdk.AccAddress, p probev1.Probe) (bool, error) {
		p.Opened = 0
		g.Probes = append(g.Probes, p)
		return false, nil
	})
	return g, errors.Join(err, k.standing.Walk(ctx, nil, func(account sdk.AccAddress, until int64) (bool, error) {
		g.Standing = append(g.Standing, probev1.Standing{Account: account.String(), UntilMs: until})
		return false, nil
	}))
}

// Invariant returns an error unless just the probes without a seed wait, and each speed that stands has its end.
func (k *Keeper) Invariant(ctx context.Context) error {
	return errors.Join(k.checkWaiting(ctx), k.checkStanding(ctx))
}

func (k *Keeper) checkStanding(ctx context.Context) error {
	ends := 0
	err := k.standing.Walk(ctx, nil, func(account sdk.AccAddress, until int64) (bool, error) {
		has, err := k.ends.Has(ctx, collections.Join(until, account))
		if err == nil && !has {
			err = fmt.Errorf("the speed of %s stands until %d ms, and nothing ends it", account, until)
		}
		ends++
		return false, err
	})
	return errors.Join(err, k.ends.Walk(ctx, nil, func(at collections.Pair[int64, sdk.AccAddress]) (bool, error) {
		if ends--; ends < 0 {
			return true, fmt.Errorf("the speed of %s ends, and does not stand", at.K2())
		}
		return false, nil
	}))
}

func (k *Keeper) checkWaiting(ctx context.Context) error {
	waits := 0
	err := k.probes.Walk(ctx, nil, func(account sdk.AccAddress, p probev1.Probe) (bool, error) {
		has, err := k.waiting.Has(ctx, account)
		if err == nil && has != (len(p.Seed) == 0) {
			err = fmt.Errorf("the probe of %s waits: %t, with a seed of %d bytes", p.Account, has, len(p.Seed))
		}
		if has {
			waits++
		}
		return false, err
	})
	return errors.Join(err, k.waiting.Walk(ctx, nil, func(sdk.AccAddress) (bool, error) {
		if waits--; waits < 0 {
			return true, errors.New("an account waits that has no probe")
		}
		return false, nil
	}))
}
