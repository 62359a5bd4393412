package policy

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/policy"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

// get returns a proposal.
func (k *Keeper) get(ctx context.Context, id uint64) (policyv1.Proposal, error) {
	x, err := k.proposals.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return x, errorsmod.Wrapf(ErrNotFound, "proposal %d: tally query policy proposals shows those that there are", id)
	}
	return x, err
}

// Founder returns an account's weight among the founders, 0 if it is none, and that of all together.
func (k *Keeper) Founder(ctx context.Context, account sdk.AccAddress) (own, all uint64, err error) {
	if own, err = k.founders.Get(ctx, account); errors.Is(err, collections.ErrNotFound) {
		return 0, 0, nil
	} else if err != nil {
		return 0, 0, err
	}
	all, err = k.all.Get(ctx)
	return own, all, err
}

// Base returns the power below which founders have what is missing, in millionths of a ut.
func (k *Keeper) Base(ctx context.Context) (uint64, error) {
	p, err := k.rules.Get(ctx)
	return p.Base, err
}

// weight returns what an account's vote on an open proposal weighs: its power when the vote began, and what it
// votes as a founder.
func (k *Keeper) weight(ctx context.Context, account sdk.AccAddress, x *policyv1.Proposal) (uint64, error) {
	power, err := k.power.At(ctx, account, x.Mark)
	if err != nil {
		return 0, err
	}
	founder, all, err := k.Founder(ctx, account)
	if err != nil || founder == 0 {
		return power, err
	}
	share, err := policy.Share(x.Missing, founder, all)
	return power + share, err // at most the base, or all power
}

// Vote counts a vote, in place of what the account has voted before.
func (k *Keeper) Vote(ctx context.Context, voter sdk.AccAddress, id uint64, option policyv1.Option) (uint64, error) {
	x, err := k.get(ctx, id)
	if err != nil {
		return 0, err
	}
	if x.Status != policyv1.STATUS_VOTING || module.Now(ctx) >= x.EndMs {
		return 0, errorsmod.Wrapf(ErrVote, "the vote on proposal %d is over", id)
	}
	weight, err := k.weight(ctx, voter, &x)
	if err != nil {
		return 0, err
	}
	if weight == 0 {
		return 0, errorsmod.Wrapf(ErrVote, "%s had no computing power when the vote on proposal %d began", voter, id)
	}
	tally, at := tallyOf(x.Tally), collections.Join(id, voter)
	switch old, err := k.votes.Get(ctx, at); {
	case err == nil:
		if err := tally.Remove(policy.Option(old.Option), old.Weight); err != nil {
			return 0, err
		}
	case !errors.Is(err, collections.ErrNotFound):
		return 0, err
	}
	if err := tally.Add(policy.Option(option), weight); err != nil {
		return 0, errorsmod.Wrap(ErrVote, err.Error())
	}
	x.Tally = tallyToProto(tally)
	return weight, errors.Join(
		k.proposals.Set(ctx, id, x),
		k.votes.Set(ctx, at, policyv1.Vote{Proposal: id, Voter: voter.String(), Option: option, Weight: weight}),
		module.Emit(ctx, &policyv1.EventVoted{Proposal: id, Voter: voter.String(), Option: option, Weight: weight}))
}

// Convicted takes back an account's votes on open proposals: its power is gone, at their starts too. A founder
// may vote again, with what it votes as such.
func (k *Keeper) Convicted(ctx context.Context, account sdk.AccAddress) error {
	open, err := module.First(ctx, k.open, nil, policy.MaxOpen)
	if err != nil {
		return err
	}
	for _, id := range open {
		at := collections.Join(id, account)
		v, err := k.votes.Get(ctx, at)
		if errors.Is(err, collections.ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		x, err := k.get(ctx, id)
		if err != nil {
			return err
		}
		tally := tallyOf(x.Tally)
		if err := tally.Remove(policy.Option(v.Option), v.Weight); err != nil {
			return err
		}
		x.Tally = tallyToProto(tally)
		if err := errors.Join(k.votes.Remove(ctx, at), k.proposals.Set(ctx, id, x),
			module.Emit(ctx, &policyv1.EventUnvoted{Proposal: id, Voter: v.Voter, Weight: v.Weight})); err != nil {
			return err
		}
	}
	return nil
}
