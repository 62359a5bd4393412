package client_test

import (
	"context"
	"strings"
	"testing"
	"time"

	rpchttp "github.com/cometbft/cometbft/rpc/client/http"
	cmttypes "github.com/cometbft/cometbft/types"

	errorsmod "cosmossdk.io/errors"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
)

// A node that executes each transaction, and says that it has no room for it, had one
// message executed 272 times in half a minute.
func TestMessagesAreSignedAnewWithFewSequences(t *testing.T) {
	c := newChain(t, 20*time.Millisecond)
	direct, err := rpchttp.New("http://"+c.config.Listen.RPC, "/websocket")
	if err != nil {
		t.Fatal(err)
	}
	lie := func(tx cmttypes.Tx) *errorsmod.Error {
		if _, err := direct.BroadcastTxCommit(context.Background(), tx); err != nil {
			t.Error(err)
		}
		return sdkerrors.ErrMempoolIsFull
	}
	c.refuse.Store(&lie)
	_, err = c.Account(alice.Key).Send(t.Context(), pay(1000))
	if err == nil || !strings.Contains(err.Error(), "look whether it was executed") {
		t.Errorf("a message that a node executes and denies: %v", err)
	}
	if got := c.received(); got < 1000 || got > 16*1000 {
		t.Errorf("bob has %d utally of payments of 1000, 16 at most", got)
	}
}
