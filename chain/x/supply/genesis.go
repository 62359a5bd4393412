package supply

import (
	"context"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
)

// DefaultGenesis is a chain on which nothing was burnt.
func DefaultGenesis() *supplyv1.GenesisState { return &supplyv1.GenesisState{} }

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *supplyv1.GenesisState) error {
	if g.Burnt > coin.MaxSupply {
		return fmt.Errorf("supply genesis: %d utally burnt is more than ever existed", g.Burnt)
	}
	return nil
}

// InitGenesis counts the bank's tokens; so the bank comes before this module.
func (k *Keeper) InitGenesis(ctx context.Context, g *supplyv1.GenesisState) error {
	supply := k.bank.GetSupply(ctx, coin.Denom).Amount
	if !supply.IsUint64() || supply.Uint64() > coin.MaxSupply-g.Burnt {
		return fmt.Errorf("supply genesis: the balances add up to %s utally, limit is %d", supply, coin.MaxSupply-g.Burnt)
	}
	if err := k.minted.Set(ctx, supply.Uint64()+g.Burnt); err != nil {
		return err
	}
	return k.burnt.Set(ctx, g.Burnt)
}

// ExportGenesis is the inverse of InitGenesis.
func (k *Keeper) ExportGenesis(ctx context.Context) (*supplyv1.GenesisState, error) {
	burnt, err := k.burnt.Get(ctx)
	return &supplyv1.GenesisState{Burnt: burnt}, err
}

// Invariant: minted − burnt = supply = sum of all balances.
func (k *Keeper) Invariant(ctx context.Context) error {
	s, err := k.totals(ctx)
	if err != nil {
		return err
	}
	if s.Minted != s.Burnt+s.Supply {
		return fmt.Errorf("minted %d, burnt %d, but %d utally exist", s.Minted, s.Burnt, s.Supply)
	}
	var balances uint64
	k.bank.IterateAllBalances(ctx, func(_ sdk.AccAddress, c sdk.Coin) bool {
		if c.Denom == coin.Denom {
			balances += c.Amount.Uint64()
		}
		return false
	})
	if balances != s.Supply {
		return fmt.Errorf("balances add up to %d utally, but %d exist", balances, s.Supply)
	}
	return nil
}

func (k *Keeper) totals(ctx context.Context) (supplyv1.QuerySupplyResponse, error) {
	minted, err := k.minted.Get(ctx)
	if err != nil {
		return supplyv1.QuerySupplyResponse{}, err
	}
	burnt, err := k.burnt.Get(ctx)
	return supplyv1.QuerySupplyResponse{
		Minted: minted,
		Burnt:  burnt,
		Supply: k.bank.GetSupply(ctx, coin.Denom).Amount.Uint64(),
	}, err
}
