package app

import (
	"context"

	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"
)

// Plan returns the upgrade that votes have planned, or upgradetypes.ErrNoUpgradePlanFound.
func (a *App) Plan(ctx context.Context) (upgradetypes.Plan, error) {
	return a.upgrades.keeper.GetUpgradePlan(ctx)
}

// TooDeep is txTooDeep for tests.
func (a *App) TooDeep(raw []byte) bool { return a.Tx.(txConfig).txTooDeep(raw) }

// KnowsType reports whether the walk descends into an Any of a type.
func (a *App) KnowsType(url string) bool { return a.Tx.(txConfig).types[url] != nil }
