package cli

import (
	"context"
	"errors"
	"strings"

	abci "github.com/cometbft/cometbft/abci/types"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/spf13/cobra"

	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/flags"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
)

// receipts is a node whose refusal of a transaction is an error. The SDK's
// commands print it as a receipt with a code, and succeed.
type receipts struct{ client.CometRPC }

// refuseAloud lets a command of tally tx fail if the node refuses its transaction.
func refuseAloud(cmd *cobra.Command) error {
	c := client.GetClientContextFromCmd(cmd)
	if c.Client == nil {
		return nil
	}
	if f := cmd.Flags().Lookup(flags.FlagNode); f != nil {
		f.Changed = false // c has that node; the command would make another client of it
	}
	return client.SetCmdClientContext(cmd, c.WithClient(receipts{c.Client}))
}

// BroadcastTxSync hands tx to the node, which tries it.
func (r receipts) BroadcastTxSync(ctx context.Context, tx cmttypes.Tx) (*coretypes.ResultBroadcastTx, error) {
	res, err := r.CometRPC.BroadcastTxSync(ctx, tx)
	if err == nil && res.Code != abci.CodeTypeOK {
		err = refusal(res)
	}
	if err != nil {
		// The SDK makes receipts without a text of errors that have these words.
		text := err.Error()
		why, counted := strings.CutSuffix(text, ": "+sdkerrors.ErrMempoolIsFull.Error())
		switch {
		case counted:
			return nil, errors.New(why)
		case strings.Contains(text, "mempool is full"):
			return nil, errors.New("the node has no room for another transaction: send it again later")
		case strings.Contains(strings.ToLower(text), "tx too large"):
			return nil, errors.New("the transaction has more bytes than the node takes: divide it")
		}
	}
	return res, err
}

// refusal is the module's own error, whose text ends the log as a rule.
func refusal(r *coretypes.ResultBroadcastTx) error {
	err := errorsmod.ABCIError(r.Codespace, r.Code, r.Log)
	if known := errors.Unwrap(err); known != nil {
		return errorsmod.Wrap(known, strings.TrimSuffix(r.Log, ": "+known.Error()))
	}
	return err
}
