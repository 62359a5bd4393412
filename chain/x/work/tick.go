package work

import (
	"context"

	"cosmossdk.io/collections"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// EndBlock lets time pass for the leases that it has something to do with.
func (k *Keeper) EndBlock(ctx context.Context) error {
	var due []canon.Hash
	err := k.wakes.Walk(ctx, collections.NewPrefixUntilPairRange[int64, []byte](now(ctx)),
		func(at collections.Pair[int64, []byte]) (bool, error) {
			id, err := canon.HashOf(at.K2())
			due = append(due, id)
			return false, err
		})
	if err != nil {
		return err
	}
	if len(due) == 0 {
		return nil
	}
	seed, err := k.power.Seed(ctx)
	if err != nil {
		return err
	}
	for _, id := range due {
		err := module.Attempt(ctx, func(ctx context.Context) error {
			_, err := k.apply(ctx, id, job.Tick{Seed: seed})
			return err
		})
		if err == nil {
			continue
		}
		if err := emit(ctx, &workv1.EventStuck{Order: id.String(), Reason: err.Error()}); err != nil {
			return err
		}
	}
	return nil
}
