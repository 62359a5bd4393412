package policy

import (
	"context"
	"errors"
	"strings"

	"cosmossdk.io/collections"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/policy"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

// What the end of a block does at most.
const (
	maxDue     = 4          // proposals
	maxRemoved = 128        // votes
	maxGas     = 10_000_000 // for the messages of a proposal: a tenth of a block

	maxFailure = 512 // bytes of what is told of a failure
)

var outcomes = map[policy.Outcome]policyv1.Status{
	policy.Passed:   policyv1.STATUS_PASSED,
	policy.Rejected: policyv1.STATUS_REJECTED,
	policy.Vetoed:   policyv1.STATUS_VETOED,
	policy.NoQuorum: policyv1.STATUS_NO_QUORUM,
}

// EndBlock decides the votes that are over, and executes what has waited. Whatever goes wrong with one is
// recorded there, and stops nothing.
func (k *Keeper) EndBlock(ctx context.Context) error {
	now := module.Now(ctx)
	due, err := module.First(ctx, k.due, new(collections.Range[collections.Pair[int64, uint64]]).
		EndExclusive(collections.Join(now+1, uint64(0))), maxDue)
	if err != nil {
		return err
	}
	for _, d := range due {
		x, err := k.get(ctx, d.K2())
		if err != nil {
			return err
		}
		if x.Status == policyv1.STATUS_VOTING {
			err = k.decide(ctx, x)
		} else {
			err = k.execute(ctx, x)
		}
		if err = errors.Join(err, k.due.Remove(ctx, d)); err != nil {
			return err
		}
	}
	return k.sweep(ctx)
}

// decide ends a vote. The deposit goes back, unless the vote vetoes it or too few took part: then somebody took
// a place for nothing.
func (k *Keeper) decide(ctx context.Context, x policyv1.Proposal) error {
	x.Status = outcomes[rulesOf(x.Params).Outcome(tallyOf(x.Tally))]
	settle := k.giveBack
	if x.Status == policyv1.STATUS_VETOED || x.Status == policyv1.STATUS_NO_QUORUM {
		settle = func(ctx context.Context, x *policyv1.Proposal) error { return k.burner.Burn(ctx, Name, x.Deposit) }
	}
	if err := module.Attempt(ctx, func(ctx context.Context) error { return settle(ctx, &x) }); err != nil {
		x.Failure = clip(err) // the deposit stays here, and no block stops for it
	} else {
		x.Deposit = 0
	}
	if x.Status == policyv1.STATUS_PASSED {
		x.ExecuteMs = x.EndMs + x.Params.DelayMs
		if err := k.due.Set(ctx, collections.Join(x.ExecuteMs, x.Id)); err != nil {
			return err
		}
	}
	return errors.Join(
		k.proposals.Set(ctx, x.Id, x), k.open.Remove(ctx, x.Id), k.decided.Set(ctx, x.Id), k.power.Unmark(ctx, x.Mark),
		module.Emit(ctx, &policyv1.EventDecided{Proposal: x.Id, Status: x.Status}))
}

func (k *Keeper) giveBack(ctx context.Context, x *policyv1.Proposal) error {
	to, err := address.Parse(x.Proposer)
	if err != nil {
		return err
	}
	return k.bank.SendCoinsFromModuleToAccount(ctx, Name, to, coin.Of(x.Deposit))
}

// execute executes the messages of a proposal that has passed, all or none.
func (k *Keeper) execute(ctx context.Context, x policyv1.Proposal) error {
	x.Status = policyv1.STATUS_EXECUTED
	err := module.Attempt(ctx, func(ctx context.Context) error {
		return k.perform(sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewGasMeter(maxGas)), x.Messages)
	})
	if err != nil {
		x.Status, x.Failure = policyv1.STATUS_FAILED, clip(err)
	}
	return errors.Join(k.proposals.Set(ctx, x.Id, x),
		module.Emit(ctx, &policyv1.EventDecided{Proposal: x.Id, Status: x.Status, Failure: x.Failure}))
}

// clip returns what is told of a failure: valid text of bounded length.
func clip(err error) string {
	s := err.Error()
	return strings.ToValidUTF8(s[:min(len(s), maxFailure)], "")
}

// sweep removes votes on proposals that are decided, some in each block.
func (k *Keeper) sweep(ctx context.Context) error {
	ids, err := module.First(ctx, k.decided, nil, 1)
	if err != nil || len(ids) == 0 {
		return err
	}
	var gone []collections.Pair[uint64, sdk.AccAddress]
	of := collections.NewPrefixedPairRange[uint64, sdk.AccAddress](ids[0])
	err = k.votes.Walk(ctx, of, func(at collections.Pair[uint64, sdk.AccAddress], _ policyv1.Vote) (bool, error) {
		gone = append(gone, at)
		return len(gone) == maxRemoved, nil
	})
	for _, at := range gone {
		err = errors.Join(err, k.votes.Remove(ctx, at))
	}
	if err == nil && len(gone) < maxRemoved {
		err = k.decided.Remove(ctx, ids[0])
	}
	return err
}
