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

// What came of a sale was told as JSON, and amounts without their unit.
func TestAttributesForPeople(t *testing.T) {
	lots := `"lots":[{"tier":"B","units":"70","ask":"0"},{"tier":"C","units":"5000","ask":"800"}]`
	for _, x := range []struct{ key, value, want string }{
		{"account", `"tally1abc"`, "tally1abc"}, {"status", `"STATUS_PROPOSED"`, "proposed"}, {"option", `"OPTION_YES"`, "yes"}, {"proposal", `"7"`, "7"}, {"x", "", ""}, {"x", `"a_b"`, "a_b"},
		{"deposit", `"1500000"`, "1.5 TALLY"}, {"price", `"800"`, "800 utally"}, {"weight", `"2500000"`, "2.5 ut"}, {"until", `"1000"`, "1970-01-01T00:00:01Z"}, {"amount", "much", "much"},
		{"capacity", `{"provider":"tally1p",` + lots + `,"ends":"2000"}`, "of tally1p: 70 GFLOP of tier B for a sealed price, 5000 GFLOP of tier C for 800 utally each or more, until 1970-01-01T00:00:02Z"},
		{"capacity", `{"provider":"tally1p","lots":[]}`, "of tally1p: nothing"}, {"capacity", "{", "{"},
	} {
		if got := said(x.key, x.value); got != x.want {
			t.Errorf("%s %s: %q, want %q", x.key, x.value, got, x.want)
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
