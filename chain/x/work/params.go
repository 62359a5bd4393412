package work

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// defaultJail is a day, maxJail a year, in ms.
const (
	defaultJail = 24 * 3600 * 1000
	maxJail     = 365 * defaultJail
)

// checkParams returns an error unless the rules can be kept. A genesis may turn
// forced errors off; where they are on, the rules must be in equilibrium.
func checkParams(m workv1.Params) error {
	p := ParamsFromProto(m)
	if err := p.Check(); err != nil {
		return err
	}
	if m.JailMs < 0 || m.JailMs > maxJail {
		return fmt.Errorf("jail of %d ms, want between 0 and %d", m.JailMs, int64(maxJail))
	}
	if p.ForcedBps == 0 {
		return nil
	}
	return p.Equilibrium()
}

// Authority returns the account that may change the rules, "" if nobody may.
func (k *Keeper) Authority(ctx context.Context) (string, error) {
	a, err := k.authority.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return "", nil
	}
	return a, err
}

// checkAuthority checks the authority that a genesis names.
func checkAuthority(account string) error {
	if account == "" {
		return nil
	}
	_, err := address.Parse(account)
	return err
}

// UpdateParams replaces the rules for new leases. Those that would make cheating
// or laziness pay are refused, with the inequality that they break.
func (s msgServer) UpdateParams(ctx context.Context, m *workv1.MsgUpdateParams) (*workv1.MsgUpdateParamsResponse, error) {
	authority, err := s.Authority(ctx)
	if err != nil {
		return nil, err
	}
	if authority == "" || m.Authority != authority {
		return nil, errorsmod.Wrapf(ErrSigner, "the rules are changed by %q, as the genesis says, not by %s", authority, m.Authority)
	}
	if err := checkParams(m.Params); err != nil {
		return nil, errorsmod.Wrap(ErrParams, err.Error())
	}
	p := ParamsFromProto(m.Params)
	if err := p.Equilibrium(); err != nil {
		return nil, errorsmod.Wrap(ErrParams, err.Error())
	}
	if err := s.params.Set(ctx, m.Params); err != nil {
		return nil, err
	}
	return &workv1.MsgUpdateParamsResponse{}, emit(ctx, &workv1.EventParams{Params: m.Params})
}
