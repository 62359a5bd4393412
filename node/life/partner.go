package life

import (
	"errors"
	"fmt"
	"time"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

// budget of the project, in ut: more than a devnet comes to.
const budget = 1_000_000_000

// found makes the buyer the partner of a project: it proposes one, and the founders of the network vote it in.
// One of an earlier run is gone on with.
func (b *buyer) found() error {
	p, err := b.mine()
	if err == nil && p == nil {
		_, err = b.Env.Account.Send(b.ctx, &drillingv1.MsgRegisterProject{
			Partner: b.Home.Address, Name: "life", Summary: "How well texts are foreseen.", Contact: "https://example.org", BudgetUt: budget,
		})
		if err == nil {
			p, err = b.mine()
		}
	}
	if err == nil && p.Status == drillingv1.STATUS_PROPOSED {
		err = b.admit(p.Number)
	}
	if err != nil {
		return fmt.Errorf("a project of drilling: %w", err)
	}
	b.project = p.Number
	return nil
}

// mine returns the project of the buyer, nil if it has none that stands.
func (b *buyer) mine() (*drillingv1.Project, error) {
	all, err := projects(b.ctx, b.Env.Chain.Conn)
	for i := range all {
		if p := &all[i]; p.Partner == b.Home.Address && p.Status != drillingv1.STATUS_ENDED {
			return p, err
		}
	}
	return nil, err
}

// admit has the founders vote for a project, and waits until it is admitted.
func (b *buyer) admit(project uint64) error {
	q := policyv1.NewQueryClient(b.Env.Chain.Conn)
	rules, err := q.Params(b.ctx, &policyv1.QueryParamsRequest{})
	if err != nil {
		return err
	}
	change, err := codectypes.NewAnyWithValue(&drillingv1.MsgAdmitProject{Authority: rules.Authority, Project: project})
	if err != nil {
		return err
	}
	title := fmt.Sprintf("Admit project %d", project)
	if _, err := b.Env.Account.Send(b.ctx, &policyv1.MsgPropose{
		Proposer: b.Home.Address, Title: title, Summary: "So that somebody drills.", Messages: []*codectypes.Any{change}, Deposit: rules.NextDeposit,
	}); err != nil {
		return err
	}
	made, err := q.Proposals(b.ctx, &policyv1.QueryProposalsRequest{Pagination: &query.PageRequest{Reverse: true}})
	if err != nil {
		return err
	}
	var id uint64
	for _, p := range made.Proposals {
		if p.Proposer == b.Home.Address && p.Title == title {
			id = max(id, p.Id)
		}
	}
	for _, v := range b.net.Validators {
		if _, err := v.Env.Account.Send(b.ctx, &policyv1.MsgVote{Voter: v.Home.Address, Proposal: id, Option: policyv1.OPTION_YES}); err != nil {
			return fmt.Errorf("%s votes: %w", v.Env.Name, err)
		}
	}
	for wait(b.ctx, time.Second) {
		p, err := b.mine()
		if err != nil {
			return err
		}
		if p != nil && p.Status == drillingv1.STATUS_ADMITTED {
			return nil
		}
		r, err := q.Proposal(b.ctx, &policyv1.QueryProposalRequest{Proposal: id})
		if err != nil {
			return err
		}
		switch s := r.Proposal.Status; s {
		case policyv1.STATUS_VOTING, policyv1.STATUS_PASSED, policyv1.STATUS_EXECUTED:
		default:
			return fmt.Errorf("the vote ended with %v %s", s, r.Proposal.Failure)
		}
	}
	return errors.New("it was voted on until the end")
}
