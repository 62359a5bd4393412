package module

import (
	"context"
	"encoding/binary"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// BlockStore is the key of x/block's store. It is here, not in x/block, because every
// module needs the time that is kept there.
var BlockStore = storetypes.NewKVStoreKey("block")

// lostKey is where that store holds the time that does not count.
var lostKey = []byte{0}

// Now returns protocol time in milliseconds: the block's, less what pauses and
// crowded blocks took from everybody. Windows, deadlines and clocks count it.
func Now(ctx context.Context) int64 {
	return sdk.UnwrapSDKContext(ctx).BlockTime().UnixMilli() - Lost(ctx)
}

// Lost returns by how many milliseconds protocol time is behind block time.
func Lost(ctx context.Context) int64 {
	b := lostStore(ctx).Get(lostKey)
	if len(b) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// SetLost writes what Lost returns. x/block alone calls it, before anything else
// happens in a block.
func SetLost(ctx context.Context, ms int64) {
	lostStore(ctx).Set(lostKey, binary.BigEndian.AppendUint64(nil, uint64(ms)))
}

// lostStore charges no gas, so that reading the time changes no message's cost.
func lostStore(ctx context.Context) storetypes.KVStore {
	return sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter()).KVStore(BlockStore)
}
