package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// loaded is a lease and what of it was read: course, and the units of rounds lo
// to hi and the merges from before lo to hi. The rest is an outline.
type loaded struct {
	job.Lease
	lo, hi int
	course []byte
	units  map[uint32][]byte
	merges map[uint32][]byte
}

// everything reaches all rounds of a lease.
func everything(l *job.Lease) (lo, hi int) { return 0, len(l.Merges) }

// load reads the parts of a lease that reach tells from its outline.
func (k *Keeper) load(ctx context.Context, id canon.Hash, reach func(*job.Lease) (lo, hi int)) (*loaded, error) {
	l := &loaded{}
	terms, err := k.terms.Get(ctx, id[:])
	if errors.Is(err, collections.ErrNotFound) {
		return nil, errorsmod.Wrap(ErrNoLease, id.String())
	}
	if err != nil {
		return nil, err
	}
	if l.course, err = k.course.Get(ctx, id[:]); err != nil {
		return nil, err
	}
	if err := errors.Join(canon.Unmarshal(terms, l.Terms()), canon.Unmarshal(l.course, l.Course())); err != nil {
		return nil, fmt.Errorf("read lease %s: %w", id, err)
	}
	l.Outline()
	l.lo, l.hi = reach(&l.Lease)
	w := l.Order.Problem.Shards
	l.units, err = read(ctx, k.units, id, l.lo*w, l.hi*w, func(i uint32, b []byte) error {
		l.Units[i] = job.Unit{}
		return canon.Unmarshal(b, &l.Units[i])
	})
	if err != nil {
		return nil, fmt.Errorf("read units of lease %s: %w", id, err)
	}
	l.merges, err = read(ctx, k.merges, id, max(l.lo-1, 0), l.hi, func(r uint32, b []byte) error {
		return canon.Unmarshal(b, &l.Merges[r])
	})
	if err != nil {
		return nil, fmt.Errorf("read merges of lease %s: %w", id, err)
	}
	return l, nil
}

// read hands the parts of an order from lo to hi to f, and returns their bytes.
func read(ctx context.Context, m collections.Map[part, []byte], id canon.Hash, lo, hi int, f func(uint32, []byte) error) (map[uint32][]byte, error) {
	raw := map[uint32][]byte{}
	within := collections.NewPrefixedPairRange[[]byte, uint32](id[:]).StartInclusive(uint32(lo)).EndExclusive(uint32(hi))
	err := m.Walk(ctx, within, func(at part, b []byte) (bool, error) {
		raw[at.K2()] = b
		return false, f(at.K2(), b)
	})
	return raw, err
}

// What an absent unit or merge stands for.
var (
	blankUnit  = canon.Marshal(&job.Unit{Status: job.Open})
	blankMerge = canon.Marshal(&job.Merge{})
)

// save stores what has changed between before and after.
func (k *Keeper) save(ctx context.Context, id canon.Hash, before *loaded, after *job.Lease) error {
	if b := canon.Marshal(after.Course()); !bytes.Equal(b, before.course) {
		if err := k.course.Set(ctx, id[:], b); err != nil {
			return err
		}
	}
	w := after.Order.Problem.Shards
	for i := before.lo * w; i < before.hi*w; i++ {
		if err := write(ctx, k.units, id, uint32(i), before.units, blankUnit, &after.Units[i]); err != nil {
			return err
		}
	}
	for r := before.lo; r < before.hi; r++ {
		if err := write(ctx, k.merges, id, uint32(r), before.merges, blankMerge, &after.Merges[r]); err != nil {
			return err
		}
	}
	return k.index(ctx, id, &before.Lease, after)
}

// write stores one part unless it is what was read, or blank as before.
func write(ctx context.Context, m collections.Map[part, []byte], id canon.Hash, i uint32, raw map[uint32][]byte, blank []byte, v canon.Coded) error {
	b, old := canon.Marshal(v), raw[i]
	if old == nil {
		old = blank
	}
	if bytes.Equal(b, old) {
		return nil
	}
	return m.Set(ctx, collections.Join(id[:], i), b)
}

// enter stores a lease that is not in the store, with its indexes.
func (k *Keeper) enter(ctx context.Context, id canon.Hash, l *job.Lease) error {
	if err := k.terms.Set(ctx, id[:], canon.Marshal(l.Terms())); err != nil {
		return err
	}
	nothing := &loaded{hi: len(l.Merges)}
	nothing.Phase = job.Settled // so that every index is new
	return k.save(ctx, id, nothing, l)
}

// index keeps the indexes when a lease changes.
func (k *Keeper) index(ctx context.Context, id canon.Hash, before, after *job.Lease) error {
	was, is := entriesOf(before), entriesOf(after)
	if was.wake != is.wake {
		if err := move(ctx, k.wakes, was.wake != job.Never, is.wake != job.Never,
			collections.Join(was.wake, id[:]), collections.Join(is.wake, id[:])); err != nil {
			return err
		}
	}
	if was.lead != is.lead {
		if err := move(ctx, k.leads, was.lead != "", is.lead != "",
			collections.Join(was.lead, id[:]), collections.Join(is.lead, id[:])); err != nil {
			return err
		}
	}
	fresh := len(before.Leads) == 0
	if fresh || before.Phase != after.Phase {
		if err := move(ctx, k.phases, !fresh, true,
			collections.Join(int32(before.Phase), id[:]), collections.Join(int32(after.Phase), id[:])); err != nil {
			return err
		}
	}
	if settled := after.Phase == job.Settled; fresh || settled != (before.Phase == job.Settled) {
		for _, account := range participants(after) {
			if err := move(ctx, k.parties, !fresh, true,
				collections.Join3(account, !settled, id[:]), collections.Join3(account, settled, id[:])); err != nil {
				return err
			}
		}
	}
	return nil
}

// entries are what the indexes hold of a lease.
type entries struct {
	wake int64
	lead string
}

func entriesOf(l *job.Lease) entries {
	if l.Phase == job.Settled {
		return entries{wake: job.Never}
	}
	return entries{l.Wake(), l.Lead()}
}

// move replaces one key of a set by another.
func move[K any](ctx context.Context, set collections.KeySet[K], leave, enter bool, from, to K) error {
	if leave {
		if err := set.Remove(ctx, from); err != nil {
			return err
		}
	}
	if enter {
		return set.Set(ctx, to)
	}
	return nil
}

// participants returns the accounts that take part in a lease: its consumer,
// its providers, and the validators that lead, may lead, audit or keep.
func participants(l *job.Lease) []string {
	out := []string{l.Order.Consumer}
	for _, d := range l.Leads {
		out = append(out, d.Account)
	}
	for _, p := range l.Providers {
		out = append(out, p.Account)
	}
	for _, pool := range [][]job.Party{l.Auditors, l.Keepers} {
		for _, p := range pool {
			out = append(out, p.Account)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
