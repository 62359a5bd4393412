package app

import (
	"slices"
	"time"

	errorsmod "cosmossdk.io/errors"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"github.com/cosmos/cosmos-sdk/x/auth/ante"
	"github.com/cosmos/cosmos-sdk/x/feegrant"

	"github.com/tally-network/tally/chain/coin"
)

// Limits on a transaction.
const (
	// MaxTx bounds it in bytes: twice what the largest move of a dispute needs.
	MaxTx = 128 << 10
	// MaxGas bounds what it may use: a tenth of a block.
	MaxGas = maxBlockGas / 10
	// MaxMessages bounds how many share it.
	MaxMessages = 16
	// maxGrant bounds an allowance for fees: a page of a thousand must not fill a node.
	maxGrant = 4 << 10

	// What enters a mempool can still be in so many blocks, and so long. What ends
	// sooner has a place there for nothing: it is in no block, and pays nobody.
	leastBlocks = 10
	leastTime   = time.Minute
)

// anteHandler returns what every transaction must pass before its messages are
// executed, in every mode: on its way into a mempool and into a block, and in the
// block itself. A transaction that fails after it has paid its fee.
func (a *App) anteHandler() sdk.AnteHandler {
	return sdk.ChainAnteDecorators(
		proofs{a},
		ante.NewSetUpContextDecorator(),
		limits{},
		admit{a},
		ante.NewExtensionOptionsDecorator(nil),
		ante.NewValidateBasicDecorator(),
		ante.NewTxTimeoutHeightDecorator(),
		ante.NewValidateMemoDecorator(a.Accounts),
		ante.NewConsumeGasForTxSizeDecorator(a.Accounts),
		ante.NewDeductFeeDecorator(a.Accounts, a.Bank, a.Grants, a.checkFee),
		ante.NewSetPubKeyDecorator(a.Accounts),
		ante.NewValidateSigCountDecorator(a.Accounts),
		ante.NewSigGasConsumeDecorator(a.Accounts, ante.DefaultSigVerificationGasConsumer),
		ante.NewSigVerificationDecorator(a.Accounts, a.Tx.SignModeHandler()),
		ante.NewIncrementSequenceDecorator(a.Accounts),
		execute{a},
	)
}

// checkFee returns the fee of a transaction, if it is at least the price of its
// gas. The SDK's own minimum gas prices hold on the way into a mempool alone, so a
// proposer could fill its block with its own transactions for nothing.
func (a *App) checkFee(ctx sdk.Context, tx sdk.Tx) (sdk.Coins, int64, error) {
	t, ok := tx.(sdk.FeeTx)
	if !ok {
		return nil, 0, errorsmod.Wrap(sdkerrors.ErrTxDecode, "a transaction without fee")
	}
	p, err := a.Block.Params(ctx)
	if err != nil {
		return nil, 0, err
	}
	least, fee := coin.Fee(p.GasPrice, t.GetGas()), t.GetFee()
	if len(fee) != 1 || fee[0].Denom != coin.Denom || !fee[0].Amount.GTE(coin.Of(least)[0].Amount) {
		return nil, 0, errorsmod.Wrapf(sdkerrors.ErrInsufficientFee, "%d gas cost at least %d utally, at %d for a million; the transaction pays %q", t.GetGas(), least, p.GasPrice, fee)
	}
	return fee, 0, nil
}

// limits refuses what is larger than a transaction may be.
type limits struct{}

// AnteHandle implements sdk.AnteDecorator.
func (limits) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	t, ok := tx.(sdk.FeeTx)
	switch {
	case !ok:
		return ctx, errorsmod.Wrap(sdkerrors.ErrTxDecode, "a transaction without gas")
	case len(ctx.TxBytes()) > MaxTx:
		return ctx, errorsmod.Wrapf(sdkerrors.ErrTxTooLarge, "%d bytes, at most %d", len(ctx.TxBytes()), MaxTx)
	case len(tx.GetMsgs()) > MaxMessages:
		return ctx, errorsmod.Wrapf(sdkerrors.ErrInvalidRequest, "%d messages, at most %d: send several transactions", len(tx.GetMsgs()), MaxMessages)
	case slices.ContainsFunc(tx.GetMsgs(), largeGrant):
		return ctx, errorsmod.Wrapf(sdkerrors.ErrInvalidRequest, "an allowance for fees has more than %d bytes: allow fewer kinds of messages", maxGrant)
	case !simulate && t.GetGas() > MaxGas:
		return ctx, errorsmod.Wrapf(sdkerrors.ErrInvalidGasLimit, "%d gas, at most %d", t.GetGas(), MaxGas)
	case ctx.ExecMode() == sdk.ExecModeCheck && !simulate && fleeting(ctx, tx):
		return ctx, errorsmod.Wrapf(sdkerrors.ErrInvalidRequest, "it ends too soon after block %d: let it end %d blocks and %s later, or never", ctx.BlockHeight(), leastBlocks, leastTime)
	}
	if simulate { // the SDK would let it use as much as it likes
		ctx = ctx.WithGasMeter(storetypes.NewGasMeter(MaxGas))
	}
	return next(ctx, tx, simulate)
}

func largeGrant(m sdk.Msg) bool {
	g, ok := m.(*feegrant.MsgGrantAllowance)
	return ok && g.Size() > maxGrant
}

// fleeting says whether a transaction soon can be in no block any more.
func fleeting(ctx sdk.Context, tx sdk.Tx) bool {
	t, ok := tx.(ante.TxWithTimeoutHeight)
	if !ok {
		return false
	}
	height, at := t.GetTimeoutHeight(), t.GetTimeoutTimeStamp()
	return height > 0 && height < uint64(ctx.BlockHeight())+leastBlocks ||
		!at.IsZero() && at.Unix() != 0 && at.Before(ctx.BlockTime().Add(leastTime))
}
