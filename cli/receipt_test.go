package cli

import (
	"context"
	"errors"
	"testing"

	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/flags"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
)

// answers is a node that says what it is told to.
type answers struct {
	client.CometRPC
	receipt coretypes.ResultBroadcastTx
	err     error
}

func (a answers) BroadcastTxSync(context.Context, cmttypes.Tx) (*coretypes.ResultBroadcastTx, error) {
	return &a.receipt, a.err
}

func TestAttributesForPeople(t *testing.T) {
	for value, want := range map[string]string{`"tally1abc"`: "tally1abc", `"STATUS_PROPOSED"`: "proposed", `"OPTION_YES"`: "yes", `"7"`: "7", "": "", `"a_b"`: "a_b"} {
		if got := said(value); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// What a node refuses fails, and says why, however the SDK would have told it.
func TestReceipts(t *testing.T) {
	refused := func(of interface {
		Codespace() string
		ABCICode() uint32
	}, log string) answers {
		return answers{receipt: coretypes.ResultBroadcastTx{Codespace: of.Codespace(), Code: of.ABCICode(), Log: log}}
	}
	for want, node := range map[string]answers{
		"": {},
		"1utally is smaller than 5utally: insufficient funds":               refused(sdkerrors.ErrInsufficientFunds, "1utally is smaller than 5utally: insufficient funds"),
		"8 transactions wait already: send more after the next block":       refused(sdkerrors.ErrMempoolIsFull, "8 transactions wait already: send more after the next block: mempool is full"),
		"the node has no room for another transaction: send it again later": {err: errors.New("mempool is full: number of txs 5000 (max: 5000)")},
		"the transaction has more bytes than the node takes: divide it":     {err: errors.New("Tx too large. Max size is 5")},
		"no such host": {err: errors.New("no such host")},
	} {
		r := &receipts{CometRPC: node}
		c := client.Context{BroadcastMode: flags.BroadcastSync}.WithClient(r)
		_, err := c.BroadcastTx([]byte("tx"))
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
		if (r.taken != nil) != (want == "") {
			t.Errorf("%q: remembered as taken: %v", want, r.taken)
		}
	}
}
