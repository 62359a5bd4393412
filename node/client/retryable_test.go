package client

import (
	"errors"
	"testing"

	coretypes "github.com/cometbft/cometbft/rpc/core/types"

	abci "github.com/cometbft/cometbft/abci/types"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
)

// Sixty-four people who opened disputes in one block used more gas than their trials;
// an honest party's transaction among them must be sent again, and no other failure.
func TestWhatIsSentAgain(t *testing.T) {
	for _, c := range []struct {
		code  uint32
		space string
		again bool
	}{
		{sdkerrors.ErrOutOfGas.ABCICode(), sdkerrors.RootCodespace, true},
		{sdkerrors.ErrWrongSequence.ABCICode(), sdkerrors.RootCodespace, true},
		{sdkerrors.ErrMempoolIsFull.ABCICode(), sdkerrors.RootCodespace, true},
		{sdkerrors.ErrInsufficientFunds.ABCICode(), sdkerrors.RootCodespace, false},
		{sdkerrors.ErrOutOfGas.ABCICode(), "dispute", false},
	} {
		_, err := resultOf(&coretypes.ResultTx{TxResult: abci.ExecTxResult{Code: c.code, Codespace: c.space, Log: "in its block"}}, 0)
		if err == nil || retryable(err) != c.again {
			t.Errorf("%s %d: sent again is %v", c.space, c.code, retryable(err))
		}
	}
	if retryable(nil) || retryable(errors.New("something else")) {
		t.Error("what was taken, or is unknown, is sent again")
	}
}
