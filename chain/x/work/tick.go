package work

import (
	"context"
	"errors"
	"time"

	"cosmossdk.io/collections"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// What the end of a block does at most: it takes so many entries from the index of
// times, oldest first, and after the entries of a lease no more once so many units
// were read. What is left is due in the next block.
//
// An entry for which time cannot pass leaves that index, so that it holds up no other,
// and is tried again after a delay that doubles each time. A block takes so many of these.
const (
	maxDue   = 256
	maxRead  = 512
	maxRetry = 16

	firstDelay = int64(time.Minute / time.Millisecond)
	lastDelay  = int64(24 * time.Hour / time.Millisecond)
)

// EndBlock lets time pass for the leases and units that it has something to do with.
func (k *Keeper) EndBlock(ctx context.Context) error {
	due, err := k.due(ctx)
	if err != nil || len(due) == 0 {
		return err
	}
	seed, err := k.power.Seed(ctx)
	if err != nil {
		return err
	}
	read := 0
	for _, d := range due {
		if read > maxRead {
			return nil
		}
		err := module.Attempt(ctx, func(ctx context.Context) error {
			e := job.Tick{Seed: seed, Units: d.units, Free: k.free(ctx)}
			before, err := k.before(ctx, d.order, e)
			if err != nil {
				return err
			}
			read += len(before.part.Units)
			if d.delay > 0 {
				if err := k.resume(ctx, d, before); err != nil || before.Phase == job.Settled {
					return err
				}
			}
			_, err = k.happen(ctx, d.order, before, e)
			return err
		})
		if err == nil {
			continue
		}
		if err := k.postpone(ctx, d); err != nil {
			return err
		}
		if err := emit(ctx, &workv1.EventStuck{Order: d.order.String(), Reason: err.Error()}); err != nil {
			return err
		}
	}
	return nil
}

// moment is a lease whose time, or that of some of its units, has come.
type moment struct {
	order canon.Hash
	units []int
	keys  []wake // for which it is
	delay int64  // ms after which it was tried again, if its time could not pass
}

func (d *moment) add(w wake) {
	d.keys = append(d.keys, w)
	if w.K3() != itself {
		d.units = append(d.units, int(w.K3()))
	}
}

// due returns the leases whose time has come, the longest due first, then those that are
// tried again.
func (k *Keeper) due(ctx context.Context) (out []moment, err error) {
	at, left := map[canon.Hash]int{}, maxDue
	until := collections.NewPrefixUntilTripleRange[int64, []byte, uint32](module.Now(ctx))
	err = k.wakes.Walk(ctx, until, func(w wake) (bool, error) {
		id, err := canon.HashOf(w.K2())
		if err != nil {
			return true, err
		}
		i, seen := at[id]
		if !seen {
			i = len(out)
			at[id], out = i, append(out, moment{order: id})
		}
		out[i].add(w)
		left--
		return left == 0, nil
	})
	if err != nil {
		return nil, err
	}
	left = maxRetry
	err = k.late.Walk(ctx, until, func(w wake, delay int64) (bool, error) {
		id, err := canon.HashOf(w.K2())
		if err != nil {
			return true, err
		}
		d := moment{order: id, delay: delay}
		d.add(w)
		out = append(out, d)
		left--
		return left == 0, nil
	})
	return out, err
}

// postpone takes what is due for a lease whose time cannot pass out of the way of others.
func (k *Keeper) postpone(ctx context.Context, d moment) error {
	delay := min(max(2*d.delay, firstDelay), lastDelay)
	for _, w := range d.keys {
		err := errors.Join(k.wakes.Remove(ctx, w), k.late.Remove(ctx, w),
			k.late.Set(ctx, collections.Join3(module.Now(ctx)+delay, w.K2(), w.K3()), delay))
		if err != nil {
			return err
		}
	}
	return nil
}

// resume puts what was postponed back where index expects it.
func (k *Keeper) resume(ctx context.Context, d moment, l *loaded) error {
	for _, w := range d.keys {
		if err := k.late.Remove(ctx, w); err != nil {
			return err
		}
	}
	for _, w := range entriesOf(d.order, &l.Lease, d.units).wakes {
		if err := k.wakes.Set(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// free returns a look-up of what accounts can put up as bonds. Who cannot be looked up
// has nothing, and is not drawn.
func (k *Keeper) free(ctx context.Context) func(string) uint64 {
	return func(text string) uint64 {
		account, err := address.Parse(text)
		if err != nil {
			return 0
		}
		means, err := k.stakes.Means(ctx, account)
		if err != nil {
			return 0
		}
		return means
	}
}
