package module

import (
	"context"
	"fmt"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Attempt runs f on a branch of the state, and keeps what it wrote and emitted
// only if it succeeds. At the end of a block, where an error would stop the
// chain, one order's trouble thus stays its own: a panic too, which is the same on
// every node.
func Attempt(ctx context.Context, f func(context.Context) error) (err error) {
	branch, keep := sdk.UnwrapSDKContext(ctx).CacheContext()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case storetypes.ErrorOutOfGas:
			err = fmt.Errorf("out of gas: %s", r.Descriptor)
		default:
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if err := f(branch); err != nil {
		return err
	}
	keep()
	return nil
}
