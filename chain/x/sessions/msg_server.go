package sessions

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

// Gas for what messages make the chain compute, beside what they read and write.
const (
	gasVerify = 3_000   // gas: one ed25519 signature. The SDK takes 1,000 for one of secp256k1, which takes longer: so this is no bargain
	gasClock  = 150_000 // gas: the end of a session by the clock, about what two messages for it would cost
)

type msgServer struct{ *Keeper }

// Open begins a session. The consumer has signed the transaction, and the provider the terms, by the key of its peer: so its libp2p
// identity, and who signs terms and receipts, are one.
func (s msgServer) Open(ctx context.Context, m *sessionsv1.MsgOpen) (*sessionsv1.MsgOpenResponse, error) {
	module.Charge(ctx, gasVerify+gasClock, "a session")
	t, err := said[session.Terms](&m.Terms)
	if err != nil {
		return nil, err
	}
	if err := s.checkTerms(ctx, m.Consumer, &t); err != nil {
		return nil, err
	}
	rules, err := s.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	begun, effects, err := session.Begin(t, m.Terms.Signature, wire.SessionRulesFromProto(rules), module.Now(ctx))
	if err != nil {
		return nil, errorsmod.Wrap(ErrTerms, err.Error())
	}
	id := begun.ID()
	if known, err := s.sessions.Has(ctx, id[:]); err != nil || known {
		return nil, cmp.Or(err, errorsmod.Wrapf(ErrTerms, "session %s was opened already: ask the provider for terms with another nonce", id))
	}
	if err := s.carryOut(ctx, effects); err != nil {
		return nil, err
	}
	return &sessionsv1.MsgOpenResponse{Session: id[:]}, errors.Join(s.begin(ctx, &begun), tellPhase(ctx, &begun))
}

// checkTerms returns an error unless terms are for this chain, of who sends them, and by a provider that may get work, with the key of
// its peer.
func (k *Keeper) checkTerms(ctx context.Context, consumer string, t *session.Terms) error {
	if chain := sdk.UnwrapSDKContext(ctx).ChainID(); t.Chain != chain {
		return errorsmod.Wrapf(ErrTerms, "they are for chain %.64q, this is %s", t.Chain, chain)
	}
	if t.Consumer.Account != consumer {
		return errorsmod.Wrapf(ErrTerms, "they are of consumer %.128s, and %s has sent them", t.Consumer.Account, consumer)
	}
	account, err := address.Parse(t.Provider.Account)
	if err != nil {
		return errorsmod.Wrap(ErrTerms, err.Error())
	}
	p, err := k.provider(ctx, account)
	if err != nil {
		return err
	}
	if !bytes.Equal(p.PeerKey, t.Provider.Key) {
		return errorsmod.Wrapf(ErrTerms, "the provider's key is %X there, and %X is that of its peer", t.Provider.Key, p.PeerKey)
	}
	return nil
}

// Fund adds to the escrow of the sender's session.
func (s msgServer) Fund(ctx context.Context, m *sessionsv1.MsgFund) (*sessionsv1.MsgFundResponse, error) {
	id, err := canon.HashOf(m.Session)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrNoSession, "session: %s", err)
	}
	of, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if of.Terms.Consumer.Account != m.Consumer {
		return nil, errorsmod.Wrapf(ErrEvent, "session %s: %s funds it, not %s", id.Short(), of.Terms.Consumer.Account, m.Consumer)
	}
	return &sessionsv1.MsgFundResponse{}, s.happen(ctx, id, session.Fund{Amount: m.Amount})
}

// Redeem pays what a voucher claims, whoever posts it.
func (s msgServer) Redeem(ctx context.Context, m *sessionsv1.MsgRedeem) (*sessionsv1.MsgRedeemResponse, error) {
	module.Charge(ctx, gasVerify, "a signature")
	v, err := said[session.Voucher](&m.Voucher)
	if err != nil {
		return nil, err
	}
	return &sessionsv1.MsgRedeemResponse{}, s.happen(ctx, v.Session, session.Redeem{Voucher: v, Signature: m.Voucher.Signature})
}

