package app

import (
	"fmt"

	abci "github.com/cometbft/cometbft/abci/types"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// load is what the block under way holds of moves.
type load struct {
	full   bool   // by their limits of gas, or their bytes, they leave no room for another
	enough uint64 // gas that they must use for the block to be crowded
	used   uint64 // gas that those that were taken have used so far
}

// preBlock counts the time of a block before anything happens in it.
func (a *App) preBlock(ctx sdk.Context, req *abci.RequestFinalizeBlock) (*sdk.ResponsePreBlock, error) {
	space := roomOf(ctx)
	taken, _ := a.measure(space, req.Txs)
	a.load = load{full: space.full(taken), enough: space.gas / shares}
	if err := a.countTime(ctx); err != nil {
		return nil, err
	}
	return a.PreBlocker(ctx, req)
}

// postHandler counts the gas that moves use. A block is crowded if they leave no room
// for another and have used the quarter that is theirs alone: limits of gas, and
// what fails, crowd nobody out for long, so they do not count.
func (a *App) postHandler(ctx sdk.Context, tx sdk.Tx, simulate, success bool) (sdk.Context, error) {
	l := &a.load
	if simulate || !success || ctx.ExecMode() != sdk.ExecModeFinalize || !l.full || l.used >= l.enough || !isMove(tx) {
		return ctx, nil
	}
	if l.used += ctx.GasMeter().GasConsumed(); l.used < l.enough {
		return ctx, nil
	}
	return ctx, a.Block.Crowd(ctx.WithGasMeter(storetypes.NewInfiniteGasMeter()))
}

// countTime tells x/block what passed since the last block. The time of that block is
// read from its commit: writing it into the state would change the app hash of an idle
// chain, which would then make blocks for ever.
func (a *App) countTime(ctx sdk.Context) error {
	if a.LastBlockHeight() == 0 {
		return nil
	}
	last, err := CommitInfo(a.CommitMultiStore(), a.LastBlockHeight())
	if err != nil {
		return fmt.Errorf("time of block %d: %w", a.LastBlockHeight(), err)
	}
	if last.Timestamp.IsZero() { // a wrong pause would change the app hash
		return fmt.Errorf("the state of block %d is there without its time: restore it again", a.LastBlockHeight())
	}
	return a.Block.Pass(ctx, ctx.BlockTime().UnixMilli()-last.Timestamp.UnixMilli())
}
