package work

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// maxPruned is how many entries the end of a block takes out of the state. What names a lease goes
// at once, however many its parties are, so that nobody meets a part of one.
const maxPruned = 512

// place is what the chain keeps of a settled order for good: where its settlement stands in the
// record, and since when its lease is gone, in ms of protocol time; 0 while it is there.
type place struct {
	Index  uint64
	Pruned int64
}

// Code walks the fields.
func (p *place) Code(w *canon.Codec) {
	w.U64(&p.Index)
	w.I64(&p.Pruned)
}

// gone tells why there is no lease of an order.
func (k *Keeper) gone(ctx context.Context, order canon.Hash) error {
	p, err := k.record.place(ctx, order)
	switch {
	case errors.Is(err, collections.ErrNotFound):
		return errorsmod.Wrap(ErrNoLease, order.String())
	case err != nil:
		return err
	}
	return errorsmod.Wrapf(ErrPruned, "order %s was settled, and its lease was pruned at %s: a proof bundle proves it still",
		order, wire.Moment(p.Pruned))
}

// settlement returns that of an order, and its encoding, or tells why there is none.
func (k *Keeper) settlement(ctx context.Context, order canon.Hash) (job.Settlement, []byte, error) {
	s, b, err := k.record.settlement(ctx, order)
	if !errors.Is(err, ErrNoLease) {
		return s, b, err
	}
	if gone := k.gone(ctx, order); errors.Is(gone, ErrPruned) {
		err = gone
	}
	return s, nil, err
}

// load reads the parts of a lease that touched names, or tells why there is none.
func (k *Keeper) load(ctx context.Context, order canon.Hash, touched func(*job.Lease) job.Part) (*loaded, error) {
	l, err := k.leases.load(ctx, order, touched)
	if errors.Is(err, ErrNoLease) {
		return nil, k.gone(ctx, order)
	}
	return l, err
}

// Retention returns for how long ended orders stay in the state, in ms of protocol time; 0: for good.
func (k *Keeper) Retention(ctx context.Context) (int64, error) {
	p, err := k.rules.Get(ctx)
	return p.RetentionMs, err
}

// Retired reports whether an order was settled once. Nobody may have its id again: what was signed
// for its lease would hold for another.
func (k *Keeper) Retired(ctx context.Context, order canon.Hash) (bool, error) {
	return k.record.places.Has(ctx, order[:])
}

// retire notes that a lease is settled, from which its retention counts, and that it changed
// at a height.
func (s *leaseStore) retire(ctx context.Context, order canon.Hash, height uint64) error {
	return s.retired.Set(ctx, collections.Join(module.Now(ctx), order[:]), height)
}

// prune takes leases out of the state that were settled long enough ago, the oldest first.
func (k *Keeper) prune(ctx context.Context) error {
	keep, err := k.Retention(ctx)
	if err != nil || keep == 0 {
		return err
	}
	due := collections.NewPrefixUntilPairRange[int64, []byte](module.Now(ctx) - keep)
	for left := maxPruned; left > 0; left-- {
		next, changed, err := k.leases.firstRetired(ctx, due)
		if err != nil || next == nil {
			return err
		}
		order, err := canon.HashOf(next.K2())
		if err != nil {
			return err
		}
		err = module.Attempt(ctx, func(ctx context.Context) error {
			n, err := k.pruneOne(ctx, order, changed, left)
			if err == nil && n < left {
				err = k.leases.retired.Remove(ctx, *next)
			}
			left -= n
			return err
		})
		if err == nil {
			continue
		}
		if err := errors.Join(k.leases.retired.Remove(ctx, *next), k.leases.retire(ctx, order, changed)); err != nil { // it holds up nobody
			return err
		}
		if err := module.Emit(ctx, &workv1.EventStuck{Order: order.String(), Reason: "prune: " + err.Error()}); err != nil {
			return err
		}
	}
	return nil
}

