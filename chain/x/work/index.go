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
	if err := s.terms.Enter(ctx, id, l); err != nil {
		return fmt.Errorf("store lease %s: %w", id, err)
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
	if err := errors.Join(s.countAsked(ctx, before, after), s.countLed(ctx, before, after)); err != nil {
		return err
	}
	return errors.Join(move(ctx, s.wakes, was.wakes, is.wakes), move(ctx, s.phases, was.phases, is.phases),
		s.indexParties(ctx, id, before, after), s.noteChange(ctx, id, after.Phase == job.Settled))
}

// indexParties enters who has a part in a lease and had none before. Nobody ever leaves. When the lease
// is settled all entries say so.
func (s *leaseStore) indexParties(ctx context.Context, id canon.Hash, before, after *job.Lease) error {
	settled := before != nil && before.Phase != job.Settled && after.Phase == job.Settled
	if before != nil && !settled && len(before.Reserve) == len(after.Reserve) && len(before.Leads) == len(after.Leads) {
		return nil
	}
	was, is := partiesOf(id, before), partiesOf(id, after)
	if !settled && len(was) == len(is) {
		return nil
	}
	return move(ctx, s.parties, was, is)
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

// countLed counts the leases that accounts lead and that are not settled, and adds up what they were priced at.
func (s *leaseStore) countLed(ctx context.Context, before, after *job.Lease) error {
	was, is, price := ledBy(before), ledBy(after), int(after.Quote.Price)
	if was == is {
		return nil
	}
	return errors.Join(add(ctx, s.led, was, -1), add(ctx, s.led, is, 1), add(ctx, s.worth, was, -price), add(ctx, s.worth, is, price))
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
	for _, account := range l.Participants() {
		out = append(out, collections.Join3(account, l.Phase == job.Settled, id[:]))
	}
	return out
}

// move replaces keys of an index by others; those that stay cost nothing.
func move[K any](ctx context.Context, index collections.KeySet[K], from, to []K) error {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	was, err := encoded(index, from)
	if err != nil {
		return err
	}
	is, err := encoded(index, to)
	if err != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(was)) {
		if _, stays := is[at]; !stays {
			err = errors.Join(err, index.Remove(ctx, was[at]))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(is)) {
		if _, there := was[at]; !there {
			err = errors.Join(err, index.Set(ctx, is[at]))
		}
	}
	return err
}

// encoded returns keys of an index by their bytes.
func encoded[K any](index collections.KeySet[K], keys []K) (map[string]K, error) {
	out := make(map[string]K, len(keys))
	for _, k := range keys {
		b, err := collections.EncodeKeyWithPrefix(nil, index.KeyCodec(), k)
		if err != nil {
			return nil, err
		}
		out[string(b)] = k
	}
	return out, nil
}
