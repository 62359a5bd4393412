package app

import (
	"fmt"

	abci "github.com/cometbft/cometbft/abci/types"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// preBlock counts the time of a block before anything happens in it.
func (a *App) preBlock(ctx sdk.Context, req *abci.RequestFinalizeBlock) (*sdk.ResponsePreBlock, error) {
	space := roomOf(ctx)
	taken, _ := a.measure(space, req.Txs)
	if err := a.countTime(ctx, space.crowded(taken)); err != nil {
		return nil, err
	}
	return a.PreBlocker(ctx, req)
}

// countTime tells x/block what passed since the last block. The time of that block is
// read from its commit: writing it into the state would change the app hash of an idle
// chain, which would then make blocks for ever.
func (a *App) countTime(ctx sdk.Context, crowded bool) error {
	if a.LastBlockHeight() == 0 {
		return nil
	}
	commits, ok := a.CommitMultiStore().(interface {
		GetCommitInfo(height int64) (*storetypes.CommitInfo, error)
	})
	if !ok {
		return fmt.Errorf("the store %T does not know the time of its commits", a.CommitMultiStore())
	}
	last, err := commits.GetCommitInfo(a.LastBlockHeight())
	if err != nil {
		return fmt.Errorf("time of block %d: %w", a.LastBlockHeight(), err)
	}
	return a.Block.Pass(ctx, ctx.BlockTime().UnixMilli()-last.Timestamp.UnixMilli(), crowded)
}
