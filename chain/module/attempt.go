package module

import (
	"context"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Attempt runs f on a branch of the state, and keeps what it wrote and emitted
// only if it succeeds. At the end of a block, where an error would stop the
// chain, one order's trouble thus stays its own: a panic too, which is the same on
// every node.
func Attempt(ctx context.Context, f func(context.Context) error) (err error) {
	branch, keep := sdk.UnwrapSDKContext(ctx).CacheContext()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if err := f(branch); err != nil {
		return err
	}
	keep()
	return nil
}
