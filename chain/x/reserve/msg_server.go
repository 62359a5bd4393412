package reserve

import (
	"context"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/reserve"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
)

type msgServer struct{ *Keeper }

func (s msgServer) Claim(ctx context.Context, m *reservev1.MsgClaim) (*reservev1.MsgClaimResponse, error) {
	account, err := address.Parse(m.Account)
	if err != nil {
		return nil, err
	}
	amount, err := s.Keeper.Claim(ctx, account)
	return &reservev1.MsgClaimResponse{Amount: amount}, err
}

// UpdateParams replaces the rules. What is over was paid by the old ones.
func (s msgServer) UpdateParams(ctx context.Context, m *reservev1.MsgUpdateParams) (*reservev1.MsgUpdateParamsResponse, error) {
	if _, err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	return &reservev1.MsgUpdateParamsResponse{}, module.Emit(ctx, &reservev1.EventParams{Params: m.Params})
}

// CheckParams returns an error that shows what is wrong with the rules of rewards.
func CheckParams(p reservev1.Params) error { return rulesOf(p).Check() }

// mayReplace returns an error unless rules may take the place of others.
func mayReplace(old, p reservev1.Params) error {
	if err := CheckParams(p); err != nil {
		return err
	}
	return module.Within(
		module.Bound{Name: "halving_epochs", Old: old.HalvingEpochs, New: p.HalvingEpochs, Least: 4_000, Most: 1_000_000},
		module.Bound{Name: "cap", Old: old.Cap, New: p.Cap, Least: 0, Most: reserve.MaxCap},
		module.Bound{Name: "joining_ut", Old: old.JoiningUt, New: p.JoiningUt, Least: 0, Most: 1_000})
}
