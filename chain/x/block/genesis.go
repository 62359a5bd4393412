package block

import (
	"context"
	"errors"
	"fmt"

	"github.com/tally-network/tally/chain/module"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// DefaultGenesis asks for 100 utally for 10⁶ gas, and lets a pause count half a
// minute.
func DefaultGenesis() *blockv1.GenesisState {
	return &blockv1.GenesisState{Params: blockv1.Params{GasPrice: 100, MaxGapMs: 30_000}}
}

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *blockv1.GenesisState) error {
	if err := errors.Join(CheckParams(g.Params), module.CheckAuthority(g.Authority)); err != nil {
		return fmt.Errorf("block genesis: %w", err)
	}
	if g.LostMs < 0 {
		return fmt.Errorf("block genesis: protocol time is ahead of block time: lost_ms = %d", g.LostMs)
	}
	return nil
}

// InitGenesis stores a state.
func (k *Keeper) InitGenesis(ctx context.Context, g *blockv1.GenesisState) error {
	if g.LostMs > 0 {
		module.SetLost(ctx, g.LostMs)
	}
	return k.rules.Init(ctx, g.Params, g.Authority)
}

// ExportGenesis is the inverse of InitGenesis.
func (k *Keeper) ExportGenesis(ctx context.Context) (*blockv1.GenesisState, error) {
	p, err := k.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := k.rules.Authority(ctx)
	return &blockv1.GenesisState{Params: p, Authority: authority, LostMs: module.Lost(ctx)}, err
}

// Invariant: protocol time is not ahead of block time.
func (k *Keeper) Invariant(ctx context.Context) error {
	if lost := module.Lost(ctx); lost < 0 {
		return fmt.Errorf("protocol time is %d ms ahead of block time", -lost)
	}
	return nil
}
