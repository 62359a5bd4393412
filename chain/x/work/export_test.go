package work

import (
	"context"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// Happen lets an event happen to a lease, as messages do.
func (k *Keeper) Happen(ctx context.Context, order canon.Hash, e job.Event) error {
	_, err := k.apply(ctx, order, e)
	return err
}
