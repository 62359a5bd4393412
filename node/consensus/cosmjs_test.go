package consensus_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// An outside client, in another language and over the network alone, reads a
// balance, sends tokens and reads again. It runs where Node and its packages can
// be had; with TALLY_REQUIRE_NODE=1 it must.
func TestCosmJS(t *testing.T) {
	missing := t.Skipf
	if os.Getenv("TALLY_REQUIRE_NODE") == "1" {
		missing = t.Fatalf
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing("%v", err)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("cosmjs")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			missing("npm ci: %v\n%s", err, out)
		}
	}

	net := newNetwork(t, t.TempDir(), 1)
	net.start(t)
	net.waitHeight(t, 2)
	script := exec.Command("node", "transfer.js", "http://"+net.nodes[0].Addrs().RPC,
		hex.EncodeToString(alice.Key.Key), bob.String(), "12345")
	script.Dir, script.Stderr = dir, os.Stderr
	out, err := script.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	type balances struct{ Sender, Recipient string }
	var got struct {
		Chain, Sender, Log string
		Code               int
		Before, After      balances
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Chain != chaintest.ChainID || got.Sender != alice.String() || got.Code != 0 ||
		got.Before != (balances{"1000000000", "1000000000"}) || got.After != (balances{"999987635", "1000012345"}) {
		t.Fatalf("%s", out)
	}
	if n := balance(t, net.nodes[0], bob.Address); n != 1_000_012_345 {
		t.Fatalf("bob has %d utally", n)
	}
}
