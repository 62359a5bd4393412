package work

import (
	"context"
	"slices"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
)

// Claim returns what an attempt of the work named by t asserts, and the bond that
// its challenger must lock, in utally.
func (k *Keeper) Claim(ctx context.Context, order canon.Hash, t job.Target, attempt int) (dispute.Claim, uint64, error) {
	l, err := k.load(ctx, order, func(l *job.Lease) (lo, hi int) {
		if t.Merge {
			return min(t.Index, len(l.Merges)), min(t.Index+1, len(l.Merges))
		}
		return roundOf(l, t.Index)
	})
	if err != nil {
		return dispute.Claim{}, 0, err
	}
	c, err := l.Claim(t, attempt)
	if err != nil {
		return c, 0, errorsmod.Wrap(ErrRefused, err.Error())
	}
	return c, l.ChallengeBond(t), nil
}

// OpenDispute records that work is disputed, and returns who defends it.
func (k *Keeper) OpenDispute(ctx context.Context, order canon.Hash, e job.OpenDispute) (defender string, err error) {
	l, err := k.apply(ctx, order, e)
	if err != nil {
		return "", err
	}
	c, _ := contest(l, e.ID)
	return c.Defender, nil
}

// CloseDispute tells a lease who lost, and returns the other disputes that ended
// with this one.
func (k *Keeper) CloseDispute(ctx context.Context, order canon.Hash, id uint64, loser dispute.Side) (others []uint64, err error) {
	before, err := k.load(ctx, order, func(*job.Lease) (lo, hi int) { return 0, 0 })
	if err != nil {
		return nil, err
	}
	after, err := k.apply(ctx, order, job.CloseDispute{ID: id, Loser: loser})
	if err != nil {
		return nil, err
	}
	if others, err = k.ended(ctx, &before.Lease, after); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(others, func(other uint64) bool { return other == id }), nil
}

// MissAnswer tells a lease that a defender has missed an answer, or has moved
// again. In between it gets no new work anywhere.
func (k *Keeper) MissAnswer(ctx context.Context, order canon.Hash, id uint64, missed bool) error {
	before, err := k.load(ctx, order, func(*job.Lease) (lo, hi int) { return 0, 0 })
	if err != nil {
		return err
	}
	if _, err := k.apply(ctx, order, job.MissAnswer{ID: id, Missed: missed}); err != nil {
		return err
	}
	c, _ := contest(&before.Lease, id)
	if !missed {
		return k.freeToWork(ctx, c.Defender, !c.Missed)
	}
	if c.Missed {
		return nil
	}
	account, err := address.Parse(c.Defender)
	if err != nil {
		return err
	}
	return k.stakes.Suspend(ctx, account)
}

// ended returns the disputes that an event ended, and frees their defenders.
func (k *Keeper) ended(ctx context.Context, before, after *job.Lease) (ids []uint64, err error) {
	for _, c := range before.Disputes {
		if _, open := contest(after, c.ID); open {
			continue
		}
		ids = append(ids, c.ID)
		if err := k.freeToWork(ctx, c.Defender, !c.Missed); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// freeToWork ends a defender's suspension, unless it was free already.
func (k *Keeper) freeToWork(ctx context.Context, defender string, already bool) error {
	account, err := address.Parse(defender)
	if err != nil || already {
		return err
	}
	return k.stakes.Resume(ctx, account)
}

// Substitute tells a lease who challenges in the place of another.
func (k *Keeper) Substitute(ctx context.Context, order canon.Hash, id uint64, by string) error {
	_, err := k.apply(ctx, order, job.Substitute{ID: id, By: by})
	return err
}

// contest returns the open dispute of a lease with the given id.
func contest(l *job.Lease, id uint64) (c job.Contest, ok bool) {
	for _, c := range l.Disputes {
		if c.ID == id {
			return c, true
		}
	}
	return c, false
}
