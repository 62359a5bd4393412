package chaintest

import (
	"testing"
	"time"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
)

func TestBlocksAndBalances(t *testing.T) {
	c := New(t, Fund(1_000, "alice", "bob"))
	alice, bob := Named("alice"), Named("bob")
	start := c.Now()
	c.Deliver(alice, banktypes.NewMsgSend(alice.Address, bob.Address, coin.Of(300)))
	c.Refuse(sdkerrors.ErrInsufficientFunds, alice, banktypes.NewMsgSend(alice.Address, bob.Address, coin.Of(701)))
	c.Queue(bob, banktypes.NewMsgSend(bob.Address, alice.Address, coin.Of(1)))
	c.Queue(bob, banktypes.NewMsgSend(bob.Address, alice.Address, coin.Of(2)))
	c.NextBlock(time.Minute)
	if a, b := c.Balance(alice.Address), c.Balance(bob.Address); a != 703 || b != 1297 {
		t.Fatalf("alice %d, bob %d", a, b)
	}
	if d := c.Now().Sub(start); d != time.Minute+2*time.Second {
		t.Fatalf("time moved by %s", d)
	}
}
