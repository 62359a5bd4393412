package work

import (
	"context"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// gasAnswerByte is paid for each byte of an answer, or of what shows a wrong fragment: it
// is decoded, and hashed along Merkle paths.
const gasAnswerByte = 2

// gasShownByte is paid for each byte of what shows a wrong cost: it is decoded, and hashed once
// or along a Merkle path; a primitive that it holds is checked.
const gasShownByte = 5

func (s msgServer) Attest(ctx context.Context, m *workv1.MsgAttest) (*workv1.MsgAttestResponse, error) {
	e := job.Attest{By: m.Custodian, Unit: int(m.Unit), Attempt: int(m.Attempt)}
	var err error
	if e.Fragment, err = wire.FragmentFromProto(m.Fragment); err != nil {
		return nil, errorsmod.Wrap(ErrMalformed, err.Error())
	}
	return &workv1.MsgAttestResponse{}, s.applyByID(ctx, m.Order, e)
}

func (s msgServer) AttestFiles(ctx context.Context, m *workv1.MsgAttestFiles) (*workv1.MsgAttestFilesResponse, error) {
	if m.Says < workv1.WORD_HAD || m.Says > workv1.WORD_CANNOT {
		return nil, errorsmod.Wrapf(ErrMalformed, "word %d of a custodian does not exist", m.Says)
	}
	return &workv1.MsgAttestFilesResponse{}, s.applyByID(ctx, m.Order, job.AttestFiles{By: m.Custodian, Draw: int(m.Draw), Says: job.Word(m.Says)})
}

func (s msgServer) Ask(ctx context.Context, m *workv1.MsgAsk) (*workv1.MsgAskResponse, error) {
	e := job.Ask{By: m.Sender, Custodian: m.Custodian, Attempt: int(m.Attempt)}
	var err error
	if e.Unit, err = wire.KeptFromProto(m.Unit, m.Files); err != nil {
		return nil, errorsmod.Wrap(ErrMalformed, err.Error())
	}
	if e.Open, err = countOf(ctx, s.leases.asked, m.Custodian); err != nil {
		return nil, err
	}
	return &workv1.MsgAskResponse{}, s.applyByID(ctx, m.Order, e)
}

func (s msgServer) Answer(ctx context.Context, m *workv1.MsgAnswer) (*workv1.MsgAnswerResponse, error) {
	e := job.Answer{By: m.Custodian, Attempt: int(m.Attempt)}
	module.Charge(ctx, gasAnswerByte*uint64(len(m.Shown)), "answer")
	var err error
	if e.Unit, err = wire.KeptFromProto(m.Unit, m.Files); err != nil {
		return nil, errorsmod.Wrap(ErrMalformed, err.Error())
	}
	if e.Shown, err = wire.ShownFromBytes(m.Shown); err != nil {
		return nil, errorsmod.Wrapf(ErrMalformed, "answer: %s", err)
	}
	return &workv1.MsgAnswerResponse{}, s.applyByID(ctx, m.Order, e)
}

func (s msgServer) Expose(ctx context.Context, m *workv1.MsgExpose) (*workv1.MsgExposeResponse, error) {
	e := job.Expose{By: m.Sender, Custodian: m.Custodian, Unit: int(m.Unit), Attempt: int(m.Attempt)}
	module.Charge(ctx, gasAnswerByte*uint64(len(m.Wrong)), "wrong fragment")
	var err error
	if e.Wrong, err = wire.WrongFragmentFromBytes(m.Wrong); err != nil {
		return nil, errorsmod.Wrapf(ErrMalformed, "wrong fragment: %s", err)
	}
	return &workv1.MsgExposeResponse{}, s.applyByID(ctx, m.Order, e)
}

func (s msgServer) ExposeCost(ctx context.Context, m *workv1.MsgExposeCost) (*workv1.MsgExposeCostResponse, error) {
	e := job.ExposeCost{By: m.Sender, Merge: m.Merge}
	module.Charge(ctx, gasShownByte*uint64(len(m.Shown)), "wrong cost")
	var err error
	if e.Shown, err = wire.RefutationFromBytes(m.Shown); err != nil {
		return nil, errorsmod.Wrapf(ErrMalformed, "wrong cost: %s", err)
	}
	return &workv1.MsgExposeCostResponse{}, s.applyByID(ctx, m.Order, e)
}
