// Package partner has projects of drilling admitted on a network whose founders are at hand, such as a devnet: it
// proposes one, proposes that votes admit it, and lets the founders vote. Call [Found].
//
// Invariant: it may be killed at any moment and called again. A project that stands is gone on with; at worst it is
// proposed once more to admit it, which fails, and gives its deposit back.
//
// Source: docs/spec/drilling.md, docs/spec/policy.md.
package partner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	"github.com/tally-network/tally/node/client"
)

// Project is what a project says of itself.
type Project struct {
	Name, Summary, Contact string
	Budget                 uint64 // ut
}

// Found returns the number of an account's project that is admitted. If it has none, it proposes one, and the founders
// vote for it, which takes as long as the rules of votes say.
func Found(ctx context.Context, chain *client.Client, account *client.Account, founders []*client.Account, p Project) (uint64, error) {
	own, err := standing(ctx, chain.Conn, account.Address)
	if err == nil && own == nil {
		_, err = account.Send(ctx, &drillingv1.MsgRegisterProject{
			Partner: account.Address, Name: p.Name, Summary: p.Summary, Contact: p.Contact, BudgetUt: p.Budget,
		})
		if err == nil {
			own, err = standing(ctx, chain.Conn, account.Address)
		}
	}
	if err == nil && own == nil {
		err = errors.New("it was proposed, and the node does not know it")
	}
	if err == nil && own.Status == drillingv1.STATUS_PROPOSED {
		err = admit(ctx, chain, account, founders, own.Number)
	}
	if err != nil {
		return 0, fmt.Errorf("a project of drilling: %w", err)
	}
	return own.Number, nil
}

// Projects returns all projects that a chain knows, by number.
func Projects(ctx context.Context, conn grpc.ClientConnInterface) (out []drillingv1.Project, err error) {
	for page := (&query.PageRequest{}); ; {
		r, err := drillingv1.NewQueryClient(conn).Projects(ctx, &drillingv1.QueryProjectsRequest{Pagination: page})
		if err != nil {
			return nil, err
		}
		if out = append(out, r.Projects...); r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
			return out, nil
		}
		page = &query.PageRequest{Key: r.Pagination.NextKey}
	}
}

// standing returns the project of an account that has not ended, nil if there is none.
func standing(ctx context.Context, conn grpc.ClientConnInterface, account string) (*drillingv1.Project, error) {
	all, err := Projects(ctx, conn)
	for i := range all {
		if p := &all[i]; p.Partner == account && p.Status != drillingv1.STATUS_ENDED {
			return p, err
		}
	}
	return nil, err
}

// admit has the founders vote for a project, and waits until it is admitted.
func admit(ctx context.Context, chain *client.Client, account *client.Account, founders []*client.Account, project uint64) error {
	q := policyv1.NewQueryClient(chain.Conn)
	proposal, err := propose(ctx, q, account, project)
	if err != nil {
		return err
	}
	for _, f := range founders {
		if _, err := f.Send(ctx, &policyv1.MsgVote{Voter: f.Address, Proposal: proposal, Option: policyv1.OPTION_YES}); err != nil {
			return fmt.Errorf("%s votes: %w", f.Address, err)
		}
	}
	for {
		p, err := standing(ctx, chain.Conn, account.Address)
		if err != nil {
			return err
		}
		if p != nil && p.Status == drillingv1.STATUS_ADMITTED {
			return nil
		}
		r, err := q.Proposal(ctx, &policyv1.QueryProposalRequest{Proposal: proposal})
		if err != nil {
			return err
		}
		switch s := r.Proposal.Status; s {
		case policyv1.STATUS_VOTING, policyv1.STATUS_PASSED, policyv1.STATUS_EXECUTED:
		default:
			return fmt.Errorf("the vote ended with %v: %s", s, r.Proposal.Failure)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pause is between two looks at a vote.
const pause = 500 * time.Millisecond

// propose proposes that votes admit a project, and returns the number of the proposal.
func propose(ctx context.Context, q policyv1.QueryClient, account *client.Account, project uint64) (uint64, error) {
	rules, err := q.Params(ctx, &policyv1.QueryParamsRequest{})
	if err != nil {
		return 0, err
	}
	change, err := codectypes.NewAnyWithValue(&drillingv1.MsgAdmitProject{Authority: rules.Authority, Project: project})
	if err != nil {
		return 0, err
	}
	title := fmt.Sprintf("Admit project %d", project)
	if _, err := account.Send(ctx, &policyv1.MsgPropose{
		Proposer: account.Address, Title: title, Summary: "Its tasks count as drilling.", Messages: []*codectypes.Any{change}, Deposit: rules.NextDeposit,
	}); err != nil {
		return 0, err
	}
	made, err := q.Proposals(ctx, &policyv1.QueryProposalsRequest{Pagination: &query.PageRequest{Reverse: true}})
	if err != nil {
		return 0, err
	}
	for _, p := range made.Proposals { // the newest first
		if p.Proposer == account.Address && p.Title == title {
			return p.Id, nil
		}
	}
	return 0, errors.New("the proposal is not among the newest: somebody else proposes much")
}
