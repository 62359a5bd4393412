package policy

import (
	"context"
	"errors"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/policy"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

type queryServer struct{ *Keeper }

func (q queryServer) Params(ctx context.Context, _ *policyv1.QueryParamsRequest) (*policyv1.QueryParamsResponse, error) {
	p, err := q.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := q.rules.Authority(ctx)
	if err != nil {
		return nil, err
	}
	open, err := module.First(ctx, q.open, nil, policy.MaxOpen)
	if err != nil {
		return nil, err
	}
	founders, err := q.listFounders(ctx)
	return &policyv1.QueryParamsResponse{
		Params: p, Authority: authority, NextDeposit: rulesOf(p).DepositOf(len(open)),
		Messages: slices.Sorted(maps.Keys(q.allowed)), Founders: founders,
	}, err
}

func (q queryServer) Proposal(ctx context.Context, r *policyv1.QueryProposalRequest) (*policyv1.QueryProposalResponse, error) {
	x, err := q.get(ctx, r.Proposal)
	if errors.Is(err, ErrNotFound) {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	return &policyv1.QueryProposalResponse{Proposal: x}, err
}

func (q queryServer) Proposals(ctx context.Context, r *policyv1.QueryProposalsRequest) (*policyv1.QueryProposalsResponse, error) {
	all, page, err := query.CollectionPaginate(ctx, q.proposals, r.Pagination,
		func(_ uint64, x policyv1.Proposal) (policyv1.Proposal, error) { return x, nil })
	return &policyv1.QueryProposalsResponse{Proposals: all, Pagination: page}, err
}

func (q queryServer) Votes(ctx context.Context, r *policyv1.QueryVotesRequest) (*policyv1.QueryVotesResponse, error) {
	votes, page, err := query.CollectionPaginate(ctx, q.votes, r.Pagination,
		func(_ collections.Pair[uint64, sdk.AccAddress], v policyv1.Vote) (policyv1.Vote, error) {
			return v, nil
		},
		query.WithCollectionPaginationPairPrefix[uint64, sdk.AccAddress](r.Proposal))
	return &policyv1.QueryVotesResponse{Votes: votes, Pagination: page}, err
}

func (q queryServer) Weight(ctx context.Context, r *policyv1.QueryWeightRequest) (*policyv1.QueryWeightResponse, error) {
	account, err := address.Parse(r.Account)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	x, err := q.get(ctx, r.Proposal)
	if err != nil {
		return nil, err
	}
	if x.Status != policyv1.STATUS_VOTING {
		return nil, status.Errorf(codes.FailedPrecondition, "the vote on proposal %d is over", x.Id)
	}
	weight, err := q.weight(ctx, account, &x)
	if err != nil {
		return nil, err
	}
	v, err := q.votes.Get(ctx, collections.Join(x.Id, account))
	if errors.Is(err, collections.ErrNotFound) {
		err = nil
	}
	return &policyv1.QueryWeightResponse{Weight: weight, Option: v.Option}, err
}
