package client_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/client"
)

// fragile stands between a client and its node. It breaks connections on which a
// transaction comes, before or after handing it on.
type fragile struct {
	http.Handler
	lose, silence atomic.Int32 // how many are still lost, or go unanswered
}

func (f *fragile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte("broadcast_tx_sync")) {
		if f.lose.Add(-1) >= 0 {
			panic(http.ErrAbortHandler)
		}
		if f.silence.Add(-1) >= 0 {
			f.Handler.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
	}
	f.Handler.ServeHTTP(w, r)
}

// Whatever a broken connection hides, a transaction is executed once, and its
// sender learns of it.
func TestSendOverBrokenConnections(t *testing.T) {
	n := nettest.Start(t, nettest.Options{})
	consumer := n.Consumer.Home
	node, err := url.Parse(consumer.Settings.Node.RPC)
	if err != nil {
		t.Fatal(err)
	}
	f := &fragile{Handler: httputil.NewSingleHostReverseProxy(node)}
	proxy := httptest.NewServer(f)
	defer proxy.Close()
	c, err := client.Dial(t.Context(), client.Endpoints{RPC: proxy.URL, GRPC: consumer.Settings.Node.GRPC})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	account := c.Account(secp256k1.GenPrivKey())
	fund := &banktypes.MsgSend{FromAddress: consumer.Address, ToAddress: account.Address, Amount: coin.Of(100)}
	if _, err := n.Consumer.Kit.Account.Send(t.Context(), fund); err != nil {
		t.Fatal(err)
	}
	to := n.Member("provider-0").Home.Address
	balance := func() uint64 {
		r, err := banktypes.NewQueryClient(c.Conn).Balance(t.Context(), &banktypes.QueryBalanceRequest{Address: to, Denom: coin.Denom})
		if err != nil {
			t.Fatal(err)
		}
		return r.Balance.Amount.Uint64()
	}
	before := balance()
	for i, x := range []struct{ lose, silence int32 }{{0, 0}, {1, 0}, {0, 1}, {2, 2}, {0, 4}} {
		f.lose.Store(x.lose)
		f.silence.Store(x.silence)
		m := &banktypes.MsgSend{FromAddress: account.Address, ToAddress: to, Amount: coin.Of(7)}
		if _, err := account.Send(t.Context(), m); err != nil {
			t.Fatalf("%+v: %v", x, err)
		}
		if got, want := balance(), before+7*uint64(i+1); got != want {
			t.Fatalf("%+v: %d utally have arrived, want %d", x, got-before, want-before)
		}
	}
	f.lose.Store(100)
	m := &banktypes.MsgSend{FromAddress: account.Address, ToAddress: to, Amount: coin.Of(7)}
	if _, err := account.Send(t.Context(), m); err == nil {
		t.Fatal("a node that cannot be reached took a transaction")
	}
	f.lose.Store(0)
	if _, err := account.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}
