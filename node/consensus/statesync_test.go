package consensus_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/statesync"
)

const every = 4 // blocks between snapshots

// snapshotting is a network that makes blocks for transactions alone, and takes snapshots.
func snapshotting(t *testing.T, validators int) *network {
	t.Helper()
	net := newNetwork(t, t.TempDir(), validators)
	for i := range net.configs {
		net.configs[i].EmptyInterval = 0
		net.configs[i].SnapshotInterval = every
	}
	return net
}

// advance has alice pay bob at node i until a height.
func (net *network) advance(t *testing.T, i int, height int64) {
	t.Helper()
	n := net.nodes[i]
	until(t, "first block", func() bool { return n.Height() > 0 })
	for n.Height() < height {
		tx := transfer(t, n, net.chain(), alice, bob, 1)
		if r, err := n.Client().BroadcastTxCommit(context.Background(), tx); err != nil || r.TxResult.Code != 0 || r.CheckTx.Code != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

func (net *network) chain() string { return net.configs[0].Genesis.ChainID }

// snapshots waits until node i has taken the snapshot of a height.
func (net *network) snapshots(t *testing.T, i int, height int64) {
	t.Helper()
	until(t, fmt.Sprintf("snapshot %d at node %d", height, i), func() bool {
		all, err := filepath.Glob(filepath.Join(net.configs[i].Dir, "data", "snapshots", fmt.Sprint(height), "*", "*"))
		return err == nil && len(all) > 0 && net.nodes[i].Offers(t, height)
	})
}

// joins adds a node that knows all others and begins at a snapshot of theirs, with block 1 trusted.
func (net *network) joins(t *testing.T, servers ...int) {
	t.Helper()
	id := len(net.nodes)
	c := consensus.Config{
		Dir: filepath.Join(t.TempDir(), "joins"), Name: fmt.Sprint("joins", id), Genesis: net.configs[0].Genesis,
		CommitTimeout: net.configs[0].CommitTimeout, SnapshotInterval: every, StateSync: net.source(t, servers...),
	}
	for _, n := range net.nodes {
		c.Peers = append(c.Peers, n.Addrs().P2P)
	}
	net.configs, net.nodes = append(net.configs, c), append(net.nodes, nil)
	net.restart(t, id)
}

func (net *network) source(t *testing.T, servers ...int) *statesync.Source {
	t.Helper()
	one := int64(1)
	b, err := net.nodes[servers[0]].Client().Commit(context.Background(), &one)
	if err != nil {
		t.Fatal(err)
	}
	s := &statesync.Source{Height: one, Hash: b.Header.Hash(), Tell: func(format string, args ...any) { t.Logf(format, args...) }}
	for _, i := range servers {
		s.Servers = append(s.Servers, "http://"+net.nodes[i].Addrs().RPC)
	}
	return s
}

// restart stops a node, if it runs, and starts it again.
func (net *network) restart(t *testing.T, i int) {
	t.Helper()
	if n := net.nodes[i]; n != nil {
		if err := n.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if net.nodes[i], err = consensus.Start(context.Background(), net.configs[i]); err != nil {
		t.Fatal(err)
	}
}

// A node that begins at a snapshot has the state of the others, follows them, takes transactions,
// and gives snapshots itself.
func TestNodeBeginsAtASnapshot(t *testing.T) {
	net := snapshotting(t, 2)
	net.start(t)
	net.advance(t, 0, 2*every+2)
	net.snapshots(t, 1, 2*every)
	net.joins(t, 0, 1)
	const joined = 2
	if first := net.nodes[joined].Base(); first != 0 {
		t.Fatalf("the node has blocks from %d before it follows", first)
	}
	net.restart(t, joined) // before it need have a block
	net.advance(t, joined, 3*every+2)
	for h := int64(2*every + 1); h <= 3*every; h++ {
		if a, b := net.appHash(t, 0, h), net.appHash(t, joined, h); a != b {
			t.Fatalf("state %d: %s and %s", h, a, b)
		}
	}
	if first := net.nodes[joined].Base(); first != 2*every+1 {
		t.Fatalf("the node has blocks from %d", first)
	}
	same := net.nodes[joined].Height() - 1
	if a, b := net.nodes[0].Export(t, same), net.nodes[joined].Export(t, same); a != b {
		t.Fatalf("state %d differs:\n%s\n%s", same, a, b)
	}

	// Those that were there go, as far as others are needed for blocks, and the new one gives its snapshot.
	net.snapshots(t, joined, 3*every)
	net.restart(t, joined)
	net.advance(t, joined, 3*every+4)
	if a, b := balance(t, net.nodes[0], bob.Address), balance(t, net.nodes[joined], bob.Address); a != b || a <= 1_000*tally {
		t.Fatalf("bob has %d and %d", a, b)
	}
}

var _ = cmttypes.Tx{}
var _ = strings.Contains
var _ = chaintest.Named
