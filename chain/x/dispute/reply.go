package dispute

import (
	"context"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

// openReply begins a dispute about a reply, and locks the challenger's bond.
func (s msgServer) openReply(ctx context.Context, challenger sdk.AccAddress, receipt session.Receipt, signature []byte, m dispute.Model) (uint64, error) {
	receiptID := receipt.ID()
	p := disputev1.Parties{
		Order: receipt.Session.String(), Reply: &disputev1.Reply{Number: receipt.Number, Receipt: receiptID[:]},
		Challenger: challenger.String(), OpenedAt: module.Now(ctx),
	}
	switch again, err := s.replied.Has(ctx, collections.Join(receiptID[:], p.Challenger)); {
	case err != nil:
		return 0, err
	case again:
		return 0, errorsmod.Wrapf(ErrOpening, "%s has disputed receipt %d already", p.Challenger, receipt.Number)
	}
	claim, err := s.replies.OpenDispute(ctx, receipt, signature, m)
	if err != nil {
		return 0, err
	}
	if p.Defender, p.Bond = claim.Defender, claim.Bond; p.Defender == p.Challenger {
		return 0, errorsmod.Wrapf(ErrOpening, "%s would dispute its own reply", p.Challenger)
	}
	r, err := s.Rules(ctx)
	if err != nil {
		return 0, err
	}
	g, err := dispute.Open(claim.Claim, r, dispute.Opening{}, module.Now(ctx))
	if err != nil {
		return 0, errorsmod.Wrap(ErrOpening, err.Error())
	}
	id, err := s.next.Next(ctx)
	if err != nil {
		return 0, err
	}
	if p.ChallengerPurse, err = s.lock(ctx, p.Challenger, p.Bond); err != nil {
		return 0, errorsmod.Wrap(err, "lock a challenger's bond")
	}
	return id, opened(ctx, s.Keeper, id, p, g)
}

// toldOf returns who is told what becomes of a game.
func toldOf(k *Keeper, p disputev1.Parties) told {
	if p.Reply != nil {
		return reply{k.replies, player(p, dispute.Challenger)}
	}
	return k.work
}

// reply is what a game about a reply tells. A session asks neither for answers nor for substitutes, but for who has shown what.
type reply struct {
	Replies
	challenger string
}

// CloseDispute implements told.
func (r reply) CloseDispute(ctx context.Context, session canon.Hash, _ uint64, loser dispute.Side, _ bool) (dispute.Side, error) {
	return r.Replies.CloseDispute(ctx, session, loser, r.challenger)
}

// MissAnswer implements told.
func (reply) MissAnswer(context.Context, canon.Hash, uint64, bool) error { return nil }

// Substitute implements told.
func (reply) Substitute(context.Context, canon.Hash, uint64, string) error { return nil }
