package module

import (
	"context"

	"github.com/cosmos/gogoproto/proto"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Emit adds an event to those of the transaction, or of the block.
func Emit(ctx context.Context, event proto.Message) error {
	return sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(event)
}

// Charge takes gas for what is computed, beside that for reading and writing.
func Charge(ctx context.Context, gas uint64, what string) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(gas, what)
}
