package consensus_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rpchttp "github.com/cometbft/cometbft/rpc/client/http"

	txtypes "github.com/cosmos/cosmos-sdk/types/tx"

	"github.com/tally-network/tally/chain/app"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/consensus"
)

func TestFourValidators(t *testing.T) {
	dir := t.TempDir()
	net := newNetwork(t, dir, 4)
	begin := time.Now()
	net.start(t)
	net.waitHeight(t, 1)
	t.Logf("first block after %s", time.Since(begin).Round(time.Millisecond))
	net.waitHeight(t, 3)

	tx := transfer(t, net.nodes[1], chaintest.ChainID, alice, bob, 5*tally)
	res, err := net.nodes[2].Client().BroadcastTxCommit(context.Background(), tx)
	if err != nil || res.CheckTx.Code != 0 || res.TxResult.Code != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	for i, n := range net.nodes {
		until(t, "transfer", func() bool { return n.Height() > res.Height })
		if got := balance(t, n, bob.Address); got != 1_005*tally {
			t.Fatalf("node %d: bob has %d utally", i, got)
		}
	}
	want := map[int64]string{}
	for h := int64(1); h <= res.Height; h++ {
		want[h] = net.appHash(t, 0, h)
		for i := range net.nodes {
			if got := net.appHash(t, i, h); got != want[h] {
				t.Fatalf("node %d has app hash %s at height %d, node 0 has %s", i, got, h, want[h])
			}
		}
	}

	net.stop(t)
	again := newNetwork(t, dir, 4)
	begin = time.Now()
	again.start(t)
	last := again.nodes[0].Height()
	again.waitHeight(t, last+2)
	t.Logf("next block after %s", time.Since(begin).Round(time.Millisecond))
	for i, n := range again.nodes {
		for h, hash := range want {
			if got := again.appHash(t, i, h); got != hash {
				t.Fatalf("node %d has app hash %s at height %d after the restart, want %s", i, got, h, hash)
			}
		}
		if got := balance(t, n, alice.Address); got != 995*tally-transferFee {
			t.Fatalf("node %d: alice has %d utally after the restart", i, got)
		}
	}
}

// The environment of a process of the test that is one node, to be killed.
const nodeDir, nodeAddr = "TALLY_TEST_NODE_DIR", "rpc-address"

// TestMain turns the process into a node when it is told to.
// Two of two validators must vote, so without a connection there is no block.
func TestLostPeerIsDialledAgain(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 2)
	net.start(t)
	until(t, "first block", func() bool { return net.nodes[0].Height() > 0 })
	for range 3 {
		for _, n := range net.nodes {
			n.HangUp()
		}
		height := net.nodes[0].Height()
		until(t, "block after all hung up", func() bool { return net.nodes[0].Height() > height+1 })
	}
}