// Return gives some of the escrow back, whoever posts it.
func (s msgServer) Return(ctx context.Context, m *sessionsv1.MsgReturn) (*sessionsv1.MsgReturnResponse, error) {
	module.Charge(ctx, gasVerify, "a signature")
	r, err := said[session.Release](&m.Release)
	if err != nil {
		return nil, err
	}
	return &sessionsv1.MsgReturnResponse{}, s.happen(ctx, r.Session, session.Return{Release: r, Signature: m.Release.Signature})
}

// Close ends a session by the will of one side.
func (s msgServer) Close(ctx context.Context, m *sessionsv1.MsgClose) (*sessionsv1.MsgCloseResponse, error) {
	id, err := canon.HashOf(m.Session)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrNoSession, "session: %s", err)
	}
	return &sessionsv1.MsgCloseResponse{}, s.happen(ctx, id, session.Close{By: m.Sender})
}

// Finish settles a session at once, by the will of both sides.
func (s msgServer) Finish(ctx context.Context, m *sessionsv1.MsgFinish) (*sessionsv1.MsgFinishResponse, error) {
	module.Charge(ctx, gasVerify, "a signature")
	f, err := said[session.Final](&m.Final)
	if err != nil {
		return nil, err
	}
	return &sessionsv1.MsgFinishResponse{}, s.happen(ctx, f.Session, session.Finish{By: m.Sender, Final: f, Signature: m.Final.Signature})
}

// TwoVouchers convicts a consumer.
func (s msgServer) TwoVouchers(ctx context.Context, m *sessionsv1.MsgTwoVouchers) (*sessionsv1.MsgTwoVouchersResponse, error) {
	module.Charge(ctx, 2*gasVerify, "two signatures")
	two, err := both[session.Voucher](&m.First, &m.Second)
	if err != nil {
		return nil, err
	}
	e := session.TwoVouchers{By: m.Sender, Vouchers: two, Signatures: [2][]byte{m.First.Signature, m.Second.Signature}}
	return &sessionsv1.MsgTwoVouchersResponse{}, s.happen(ctx, two[0].Session, e)
}

// TwoReceipts convicts a provider.
func (s msgServer) TwoReceipts(ctx context.Context, m *sessionsv1.MsgTwoReceipts) (*sessionsv1.MsgTwoReceiptsResponse, error) {
	module.Charge(ctx, 2*gasVerify, "two signatures")
	two, err := both[session.Receipt](&m.First, &m.Second)
	if err != nil {
		return nil, err
	}
	e := session.TwoReceipts{By: m.Sender, Receipts: two, Signatures: [2][]byte{m.First.Signature, m.Second.Signature}}
	return &sessionsv1.MsgTwoReceiptsResponse{}, s.happen(ctx, two[0].Session, e)
}

// UpdateParams replaces the rules. Sessions keep those that they began with.
func (s msgServer) UpdateParams(ctx context.Context, m *sessionsv1.MsgUpdateParams) (*sessionsv1.MsgUpdateParamsResponse, error) {
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	return &sessionsv1.MsgUpdateParamsResponse{}, module.Emit(ctx, &sessionsv1.EventParams{Params: m.Params})
}

// statement is what a side of a session can have said.
type statement[T any] interface {
	*T
	canon.Coded
}

// said reads what a side has said; core/session verifies the signature.
func said[T any, P statement[T]](m *sessionsv1.Signed) (T, error) {
	x, err := wire.SignedFromProto[T, P](m)
	if err != nil {
		err = errorsmod.Wrap(ErrStatement, err.Error())
	}
	return x, err
}

// both reads two of a kind.
func both[T any, P statement[T]](first, second *sessionsv1.Signed) (two [2]T, err error) {
	for i, m := range []*sessionsv1.Signed{first, second} {
		if two[i], err = said[T, P](m); err != nil {
			return two, err
		}
	}
	return two, nil
}
