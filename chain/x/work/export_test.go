package work

import (
	"context"

	"cosmossdk.io/collections"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Queries answers queries of the keeper.
func (k *Keeper) Queries() workv1.QueryServer { return queryServer{k} }

// Apply applies an event to a lease, as messages do.
func (k *Keeper) Apply(ctx context.Context, order canon.Hash, e job.Event) error {
	_, err := k.apply(ctx, order, e)
	return err
}

// MaxPruned is what the end of a block prunes at most.
const MaxPruned = maxPruned

// Entries counts what the store has of leases, with their indexes.
func (k *Keeper) Entries(ctx context.Context) (n int) {
	s := &k.leases
	for _, count := range []func() int{
		counter(ctx, s.terms.Map), counter(ctx, s.mutable), counter(ctx, s.merges), counter(ctx, s.units), counter(ctx, s.checkpoints),
		counter(ctx, s.past), counter(ctx, s.inputs), counter(ctx, s.slashPaid), counter(ctx, s.phases), counter(ctx, s.parties),
		counter(ctx, s.changes), counter(ctx, s.retired), counter(ctx, k.record.settlements),
	} {
		n += count()
	}
	return n
}

func counter[K, V any](ctx context.Context, m query.Collection[K, V]) func() int {
	return func() (n int) {
		all, err := m.IterateRaw(ctx, nil, nil, collections.OrderAscending)
		if err != nil {
			panic(err)
		}
		defer all.Close()
		for ; all.Valid(); all.Next() {
			n++
		}
		return n
	}
}

// Enter stores a lease.
func (k *Keeper) Enter(ctx context.Context, order canon.Hash, l *job.Lease) error {
	return k.leases.enter(ctx, order, l)
}

// ReadSkeleton reads what every message about a lease reads of it.
func (k *Keeper) ReadSkeleton(ctx context.Context, order canon.Hash) error {
	_, err := k.load(ctx, order, skeleton)
	return err
}
