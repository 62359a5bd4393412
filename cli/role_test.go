package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tally-network/tally/node/home"
)

// Flags that did not work were written to tally.yaml all the same, and --endpoints had no
// effect on a home that was there.
func TestFlagsAreKeptOnceTheyHaveWorked(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "mine"), filepath.Join(t.TempDir(), "endpoints.json")
	prices := &home.ProviderSettings{UnitPrice: 5}
	if _, err := home.Create(dir, home.Settings{Role: home.Provider, Chain: "c", Node: home.Node{RPC: "http://127.0.0.1:1", GRPC: "127.0.0.1:2"}, Provider: prices}); err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	give := func(chain string, args ...string) (*member, error) {
		text := fmt.Sprintf(`{"chain": %q, "nodes": [{"rpc": "http://127.0.0.1:3", "grpc": "127.0.0.1:4"}]}`, chain)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := &member{e: &env{home: dir}, settings: home.Settings{Role: home.Provider, Provider: &home.ProviderSettings{}}}
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		m.flags(f)
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		return m, m.change(f, &h.Settings)
	}
	if _, err := give("another", "--endpoints", file); err == nil {
		t.Error("a node of another chain was taken")
	}
	m, err := give("c", "--endpoints", file, "--threads", "3")
	if err != nil || h.Settings.Node.RPC != "http://127.0.0.1:3" || h.Settings.Threads != 3 {
		t.Fatalf("%v: %+v", err, h.Settings)
	}
	if s, err := home.LoadSettings(dir); err != nil || s.Threads != 0 || s.Node.RPC != "http://127.0.0.1:1" {
		t.Errorf("kept before they worked: %v, %+v", err, s)
	}
	if err := m.keep(h); err != nil {
		t.Fatal(err)
	}
	if s, err := home.LoadSettings(dir); err != nil || s.Threads != 3 || s.Node.RPC != "http://127.0.0.1:3" {
		t.Errorf("not kept: %v, %+v", err, s)
	}
}

// --peers had no effect on a home that was there.
func TestPeersChangeAnOldHome(t *testing.T) {
	h := &home.Home{Settings: home.Settings{Role: home.Validator, Validator: &home.ValidatorSettings{Peers: []string{"wrong"}}}}
	m := &member{e: &env{}, settings: home.Settings{Role: home.Validator, Validator: &home.ValidatorSettings{Peers: []string{"right"}}}}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringSliceVar(&m.settings.Validator.Peers, "peers", nil, "")
	if err := f.Parse([]string{"--peers", "right"}); err != nil {
		t.Fatal(err)
	}
	_ = m.change(f, &h.Settings) // other settings are missing
	if got := h.Settings.Validator.Peers; len(got) != 1 || got[0] != "right" || !m.changed {
		t.Errorf("%v", got)
	}
}

// Flags of roles had no effect on a home that was there: --peers, --sell, --signer. Each changes it, or is of one run.
func TestFlagsChangeAnOldHome(t *testing.T) {
	ofOneRun := []string{"endpoints", "nice", "genesis", "sync-from", "trusted-block", "help"}
	e, known := &env{}, (&member{}).changes(&home.Settings{})
	for _, verb := range []*cobra.Command{e.validator(), e.provide(), e.watch()} {
		verb.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if known[f.Name] == nil && !slices.Contains(ofOneRun, f.Name) {
				t.Errorf("tally %s --%s changes nothing in a home that is there", verb.Name(), f.Name)
			}
		})
	}
}

// --sell had no effect on a home that was there, and said that it had.
func TestLotsChangeAnOldHome(t *testing.T) {
	for text, want := range map[string]bool{"C:4000@850": true, "C:5000": false, "C:0@1": false} {
		h := &home.Home{Settings: home.Settings{Role: home.Provider, Provider: &home.ProviderSettings{Sell: []string{"C:5000@800"}}}}
		m := &member{e: &env{}, settings: home.Settings{Role: home.Provider, Provider: &home.ProviderSettings{}}}
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.StringSliceVar(&m.settings.Provider.Sell, "sell", nil, "")
		if err := f.Parse([]string{"--sell", text}); err != nil {
			t.Fatal(err)
		}
		err := m.change(f, &h.Settings) // other settings are missing
		if got := h.Settings.Provider.Sell; len(got) != 1 || got[0] != text || strings.Contains(fmt.Sprint(err), "provider.sell") == want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// A role whose node is elsewhere announced 127.0.0.1, and nothing said so.
func TestHiddenPeers(t *testing.T) {
	const here, there = "http://127.0.0.1:26657", "http://203.0.113.7:26657"
	local, open := []string{"/ip4/127.0.0.1/tcp/1"}, []string{"/ip4/203.0.113.8/tcp/1"}
	for i, c := range []struct {
		s    home.Settings
		want bool
	}{
		{home.Settings{Node: home.Node{RPC: here}, Listen: local}, false},
		{home.Settings{Node: home.Node{RPC: "http://localhost:1"}, Listen: local}, false},
		{home.Settings{Node: home.Node{RPC: there}, Listen: local}, true},
		{home.Settings{Node: home.Node{RPC: there}, Listen: local, Announce: open}, false},
		{home.Settings{Node: home.Node{RPC: there}, Listen: []string{"/dns4/a.example/tcp/1"}}, false},
		{home.Settings{Node: home.Node{RPC: here}, Listen: local, Validator: &home.ValidatorSettings{P2P: "0.0.0.0:1"}}, true},
	} {
		if got := hidden(&c.s); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// What --sync-from and --trusted-block cannot mean is refused before a home is made.
func TestSyncFlags(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	node := []string{"http://203.0.113.7:26657"}
	for _, x := range []struct {
		s    syncing
		want bool
	}{
		{syncing{}, true}, {syncing{from: node}, true}, {syncing{node, "7:" + hash}, true},
		{syncing{nil, "7:" + hash}, false}, {syncing{node, hash}, false}, {syncing{node, "0:" + hash}, false},
		{syncing{node, "7:" + hash[2:]}, false}, {syncing{from: []string{"203.0.113.7:26657"}}, false},
	} {
		err := x.s.check()
		if (err == nil) != x.want {
			t.Errorf("%+v: %v", x.s, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "--") {
			t.Errorf("%v names no flag", err)
		}
	}
}

// A node that a role is to join by, and whose answer does not end, is read so far and no further.
func TestJoiningByANodeWithoutEnd(t *testing.T) {
	sent := 0
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for spaces := bytes.Repeat([]byte(" "), 1<<20); sent < 256<<20; sent += len(spaces) {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
	}))
	m := &member{e: &env{home: t.TempDir()}}
	err := m.join(t.Context(), &home.Settings{Node: home.Node{RPC: endless.URL, GRPC: "127.0.0.1:2"}})
	endless.Close()
	if err == nil || !strings.Contains(err.Error(), "too large") || sent > 128<<20 {
		t.Errorf("after %d MiB: %v", sent>>20, err)
	}
}
