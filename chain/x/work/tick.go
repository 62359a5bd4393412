package work

import (
	"context"
	"errors"

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
// An entry for which time cannot pass leaves that index (module.Retries).
const (
	maxDue  = 256
	maxRead = 512

	partiesRead = 4 // participants of a lease that ends: their entries in the index take as long as a unit
)

// clock lets time pass: it is the keeper with what draws follow from.
type clock struct {
	*Keeper
	beacon Beacon
}

// Waits reports whether something is due in this block: then draws may follow from its value.
func (k clock) Waits(ctx context.Context) (bool, error) {
	due, err := k.leases.due(ctx)
	return len(due) > 0, err
}

// EndBlock lets time pass, and prunes what has been settled for long enough.
func (k clock) EndBlock(ctx context.Context) error {
	if err := k.passTime(ctx); err != nil {
		return err
	}
	return k.prune(ctx)
}

// passTime lets time pass for the leases and units that it has something to do with.
func (k clock) passTime(ctx context.Context) error {
	due, err := k.leases.due(ctx)
	if err != nil || len(due) == 0 {
		return err
	}
	seed, fresh, err := k.beacon.Value(ctx)
	if err != nil || !fresh { // what is due makes every block have a value: see Waits
		return err
	}
	read := 0
	for _, d := range due {
		if read > maxRead {
			return nil
		}
		err := module.Attempt(ctx, func(ctx context.Context) error {
			e := job.Tick{Seed: seed, Units: d.units, Affords: k.affords(ctx)}
			before, err := k.before(ctx, d.order, e)
			if d.retry != nil && errors.Is(err, ErrPruned) {
				return k.leases.late.Done(ctx, *d.retry)
			}
			if err != nil {
				return err
			}
			read += len(before.part.Units) + len(before.part.Bare)
			if d.retry != nil {
				if err := k.leases.resume(ctx, d, before); err != nil || before.Phase == job.Settled {
					return err
				}
			}
			after, err := k.applyLoaded(ctx, d.order, before, e)
			if err == nil && after.Phase == job.Settled {
				read += len(after.Participants()) / partiesRead
			}
			return err
		})
		if err == nil {
			continue
		}
		if err := k.leases.postpone(ctx, d); err != nil {
			return err
		}
		if err := module.Emit(ctx, &workv1.EventStuck{Order: d.order.String(), Reason: err.Error()}); err != nil {
			return err
		}
	}
	return nil
}

// moment is a lease whose time, or that of some of its units, has come.
type moment struct {
	order canon.Hash
	units []int
	keys  []wake              // for which it is
	retry *module.Retry[part] // in place of these, if its time could not pass before
}

func (d *moment) add(which uint32) {
	if which != itself {
		d.units = append(d.units, int(which))
	}
}

// due returns the leases whose time has come, the longest due first, then those that sweep their
// units, then those that are tried again.
func (s *leaseStore) due(ctx context.Context) (out []moment, err error) {
	at, left := map[canon.Hash]int{}, maxDue
	take := func(w wake) (bool, error) {
		id, err := canon.HashOf(w.K2())
		if err != nil {
			return true, err
		}
		i, seen := at[id]
		if !seen {
			i = len(out)
			at[id], out = i, append(out, moment{order: id})
		}
		out[i].keys = append(out[i].keys, w)
		out[i].add(w.K3())
		left--
		return left == 0, nil
	}
	const timed = 1 // those at time 0 sweep their units, which no clock waits for
	clocks := new(collections.Range[wake]).StartInclusive(collections.TriplePrefix[int64, []byte, uint32](timed)).
		EndExclusive(collections.TriplePrefix[int64, []byte, uint32](module.Now(ctx) + 1))
	if err := s.wakes.Walk(ctx, clocks, take); err != nil {
		return nil, err
	}
	if left > 0 {
		if err := s.wakes.Walk(ctx, collections.NewPrefixedTripleRange[int64, []byte, uint32](0), take); err != nil {
			return nil, err
		}
	}
	late, err := s.late.Due(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range late {
		id, err := canon.HashOf(r.Key.K1())
		if err != nil {
			return nil, err
		}
		d := moment{order: id, retry: &r}
		d.add(r.Key.K2())
		out = append(out, d)
	}
	return out, nil
}

// postpone takes what is due for a lease whose time cannot pass out of the way of others.
func (s *leaseStore) postpone(ctx context.Context, d moment) error {
	if d.retry != nil {
		return s.late.Again(ctx, *d.retry)
	}
	for _, w := range d.keys {
		if err := errors.Join(s.wakes.Remove(ctx, w), s.late.Add(ctx, collections.Join(w.K2(), w.K3()))); err != nil {
			return err
		}
	}
	return nil
}

// resume puts what was postponed back where index expects it.
func (s *leaseStore) resume(ctx context.Context, d moment, l *loaded) error {
	if err := s.late.Done(ctx, *d.retry); err != nil {
		return err
	}
	for _, w := range entriesOf(d.order, &l.Lease, d.units).wakes {
		if err := s.wakes.Set(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// affords returns a look-up of who can put up a bond. Who cannot be looked up has nothing, and is
// not drawn.
func (k *Keeper) affords(ctx context.Context) func(string, uint64) bool {
	return func(text string, bond uint64) bool {
		account, err := address.Parse(text)
		if err != nil {
			return false
		}
		can, err := k.stakes.Affords(ctx, account, bond)
		return err == nil && can
	}
}