func TestMain(m *testing.M) {
	dir := os.Getenv(nodeDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	n, err := consensus.Start(context.Background(), consensus.Config{
		Dir: dir, CommitTimeout: 20 * time.Millisecond, EmptyInterval: 20 * time.Millisecond,
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, nodeAddr), []byte(n.Addrs().RPC), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// A node that is killed while blocks are made goes on where it was: no block
// that it reported is lost or different, and all money is there.
func TestKilledNodeGoesOn(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 1)
	net.start(t) // writes the genesis
	net.waitHeight(t, 1)
	net.stop(t)
	dir := net.configs[0].Dir
	file := filepath.Join(dir, nodeAddr)
	hashes := map[int64]string{}
	last := int64(0)
	for round := range 4 {
		_ = os.Remove(file)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), nodeDir+"="+dir)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		var addr []byte
		until(t, "node process", func() bool { addr, _ = os.ReadFile(file); return len(addr) > 0 })
		rpc, err := rpchttp.New("http://"+string(addr), "/websocket")
		if err != nil {
			t.Fatal(err)
		}
		// Let it make a few blocks, and note what it says of them.
		for target := last + int64(5+3*round); last < target; time.Sleep(time.Millisecond) {
			s, err := rpc.Status(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if last = s.SyncInfo.LatestBlockHeight; last > 0 {
				hashes[last] = s.SyncInfo.LatestBlockHash.String()
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait()
	}
	net.start(t)
	net.waitHeight(t, last+2)
	for h, hash := range hashes {
		b, err := net.nodes[0].Client().Block(context.Background(), &h)
		if err != nil || b.BlockID.Hash.String() != hash {
			t.Fatalf("block %d: %v, %v; want %s", h, b, err, hash)
		}
	}
	check, err := supplyv1.NewQueryClient(dial(t, net.nodes[0])).Check(context.Background(), &supplyv1.QueryCheckRequest{})
	if err != nil || !check.Ok {
		t.Fatalf("%v, %v", check, err)
	}
}

func TestServers(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 1)
	net.configs[0].Origins = []string{"https://wallet.example"}
	net.start(t)
	n := net.nodes[0]
	net.waitHeight(t, 2) // the app has committed the first block
	at := n.Addrs()
	tx := transfer(t, n, chaintest.ChainID, alice, bob, 7)
	body, _ := json.Marshal(map[string]string{"tx_bytes": base64.StdEncoding.EncodeToString(tx), "mode": "BROADCAST_MODE_SYNC"})
	challenger := chaintest.Named("challenger")
	key := url.QueryEscape(base64.StdEncoding.EncodeToString(challenger.PeerKey()))
	for _, x := range []struct{ name, method, url, body, want string }{
		{"rpc", "GET", at.RPC + "/status", "", `"network":"tally-test"`},
		{"rest: our module", "GET", at.REST + "/tally/seats/v1/members", "", `"votes":"1"`},
		{"rest: our parameters", "GET", at.REST + "/tally/provider/v1/params", "", `"min_provider_stake":"100000000"`},
		{"rest: peers", "GET", at.REST + "/tally/provider/v1/peers?role=3", "", challenger.String()},
		{"rest: peer", "GET", at.REST + "/tally/provider/v1/peers/" + challenger.String(), "", `"stake":"100000000"`},
		{"rest: peer by key", "GET", at.REST + "/tally/provider/v1/peer_by_key?peer_key=" + key, "", challenger.String()},
		{"rest: no peer", "GET", at.REST + "/tally/provider/v1/peers/" + alice.String(), "", "register it first"},
		{"rest: all invariants", "GET", at.REST + "/tally/supply/v1/check", "", `"ok":true`},
		{"rest: bank", "GET", at.REST + "/cosmos/bank/v1beta1/balances/" + alice.String(), "", `"amount":"1000000000"`},
		{"rest: consensus", "GET", at.REST + "/cosmos/base/tendermint/v1beta1/blocks/latest", "", `"chain_id":"tally-test"`},
		{"rest: node", "GET", at.REST + "/cosmos/base/node/v1beta1/status", "", `"height"`},
		{"rest: broadcast", "POST", at.REST + "/cosmos/tx/v1beta1/txs", string(body), `"code":0`},
		{"rest: unknown", "GET", at.REST + "/tally/none", "", `Not Implemented`},
	} {
		req, err := http.NewRequest(x.method, "http://"+x.url, strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", "https://wallet.example")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if !strings.Contains(string(text), x.want) {
			t.Errorf("%s: %s", x.name, text)
		}
		if res.Header.Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("%s: a web page may not read the answer", x.name)
		}
	}
	hash := fmt.Sprintf("%X", tx.Hash())
	until(t, "transaction by hash", func() bool {
		r, err := txtypes.NewServiceClient(dial(t, n)).GetTx(context.Background(), &txtypes.GetTxRequest{Hash: hash})
		return err == nil && r.TxResponse.Code == 0
	})
	sim, err := txtypes.NewServiceClient(dial(t, n)).Simulate(context.Background(),
		&txtypes.SimulateRequest{TxBytes: transfer(t, n, chaintest.ChainID, alice, bob, 7)})
	if err != nil || sim.GasInfo.GasUsed == 0 {
		t.Fatalf("simulate: %v, %v", sim, err)
	}
}

// A preflight asks before a browser sends JSON to another origin.
func TestPreflight(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 1)
	net.configs[0].Origins = []string{"https://wallet.example"}
	net.start(t)
	for _, addr := range []string{net.nodes[0].Addrs().RPC, net.nodes[0].Addrs().REST} {
		for origin, want := range map[string]string{"https://wallet.example": "https://wallet.example", "https://evil.example": ""} {
			req, _ := http.NewRequest(http.MethodOptions, "http://"+addr+"/", nil)
			req.Header.Set("Origin", origin)
			req.Header.Set("Access-Control-Request-Method", http.MethodPost)
			req.Header.Set("Access-Control-Request-Headers", "content-type")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if got := res.Header.Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("%s from %s: %q, want %q", addr, origin, got, want)
			}
		}
	}
}

