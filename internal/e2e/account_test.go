package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/provider"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
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
	fund := &banktypes.MsgSend{FromAddress: consumer.Address, ToAddress: account.Address, Amount: coin.Of(client.FirstFees)}
	if _, err := n.Consumer.Env.Account.Send(t.Context(), fund); err != nil {
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

// What would fail is refused with the module's own error, and costs nothing; who
// has no money sends what another grants it.
func TestRefusalsAreFreeAndSponsorsPay(t *testing.T) {
	n := nettest.Start(t, nettest.Options{})
	consumer, lead := n.Consumer.Env, n.Member("validator-0").Env
	balance := func(account string) uint64 {
		r, err := banktypes.NewQueryClient(consumer.Chain.Conn).Balance(t.Context(), &banktypes.QueryBalanceRequest{Address: account, Denom: coin.Denom})
		if err != nil {
			t.Fatal(err)
		}
		return r.Balance.Amount.Uint64()
	}
	before := balance(consumer.Account.Address)
	ready := &workv1.MsgReady{Provider: consumer.Account.Address, Order: strings.Repeat("0", 64)}
	if _, err := consumer.Account.Send(t.Context(), ready); !errors.Is(err, provider.ErrNotRegistered) {
		t.Fatalf("a message of nobody: %v", err)
	}
	if after := balance(consumer.Account.Address); after != before {
		t.Fatalf("a refusal cost %d utally", before-after)
	}
	newcomer := consumer.Chain.Account(secp256k1.GenPrivKey())
	one := &banktypes.MsgSend{FromAddress: consumer.Account.Address, ToAddress: newcomer.Address, Amount: coin.Of(1)}
	if _, err := consumer.Account.Send(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	back := &banktypes.MsgSend{FromAddress: newcomer.Address, ToAddress: consumer.Account.Address, Amount: coin.Of(1)}
	if _, err := newcomer.Send(t.Context(), back); !errors.Is(err, sdkerrors.ErrInsufficientFunds) {
		t.Fatal(err)
	}
	for range 2 { // the second grant is one too many, and no error
		if _, err := lead.Account.Sponsor(t.Context(), newcomer.Address, []string{sdk.MsgTypeURL(back)}); err != nil {
			t.Fatal(err)
		}
	}
	// The newcomer's node may be a block behind that of the sponsor.
	if _, err := consumer.Chain.Next(t.Context(), lead.Chain.Head().Height); err != nil {
		t.Fatal(err)
	}
	if _, err := newcomer.Send(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if left := balance(newcomer.Address); left != 0 {
		t.Fatalf("the newcomer has %d utally", left)
	}
}

// Anybody may grant anything to anybody. Grants that pay for nothing, of accounts that
// come first, once kept a newcomer from using the one that pays.
func TestStrangersGrantsShadowNobody(t *testing.T) {
	n := nettest.Start(t, nettest.Options{})
	consumer, lead := n.Consumer.Env, n.Member("validator-0").Env
	newcomer := consumer.Chain.Account(secp256k1.GenPrivKey())
	back := &banktypes.MsgSend{FromAddress: newcomer.Address, ToAddress: consumer.Account.Address, Amount: coin.Of(1)}
	if _, err := consumer.Account.Send(t.Context(), &banktypes.MsgSend{FromAddress: consumer.Account.Address, ToAddress: newcomer.Address, Amount: coin.Of(1)}); err != nil {
		t.Fatal(err)
	}
	parse := func(text string) sdk.AccAddress {
		a, err := address.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	other, err := feegrant.NewAllowedMsgAllowance(&feegrant.BasicAllowance{}, []string{sdk.MsgTypeURL(&workv1.MsgReady{})})
	if err != nil {
		t.Fatal(err)
	}
	for _, worthless := range []feegrant.FeeAllowanceI{&feegrant.BasicAllowance{SpendLimit: coin.Of(1)}, other, &feegrant.BasicAllowance{}} {
		var stranger *client.Account
		for { // whose grants the chain lists first
			stranger = consumer.Chain.Account(secp256k1.GenPrivKey())
			if bytes.Compare(parse(stranger.Address), parse(lead.Account.Address)) < 0 {
				break
			}
		}
		fees := &banktypes.MsgSend{FromAddress: consumer.Account.Address, ToAddress: stranger.Address, Amount: coin.Of(20_000)}
		m, err := feegrant.NewMsgGrantAllowance(worthless, parse(stranger.Address), parse(newcomer.Address))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := consumer.Account.Send(t.Context(), fees); err != nil {
			t.Fatal(err)
		}
		stranger.GasFee = 40_000 // little is left of it
		if _, err := stranger.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if granted, err := lead.Account.Sponsor(t.Context(), newcomer.Address, []string{sdk.MsgTypeURL(back)}); err != nil || !granted {
		t.Fatal(granted, err)
	}
	if _, err := consumer.Chain.Next(t.Context(), lead.Chain.Head().Height); err != nil {
		t.Fatal(err)
	}
	newcomer.GasFee = 200_000 // beyond what the strangers have left
	if _, err := newcomer.Send(t.Context(), back); err != nil {
		t.Fatal(err)
	}
}
