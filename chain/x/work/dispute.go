package work

import (
	"context"
	"fmt"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
)

// Claim returns what an attempt of the work named by t asserts, and the bond that
// a challenger of a segment of it must lock, in utally.
func (k *Keeper) Claim(ctx context.Context, order canon.Hash, t job.Target, attempt, segment int) (dispute.Claim, uint64, error) {
	l, err := k.load(ctx, order, func(l *job.Lease) job.Part { return l.About(t) })
	if err != nil {
		return dispute.Claim{}, 0, err
	}
	s, err := l.Subject(t, attempt)
	if err != nil {
		return s.Claim, 0, errorsmod.Wrap(ErrRefused, err.Error())
	}
	bond, err := l.ChallengeBond(t, segment)
	if err != nil {
		return s.Claim, 0, errorsmod.Wrap(ErrRefused, err.Error())
	}
	return s.Claim, bond, nil
}

// OpenDispute records that work is disputed, and returns who defends it, and whether
// the challenger's word as an auditor stands behind the dispute in place of a bond.
func (k *Keeper) OpenDispute(ctx context.Context, order canon.Hash, e job.OpenDispute) (defender string, pledged bool, err error) {
	l, err := k.apply(ctx, order, e)
	if err != nil {
		return "", false, err
	}
	c, _ := openDispute(l, e.ID)
	return c.Defender, c.Pledge != "", nil
}

// CloseDispute tells a lease who lost, and whether by silence or by a substitute. It returns who did: nobody, if what the
// dispute was about is gone.
//
// A conviction voids what descends from the work, which in a large order would take more gas than
// one transaction may have. Then whoever shows fraud could not win. So it is charged as bulk is.
func (k *Keeper) CloseDispute(ctx context.Context, order canon.Hash, id uint64, loser dispute.Side, silent bool) (dispute.Side, error) {
	before, err := k.load(ctx, order, skeleton)
	if err != nil {
		return loser, err
	}
	ctx = bulk(ctx, &before.Order.Problem)
	e := job.CloseDispute{ID: id, Loser: loser, Silent: silent}
	if err := k.leases.readPart(ctx, order, before, before.Touched(e, module.Now(ctx))); err != nil {
		return loser, err
	}
	if before.Moot(id) {
		loser = dispute.Nobody
	}
	_, err = k.applyLoaded(ctx, order, before, e)
	return loser, err
}

// MissAnswer tells a lease that a defender has missed an answer, or has moved
// again. In between it gets no new work anywhere.
func (k *Keeper) MissAnswer(ctx context.Context, order canon.Hash, id uint64, missed bool) error {
	before, err := k.load(ctx, order, skeleton)
	if err != nil {
		return err
	}
	if _, err := k.apply(ctx, order, job.MissAnswer{ID: id, Missed: missed}); err != nil {
		return err
	}
	c, _ := openDispute(&before.Lease, id)
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

// ended drops the games of disputes that an event ended, and frees their defenders.
func (k *Keeper) ended(ctx context.Context, before, after *job.Lease, e job.Event) error {
	var closed uint64
	why := "what it was about is gone"
	switch e := e.(type) {
	case job.CloseDispute:
		closed, why = e.ID, fmt.Sprintf("the claim was refuted in dispute %d", e.ID)
	case job.ProveDraw:
		why = "the receipt was forced: it was wrong by duty"
	}
	for _, c := range before.Disputes {
		if _, open := openDispute(after, c.ID); open {
			continue
		}
		if err := k.freeToWork(ctx, c.Defender, !c.Missed); err != nil {
			return err
		}
		if c.ID == closed {
			continue // by x/dispute itself
		}
		if err := k.games.Drop(ctx, c.ID, why); err != nil {
			return err
		}
	}
	return nil
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

// openDispute returns the open dispute of a lease with the given id.
func openDispute(l *job.Lease, id uint64) (c job.Dispute, ok bool) {
	for _, c := range l.Disputes {
		if c.ID == id {
			return c, true
		}
	}
	return c, false
}
