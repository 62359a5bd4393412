package probe

import (
	"context"
	"errors"
	"slices"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	probev1 "github.com/tally-network/tally/gen/tally/probe/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

type msgServer struct{ *Keeper }

// Open begins a probe. The seed of one that is under way is forgotten with it: nothing that was computed for that counts.
func (s msgServer) Open(ctx context.Context, m *probev1.MsgOpen) (*probev1.MsgOpenResponse, error) {
	account, err := address.Parse(m.Account)
	if err != nil {
		return nil, err
	}
	peer, err := s.registry.Get(ctx, account)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(peer.Roles, providerv1.ROLE_PROVIDER) {
		return nil, errorsmod.Wrapf(ErrProvider, "%s computes nothing: register it as a provider first", m.Account)
	}
	p := probev1.Probe{Account: m.Account, Opened: sdk.UnwrapSDKContext(ctx).BlockHeight()}
	return &probev1.MsgOpenResponse{}, errors.Join(s.probes.Set(ctx, account, p), s.waiting.Set(ctx, account))
}
