package policy

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/policy"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

const (
	ut    = 1_000_000      // µut
	day   = 24 * 3_600_000 // ms
	tally = 1_000_000      // utally of a tally
)

// DefaultParams are the rules that docs/spec/policy.md gives reasons for.
func DefaultParams() policyv1.Params {
	return policyv1.Params{
		Base: 100_000_000 * ut, Quorum: 40_000_000 * ut, ThresholdBps: 5_000, VetoBps: 3_334,
		Deposit: 1_000 * tally, MaxOpen: 8, VotingMs: 7 * day, DelayMs: 2 * day,
	}
}

// DefaultGenesis has no founders: until power is at the quorum, nobody changes rules.
func DefaultGenesis() *policyv1.GenesisState { return &policyv1.GenesisState{Params: DefaultParams()} }

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *policyv1.GenesisState) error {
	if err := errors.Join(CheckParams(g.Params), module.CheckAuthority(g.Authority), checkFounders(g.Founders)); err != nil {
		return fmt.Errorf("policy genesis: %w", err)
	}
	open, last := 0, uint64(0)
	for i := range g.Proposals {
		x := &g.Proposals[i]
		if err := checkProposal(x); err != nil {
			return fmt.Errorf("policy genesis: proposal %d: %w", x.Id, err)
		}
		if i > 0 && x.Id <= last || x.Id >= g.Next {
			return fmt.Errorf("policy genesis: proposal %d comes after %d, and the next is %d", x.Id, last, g.Next)
		}
		if last = x.Id; x.Status == policyv1.STATUS_VOTING {
			open++
		}
	}
	if open > policy.MaxOpen {
		return fmt.Errorf("policy genesis: %d proposals are open, want at most %d", open, policy.MaxOpen)
	}
	for i, v := range g.Votes {
		if _, err := address.Parse(v.Voter); err != nil || v.Weight == 0 || v.Option < policyv1.OPTION_YES || v.Option > policyv1.OPTION_ABSTAIN {
			return fmt.Errorf("policy genesis: vote %d: %w", i, errors.Join(err, ErrVote))
		}
	}
	return nil
}

func checkFounders(all []policyv1.Founder) error {
	ws, seen := make([]uint64, len(all)), map[string]bool{}
	for i, f := range all {
		if _, err := address.Parse(f.Account); err != nil {
			return fmt.Errorf("founder %d: %w", i, err)
		}
		if seen[f.Account] {
			return fmt.Errorf("founder %s occurs twice", f.Account)
		}
		ws[i], seen[f.Account] = f.Weight, true
	}
	_, err := policy.Weights(ws)
	return err
}

func checkProposal(x *policyv1.Proposal) error {
	_, err := address.Parse(x.Proposer)
	if err := errors.Join(err, checkText(x.Title, x.Summary), CheckParams(x.Params)); err != nil {
		return err
	}
	switch {
	case x.Status < policyv1.STATUS_VOTING || x.Status > policyv1.STATUS_NO_QUORUM:
		return fmt.Errorf("its status is %d", x.Status)
	case x.Status == policyv1.STATUS_VOTING && x.Deposit == 0 || x.Deposit > coin.MaxSupply:
		return fmt.Errorf("a deposit of %d utally is held, and it is %s", x.Deposit, x.Status)
	case x.StartMs < 0 || x.EndMs <= x.StartMs || x.ExecuteMs != 0 && x.ExecuteMs <= x.EndMs:
		return fmt.Errorf("it begins at %d, ends at %d and is executed at %d", x.StartMs, x.EndMs, x.ExecuteMs)
	case len(x.Messages) > maxMessages || len(x.Failure) > maxFailure:
		return fmt.Errorf("it has %d messages, and a failure of %d bytes", len(x.Messages), len(x.Failure))
	}
	return nil
}

