package work

import (
	"context"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
)

// Claim returns what the work named by t asserts, and the bond that its
// challenger must lock, in utally.
func (k *Keeper) Claim(ctx context.Context, order canon.Hash, t job.Target) (dispute.Claim, uint64, error) {
	l, err := k.load(ctx, order, func(l *job.Lease) (lo, hi int) {
		if t.Merge {
			return min(t.Index, len(l.Merges)), min(t.Index+1, len(l.Merges))
		}
		return roundOf(l, t.Index)
	})
	if err != nil {
		return dispute.Claim{}, 0, err
	}
	c, err := l.Claim(t)
	if err != nil {
		return c, 0, errorsmod.Wrap(ErrRefused, err.Error())
	}
	return c, l.Params.ChallengeBond, nil
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

// CloseDispute tells a lease who lost. A convicted defender is jailed.
func (k *Keeper) CloseDispute(ctx context.Context, order canon.Hash, id uint64, loser dispute.Side) error {
	before, err := k.load(ctx, order, func(*job.Lease) (lo, hi int) { return 0, 0 })
	if err != nil {
		return err
	}
	if _, err := k.apply(ctx, order, job.CloseDispute{ID: id, Loser: loser}); err != nil {
		return err
	}
	c, disputed := contest(&before.Lease, id)
	if !disputed || loser != dispute.Defender {
		return nil
	}
	p, err := k.params.Get(ctx)
	if err != nil {
		return err
	}
	account, err := address.Parse(c.Defender)
	if err != nil {
		return err
	}
	return k.stakes.Jail(ctx, account, now(ctx)+p.JailMs)
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
