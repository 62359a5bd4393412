package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/runner"
)

// newHome makes a home beside a network and opens it.
func newHome(t *testing.T, n *devnet.Network, s home.Settings) (*home.Home, *role.Env) {
	t.Helper()
	s.Chain, s.Node = n.Config().Chain, n.Validators[0].Home.Settings.Node
	dir := filepath.Join(t.TempDir(), "home")
	if _, err := home.Create(dir, s); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func open(t *testing.T, dir string) (*home.Home, *role.Env) {
	t.Helper()
	h, err := home.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	env, err := h.Env(t.Context(), home.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h, env
}

func pay(t *testing.T, n *devnet.Network, to string, amount uint64) {
	t.Helper()
	m := &banktypes.MsgSend{FromAddress: n.Consumer.Home.Address, ToAddress: to, Amount: coin.Of(amount)}
	if _, err := n.Consumer.Env.Account.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func TestRegister(t *testing.T) {
	c := devnet.Config{Dir: t.TempDir(), Validators: 1, Providers: 1, Challengers: 1, CommitTimeout: 20 * time.Millisecond}
	n, err := devnet.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	if err := n.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	least := n.Config().Registry.MinProviderStake
	needed := least + client.FirstFees

	t.Run("waits for money, then for nothing", func(t *testing.T) {
		h, env := newHome(t, n, home.Settings{Role: home.Provider, Provider: &home.ProviderSettings{UnitPrice: 7}})
		if p, err := runner.Registered(t.Context(), env); p != nil || err != nil {
			t.Fatalf("%v, %v", p, err)
		}
		told := make(chan uint64)
		done := make(chan error)
		go func() {
			err := runner.AwaitFunds(t.Context(), env, needed, func(have uint64) { told <- have })
			if err == nil {
				err = runner.Register(t.Context(), h, env)
			}
			done <- err
		}()
		for _, want := range []uint64{0, 5} {
			if have := <-told; have != want {
				t.Fatalf("it has %d utally, want %d", have, want)
			}
			pay(t, n, h.Address, max(5, (needed-5)*(want/5)))
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		p, err := runner.Registered(t.Context(), env)
		if err != nil || p == nil || p.Stake != least || p.Listing.UnitPrice != 7 || p.Listing.Validator != n.Validators[0].Home.Address {
			t.Fatalf("%v, %v", p, err)
		}

		h.Settings.Provider.UnitPrice, h.Settings.Announce = 8, []string{"/ip4/192.0.2.1/tcp/4001"}
		height := env.Chain.Head().Height
		for range 2 { // the second call has nothing to do
			if err := runner.Register(t.Context(), h, env); err != nil {
				t.Fatal(err)
			}
		}
		p, err = runner.Registered(t.Context(), env)
		if err != nil || p.Listing.UnitPrice != 8 || p.Listing.Addrs[0] != "/ip4/192.0.2.1/tcp/4001" || env.Chain.Head().Height <= height {
			t.Fatalf("%v, %v", p, err)
		}

		// The same account with another peer key is somebody else.
		if err := errors.Join(h.Close(), os.Remove(filepath.Join(h.Dir, "peer.pem")), os.Remove(filepath.Join(h.Dir, "tally.yaml"))); err != nil {
			t.Fatal(err)
		}
		if _, err := home.Create(h.Dir, h.Settings); err != nil {
			t.Fatal(err)
		}
		h, env = open(t, h.Dir)
		if err := runner.Run(t.Context(), h, env); err == nil || !strings.Contains(err.Error(), "another peer") {
			t.Fatal(err)
		}
	})

	t.Run("refuses too little stake", func(t *testing.T) {
		h, env := newHome(t, n, home.Settings{Role: home.Challenger, Stake: 5})
		if err := runner.Run(t.Context(), h, env); err == nil || !strings.Contains(err.Error(), "below the least") {
			t.Fatal(err)
		}
	})

	t.Run("ends with its context", func(t *testing.T) {
		h, env := newHome(t, n, home.Settings{Role: home.Challenger})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := runner.Run(ctx, h, env); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("another chain", func(t *testing.T) {
		s := home.Settings{Role: home.Consumer, Chain: "elsewhere", Node: n.Validators[0].Home.Settings.Node}
		dir := t.TempDir()
		if _, err := home.Create(dir, s); err != nil {
			t.Fatal(err)
		}
		h, err := home.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if _, err := h.Env(t.Context(), home.Options{}); err == nil || !strings.Contains(err.Error(), `chain "tally-devnet"`) {
			t.Fatal(err)
		}
		if _, err := h.StartNode(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "only a validator") {
			t.Fatal(err)
		}
	})
}