// firstRetired returns the lease in a range that was settled first, and the height at which it was;
// nil, if there is none.
func (s *leaseStore) firstRetired(ctx context.Context, within collections.Ranger[collections.Pair[int64, []byte]]) (next *collections.Pair[int64, []byte], height uint64, err error) {
	err = s.retired.Walk(ctx, within, func(at collections.Pair[int64, []byte], h uint64) (bool, error) {
		next, height = &at, h
		return true, nil
	})
	return next, height, err
}

// pruneOne takes about so many entries of a settled lease out of the state, and returns how many: fewer,
// if nothing is left.
//
// Its disputes go first. Then, in one block, all by which the lease is found. What is left of it after
// that nobody can read.
func (k *Keeper) pruneOne(ctx context.Context, order canon.Hash, changed uint64, most int) (n int, err error) {
	switch has, err := k.leases.terms.Has(ctx, order[:]); {
	case err != nil:
		return 0, err
	case has:
		if n, err = k.games.Forget(ctx, order, most); err != nil || n >= most {
			return n, err
		}
		named, err := k.unname(ctx, order, changed)
		if n += named; err != nil {
			return n, err
		}
	}
	more, err := k.leases.sweep(ctx, order, most-n)
	return n + more, err
}

// unname removes what names a settled lease, and returns how many entries these were.
func (k *Keeper) unname(ctx context.Context, order canon.Hash, changed uint64) (n int, err error) {
	l, err := k.leases.load(ctx, order, skeleton)
	if err != nil {
		return 0, err
	}
	if l.Phase != job.Settled {
		return 0, fmt.Errorf("lease %s is %v", order, l.Phase)
	}
	p, err := k.record.place(ctx, order)
	if err != nil {
		return 0, err
	}
	p.Pruned = module.Now(ctx)
	if err := errors.Join(k.record.putPlace(ctx, order, p), k.record.settlements.Remove(ctx, order[:]), k.escrow.Forget(ctx, order)); err != nil {
		return 0, err
	}
	n, err = k.leases.unname(ctx, order, changed, &l.Lease)
	if err != nil {
		return n, err
	}
	return n, module.Emit(ctx, &workv1.EventPruned{Order: order.String()})
}

// unname removes a settled lease from all indexes, and what is read of it first.
func (s *leaseStore) unname(ctx context.Context, id canon.Hash, changed uint64, l *job.Lease) (int, error) {
	e, parties := entriesOf(id, l, nil), partiesOf(id, l)
	err := errors.Join(
		move(ctx, s.wakes, e.wakes, nil), move(ctx, s.phases, e.phases, nil), move(ctx, s.parties, parties, nil),
		s.forgetChange(ctx, id, changed), s.terms.Forget(ctx, id), s.mutable.Remove(ctx, id[:]),
	)
	const others = 10 // beside parties, in this module and x/market
	return len(parties) + others, err
}

// sweep removes up to so many parts of a lease that nothing names any more, and returns how many.
func (s *leaseStore) sweep(ctx context.Context, id canon.Hash, most int) (n int, err error) {
	parts := collections.NewPrefixedPairRange[[]byte, uint32](id[:])
	for _, m := range []collections.Map[part, []byte]{s.units, s.checkpoints, s.merges, s.inputs} {
		if err := removeSome(ctx, m, parts, most, &n); err != nil {
			return n, err
		}
	}
	if err := removeSome(ctx, s.past, collections.NewPrefixedPairRange[[]byte, uint64](id[:]), most, &n); err != nil {
		return n, err
	}
	return n, removeSome(ctx, s.slashPaid, collections.NewPrefixedPairRange[[]byte, string](id[:]), most, &n)
}

// removeSome removes the first entries in a range while n, which counts them, is less than most.
func removeSome[K, V any](ctx context.Context, m collections.Map[K, V], within collections.Ranger[K], most int, n *int) error {
	if *n >= most {
		return nil
	}
	var gone []K
	err := m.Walk(ctx, within, func(at K, _ V) (bool, error) {
		gone = append(gone, at)
		return *n+len(gone) >= most, nil
	})
	if err != nil {
		return err
	}
	for _, at := range gone {
		if err := m.Remove(ctx, at); err != nil {
			return err
		}
	}
	*n += len(gone)
	return nil
}