// InitGenesis stores a state. Messages are checked here, where their types are known.
func (k *Keeper) InitGenesis(ctx context.Context, g *policyv1.GenesisState) error {
	if err := errors.Join(k.rules.Init(ctx, g.Params, g.Authority), k.next.Set(ctx, g.Next)); err != nil {
		return err
	}
	all := uint64(0)
	for _, f := range g.Founders {
		account, err := address.Parse(f.Account)
		if err != nil {
			return err
		}
		if err := k.founders.Set(ctx, account, f.Weight); err != nil {
			return err
		}
		all += f.Weight // bounded by the check
	}
	if err := k.all.Set(ctx, all); err != nil {
		return err
	}
	for i := range g.Proposals {
		if err := k.load(ctx, &g.Proposals[i]); err != nil {
			return fmt.Errorf("policy genesis: proposal %d: %w", g.Proposals[i].Id, err)
		}
	}
	for _, v := range g.Votes {
		voter, err := address.Parse(v.Voter)
		if err != nil {
			return err
		}
		x, err := k.get(ctx, v.Proposal)
		if err != nil {
			return err
		}
		if err := k.votes.Set(ctx, collections.Join(v.Proposal, voter), v); err != nil {
			return err
		}
		if x.Status != policyv1.STATUS_VOTING {
			if err := k.decided.Set(ctx, v.Proposal); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *Keeper) load(ctx context.Context, x *policyv1.Proposal) error {
	if !over(x.Status) {
		if err := k.checkMessages(x.Messages); err != nil {
			return err
		}
	}
	err := k.proposals.Set(ctx, x.Id, *x)
	switch x.Status {
	case policyv1.STATUS_VOTING:
		err = errors.Join(err, k.open.Set(ctx, x.Id), k.due.Set(ctx, collections.Join(x.EndMs, x.Id)))
	case policyv1.STATUS_PASSED:
		err = errors.Join(err, k.due.Set(ctx, collections.Join(x.ExecuteMs, x.Id)))
	}
	return err
}

func (k *Keeper) listFounders(ctx context.Context) (all []policyv1.Founder, err error) {
	err = k.founders.Walk(ctx, nil, func(a sdk.AccAddress, w uint64) (bool, error) {
		all = append(all, policyv1.Founder{Account: a.String(), Weight: w})
		return false, nil
	})
	return all, err
}

// ExportGenesis is the inverse of InitGenesis.
func (k *Keeper) ExportGenesis(ctx context.Context) (g *policyv1.GenesisState, err error) {
	g = &policyv1.GenesisState{}
	if g.Params, err = k.rules.Get(ctx); err != nil {
		return nil, err
	}
	if g.Authority, err = k.rules.Authority(ctx); err != nil {
		return nil, err
	}
	if g.Founders, err = k.listFounders(ctx); err != nil {
		return nil, err
	}
	if g.Next, err = k.next.Peek(ctx); err != nil {
		return nil, err
	}
	err = k.proposals.Walk(ctx, nil, func(_ uint64, x policyv1.Proposal) (bool, error) {
		g.Proposals = append(g.Proposals, x)
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return g, k.votes.Walk(ctx, nil, func(_ collections.Pair[uint64, sdk.AccAddress], v policyv1.Vote) (bool, error) {
		g.Votes = append(g.Votes, v)
		return false, nil
	})
}

// Invariant: tallies are the sums of votes, deposits are held, and what is open or waits is listed.
func (k *Keeper) Invariant(ctx context.Context) error {
	sums, deposits := map[uint64]policy.Tally{}, uint64(0)
	err := k.votes.Walk(ctx, nil, func(at collections.Pair[uint64, sdk.AccAddress], v policyv1.Vote) (bool, error) {
		t := sums[at.K1()]
		err := t.Add(policy.Option(v.Option), v.Weight)
		sums[at.K1()] = t
		if v.Proposal != at.K1() || v.Voter != at.K2().String() {
			err = fmt.Errorf("the vote of %s on %d is stored as that of %s on %d", v.Voter, v.Proposal, at.K2(), at.K1())
		}
		return err != nil, err
	})
	if err != nil {
		return err
	}
	err = k.proposals.Walk(ctx, nil, func(id uint64, x policyv1.Proposal) (bool, error) {
		deposits += x.Deposit
		return false, k.consistent(ctx, id, &x, sums[id])
	})
	if err != nil {
		return err
	}
	if held := k.bank.GetBalance(ctx, address.Policy(), coin.Denom).Amount.Uint64(); held != deposits {
		return fmt.Errorf("the deposits are %d utally, and %d are held", deposits, held)
	}
	return nil
}

// consistent returns an error unless a proposal is listed as its status says, and its tally is the sum of votes.
func (k *Keeper) consistent(ctx context.Context, id uint64, x *policyv1.Proposal, sum policy.Tally) error {
	at := x.EndMs
	if x.Status == policyv1.STATUS_PASSED {
		at = x.ExecuteMs
	}
	open, err := k.open.Has(ctx, id)
	if err != nil {
		return err
	}
	due, err := k.due.Has(ctx, collections.Join(at, id))
	if err != nil {
		return err
	}
	voting := x.Status == policyv1.STATUS_VOTING
	switch {
	case id != x.Id:
		return fmt.Errorf("proposal %d is stored as %d", x.Id, id)
	case open != voting || due == over(x.Status):
		return fmt.Errorf("proposal %d is %s, and listed as open: %t, as due: %t", id, x.Status, open, due)
	case voting && tallyOf(x.Tally) != sum:
		return fmt.Errorf("the tally of proposal %d is %v, and its votes are %+v", id, x.Tally, sum)
	}
	return nil
}
