package founding_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/node/founding"
	"github.com/tally-network/tally/node/home"
)

const chain = "tally-9"

// founder makes a validator's home, and the file that it sends.
func founder(t *testing.T) (dir, file string, f founding.File) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "v")
	if _, err := home.Create(dir, home.Settings{Role: home.Validator, Chain: chain, Validator: &home.ValidatorSettings{MaxLeases: 1, CommitTimeout: time.Second, EmptyInterval: time.Second}}); err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	if f, err = founding.NewFile(h, "203.0.113.7:26656"); err != nil {
		t.Fatal(err)
	}
	return dir, write(t, f), f
}

func write(t *testing.T, f founding.File) string {
	t.Helper()
	text, err := json.Marshal(f)
	file := filepath.Join(t.TempDir(), "founder.json")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func draft(t *testing.T, args ...string) (*app.Draft, error) {
	t.Helper()
	d, err := app.Genesis{ChainID: chain, Time: time.Unix(1_800_000_000, 0)}.Draft()
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := founding.Add(d, founding.DefaultGrant, args)
	if err == nil && len(nodes) != len(args) {
		t.Errorf("nodes %q", nodes)
	}
	return d, err
}

// A founder is in the genesis with the keys of its home, and a chain could begin.
func TestFoundersAreTheirHomes(t *testing.T) {
	dir, file, f := founder(t)
	d, err := draft(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Verify(); err != nil {
		t.Fatal(err)
	}
	b, err := d.Summary()
	if err != nil || len(b.Others) > 0 {
		t.Fatalf("%v, %q are not told", err, b.Others)
	}
	if got, err := founding.FounderOf(dir, &b); err != nil || got != f.Account {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := draft(t, file, file); err == nil || !strings.Contains(err.Error(), "a founder of this genesis already") {
		t.Errorf("twice: %v", err)
	}
	other, _, _ := founder(t)
	if _, err := founding.FounderOf(other, &b); err == nil || !strings.Contains(err.Error(), "no founder") {
		t.Errorf("another home: %v", err)
	}
	for says, bend := range map[string]func(*app.FounderSummary){
		"another consensus key": func(f *app.FounderSummary) { f.ConsensusKey = make([]byte, 32) },
		"another beacon key":    func(f *app.FounderSummary) { f.BeaconKey = make([]byte, 32) },
		"another peer key":      func(f *app.FounderSummary) { f.PeerKey = make([]byte, 32) },
		"another VRF key":       func(f *app.FounderSummary) { f.VRFKey = make([]byte, 32) },
		"listen, announce":      func(f *app.FounderSummary) { f.Addrs = []string{"/ip4/203.0.113.8/tcp/1"} },
	} {
		bent := b
		bent.Founders = slices.Clone(b.Founders)
		bend(&bent.Founders[0])
		if _, err := founding.FounderOf(dir, &bent); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// Keys enter a genesis only for the account and chain for which they signed.
func TestForgedFounders(t *testing.T) {
	_, _, mine := founder(t)
	_, _, theirs := founder(t)
	for name, forge := range map[string]func(*founding.File){
		"another account":       func(f *founding.File) { f.Account = theirs.Account },
		"another chain":         func(f *founding.File) { f.Chain = "tally-8" },
		"another consensus key": func(f *founding.File) { f.ConsensusKey = theirs.ConsensusKey },
		"another peer key":      func(f *founding.File) { f.PeerKey = theirs.PeerKey },
		"no beacon key":         func(f *founding.File) { f.BeaconKey = nil },
		"no node":               func(f *founding.File) { f.Node = "here" },
		"another node":          func(f *founding.File) { f.Node = theirs.Node },
		"another VRF key":       func(f *founding.File) { f.VRFKey = theirs.VRFKey },
		"another beacon key":    func(f *founding.File) { f.BeaconKey = theirs.BeaconKey },
		"other addresses":       func(f *founding.File) { f.Addrs = append(f.Addrs, "/ip4/203.0.113.8/tcp/1") },
		"another's signature":   func(f *founding.File) { f.AccountKey, f.Signature = theirs.AccountKey, theirs.Signature },
		"no account key":        func(f *founding.File) { f.AccountKey = nil },
		"no signature":          func(f *founding.File) { f.Signature = nil },
	} {
		f := mine
		forge(&f)
		if _, err := draft(t, write(t, f)); err == nil {
			t.Errorf("%s: the file was taken", name)
		}
	}
	file := write(t, mine)
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(text, text...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := draft(t, file); err == nil || !strings.Contains(err.Error(), "something follows it") {
		t.Errorf("two in one file: %v", err)
	}
}

// Nobody writes a file whose node is a command to whoever copies it.
func TestNodesAreHosts(t *testing.T) {
	dir, _, _ := founder(t)
	h, err := home.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	for _, at := range []string{"$(id):26656", "a b:26656", "host';id;':26656", "\x1b[2J:26656", "здесь:26656"} {
		if _, err := founding.NewFile(h, at); err == nil {
			t.Errorf("%q: taken", at)
		}
	}
	for _, at := range []string{"node.example.org:26656", "[2001:db8::1]:26656", "203.0.113.7:26656"} {
		if _, err := founding.NewFile(h, at); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	id := strings.Repeat("0a", 20)
	for _, node := range []string{"$(id)://" + id + "@203.0.113.7:1", "'" + id + "@203.0.113.7:1", strings.ToUpper(id) + "@203.0.113.7:1", id + "@203.0.113.7:1@"} {
		f, err := founding.NewFile(h, "203.0.113.7:1")
		if err != nil {
			t.Fatal(err)
		}
		if f.Node = node; founding.Sign(h, &f) != nil {
			t.Fatal("the account signs nothing")
		}
		if _, err := draft(t, write(t, f)); err == nil || !strings.Contains(err.Error(), "neither id@host:port") {
			t.Errorf("%q in a file that its account signed: %v", node, err)
		}
	}
}

// Registry files are JSON that names the chain as it is, and hostile places are refused.
func TestRegistryFiles(t *testing.T) {
	b := &app.Summary{ChainID: chain, GasPrice: 200}
	good := founding.PublicChain{
		Name: "tally", Network: "testnet", RPC: []string{"https://rpc.example.org"}, REST: []string{"https://rest.example.org"},
		Peers: []string{"0123456789abcdef0123456789abcdef01234567@203.0.113.7:26656"},
	}
	files, err := founding.RegistryFiles(b, good)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"chain.json":     {`"chain_id":"tally-9"`, `"low_gas_price":0.0002`, `"slip44":118`, `"address":"203.0.113.7:26656"`, `"$schema":"../../chain.schema.json"`},
		"assetlist.json": {`"base":"utally"`, `"symbol":"TALLY"`},
		"keplr.json":     {`"chainId":"tally-9"`, `"rpc":"https://rpc.example.org"`, `"average":0.0003`, `"bech32PrefixAccAddr":"tally"`},
		"explorer.json":  {`"addr_prefix":"tally"`, `"coin_type":"118"`},
	} {
		var value any
		if err := json.Unmarshal(files[name], &value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text, err := json.Marshal(value)
		for _, part := range want {
			if err != nil || !strings.Contains(string(text), part) {
				t.Errorf("%s has no %s", name, part)
			}
		}
	}
	for name, spoil := range map[string]func(*founding.PublicChain){
		"a name with dashes": func(p *founding.PublicChain) { p.Name = "tally-1" },
		"no network":         func(p *founding.PublicChain) { p.Network = "prod" },
		"no RPC":             func(p *founding.PublicChain) { p.RPC = nil },
		"a script":           func(p *founding.PublicChain) { p.Site = "javascript:alert(1)" },
		"a peer without id":  func(p *founding.PublicChain) { p.Peers = []string{"203.0.113.7:26656"} },
		"gRPC without port":  func(p *founding.PublicChain) { p.GRPC = []string{"host"} },
	} {
		p := good
		spoil(&p)
		if _, err := founding.RegistryFiles(b, p); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