func TestMetricsArePerNode(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 2)
	net.start(t)
	net.waitHeight(t, 1)
	for i, n := range net.nodes {
		families, err := n.Metrics().Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
		if got["tally_consensus_height"] < 1 || got["tally_consensus_peers"] != 1 || got["tally_consensus_block_time_seconds"] < 1e9 {
			t.Errorf("node %d: %v", i, got)
		}
	}
}

// A node that is started before its chain begins says so, and ends at once.
func TestStartWaitsForTheGenesis(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 1, func(g *app.Genesis) { g.Time = time.Now().Add(time.Hour) })
	ctx, cancel := context.WithCancel(t.Context())
	told := ""
	net.configs[0].Tell = func(format string, args ...any) {
		told = fmt.Sprintf(format, args...)
		cancel()
	}
	if _, err := consensus.Start(ctx, net.configs[0]); !errors.Is(err, context.Canceled) || !strings.Contains(told, "this node waits") {
		t.Errorf("%v, and it told %q", err, told)
	}
}

func TestStartRefuses(t *testing.T) {
	ctx := context.Background()
	running := newNetwork(t, t.TempDir(), 1)
	running.start(t)
	doc := running.configs[0].Genesis
	short, err := chaintest.NewGenesis(chaintest.MaxGap(30 * time.Second)).Doc()
	if err != nil {
		t.Fatal(err)
	}
	bend := func(name string) func(string) {
		return func(dir string) { _ = os.WriteFile(filepath.Join(dir, name), []byte(`{"`), 0o600) }
	}
	for name, x := range map[string]struct {
		config consensus.Config
		bend   func(dir string)
		words  string
	}{
		"no directory":   {consensus.Config{}, nil, "name a data directory"},
		"no genesis":     {consensus.Config{Dir: t.TempDir()}, nil, "give the genesis"},
		"used directory": {consensus.Config{Dir: running.configs[0].Dir}, nil, "another process"},
		"used port":      {consensus.Config{Dir: t.TempDir(), Genesis: doc, Listen: consensus.Addrs{REST: running.nodes[0].Addrs().REST}}, nil, "address already in use"},
		"used P2P port":  {consensus.Config{Dir: t.TempDir(), Genesis: doc, Listen: consensus.Addrs{P2P: running.configs[0].Listen.P2P}}, nil, "address already in use"},
		"idle too long":  {consensus.Config{Dir: t.TempDir(), Genesis: short, EmptyInterval: time.Minute}, nil, "the chain counts pauses of 30s"},
		"bad peer":       {consensus.Config{Dir: t.TempDir(), Genesis: doc, Peers: []string{"nobody"}}, nil, "nobody"},
		"damaged key":    {consensus.Config{Dir: t.TempDir(), Genesis: doc}, bend("config/priv_validator_key.json"), "validator key"},
		"damaged state":  {consensus.Config{Dir: t.TempDir(), Genesis: doc}, bend("data/priv_validator_state.json"), "sign twice"},
		"lost state":     {consensus.Config{Dir: t.TempDir(), Genesis: doc}, func(dir string) { _ = os.Remove(filepath.Join(dir, "data/priv_validator_state.json")) }, "sign twice"},
		"lost key": {consensus.Config{Dir: t.TempDir(), Genesis: doc}, func(dir string) {
			_ = os.Remove(filepath.Join(dir, "config/priv_validator_key.json"))
			_ = os.WriteFile(filepath.Join(dir, "data/priv_validator_state.json"), []byte(`{"height": "7", "round": 0, "step": 3}`), 0o600)
		}, "put it back"},
		"damaged node key": {consensus.Config{Dir: t.TempDir(), Genesis: doc}, bend("config/node_key.json"), "node key"},
		"damaged genesis":  {consensus.Config{Dir: t.TempDir()}, bend("config/genesis.json"), "read genesis"},
		"genesis of another": {consensus.Config{Dir: t.TempDir(), Genesis: newNetwork(t, t.TempDir(), 1).configs[0].Genesis}, func(dir string) {
			text, _ := os.ReadFile(filepath.Join(running.configs[0].Dir, "config/genesis.json"))
			_ = os.WriteFile(filepath.Join(dir, "config/genesis.json"), text, 0o600)
		}, "another chain"},
	} {
		if x.bend != nil {
			if _, err := consensus.LoadIdentity(x.config.Dir); err != nil {
				t.Fatal(err)
			}
			x.bend(x.config.Dir)
		}
		n, err := consensus.Start(ctx, x.config)
		if err == nil || !strings.Contains(err.Error(), x.words) {
			t.Errorf("%s: %v", name, err)
		}
		if n != nil {
			_ = n.Stop()
		}
	}
}

