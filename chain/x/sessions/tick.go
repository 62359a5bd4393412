package sessions

import (
	"context"
	"errors"

	"cosmossdk.io/collections"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

// maxDue bounds the sessions for which time passes in a block, and the offers that lapse. Others wait for the next block, the longest
// due first. A session takes some 0.3 ms there, and who opens one has paid for that.
const maxDue = 128

// maxForget bounds the games of a session that a block forgets.
const maxForget = 16

// tick lets time pass for sessions that are due.
func (k *Keeper) tick(ctx context.Context) error {
	due, err := module.First(ctx, k.due, collections.NewPrefixUntilPairRange[int64, []byte](module.Now(ctx)), maxDue)
	if err != nil {
		return err
	}
	for _, at := range due {
		id := canon.Hash(at.K2())
		why := k.passes(ctx, id)
		if why == nil {
			continue
		}
		if err := errors.Join(k.due.Remove(ctx, at), k.late.Add(ctx, id[:]), stuck(ctx, id, why)); err != nil {
			return err
		}
	}
	return nil
}

// retry tries sessions again for which time could not pass.
func (k *Keeper) retry(ctx context.Context) error {
	again, err := k.late.Due(ctx)
	if err != nil {
		return err
	}
	for _, t := range again {
		id := canon.Hash(t.Key)
		if why := k.passes(ctx, id); why != nil {
			err = errors.Join(err, k.late.Again(ctx, t), stuck(ctx, id, why))
		} else {
			err = errors.Join(err, k.late.Done(ctx, t))
		}
	}
	return err
}

// passes lets time pass for one session, or says why it cannot: then nothing has happened.
func (k *Keeper) passes(ctx context.Context, id canon.Hash) error {
	return module.Attempt(ctx, func(ctx context.Context) error {
		s, err := k.Get(ctx, id)
		if err != nil {
			return err
		}
		if s.Phase == session.Ended {
			if n, err := k.games.Forget(ctx, id, maxForget); err != nil || n == maxForget { // others go with the next block
				return err
			}
			return k.forget(ctx, &s)
		}
		return k.happen(ctx, id, session.Tick{})
	})
}

func stuck(ctx context.Context, id canon.Hash, why error) error {
	return module.Emit(ctx, &sessionsv1.EventStuck{Session: id.String(), Reason: why.Error()})
}
