package chaintest

import (
	"slices"
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
)

// modules are those whose packages have a TestMain that calls Main.
var modules = []string{"block", "dispute", "drilling", "market", "policy", "provider", "sessions", "work"}

// The SDK's messages are listed, ours take effect once unless they are, and nothing is listed that
// is no message.
func TestEveryMessageIsKnownToRepeat(t *testing.T) {
	types, err := Messages()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range types {
		_, listed := repeats[name]
		ours := slices.ContainsFunc(modules, func(m string) bool { return strings.HasPrefix(name, "/tally."+m+".") })
		if !listed && !ours {
			t.Errorf("what becomes of %s if it is sent twice?", name)
		}
	}
	for name := range repeats {
		if !slices.Contains(types, name) {
			t.Errorf("%s is no message", name)
		}
	}
}

// The check itself must bite.
func TestPaymentTakesEffectAgain(t *testing.T) {
	c := New(t, Fund(1_000, "alice", "bob"))
	pay := banktypes.NewMsgSend(Named("alice").Address, Named("bob").Address, coin.Of(300))
	if !c.takesEffect([]sdk.Msg{pay}) {
		t.Error("a payment changes nothing")
	}
	if c.takesEffect([]sdk.Msg{pay, banktypes.NewMsgSend(Named("bob").Address, Named("alice").Address, coin.Of(2_000))}) {
		t.Error("a payment takes effect though another in its transaction is refused")
	}
}
