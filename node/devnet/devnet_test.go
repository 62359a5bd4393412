package devnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
)

// start starts a network that is stopped when the test ends.
func start(t *testing.T, c Config) *Network {
	t.Helper()
	begin := time.Now()
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("first block after %s", time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() { _ = n.Stop() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := n.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s", time.Since(begin).Round(time.Millisecond))
	return n
}

func stop(t *testing.T, n *Network) {
	t.Helper()
	begin := time.Now()
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped after %s", time.Since(begin).Round(time.Millisecond))
}

// registered returns the registry by account, after checking it against the
// homes.
func registered(t *testing.T, n *Network) map[string]providerv1.Peer {
	t.Helper()
	r, err := providerv1.NewQueryClient(n.Consumer.Env.Chain.Conn).Peers(t.Context(), &providerv1.QueryPeersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	peers := map[string]providerv1.Peer{}
	for _, p := range r.Peers {
		peers[p.Account] = p
	}
	for _, m := range n.members {
		p, s := peers[m.Home.Address], m.Home.Settings
		if s.Role == home.Consumer {
			continue
		}
		if string(p.PeerKey) != string(m.Home.PeerKey()) || !slices.Equal(p.Listing.Addrs, m.Env.Host.Addrs()) || p.Stake != s.Stake {
			t.Fatalf("%s is registered as %v", s.Name, p)
		}
	}
	return peers
}

func check(t *testing.T, n *Network) {
	t.Helper()
	for _, m := range n.members {
		r, err := supplyv1.NewQueryClient(m.Env.Chain.Conn).Check(t.Context(), &supplyv1.QueryCheckRequest{})
		if err != nil || !r.Ok {
			t.Fatalf("%s: %v, %v", m.Env.Name, r, err)
		}
	}
}

func TestNetwork(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	prepared := map[string]bool{}
	n := start(t, Config{Dir: dir, Metrics: true, Prepare: func(env *role.Env) {
		mu.Lock()
		defer mu.Unlock()
		prepared[env.Name] = true
	}})
	peers := registered(t, n)
	check(t, n)
	if len(n.Validators) != 4 || len(n.Providers) != 4 || len(n.Challengers) != 1 || len(prepared) != 10 || len(peers) != 9 {
		t.Fatalf("%d validators, %d providers, %d challengers; prepared %v; registered %d",
			len(n.Validators), len(n.Providers), len(n.Challengers), prepared, len(peers))
	}
	for i, m := range n.Providers {
		p := peers[m.Home.Address]
		if p.Listing.Validator != n.Validators[0].Home.Address || p.Listing.UnitPrice != Default().UnitPrices[i] {
			t.Errorf("provider %d is listed as %+v", i, p.Listing)
		}
	}
	funds, err := banktypes.NewQueryClient(n.Consumer.Env.Chain.Conn).Balance(t.Context(),
		&banktypes.QueryBalanceRequest{Address: n.Consumer.Home.Address, Denom: coin.Denom})
	if err != nil || funds.Balance.Amount.Uint64() != Default().Funds {
		t.Fatalf("the consumer has %v, %v", funds, err)
	}

	e, err := ReadEndpoints(filepath.Join(dir, endpointsFile))
	if err != nil || len(e.Nodes) != 4 || len(e.Roles) != 6 || e.PID != os.Getpid() || e.Chain != Default().Chain {
		t.Fatalf("%+v, %v", e, err)
	}
	for _, url := range []string{e.Nodes[3].RPC + "/status", e.Nodes[2].REST + "/tally/provider/v1/params", "http://" + e.Nodes[1].Metrics + "/metrics", "http://" + e.Roles[0].Metrics + "/metrics"} {
		if text := get(t, url); !strings.Contains(text, "tally") && !strings.Contains(text, "min_provider_stake") {
			t.Errorf("%s: %s", url, text)
		}
	}
	if text := get(t, "http://"+e.Nodes[1].Metrics+"/metrics"); !strings.Contains(text, "tally_consensus_height") || !strings.Contains(text, "tally_store_bytes") {
		t.Errorf("metrics of a node: %s", text)
	}

	// Nobody else gets in.
	var busy *home.BusyError
	if _, err := Start(t.Context(), Config{Dir: dir}); !errors.As(err, &busy) || busy.PID != os.Getpid() {
		t.Errorf("a second start: %v", err)
	}
	if _, err := home.Open(n.Providers[0].Home.Dir); !errors.As(err, &busy) {
		t.Errorf("a home of the network: %v", err)
	}

	height := n.Consumer.Env.Chain.Head().Height
	stop(t, n)
	if _, err := os.Stat(filepath.Join(dir, endpointsFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("endpoints of a stopped network: %v", err)
	}

	// Another program takes two ports meanwhile.
	for _, addr := range []string{n.Validators[1].Home.Settings.Validator.P2P, hostPort(n.Providers[2].Home.Settings.Listen[0])} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	again := start(t, Config{Dir: dir})
	if h := again.Consumer.Env.Chain.Head().Height; h <= height {
		t.Fatalf("height %d after the restart, %d before", h, height)
	}
	moved := again.Providers[2].Home.Address
	waitFor(t, again, func() bool {
		p, err := providerv1.NewQueryClient(again.Consumer.Env.Chain.Conn).Peer(t.Context(), &providerv1.QueryPeerRequest{Account: moved})
		return err == nil && !slices.Equal(p.Peer.Listing.Addrs, peers[moved].Listing.Addrs)
	})
	for account, p := range registered(t, again) {
		if account != moved && !slices.Equal(p.Listing.Addrs, peers[account].Listing.Addrs) {
			t.Errorf("%s moved without need", account)
		}
	}
	check(t, again)
	stop(t, again)
}

func hostPort(multiaddr string) string {
	return "127.0.0.1:" + multiaddr[strings.LastIndex(multiaddr, "/")+1:]
}

func waitFor(t *testing.T, n *Network, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for height := int64(0); !done(); {
		b, err := n.Consumer.Env.Chain.Next(ctx, height)
		if err != nil {
			t.Fatal(err)
		}
		height = b.Height
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// small is a network that starts fast.
func small(dir string) Config {
	return Config{Dir: dir, Validators: 1, Providers: 1, Challengers: 1, CommitTimeout: 20 * time.Millisecond}
}

// The environment of a process of the test that runs a network, to be killed.
const networkDir = "TALLY_TEST_NETWORK_DIR"

// TestMain turns the process into a network when it is told to.
func TestMain(m *testing.M) {
	dir := os.Getenv(networkDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := Start(context.Background(), small(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// Wherever a network is killed, while its directory is made or later, the next
// start goes on, and no money is lost.
func TestKilledNetworkGoesOn(t *testing.T) {
	for _, delays := range [][]time.Duration{{0, 5, 10, 20}, {40, 80, 160, 320}, {700, 1400, 2100}} {
		dir := t.TempDir()
		for _, delay := range delays {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), networkDir+"="+dir)
			child.Stderr = os.Stderr
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			// From when it has begun to write.
			for begin := time.Now(); ; time.Sleep(time.Millisecond) {
				if _, err := os.Stat(filepath.Join(dir, configFile)); err == nil || time.Since(begin) > time.Minute {
					break
				}
			}
			time.Sleep(delay * time.Millisecond)
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = child.Wait()
		}
		n := start(t, small(dir))
		registered(t, n)
		check(t, n)
		stop(t, n)
	}
}

func TestFailingRoleIsTold(t *testing.T) {
	c := small(t.TempDir())
	trouble := errors.New("no power")
	c.Run = func(ctx context.Context, h *home.Home, _ *role.Env) error {
		if h.Settings.Role == home.Challenger {
			return trouble
		}
		<-ctx.Done()
		return ctx.Err()
	}
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, n)
	for range 2 {
		if err := n.Wait(t.Context()); !errors.Is(err, trouble) || !strings.Contains(err.Error(), "challenger-0") {
			t.Fatal(err)
		}
	}
	if err := n.Ready(t.Context()); !errors.Is(err, trouble) {
		t.Fatal(err)
	}
}

// Who waits in the consumer's home for the network kept it from starting again.
func TestConsumerMayWaitForTheNetwork(t *testing.T) {
	c := Config{Dir: t.TempDir(), Validators: 1, Providers: 1, LeaveConsumer: true}
	if err := Create(c); err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(filepath.Join(c.Dir, "consumer"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := Create(c); err != nil {
		t.Fatal(err)
	}
	c.LeaveConsumer = false
	var busy *home.BusyError
	if err := Create(c); !errors.As(err, &busy) {
		t.Errorf("a network that needs the home itself: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	made := t.TempDir()
	if err := Create(small(made)); err != nil {
		t.Fatal(err)
	}
	damaged := t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, configFile), []byte(`{"validators":4,"kings":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		config Config
		words  string
	}{
		"no directory":       {t.Context(), Config{}, "name a directory"},
		"too many":           {t.Context(), Config{Dir: t.TempDir(), Providers: MaxPeers + 1}, "65 providers"},
		"none":               {t.Context(), Config{Dir: t.TempDir(), Validators: -1}, "-1 validators"},
		"no such validators": {t.Context(), Config{Dir: t.TempDir(), Spread: 5}, "under 5 validators"},
		"another network":    {t.Context(), Config{Dir: made, Validators: 2, Funds: 5}, "funds is 1000000000000, not 5; validators is 1, not 2"},
		"damaged":            {t.Context(), Config{Dir: damaged}, "kings"},
		"no time":            {cancelled, Config{Dir: made}, "canceled"},
	} {
		n, err := Start(c.ctx, c.config)
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
		if n != nil {
			t.Errorf("%s: there is a network", name)
		}
	}
	// What was refused leaves no lock behind.
	if err := Create(Config{Dir: made}); err != nil {
		t.Fatal(err)
	}
}

// Homes are made one at a time, and none is listening yet when the next draws
// its ports.
func TestNoPortIsGivenTwice(t *testing.T) {
	dir := t.TempDir()
	if err := Create(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	homes, err := filepath.Glob(filepath.Join(dir, "*-0"))
	if err != nil || len(homes) != 3 {
		t.Fatalf("%v, %v", homes, err)
	}
	for _, dir := range homes {
		h, err := home.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		h.Settings.Listen = []string{"/ip4/127.0.0.1/tcp/10001"}
		if v := h.Settings.Validator; v != nil {
			v.RPC, v.REST = "127.0.0.1:10001", "127.0.0.1:10001"
		}
		if err := errors.Join(h.Settings.Save(dir), h.Close()); err != nil {
			t.Fatal(err)
		}
	}
	n, err := open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	given := map[string]string{}
	for _, m := range n.members {
		addrs := slices.Clone(m.Home.Settings.Listen)
		if v := m.Home.Settings.Validator; v != nil {
			addrs = append(addrs, v.P2P, v.RPC, v.GRPC, v.REST)
		}
		for _, a := range addrs {
			port := a[strings.LastIndexAny(a, "/:")+1:]
			if other, ok := given[port]; ok {
				t.Errorf("%s and %s have port %s", m.Home.Settings.Name, other, port)
			}
			given[port] = m.Home.Settings.Name
		}
	}
}

// A node that can write no more ends the network, with the reason.
func TestAFailedNodeIsTold(t *testing.T) {
	n := start(t, small(t.TempDir()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	data := filepath.Join(n.Validators[0].Home.Dir, "chain", "data")
	if err := os.Rename(data, data+" is gone"); err != nil {
		t.Fatal(err)
	}
	err := n.Wait(ctx)
	if err == nil || !strings.Contains(err.Error(), "validator-0: consensus has ended") || !strings.Contains(err.Error(), "start the node again") {
		t.Errorf("without a place to write: %v", err)
	}
}
