package policy

import (
	"context"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

// gasBlock is the gas, beside that of reading and writing, for what the end of a block does for a proposal or a
// vote: removing it, and the messages that pass.
const gasBlock = 20_000

type msgServer struct{ *Keeper }

func (s msgServer) Propose(ctx context.Context, m *policyv1.MsgPropose) (*policyv1.MsgProposeResponse, error) {
	module.Charge(ctx, gasBlock, "policy")
	id, err := s.Keeper.Propose(ctx, m)
	return &policyv1.MsgProposeResponse{Proposal: id}, err
}

func (s msgServer) Vote(ctx context.Context, m *policyv1.MsgVote) (*policyv1.MsgVoteResponse, error) {
	module.Charge(ctx, gasBlock, "policy")
	voter, err := address.Parse(m.Voter)
	if err != nil {
		return nil, err
	}
	weight, err := s.Keeper.Vote(ctx, voter, m.Proposal, m.Option)
	return &policyv1.MsgVoteResponse{Weight: weight}, err
}

// UpdateParams replaces the rules of votes that begin later.
func (s msgServer) UpdateParams(ctx context.Context, m *policyv1.MsgUpdateParams) (*policyv1.MsgUpdateParamsResponse, error) {
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	return &policyv1.MsgUpdateParamsResponse{}, module.Emit(ctx, &policyv1.EventParams{Params: m.Params})
}
