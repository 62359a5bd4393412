package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"cosmossdk.io/collections"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// enter stores a lease that is not in the store, with its indexes.
func (s *leaseStore) enter(ctx context.Context, id canon.Hash, l *job.Lease) error {
	fixed, err := canon.Encoded(l.Fixed())
	if err != nil {
		return fmt.Errorf("store lease %s: %w", id, err)
	}
	if err := s.fixed.Set(ctx, id[:], fixed); err != nil {
		return err
	}
	whole := l.Everything()
	if err := s.save(ctx, id, &loaded{part: whole}, l); err != nil {
		return err
	}
	return s.index(ctx, id, nil, l, whole.Units)
}

// itself stands for a lease beside its units in the index of times.
const itself = math.MaxUint32

// index keeps the indexes when a lease and the given units change; before is nil for a
// new one.
func (s *leaseStore) index(ctx context.Context, id canon.Hash, before, after *job.Lease, units []int) error {
	was, is := entriesOf(id, before, units), entriesOf(id, after, units)
	if err := errors.Join(s.countAsked(ctx, before, after), s.countLed(ctx, ledBy(before), ledBy(after))); err != nil {
		return err
	}
	err := errors.Join(move(ctx, s.wakes, was.wakes, is.wakes), move(ctx, s.phases, was.phases, is.phases))
	if before == nil || before.Phase != after.Phase {
		err = errors.Join(err, move(ctx, s.parties, partiesOf(id, before), partiesOf(id, after)))
	}
	return errors.Join(err, s.noteChange(ctx, id, after.Phase == job.Settled))
}

// countAsked counts the open questions to custodians over all leases.
func (s *leaseStore) countAsked(ctx context.Context, before, after *job.Lease) error {
	var was []job.Asked
	if before != nil {
		was = before.Asked
	}
	change := map[string]int{}
	for _, a := range was {
		change[a.Custodian] -= a.Open
	}
	for _, a := range after.Asked {
		change[a.Custodian] += a.Open
	}
	for _, custodian := range slices.Sorted(maps.Keys(change)) {
		if change[custodian] == 0 {
			continue
		}
		if err := add(ctx, s.asked, custodian, change[custodian]); err != nil {
			return err
		}
	}
	return nil
}

// countLed counts the leases that accounts lead and that are not settled.
func (s *leaseStore) countLed(ctx context.Context, was, is string) error {
	if was == is {
		return nil
	}
	return errors.Join(add(ctx, s.led, was, -1), add(ctx, s.led, is, 1))
}

// ledBy returns who leads a lease; nobody, if it is settled.
func ledBy(l *job.Lease) string {
	if l == nil || l.Phase == job.Settled {
		return ""
	}
	return l.Lead()
}

// add changes a count of an account; nobody's is not kept.
func add(ctx context.Context, counts collections.Map[string, uint64], account string, change int) error {
	if account == "" {
		return nil
	}
	n, err := countOf(ctx, counts, account)
	if err != nil {
		return err
	}
	if n += change; n > 0 {
		return counts.Set(ctx, account, uint64(n))
	}
	return counts.Remove(ctx, account)
}

// countOf returns a count of an account.
func countOf(ctx context.Context, counts collections.Map[string, uint64], account string) (int, error) {
	n, err := counts.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return int(n), err
}

// entries are a lease's keys in the indexes that change often.
type entries struct {
	wakes  []wake
	phases []collections.Pair[int32, []byte]
}

func entriesOf(id canon.Hash, l *job.Lease, units []int) (e entries) {
	if l == nil {
		return e
	}
	e.phases = append(e.phases, collections.Join(int32(l.Phase), id[:]))
	add := func(at int64, which uint32) {
		if at != job.Never {
			e.wakes = append(e.wakes, collections.Join3(at, id[:], which))
		}
	}
	add(l.WakeSelf(), itself)
	for _, i := range units {
		add(l.WakeUnit(i), uint32(i))
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
	for _, p := range l.Auditors { // the custodians are among them
		out = append(out, p.Account)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
