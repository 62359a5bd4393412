package dispute

import (
	"context"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

// Gas beside that of reading and writing, in the measure of the SDK: 1000 for a
// signature of a transaction, which takes about 0.1 ms.
const (
	gasVerify = 3_000  // of a signature
	gasByte   = 2      // of a move: it is decoded, and hashed along Merkle paths
	gasProof  = 50_000 // of a move that ends a game: the referee computes a fold block
)

type msgServer struct{ *Keeper }

func (s msgServer) Open(ctx context.Context, m *disputev1.MsgOpen) (*disputev1.MsgOpenResponse, error) {
	challenger, err := address.Parse(m.Challenger)
	if err != nil {
		return nil, err
	}
	order, err := canon.ParseHash(m.Order)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrOpening, "order: %s", err)
	}
	if len(m.Opening) > dispute.MaxMove {
		return nil, errorsmod.Wrapf(ErrOpening, "%d bytes, want at most %d", len(m.Opening), dispute.MaxMove)
	}
	module.Charge(ctx, gasByte*uint64(len(m.Opening)), "dispute")
	var o dispute.Opening
	if err := canon.Unmarshal(m.Opening, &o); err != nil {
		return nil, errorsmod.Wrap(ErrOpening, err.Error())
	}
	target, err := wire.TargetFromProto(m.Target)
	if err != nil {
		return nil, errorsmod.Wrap(ErrOpening, err.Error())
	}
	id, err := s.Keeper.Open(ctx, challenger, order, target, int(m.Attempt), o)
	return &disputev1.MsgOpenResponse{Dispute: id}, err
}

func (s msgServer) OpenReply(ctx context.Context, m *disputev1.MsgOpenReply) (*disputev1.MsgOpenReplyResponse, error) {
	challenger, err := address.Parse(m.Challenger)
	if err != nil {
		return nil, err
	}
	module.Charge(ctx, gasVerify+gasByte*uint64(len(m.Model)), "a signature and a model")
	receipt, err := wire.SignedFromProto[session.Receipt](&m.Receipt)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrOpening, "receipt: %s", err)
	}
	model, err := wire.ModelFromBytes(m.Model)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrOpening, "model: %s", err)
	}
	id, err := s.openReply(ctx, challenger, receipt, m.Receipt.Signature, model)
	return &disputev1.MsgOpenReplyResponse{Dispute: id}, err
}

func (s msgServer) Move(ctx context.Context, m *disputev1.MsgMove) (*disputev1.MsgMoveResponse, error) {
	module.Charge(ctx, gasByte*uint64(len(m.Move)), "dispute")
	move, err := dispute.DecodeMove(m.Move)
	if err != nil {
		return nil, errorsmod.Wrap(ErrMove, err.Error())
	}
	switch move.(type) {
	case *dispute.Block, *dispute.Output:
		module.Charge(ctx, gasProof, "dispute")
	}
	return &disputev1.MsgMoveResponse{}, s.Keeper.Move(ctx, m, move)
}

func (s msgServer) Substitute(ctx context.Context, m *disputev1.MsgSubstitute) (*disputev1.MsgSubstituteResponse, error) {
	account, err := address.Parse(m.Substitute)
	if err != nil {
		return nil, err
	}
	return &disputev1.MsgSubstituteResponse{}, s.Keeper.Substitute(ctx, account, m.Dispute, dispute.Side(m.Side))
}

// UpdateParams replaces the rules for new disputes.
func (s msgServer) UpdateParams(ctx context.Context, m *disputev1.MsgUpdateParams) (*disputev1.MsgUpdateParamsResponse, error) {
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	return &disputev1.MsgUpdateParamsResponse{}, module.Emit(ctx, &disputev1.EventParams{Params: m.Params})
}

// maxAnswer bounds what a vote may set answer_ms to, in ms: for each game it can only be raised.
const maxAnswer = 2 * 3_600_000

// checkParams returns an error unless an honest side can play by the rules, and the work
// that is leased already can be defended by them.
func checkParams(old, p disputev1.Params) error {
	if err := wire.RulesFromProto(p).Playable(); err != nil {
		return err
	}
	if err := wire.RulesFromProto(p).Keeps(wire.RulesFromProto(old)); err != nil {
		return err
	}
	return module.Within(module.Signed("answer_ms", old.AnswerMs, p.AnswerMs, dispute.Slot, maxAnswer))
}