// A start that failed leaves nothing behind that would stop the next.
func TestStartAfterFailure(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 1)
	c := net.configs[0]
	c.Listen.REST = "127.0.0.1:bad"
	if _, err := consensus.Start(context.Background(), c); err == nil {
		t.Fatal("it listens at a bad port")
	}
	net.start(t)
	net.waitHeight(t, 2)
}

// A chain begins with the state of another and goes on with the next block: the same accounts, the same validators.
func TestAnotherChainGoesOn(t *testing.T) {
	dir, next := t.TempDir(), t.TempDir()
	net := newNetwork(t, dir, 2)
	net.start(t)
	net.advance(t, 0, 4)
	v0 := net.configs[0].Dir
	if _, err := consensus.Export(v0, 0, ""); err == nil {
		t.Error("the node runs, and its state was taken")
	}
	net.stop(t)
	for _, x := range []struct {
		dir    string
		height int64
		says   string
	}{{next, 0, "start its node once"}, {v0, 99_999, "up to"}, {v0, -1, "up to"}} {
		if _, err := consensus.Export(x.dir, x.height, ""); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("block %d: %v, want %q", x.height, err, x.says)
		}
	}
	if doc, err := consensus.Export(v0, 3, ""); err != nil || doc.InitialHeight != 4 || doc.ChainID != net.chain() {
		t.Fatalf("%+v, %v", doc, err)
	}
	doc, err := consensus.Export(v0, 0, "tally-2")
	if err != nil {
		t.Fatal(err)
	}
	text, err := app.Text(doc)
	if err != nil {
		t.Fatal(err)
	}
	draft, err := app.ReadDraft(text)
	if err == nil {
		_, err = draft.Verify()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"v0", "v1"} {
		for _, file := range []string{"config/priv_validator_key.json", "config/node_key.json", "data/priv_validator_state.json"} {
			text, err := os.ReadFile(filepath.Join(dir, v, file))
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(next, v, file)), 0o700)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(next, v, file), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	other := newNetwork(t, next, 2)
	for i := range other.configs {
		other.configs[i].Genesis = doc
	}
	other.start(t)
	other.advance(t, 1, doc.InitialHeight+2)
	if got := other.nodes[0].Base(); got != doc.InitialHeight {
		t.Errorf("its first block is %d, want %d", got, doc.InitialHeight)
	}
	if a, b := other.nodes[0].Export(t, doc.InitialHeight+1), other.nodes[1].Export(t, doc.InitialHeight+1); a != b {
		t.Error("two validators have other states")
	}
}
