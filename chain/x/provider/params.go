package provider

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// maxUnbonding bounds the time of unbonding, in ms.
const maxUnbonding = 90 * 24 * 3600 * 1000

// CheckParams returns an error that shows, with its numbers, what is wrong with the rules of the
// registry. A peer that costs nothing could be any number of peers. One that costs more than
// there is could not exist. Those that judge providers must not risk less than providers do.
func CheckParams(p providerv1.Params) error {
	for _, least := range []struct {
		name   string
		amount uint64
	}{
		{"min_provider_stake", p.MinProviderStake},
		{"min_validator_stake", p.MinValidatorStake},
		{"min_challenger_stake", p.MinChallengerStake},
	} {
		switch {
		case least.amount == 0:
			return fmt.Errorf("a peer would cost nothing, and anybody could be many: %s = 0", least.name)
		case least.amount > coin.MaxSupply:
			return fmt.Errorf("nobody could be one: %s = %d > %d utally, all that may exist", least.name, least.amount, uint64(coin.MaxSupply))
		}
	}
	if p.UnbondingMs < 1 || p.UnbondingMs > maxUnbonding {
		return fmt.Errorf("stake that is withdrawn is held for %d ms: want between 1, or a draw would be won by stake that one has for a block, and %d", p.UnbondingMs, int64(maxUnbonding))
	}
	if err := wire.TiersFromProto(p.Tiers).Check(); err != nil {
		return fmt.Errorf("tiers: %w", err)
	}
	if p.LeadFactor > maxLeadFactor {
		return fmt.Errorf("a validator may lead for %d times its stake: want at most %d, or 0 for any price", p.LeadFactor, uint64(maxLeadFactor))
	}
	if p.MinValidatorStake < p.MinProviderStake {
		return fmt.Errorf("who judges would risk less than who is judged: min_validator_stake = %d < min_provider_stake = %d", p.MinValidatorStake, p.MinProviderStake)
	}
	return nil
}

// Bounds of what a vote may set.
const (
	minLeast      = 1_000_000         // utally of stake: a tally, or anybody could be many
	maxLeast      = 1_000_000_000_000 // utally of stake: a million tally, or nobody could be one
	maxLeadFactor = 1_000
	minUnbonding  = 3_600_000 // ms: an hour, or a draw would be won by stake that one has for some blocks
)

// mayReplace returns an error unless rules may take the place of others.
func mayReplace(old, p providerv1.Params) error {
	if err := CheckParams(p); err != nil {
		return err
	}
	stake := func(name string, old, p uint64) module.Bound {
		return module.Bound{Name: name, Old: old, New: p, Least: minLeast, Most: maxLeast}
	}
	return module.Within(
		stake("min_provider_stake", old.MinProviderStake, p.MinProviderStake),
		stake("min_validator_stake", old.MinValidatorStake, p.MinValidatorStake),
		stake("min_challenger_stake", old.MinChallengerStake, p.MinChallengerStake),
		module.Bound{Name: "lead_factor", Old: old.LeadFactor, New: p.LeadFactor, Least: 1, Most: maxLeadFactor},
		module.Signed("unbonding_ms", old.UnbondingMs, p.UnbondingMs, minUnbonding, maxUnbonding))
}

// UpdateParams replaces the rules of the registry. Peers with a smaller stake than
// the new minimum keep it, and get no new work.
func (s msgServer) UpdateParams(ctx context.Context, m *providerv1.MsgUpdateParams) (*providerv1.MsgUpdateParamsResponse, error) {
	before, err := s.k.Params(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.k.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	if err := s.k.relist(ctx, before, m.Params); err != nil {
		return nil, err
	}
	return &providerv1.MsgUpdateParamsResponse{}, module.Emit(ctx, &providerv1.EventParams{Params: m.Params})
}
