package reserve

import (
	"context"
	"errors"

	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
)

// Replace sets rules as a vote would, without the bounds of votes.
func Replace(ctx context.Context, k *Keeper, p reservev1.Params) error {
	_, err := k.enter(ctx)
	authority, e := k.rules.Authority(ctx)
	return errors.Join(err, e, CheckParams(p), k.rules.Init(ctx, p, authority))
}
