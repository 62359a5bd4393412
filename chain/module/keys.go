package module

import (
	"context"

	"cosmossdk.io/collections"
)

// First returns the first keys of a set within a range (nil: all of it), at most so many.
func First[K any](ctx context.Context, set collections.KeySet[K], within collections.Ranger[K], most int) (out []K, err error) {
	if most < 1 {
		return nil, nil
	}
	err = set.Walk(ctx, within, func(k K) (bool, error) {
		out = append(out, k)
		return len(out) == most, nil
	})
	return out, err
}
