package provider

import (
	"context"
	"crypto/ed25519"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

type msgServer struct{ k *Keeper }

func (s msgServer) Register(ctx context.Context, m *providerv1.MsgRegister) (*providerv1.MsgRegisterResponse, error) {
	account, err := address.Parse(m.Account)
	if err != nil {
		return nil, err
	}
	p := providerv1.Peer{Account: m.Account, Roles: m.Roles, PeerKey: m.PeerKey, VrfKey: m.VrfKey, Listing: m.Listing}
	if err := CheckPeer(p); err != nil {
		return nil, err
	}
	chainID := sdk.UnwrapSDKContext(ctx).ChainID()
	if !ed25519.Verify(p.PeerKey, wire.Statement(chainID, account), m.Signature) {
		return nil, ErrSignature
	}
	params, err := s.k.Params(ctx)
	if err != nil {
		return nil, err
	}
	if least := wire.LeastStake(&params, p.Roles); m.Stake < least {
		return nil, errorsmod.Wrapf(ErrMinStake, "%d utally offered, %d needed", m.Stake, least)
	}
	if err := s.k.Register(ctx, p); err != nil {
		return nil, err
	}
	if err := s.k.Deposit(ctx, account, m.Stake); err != nil {
		return nil, err
	}
	p.Stake = m.Stake
	return &providerv1.MsgRegisterResponse{}, module.Emit(ctx, &providerv1.EventRegistered{Peer: p})
}

func (s msgServer) Update(ctx context.Context, m *providerv1.MsgUpdate) (*providerv1.MsgUpdateResponse, error) {
	account, err := address.Parse(m.Account)
	if err != nil {
		return nil, err
	}
	p, err := s.k.Get(ctx, account)
	if err == nil && p.Stake < m.Stake {
		err = s.k.Deposit(ctx, account, m.Stake-p.Stake)
	}
	if err == nil {
		err = s.k.Update(ctx, account, m.Listing, m.Roles)
	}
	return &providerv1.MsgUpdateResponse{}, err
}

func (s msgServer) Deposit(ctx context.Context, m *providerv1.MsgDeposit) (*providerv1.MsgDepositResponse, error) {
	account, err := amountOf(m.Account, m.Amount)
	if err != nil {
		return nil, err
	}
	return &providerv1.MsgDepositResponse{}, s.k.Deposit(ctx, account, m.Amount)
}

func (s msgServer) Withdraw(ctx context.Context, m *providerv1.MsgWithdraw) (*providerv1.MsgWithdrawResponse, error) {
	account, err := amountOf(m.Account, m.Amount)
	if err != nil {
		return nil, err
	}
	return &providerv1.MsgWithdrawResponse{}, s.k.Withdraw(ctx, account, m.Amount)
}

func (s msgServer) DeclareOwner(ctx context.Context, m *providerv1.MsgDeclareOwner) (*providerv1.MsgDeclareOwnerResponse, error) {
	account, err := address.Parse(m.Account)
	if err != nil {
		return nil, err
	}
	owner, err := address.Parse(m.Owner)
	if err != nil {
		return nil, err
	}
	return &providerv1.MsgDeclareOwnerResponse{}, s.k.DeclareOwner(ctx, account, owner)
}

func amountOf(text string, amount uint64) (sdk.AccAddress, error) {
	if amount == 0 {
		return nil, ErrAmount
	}
	return address.Parse(text)
}
