package market

import (
	"context"
	"crypto/ed25519"
	"slices"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

type msgServer struct{ matcher }

func (s msgServer) PostOffer(ctx context.Context, m *marketv1.MsgPostOffer) (*marketv1.MsgPostOfferResponse, error) {
	o := marketv1.Offer{Validator: m.Validator, FeeBps: m.FeeBps, MaxLeases: m.MaxLeases, Ends: m.Ends}
	if err := checkOffer(o); err != nil {
		return nil, err
	}
	account, err := address.Parse(m.Validator)
	if err != nil {
		return nil, err
	}
	peer, err := s.registry.Get(ctx, account)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(peer.Roles, providerv1.ROLE_VALIDATOR) {
		return nil, errorsmod.Wrapf(ErrOffer, "%s is no validator: register one to make offers", m.Validator)
	}
	if err := s.Keeper.PostOffer(ctx, o); err != nil {
		return nil, err
	}
	return &marketv1.MsgPostOfferResponse{}, s.registry.MarkImproved(ctx, account)
}

// checkOffer checks an offer without the registry.
func checkOffer(o marketv1.Offer) error {
	switch {
	case o.FeeBps > wire.MaxFeeBps:
		return errorsmod.Wrapf(ErrOffer, "fee_bps %d: at most %d", o.FeeBps, wire.MaxFeeBps)
	case o.MaxLeases == 0:
		return errorsmod.Wrap(ErrOffer, "max_leases is zero: offer at least one, or withdraw the offer")
	case o.Ends < 0:
		return errorsmod.Wrapf(ErrOffer, "it ends at %d: name a protocol time in ms, or 0 for no end", o.Ends)
	}
	return nil
}

func (s msgServer) WithdrawOffer(ctx context.Context, m *marketv1.MsgWithdrawOffer) (*marketv1.MsgWithdrawOfferResponse, error) {
	account, err := address.Parse(m.Validator)
	if err != nil {
		return nil, err
	}
	return &marketv1.MsgWithdrawOfferResponse{}, s.Keeper.WithdrawOffer(ctx, account)
}

func (s msgServer) PostOrder(ctx context.Context, m *marketv1.MsgPostOrder) (*marketv1.MsgPostOrderResponse, error) {
	o, err := wire.OrderFromProto(&m.Order)
	if err != nil {
		return nil, errorsmod.Wrap(ErrOrder, err.Error())
	}
	if o.Consumer != m.Consumer {
		return nil, errorsmod.Wrapf(ErrConsumer, "order of %s, signed by %s", o.Consumer, m.Consumer)
	}
	if id := sdk.UnwrapSDKContext(ctx).ChainID(); o.Chain != id {
		return nil, errorsmod.Wrapf(ErrOrder, "it is for chain %.80q; this is %q", o.Chain, id)
	}
	if err := o.Check(); err != nil {
		return nil, errorsmod.Wrap(ErrOrder, err.Error())
	}
	consumer, err := address.Parse(o.Consumer)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrConsumer, "%s", err)
	}
	if !ed25519.Verify(o.Contact.Key, wire.Statement(o.Chain, consumer), m.Signature) {
		return nil, errorsmod.Wrapf(ErrContact, "%X", o.Contact.Key)
	}
	switch retired, err := s.leases.Retired(ctx, o.ID()); {
	case err != nil:
		return nil, err
	case retired:
		return nil, errorsmod.Wrapf(ErrPosted, "order %s was settled: another nonce makes another order", o.ID())
	}
	if err := s.checkSegments(ctx, &o); err != nil {
		return nil, err
	}
	if err := s.checkParent(ctx, &o.Problem); err != nil {
		return nil, err
	}
	if v := o.Conditions.Validator; v != "" {
		if _, err := address.Parse(v); err != nil {
			return nil, errorsmod.Wrapf(ErrOrder, "validator: %s", err)
		}
	}
	rules, err := s.leases.Rules(ctx)
	if err != nil {
		return nil, err
	}
	deposit, err := rules.Deposit(o.Conditions.MaxPrice)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrOrder, "deposit: %s", err)
	}
	id, err := s.Keeper.PostOrder(ctx, &o, deposit)
	return &marketv1.MsgPostOrderResponse{Id: id.String()}, err
}

// checkSegments checks that a dispute about any part of an order can be answered in
// time by the rules of now.
func (s msgServer) checkSegments(ctx context.Context, o *job.Order) error {
	p, err := s.leases.Rules(ctx)
	if err != nil {
		return err
	}
	games, err := s.games.Rules(ctx)
	if err != nil {
		return err
	}
	if err := p.Replayable(o, games); err != nil {
		return errorsmod.Wrap(ErrOrder, err.Error())
	}
	return nil
}

// checkParent checks that a problem that names a parent goes on from the state in which that one
// ended, so that what is proved of both is proved from the parent's start on. How it starts follows
// from that state, which whoever loads the order checks.
func (s msgServer) checkParent(ctx context.Context, p *job.Problem) error {
	if p.Parent.Order.IsZero() {
		return nil
	}
	final, err := s.leases.Final(ctx, p.Parent.Order)
	switch {
	case err != nil:
		return errorsmod.Wrapf(ErrOrder, "parent: %s", err)
	case final != p.Parent.Final:
		return errorsmod.Wrapf(ErrOrder, "parent %s ended in state %s, this order goes on from %s", p.Parent.Order.Short(), final.Short(), p.Parent.Final.Short())
	}
	return nil
}

func (s msgServer) CancelOrder(ctx context.Context, m *marketv1.MsgCancelOrder) (*marketv1.MsgCancelOrderResponse, error) {
	id, err := canon.ParseHash(m.Order)
	if err != nil {
		return nil, errorsmod.Wrap(ErrNoOrder, err.Error())
	}
	o, p, err := s.Order(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case o.Consumer != m.Consumer:
		return nil, errorsmod.Wrapf(ErrConsumer, "order of %s, signed by %s", o.Consumer, m.Consumer)
	case p.Status != marketv1.STATUS_OPEN:
		return nil, errorsmod.Wrapf(ErrNotOpen, "order %s is %s", id, wire.NameOf(p.Status))
	}
	if p.Auction {
		if err := s.auction.MayLeave(ctx, p.Number); err != nil {
			return nil, err
		}
	}
	return &marketv1.MsgCancelOrderResponse{}, s.close(ctx, id, o.Consumer, p, marketv1.STATUS_CANCELLED)
}
