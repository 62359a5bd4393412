package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
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
	course, err := canon.Encoded(after.Course())
	if err != nil {
		return fmt.Errorf("store lease %s: %w", id, err)
	}
	if !bytes.Equal(course, before.course) {
		if err := k.course.Set(ctx, id[:], course); err != nil {
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
	return nil
}

// write stores one part unless it is what was read, or blank as before.
func write(ctx context.Context, m collections.Map[part, []byte], id canon.Hash, i uint32, raw map[uint32][]byte, blank []byte, v canon.Coded) error {
	b, err := canon.Encoded(v)
	if err != nil {
		return fmt.Errorf("store part %d of lease %s: %w", i, id, err)
	}
	old := raw[i]
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
	terms, err := canon.Encoded(l.Terms())
	if err != nil {
		return fmt.Errorf("store lease %s: %w", id, err)
	}
	if err := k.terms.Set(ctx, id[:], terms); err != nil {
		return err
	}
	if err := k.save(ctx, id, &loaded{hi: len(l.Merges)}, l); err != nil {
		return err
	}
	return k.index(ctx, id, nil, l)
}

// index keeps the indexes when a lease changes; before is nil for a new one.
func (k *Keeper) index(ctx context.Context, id canon.Hash, before, after *job.Lease) error {
	was, is := entriesOf(id, before), entriesOf(id, after)
	err := errors.Join(move(ctx, k.wakes, was.wakes, is.wakes), move(ctx, k.leads, was.leads, is.leads), move(ctx, k.phases, was.phases, is.phases))
	if before == nil || before.Phase != after.Phase {
		err = errors.Join(err, move(ctx, k.parties, partiesOf(id, before), partiesOf(id, after)))
	}
	return err
}

// entries are a lease's keys in the indexes that change often.
type entries struct {
	wakes  []collections.Pair[int64, []byte]
	leads  []collections.Pair[string, []byte]
	phases []collections.Pair[int32, []byte]
}

func entriesOf(id canon.Hash, l *job.Lease) (e entries) {
	if l == nil {
		return e
	}
	e.phases = append(e.phases, collections.Join(int32(l.Phase), id[:]))
	if at := l.Wake(); at != job.Never {
		e.wakes = append(e.wakes, collections.Join(at, id[:]))
	}
	if lead := l.Lead(); lead != "" && l.Phase != job.Settled {
		e.leads = append(e.leads, collections.Join(lead, id[:]))
	}
	return e
}

// partiesOf returns a lease's keys in the index of participants.
func partiesOf(id canon.Hash, l *job.Lease) (out []collections.Triple[string, bool, []byte]) {
	if l == nil {
		return nil
	}
	for _, account := range participants(l) {
		out = append(out, collections.Join3(account, l.Phase == job.Settled, id[:]))
	}
	return out
}

// move replaces keys of an index by others; those that stay cost nothing.
func move[K any](ctx context.Context, index collections.KeySet[K], from, to []K) error {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	for _, key := range from {
		if err := index.Remove(ctx, key); err != nil {
			return err
		}
	}
	for _, key := range to {
		if err := index.Set(ctx, key); err != nil {
			return err
		}
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
