package seats

import (
	"context"
	"crypto/ed25519"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// gasSignature is for checking a signature of a consensus key.
const gasSignature = 1_000

type msgServer struct{ *Keeper }

// Join enters the signer, by a key that has signed for it.
func (s msgServer) Join(ctx context.Context, m *seatsv1.MsgJoin) (*seatsv1.MsgJoinResponse, error) {
	account, err := address.Parse(m.Account)
	if err != nil {
		return nil, err
	}
	module.Charge(ctx, gasSignature, "keys, and the signature of one")
	if err := vrf.CheckKey(m.ConsensusKey); err != nil {
		return nil, errorsmod.Wrap(ErrKey, err.Error())
	}
	if !ed25519.Verify(m.ConsensusKey, wire.ProofOfPossession(sdk.UnwrapSDKContext(ctx).ChainID(), account), m.ProofOfPossession) {
		return nil, errorsmod.Wrapf(ErrKey, "it has not signed for %s on this chain: tally tx seats join has the node's key sign", m.Account)
	}
	from, err := s.Keeper.Join(ctx, account, m.ConsensusKey, m.BeaconKey, m.Bond)
	return &seatsv1.MsgJoinResponse{FromEpoch: from}, err
}

// Unjail makes the signer active again.
func (s msgServer) Unjail(ctx context.Context, m *seatsv1.MsgUnjail) (*seatsv1.MsgUnjailResponse, error) {
	return &seatsv1.MsgUnjailResponse{}, by(m.Account, func(a sdk.AccAddress) error { return s.Keeper.Unjail(ctx, a) })
}

// Leave gives up the signer's seats.
func (s msgServer) Leave(ctx context.Context, m *seatsv1.MsgLeave) (*seatsv1.MsgLeaveResponse, error) {
	return &seatsv1.MsgLeaveResponse{}, by(m.Account, func(a sdk.AccAddress) error { return s.Keeper.Leave(ctx, a) })
}

// Bond adds to the signer's bond.
func (s msgServer) Bond(ctx context.Context, m *seatsv1.MsgBond) (*seatsv1.MsgBondResponse, error) {
	if m.Amount == 0 {
		return nil, errorsmod.Wrap(ErrBond, "it adds nothing")
	}
	return &seatsv1.MsgBondResponse{}, by(m.Account, func(a sdk.AccAddress) error { return s.AddBond(ctx, a, m.Amount) })
}

// Unbond takes a part of the signer's bond back.
func (s msgServer) Unbond(ctx context.Context, m *seatsv1.MsgUnbond) (*seatsv1.MsgUnbondResponse, error) {
	return &seatsv1.MsgUnbondResponse{}, by(m.Account, func(a sdk.AccAddress) error { return s.Keeper.Unbond(ctx, a, m.Amount) })
}

// Delegate says for whom the signer's power counts.
func (s msgServer) Delegate(ctx context.Context, m *seatsv1.MsgDelegate) (*seatsv1.MsgDelegateResponse, error) {
	var to sdk.AccAddress
	if m.Member != "" {
		var err error
		if to, err = address.Parse(m.Member); err != nil {
			return nil, err
		}
	}
	return &seatsv1.MsgDelegateResponse{}, by(m.Account, func(a sdk.AccAddress) error { return s.Keeper.Delegate(ctx, a, to) })
}

// Prove shows the output of the signer's VRF.
func (s msgServer) Prove(ctx context.Context, m *seatsv1.MsgProve) (*seatsv1.MsgProveResponse, error) {
	return &seatsv1.MsgProveResponse{}, by(m.Account, func(a sdk.AccAddress) error { return draws(s).prove(ctx, a, m.Epoch, m.Proof) })
}

// UpdateParams replaces the rules. It ends the draw under way: all seats of one follow the same rules.
func (s msgServer) UpdateParams(ctx context.Context, m *seatsv1.MsgUpdateParams) (*seatsv1.MsgUpdateParamsResponse, error) {
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	d, err := s.drawing.Get(ctx)
	if err == nil {
		err = draws(s).abandon(ctx, d.Epoch, "the rules have changed")
	}
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return nil, err
	}
	return &seatsv1.MsgUpdateParamsResponse{}, module.Emit(ctx, &seatsv1.EventParams{Params: m.Params})
}

func by(account string, do func(sdk.AccAddress) error) error {
	a, err := address.Parse(account)
	if err != nil {
		return err
	}
	return do(a)
}
