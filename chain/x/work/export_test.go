package work

import (
	"context"

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
